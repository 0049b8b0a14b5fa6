"""Seeds that end badly, each with its reason: faults of ckpt that are not repaired yet."""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    """Seeds that end in one way for one reason."""

    reason: str
    outcome: str
    mode: str
    seeds: tuple[int, ...]


KNOWN: tuple[Known, ...] = (
    Known(
        "`explain` finds no cause in what Spark says of rows that Kafka lost under foreachBatch or a Delta sink; asked "
        "by hand, `inspect --sources` names `offsets set`, which ends as announced",
        "stuck",
        "bare",
        (91,),
    ),
)
"""A stop is listed where another command of ckpt would have ended well."""
