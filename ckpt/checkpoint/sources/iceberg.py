"""Offsets of Iceberg tables."""

from dataclasses import dataclass

from ckpt.advice import words
from ckpt.checkpoint.sources.ends import CannotEndThere, LatestEnd, MovedEnd, RequestedEnd, cut_json, move_along
from ckpt.checkpoint.sources.kind import LONG, Advance, SourceKind, SourceType, Unit, advance_number, whole_number
from ckpt.checkpoint.sources.starts import Begin, ReaderStart, StartFacts
from ckpt.errors import UsageError
from ckpt.model import Json

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
        files = "the table" if offset.all_files else "what it added"
        return f"snapshot {offset.snapshot}, file {offset.position} of {files}"

    def start_after(self, offset: IcebergOffset, facts: StartFacts) -> ReaderStart:
        refused = (
            "no option of Iceberg's reader names the file or the snapshot to begin with; stream-from-timestamp begins "
            "with the first snapshot that was committed at a time (in ms) or after it: the one after "
            f"{offset.snapshot or 'none'} in the table's list of snapshots, if the batch ended at the end of that one"
        )
        return ReaderStart(Begin.REFUSED, refused=refused)

    def parse_end(self, value: Json, what: str) -> RequestedEnd:
        offset = self.decode(value) if isinstance(value, dict) and value.keys() == _KEYS else None
        if (
            offset is None
            or not 0 <= (offset.snapshot or -1) <= LONG
            or not 0 <= offset.position < 2**31
            or offset.all_files
        ):
            raise UsageError(
                f"{what} is not an offset of an Iceberg source: all four keys as `ckpt offsets show` prints them, with "
                f"another snapshot_id and position, and scan_all_files false: {cut_json(value)}"
            )
        return RequestedEnd(value)

    def move_end(self, latest: LatestEnd[IcebergOffset], new: RequestedEnd) -> MovedEnd:
        """Iceberg class ``SparkMicroBatchStream``: the ids of snapshots say nothing of their order."""
        old, to = latest.offset, self.decode(new.value)
        if not latest.committed:
            raise CannotEndThere(f"batch {latest.batch} is planned and not committed: let it run first, or skip it")
        if to is not None and (old.snapshot, old.all_files) == (to.snapshot, to.all_files):
            return move_along(latest, new, old.position, to.position, _NOT_ASKED)
        ahead, back = (latest.value, new.value), (new.value, latest.value)
        return MovedEnd((ahead,), (back,), (_NO_ORDER, _NOT_ASKED))


_NO_ORDER = words(
    "Snapshot ids do not show whether that is earlier or later: rows in between are read again if it is earlier, and "
    "left out if it is later."
)
_NOT_ASKED = words(
    "ckpt does not read the table: snapshot_id must be the current snapshot or an ancestor of it, or the next start "
    "fails. position is how many of the files that it added are left out."
)
