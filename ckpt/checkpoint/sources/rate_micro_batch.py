"""Offsets of the source ``rate-micro-batch``."""

from dataclasses import dataclass

from ckpt.checkpoint.sources.kind import Advance, SourceKind, SourceType, Unit, advance_number, whole_number
from ckpt.model import Json


@dataclass(frozen=True, slots=True)
class RateMicroBatchOffset:
    """``{"offset": rows, "timestamp": ms}`` (Spark class ``RatePerMicroBatchStreamOffset``)."""

    rows: int
    timestamp_ms: int


class RateMicroBatchKind(SourceKind[RateMicroBatchOffset]):
    """Generated rows, a fixed number for each batch."""

    record = RateMicroBatchOffset

    def decode(self, value: Json) -> RateMicroBatchOffset | None:
        if not isinstance(value, dict) or len(value) != 2:
            return None
        rows, timestamp = whole_number(value.get("offset")), whole_number(value.get("timestamp"))
        return None if rows is None or timestamp is None else RateMicroBatchOffset(rows, timestamp)

    def type_of(self, offset: RateMicroBatchOffset) -> SourceType:
        return SourceType.RATE_MICRO_BATCH

    def advance(self, old: RateMicroBatchOffset, new: RateMicroBatchOffset) -> Advance:
        return advance_number(old.rows, new.rows, Unit.ROWS)

    def to_json(self, offset: RateMicroBatchOffset) -> dict[str, Json]:
        return {"rows": offset.rows, "timestamp_ms": offset.timestamp_ms}

    def to_text(self, offset: RateMicroBatchOffset) -> str:
        return f"row {offset.rows}"
