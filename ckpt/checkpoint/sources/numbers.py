"""Offsets that are a bare number: rate sources, sockets and others."""

from dataclasses import dataclass

from ckpt.checkpoint.sources.kind import Advance, SourceKind, SourceType, Unit, advance_number, whole_number
from ckpt.model import Json


@dataclass(frozen=True, slots=True)
class NumberOffset:
    """A bare number: seconds of a rate source, lines of a socket (Spark class ``LongOffset``)."""

    value: int
    rate: bool  # a rate source, which alone of these keeps ``sources/<k>/0``


class NumbersKind(SourceKind[NumberOffset]):
    """Sources whose offset is a number; whether it is a rate source's, the number does not say."""

    record = NumberOffset

    def decode(self, value: Json) -> NumberOffset | None:
        number = whole_number(value)
        return None if number is None else NumberOffset(number, rate=False)

    def type_of(self, offset: NumberOffset) -> SourceType:
        return SourceType.RATE if offset.rate else SourceType.UNKNOWN

    def advance(self, old: NumberOffset, new: NumberOffset) -> Advance:
        return advance_number(old.value, new.value, Unit.STEPS)

    def to_json(self, offset: NumberOffset) -> dict[str, Json]:
        return {"seconds" if offset.rate else "number": offset.value}

    def to_text(self, offset: NumberOffset) -> str:
        return str(offset.value)
