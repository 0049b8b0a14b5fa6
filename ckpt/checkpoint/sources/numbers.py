"""Offsets that are a bare number: rate sources, sockets and others."""

from dataclasses import dataclass

from ckpt.checkpoint.sources.kind import Advance, SourceKind, SourceType, Unit, advance_number, whole_number
from ckpt.checkpoint.sources.starts import Begin, ReaderStart, StartFacts, shorten_json
from ckpt.model import Json


@dataclass(frozen=True, slots=True)
class NumberOffset:
    """A bare number: seconds of a rate source, lines of a socket (Spark class ``LongOffset``)."""

    value: int
    rate: bool  # a rate source, which alone of these keeps ``sources/<k>/0``


class NumbersKind(SourceKind[NumberOffset]):
    """Sources whose offset is a number; whether it is a rate source's, the number does not say."""

    name = SourceType.UNKNOWN
    record = NumberOffset

    def decode(self, value: Json) -> NumberOffset | None:
        number = whole_number(value)
        return None if number is None else NumberOffset(number, rate=False)

    def type_of(self, offset: NumberOffset) -> str:
        return SourceType.RATE if offset.rate else self.name

    def advance(self, old: NumberOffset, new: NumberOffset) -> Advance:
        return advance_number(old.value, new.value, Unit.STEPS)

    def to_json(self, offset: NumberOffset) -> dict[str, Json]:
        return {"seconds" if offset.rate else "number": offset.value}

    def to_text(self, offset: NumberOffset) -> str:
        return str(offset.value)

    def start_after(self, offset: NumberOffset, facts: StartFacts) -> ReaderStart:
        if offset.rate:
            condition = "a rate source counts from zero in every new checkpoint; no option says otherwise"
            return ReaderStart(Begin.FROM_ZERO, conditions=(condition,))
        refused = (
            f"its offset is the number {shorten_json(offset.value)}, as sockets and others write it: ckpt does not "
            "know which source this is; what a socket sent is gone, and a new query reads only what arrives after its "
            "start"
        )
        return ReaderStart(Begin.REFUSED, refused=refused)
