"""Seeds that end badly, each with its reason: faults of ckpt that are not repaired yet."""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    """Seeds that end in one way for one reason."""

    reason: str
    outcome: str
    mode: str
    seeds: tuple[int, ...]


KNOWN: tuple[Known, ...] = ()
"""None at present. A stop is listed where another command of ckpt would have ended well."""
