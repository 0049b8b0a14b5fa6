"""A source's offset in a few words."""

import json

from ckpt.checkpoint.sources.kind import Unit
from ckpt.checkpoint.sources.registry import advance, decode, kind_of
from ckpt.model import Json
from ckpt.restart.forecast import SourceRange
from ckpt.texts import masked_json

_LONGEST = 500  # characters of an offset of unknown kind


def counted(amount: int, unit: Unit, sign: str = "") -> str:
    """How far a source went: ``1 row``, ``45 offsets``; ``sign`` ``+`` writes one before it."""
    one = {Unit.ENTRIES: "log entry"}.get(unit, unit.removesuffix("s"))
    return f"{amount:{sign},} {one if amount == 1 else unit}"


def offset(value: Json) -> str:
    """What an offset says: ``orders/0=310 orders/1=295``, ``version 12``, ``row 60``; unknown kinds as they are."""
    decoded = decode(value)
    if decoded is not None:
        return kind_of(decoded).to_text(decoded)
    text = "its beginning" if value is None else masked_json(json.dumps(value))  # before it is cut
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def range_text(one: SourceRange) -> str:
    """A range in a line: ``from orders/0=40 to orders/0=51: 11 offsets``."""
    grown = None if one.end is None else advance(one.start, one.end)
    count = f": {counted(grown.amount, grown.unit)}" if grown and grown.amount is not None else ""
    return f"from {offset(one.start)} to {'an unknown offset' if one.end is None else offset(one.end)}{count}"
