"""Findings about sources: offsets that went backwards, replaced tables, holes in the logs that sources keep."""

CHECKS = ()
