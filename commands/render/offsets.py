"""A source's offset in a few words."""

import json

from ckpt.model import Json
from ckpt.sources import DeltaOffset, FileOffset, KafkaOffset, NumberOffset, RateMicroBatchOffset, decode

_PARTITIONS = 4  # how many partitions of a topic are named


def offset(value: Json) -> str:
    """What an offset says: ``orders/0=310 orders/1=295``, ``version 12``, ``row 60``; unknown kinds as they stand."""
    match decode(value):
        case KafkaOffset(partitions):
            named = [f"{topic}/{p}={number}" for (topic, p), number in list(partitions.items())[:_PARTITIONS]]
            more = len(partitions) - len(named)
            return " ".join(named) + (f" and {more} more partitions" if more > 0 else "")
        case DeltaOffset() as place:
            inside = "" if place.at_boundary else f", file {place.index} in it"
            return f"table version {place.version}{inside}" + (", initial snapshot" if place.initial_snapshot else "")
        case FileOffset(entry):
            return f"entry {entry} of its log"
        case RateMicroBatchOffset(rows, _):
            return f"row {rows}"
        case NumberOffset(number, _):
            return str(number)
    return "its beginning" if value is None else json.dumps(value)
