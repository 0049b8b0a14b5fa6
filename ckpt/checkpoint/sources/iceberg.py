"""Offsets of Iceberg tables."""

from dataclasses import dataclass

from ckpt.checkpoint.sources.book import BOOK, say
from ckpt.checkpoint.sources.ends import BatchPlanned, LatestEnd, MovedEnd, RequestedEnd, move_along
from ckpt.checkpoint.sources.kind import LONG, Advance, SourceKind, SourceType, Unit, advance_number, whole_number
from ckpt.checkpoint.sources.starts import ReaderStart, StartFacts, StartingPoint
from ckpt.model import Json
from ckpt.texts import plural

_KEYS = {"version", "snapshot_id", "position", "scan_all_files"}


@dataclass(frozen=True, slots=True)
class IcebergOffset:
    """A place in an Iceberg table (Iceberg class ``StreamingOffset``, version 1)."""

    snapshot: int | None  # None: the table had none, or none that counts
    position: int  # how many of its files were read
    all_files: bool  # scan_all_files: of the table as of the snapshot, not only of those that it added


class IcebergKind(SourceKind[IcebergOffset]):
    """Iceberg tables."""

    name = SourceType.ICEBERG
    record = IcebergOffset
    settable = True
    _not_an_offset = "iceberg_not_an_offset"

    def decode(self, value: Json) -> IcebergOffset | None:
        if not isinstance(value, dict) or whole_number(value.get("version")) != 1:
            return None
        snapshot, position = whole_number(value.get("snapshot_id")), whole_number(value.get("position"))
        all_files = value.get("scan_all_files")
        if snapshot is None or position is None or not isinstance(all_files, bool):
            return None
        return IcebergOffset(None if snapshot == -1 else snapshot, position, all_files)

    def advance(self, old: IcebergOffset, new: IcebergOffset) -> Advance:
        if (old.snapshot, old.all_files) != (new.snapshot, new.all_files):
            return Advance(None, Unit.FILES)
        return advance_number(old.position, new.position, Unit.FILES)

    def to_json(self, offset: IcebergOffset) -> dict[str, Json]:
        snapshot = None if offset.snapshot is None else str(offset.snapshot)  # more digits than a double has
        return {"snapshot_id": snapshot, "position": offset.position, "scan_all_files": offset.all_files}

    def to_text(self, offset: IcebergOffset) -> str:
        if offset.snapshot is None:
            return "no snapshot yet"
        files = "the table" if offset.all_files else "the files that it added"
        return f"snapshot {offset.snapshot} (read: {plural(offset.position, 'file')} of {files})"

    def start_after(self, offset: IcebergOffset, facts: StartFacts) -> ReaderStart:
        return ReaderStart(StartingPoint.REFUSED, refused=say("iceberg_no_option", snapshot=offset.snapshot or "none"))

    def _can_end_at(self, offset: IcebergOffset, value: Json) -> bool:
        named = isinstance(value, dict) and value.keys() == _KEYS and not offset.all_files
        return named and 0 <= (offset.snapshot or -1) <= LONG and 0 <= offset.position < 2**31

    def move_end(self, latest: LatestEnd[IcebergOffset], new: RequestedEnd) -> MovedEnd:
        """Iceberg class ``SparkMicroBatchStream``: the ids of snapshots say nothing of their order."""
        old, to = latest.offset, self.decode(new.value)
        if not latest.committed:
            raise BatchPlanned(say("uncommitted", batch=latest.batch))
        not_asked = () if new.said else (BOOK.text("iceberg_not_asked"),)
        if to is not None and (old.snapshot, old.all_files) == (to.snapshot, to.all_files):
            return move_along(latest, new, old.position, to.position, *not_asked)
        if new.ahead is not None:
            return move_along(latest, new, 0, 1 if new.ahead else -1)
        ahead, back = (latest.value, new.value), (new.value, latest.value)
        return MovedEnd((ahead,), (back,), (BOOK.text("iceberg_no_order"), *not_asked) if not_asked else ())


def write_offset(offset: IcebergOffset) -> dict[str, Json]:
    """Write an offset as the log has it."""
    return {
        "version": 1,
        "snapshot_id": -1 if offset.snapshot is None else offset.snapshot,
        "position": offset.position,
        "scan_all_files": offset.all_files,
    }
