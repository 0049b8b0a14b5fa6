"""Offsets of the source ``rate-micro-batch``."""

from dataclasses import dataclass

from ckpt.checkpoint.sources.book import say
from ckpt.checkpoint.sources.ends import BatchPlanned, LatestEnd, MovedEnd, RequestedEnd, move_along
from ckpt.checkpoint.sources.kind import LONG, Advance, SourceKind, SourceType, Unit, advance_number, whole_number
from ckpt.checkpoint.sources.starts import ReaderStart, StartFacts, StartingPoint
from ckpt.model import Json


@dataclass(frozen=True, slots=True)
class RateMicroBatchOffset:
    """``{"offset": rows, "timestamp": ms}`` (Spark class ``RatePerMicroBatchStreamOffset``)."""

    rows: int
    timestamp_ms: int


class RateMicroBatchKind(SourceKind[RateMicroBatchOffset]):
    """Generated rows, a fixed number for each batch."""

    name = SourceType.RATE_MICRO_BATCH
    record = RateMicroBatchOffset
    settable = True
    _not_an_offset = "rate_micro_batch_not_an_offset"

    def decode(self, value: Json) -> RateMicroBatchOffset | None:
        if not isinstance(value, dict) or len(value) != 2:
            return None
        numbers = (value.get("offset"), value.get("timestamp"))  # Spark reads 50.0 as a long, too
        whole = (int(n) if isinstance(n, float) and n.is_integer() else n for n in numbers)
        rows, timestamp = map(whole_number, whole)
        return None if rows is None or timestamp is None else RateMicroBatchOffset(rows, timestamp)

    def ignore_more(self, value: dict[str, Json]) -> RateMicroBatchOffset | None:
        return self.decode({key: value[key] for key in ("offset", "timestamp") if key in value})

    def advance(self, old: RateMicroBatchOffset, new: RateMicroBatchOffset) -> Advance:
        return advance_number(old.rows, new.rows, Unit.ROWS)

    def count_rows(self, old: RateMicroBatchOffset | None, new: RateMicroBatchOffset) -> int | None:
        before = 0 if old is None else old.rows
        return new.rows - before if new.rows >= before else None

    def to_json(self, offset: RateMicroBatchOffset) -> dict[str, Json]:
        return {"rows": offset.rows, "timestamp_ms": offset.timestamp_ms}

    def to_text(self, offset: RateMicroBatchOffset) -> str:
        return f"row {offset.rows}"

    def start_after(self, offset: RateMicroBatchOffset, facts: StartFacts) -> ReaderStart:
        return ReaderStart(StartingPoint.FROM_ZERO, conditions=(say("rate_micro_batch_from_zero"),))

    def _can_end_at(self, offset: RateMicroBatchOffset, value: Json) -> bool:
        return 0 <= offset.rows <= LONG and 0 <= offset.timestamp_ms <= LONG

    def move_end(self, latest: LatestEnd[RateMicroBatchOffset], new: RequestedEnd) -> MovedEnd:
        offsets = (latest.offset, self.decode(new.value), latest.start)
        old, to, start = (0 if offset is None else offset.rows for offset in offsets)
        if not latest.committed and to < start:
            raise BatchPlanned(say("rate_micro_batch_before_batch", batch=latest.batch, start=start))
        return move_along(latest, new, old, to)
