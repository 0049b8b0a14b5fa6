"""Offsets that do not say which source wrote them: of no kind that ckpt knows, or a bare number."""

from dataclasses import dataclass

from ckpt.checkpoint.sources.book import say
from ckpt.checkpoint.sources.ends import MOST_ON_PAGE, show_offset
from ckpt.checkpoint.sources.kind import Advance, SourceKind, SourceType, Unit, advance_number, whole_number
from ckpt.checkpoint.sources.starts import ReaderStart, StartFacts, StartingPoint
from ckpt.model import Json


@dataclass(frozen=True, slots=True)
class UnknownOffset:
    """An offset in which ckpt recognises no source."""

    value: Json


class UnknownKind(SourceKind[UnknownOffset]):
    """Every source that no other kind recognises."""

    name = SourceType.UNKNOWN
    record = UnknownOffset

    def decode(self, value: Json) -> UnknownOffset:
        return UnknownOffset(value)

    def advance(self, old: UnknownOffset, new: UnknownOffset) -> None:
        return None

    def to_json(self, offset: UnknownOffset) -> dict[str, Json]:
        return {}

    def to_text(self, offset: UnknownOffset) -> str:
        return show_offset(offset.value, MOST_ON_PAGE, ascii_only=True)

    def start_after(self, offset: UnknownOffset, facts: StartFacts) -> ReaderStart:
        like = show_offset(offset.value, 200)
        if _has_partitions(offset.value):
            like += say("unknown_partitions")
        return ReaderStart(StartingPoint.REFUSED, refused=say("unknown_source", like=like))


def _has_partitions(value: Json) -> bool:
    if not isinstance(value, dict) or not value:
        return False
    return all(key.isdecimal() and whole_number(number) is not None for key, number in value.items())


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
            return ReaderStart(StartingPoint.FROM_ZERO, conditions=(say("rate_from_zero"),))
        return ReaderStart(StartingPoint.REFUSED, refused=say("unknown_number", number=show_offset(offset.value, 200)))
