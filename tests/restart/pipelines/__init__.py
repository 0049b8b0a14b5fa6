"""Flows of declarative pipelines: what a run makes of what is there, recorded, and compared with the forecast."""
