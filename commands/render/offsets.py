"""A source's offset in a few words."""

import json

from ckpt.checkpoint.sources.advance import Unit, advance
from ckpt.checkpoint.sources.offsets import (
    DeltaOffset,
    FileOffset,
    IcebergOffset,
    KafkaOffset,
    NumberOffset,
    RateMicroBatchOffset,
    decode,
)
from ckpt.model import Json
from ckpt.restart.forecast import SourceRange
from ckpt.texts import masked_json

from .text import plural_of

_LONGEST = 500  # characters of an offset of unknown kind
_PARTITIONS = 4  # how many partitions of a topic are named


def counted(amount: int, unit: Unit, sign: str = "") -> str:
    """How far a source went: ``1 row``, ``45 offsets``; ``sign`` ``+`` writes one before it."""
    one = {Unit.ENTRIES: "log entry"}.get(unit, unit.removesuffix("s"))
    return f"{amount:{sign},} {one if amount == 1 else unit}"


def offset(value: Json) -> str:
    """What an offset says: ``orders/0=310 orders/1=295``, ``version 12``, ``row 60``; unknown kinds as they are."""
    match decode(value):
        case KafkaOffset(partitions):
            named = [f"{topic}/{p}={number}" for (topic, p), number in list(partitions.items())[:_PARTITIONS]]
            more = len(partitions) - len(named)
            return " ".join(named) + (f" and {more} more {plural_of(more, 'partition')}" if more > 0 else "")
        case DeltaOffset() as place:
            inside = "" if place.at_boundary else f", file {place.index} in it"
            return f"table version {place.version}{inside}" + (", initial snapshot" if place.initial_snapshot else "")
        case IcebergOffset(None, _, _):
            return "no snapshot yet"
        case IcebergOffset(snapshot, position, all_files):
            return f"snapshot {snapshot}, file {position} of {'the table' if all_files else 'what it added'}"
        case FileOffset(entry):
            return f"entry {entry} of its log"
        case RateMicroBatchOffset(rows, _):
            return f"row {rows}"
        case NumberOffset(number, _):
            return str(number)
    text = "its beginning" if value is None else masked_json(json.dumps(value))  # before it is cut
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def range_text(one: SourceRange) -> str:
    """A range in a line: ``from orders/0=40 to orders/0=51: 11 offsets``."""
    grown = None if one.end is None else advance(one.start, one.end)
    count = f": {counted(grown.amount, grown.unit)}" if grown and grown.amount is not None else ""
    return f"from {offset(one.start)} to {'an unknown offset' if one.end is None else offset(one.end)}{count}"
