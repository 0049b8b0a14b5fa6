"""Offsets of Delta tables."""

from dataclasses import dataclass, field

from ckpt.advice import words
from ckpt.checkpoint.sources.ends import CannotEndThere, LatestEnd, MovedEnd, RequestedEnd, cut_json, move_along
from ckpt.checkpoint.sources.kind import LONG, Advance, SourceKind, SourceType, Unit, whole_number
from ckpt.checkpoint.sources.starts import Begin, ReaderStart, StartFacts
from ckpt.errors import UsageError
from ckpt.model import Json

_KEYS = {"sourceVersion", "reservoirId", "reservoirVersion", "index", "isStartingVersion"}
_BASE_INDEXES = {1: -1, 3: -100}  # of each sourceVersion: DeltaSourceOffset.BASE_INDEX_V1 and BASE_INDEX_V3


@dataclass(frozen=True, slots=True)
class DeltaOffset:
    """A place in a Delta table (``DeltaSourceOffset`` of delta-spark, serialized as version 1 or 3)."""

    table_id: str  # reservoirId
    version: int  # reservoirVersion
    index: int  # of the last file of the version that was read; negative: none of it yet
    initial_snapshot: bool  # isStartingVersion: still reading what was there when the query began
    source_version: int = field(default=1, compare=False)  # of the form in which it is written

    @property
    def at_boundary(self) -> bool:
        """True if nothing of ``version`` was read: ``startingVersion`` continues exactly there."""
        return self.index in _BASE_INDEXES.values() and not self.initial_snapshot

    @property
    def place(self) -> tuple[int, int]:
        """Version and index, by which two places in a table can be compared."""
        bases = _BASE_INDEXES.values()
        return self.version, min(bases) if self.index in bases else self.index

    @property
    def base_index(self) -> int:
        """The index that is the beginning of a version."""
        return _BASE_INDEXES[self.source_version]

    @property
    def last_read(self) -> int:
        """The newest version of which something was read."""
        return self.version - 1 if self.at_boundary else self.version


class DeltaKind(SourceKind[DeltaOffset]):
    """Delta tables."""

    name = SourceType.DELTA
    record = DeltaOffset
    at_path = True
    settable = True

    def decode(self, value: Json) -> DeltaOffset | None:
        if not isinstance(value, dict):
            return None
        table_id, initial = value.get("reservoirId"), value.get("isStartingVersion")
        version, index = whole_number(value.get("reservoirVersion")), whole_number(value.get("index"))
        if not isinstance(table_id, str) or not isinstance(initial, bool) or version is None or index is None:
            return None
        source_version = whole_number(value.get("sourceVersion"))
        if source_version not in _BASE_INDEXES:
            return None
        return DeltaOffset(table_id, version, index, initial, source_version)

    def advance(self, old: DeltaOffset, new: DeltaOffset) -> Advance:
        if old.table_id != new.table_id:
            return Advance(None, Unit.VERSIONS, replaced=True)
        back: list[str] = []
        if new.place < old.place:
            back.append(f"went from version {old.version} index {old.index} to {new.version} index {new.index}")
        if new.initial_snapshot and not old.initial_snapshot:
            back.append("reads the initial snapshot again")
        return Advance(None if back else new.version - old.version, Unit.VERSIONS, tuple(back))

    def to_json(self, offset: DeltaOffset) -> dict[str, Json]:
        return {
            "table_id": offset.table_id,
            "version": offset.version,
            "index": offset.index,
            "initial_snapshot": offset.initial_snapshot,
            "at_boundary": offset.at_boundary,
        }

    def to_text(self, offset: DeltaOffset) -> str:
        inside = "" if offset.at_boundary else f", file {offset.index} in it"
        return f"table version {offset.version}{inside}" + (", initial snapshot" if offset.initial_snapshot else "")

    def start_after(self, offset: DeltaOffset, facts: StartFacts) -> ReaderStart:
        """``startingVersion`` is inclusive, and nothing of the version of an offset at a boundary was read."""
        if not offset.at_boundary:
            inside = "the initial snapshot" if offset.initial_snapshot else "that version"
            refused = (
                f"the batch ended inside version {offset.version} of the table (file {offset.index} of {inside}), but "
                "startingVersion starts at the beginning of a version; start the old query once more with trigger "
                "availableNow and without maxFilesPerTrigger and maxBytesPerTrigger, which ends between two versions"
            )
            return ReaderStart(Begin.REFUSED, refused=refused)
        return ReaderStart(
            Begin.EXACT,
            {"startingVersion": str(offset.version)},
            without=("startingTimestamp",),
            conditions=(
                f"the table must be the one whose id is {offset.table_id} (DESCRIBE DETAIL)",
                f"version {offset.version} may not exist yet (DESCRIBE HISTORY): the new query then fails with "
                "DELTA_VERSION_NOT_FOUND; wait for the next write, or make a version without rows: "
                "ALTER TABLE ... SET TBLPROPERTIES; startingVersion latest would skip rows",
            ),
        )

    def parse_end(self, value: Json, what: str) -> RequestedEnd:
        offset = self.decode(value) if isinstance(value, dict) and value.keys() == _KEYS else None
        if offset is None or not 0 <= offset.version <= LONG:
            raise UsageError(
                f"{what} is not an offset of a Delta source: all five keys as `ckpt offsets show` prints them, with "
                f"another reservoirVersion and index: {cut_json(value)}"
            )
        return RequestedEnd(value)

    def move_end(self, latest: LatestEnd[DeltaOffset], new: RequestedEnd) -> MovedEnd:
        """Spark class ``DeltaSource``."""
        to, start = self.decode(new.value), latest.start
        assert to is not None
        _check_fit(latest.offset, to)
        if not latest.start_known or (start is None and not latest.committed):
            raise CannotEndThere(
                f"the log does not say where batch {latest.batch} begins, and Delta looks at its range again"
            )
        if start is not None and to.version <= start.last_read:
            raise CannotEndThere(
                f"batch {latest.batch} begins at version {start.version}: from an earlier version Delta reads rows "
                "again under the id of this batch, or reads none; a rewind goes further back"
            )
        return move_along(latest, new, latest.offset.version, to.version, _NOT_ASKED)


_NOT_ASKED = words(
    "ckpt does not read the table: its log must have every version from the new end on, and the version before it must "
    "exist (DESCRIBE HISTORY), or the next start fails or waits."
)


def _check_fit(old: DeltaOffset, to: DeltaOffset) -> None:
    if to.table_id != old.table_id:
        raise CannotEndThere(
            f"the source reads the table with the id {old.table_id}: a start refuses offsets of another table"
        )
    if to.source_version != old.source_version:
        raise CannotEndThere(f"the query writes offsets with sourceVersion {old.source_version}: keep that")
    if old.initial_snapshot or to.initial_snapshot:
        raise CannotEndThere(
            "the source is still reading the table as it was when the query began (isStartingVersion), and the rest "
            "of that table would be lost without an error: let it finish first, with trigger availableNow"
            if old.initial_snapshot
            else "isStartingVersion true would read the whole table again: write false"
        )
    if not to.at_boundary:
        raise CannotEndThere(
            f"index {to.index} is inside a version, and ckpt cannot see its files: write {old.base_index}, its "
            "beginning"
        )


def write_offset(offset: DeltaOffset) -> dict[str, Json]:
    """Write an offset as the log has it."""
    return {
        "sourceVersion": offset.source_version,
        "reservoirId": offset.table_id,
        "reservoirVersion": offset.version,
        "index": offset.index,
        "isStartingVersion": offset.initial_snapshot,
    }
