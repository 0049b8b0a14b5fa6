"""A source's offset in a few words."""

from ckpt.checkpoint.sources.kind import Unit
from ckpt.checkpoint.sources.registry import Offset, SourceRange, kind_of


def count_units(amount: int, unit: str, sign: str = "") -> str:
    """How far a source went: ``1 row``, ``45 offsets``; ``sign`` ``+`` writes one before it."""
    singular = "log entry" if unit == Unit.ENTRIES else unit.removesuffix("s")
    return f"{amount:{sign},} {singular if amount == 1 else unit}"


def offset_text(offset: Offset | None) -> str:
    """Describe an offset: ``orders/0=310 orders/1=295``, ``version 12``, ``row 60``; unknown kinds as they are."""
    return "its beginning" if offset is None else kind_of(offset).to_text(offset)


def range_text(reads: SourceRange) -> str:
    """Describe a range in a line: ``from orders/0=40 to orders/0=51: 11 offsets``."""
    end = "an unknown offset" if reads.end is None else offset_text(reads.end_offset)
    advance = reads.advance
    count = f": {count_units(advance.amount, advance.unit)}" if advance and advance.amount is not None else ""
    return f"from {offset_text(reads.start_offset)} to {end}{count}"
