"""The range of offsets that a batch reads of one source."""

from dataclasses import dataclass

from ckpt.checkpoint.sources.kind import Advance
from ckpt.checkpoint.sources.registry import Offset, advance, decode, in_order
from ckpt.model import Json, OffsetLog


@dataclass(frozen=True, slots=True)
class SourceRange:
    """The range that a batch reads of one source: after ``start`` up to ``end``, as in the offset log."""

    index: int
    start: Json  # None: from the source's beginning, or what its options say
    end: Json  # None: up to what is there when the batch is planned

    @property
    def start_offset(self) -> Offset | None:
        """The meaning of ``start``."""
        return decode(self.start)

    @property
    def end_offset(self) -> Offset | None:
        """The meaning of ``end``."""
        return decode(self.end)

    @property
    def advance(self) -> Advance | None:
        """How far the source goes; None where that is not known."""
        return advance(self.start_offset, self.end_offset)


def source_ranges(begin: OffsetLog | None, end: OffsetLog | None) -> tuple[SourceRange, ...]:
    """From the end of one batch to the end of another, per source in the order of the query; None is not known."""
    sides = [in_order(log) if log else () for log in (begin, end)]
    count = max(map(len, sides))
    values = [[source.value for source in side] + [None] * (count - len(side)) for side in sides]
    return tuple(SourceRange(i, a, b) for i, (a, b) in enumerate(zip(*values, strict=True)))
