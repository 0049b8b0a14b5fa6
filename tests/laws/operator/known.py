"""Seeds that end badly, and why: each is a fault of ckpt that is not repaired, or a limit that the reason names."""

from __future__ import annotations

KNOWN: dict[tuple[int, str], tuple[str, str]] = {}
"""Class and reason, by seed and mode."""
