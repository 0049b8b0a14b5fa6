"""Offsets of Delta tables."""

from dataclasses import dataclass, field

from ckpt.checkpoint.sources.book import BOOK, say
from ckpt.checkpoint.sources.ends import BeforeBatch, CannotEndThere, LatestEnd, MovedEnd, RequestedEnd, move_along
from ckpt.checkpoint.sources.kind import LONG, Advance, SourceKind, SourceType, Unit, whole_number
from ckpt.checkpoint.sources.starts import ReaderStart, StartFacts, StartingPoint
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
    _not_an_offset = "delta_not_an_offset"

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
            refused = say("delta_inside_version", version=offset.version, file=offset.index, inside=inside)
            return ReaderStart(StartingPoint.REFUSED, refused=refused)
        return ReaderStart(
            StartingPoint.EXACT,
            {"startingVersion": str(offset.version)},
            without=("startingTimestamp",),
            conditions=(
                say("delta_same_table", table=offset.table_id),
                say("delta_version_to_come", version=offset.version),
            ),
        )

    def _can_end_at(self, offset: DeltaOffset, value: Json) -> bool:
        return isinstance(value, dict) and value.keys() == _KEYS and 0 <= offset.version <= LONG

    def move_end(self, latest: LatestEnd[DeltaOffset], new: RequestedEnd) -> MovedEnd:
        """Spark class ``DeltaSource``."""
        to, start = self.decode(new.value), latest.start
        assert to is not None
        _check_fit(latest.offset, to)
        if not latest.start_known or (start is None and not latest.committed):
            raise CannotEndThere(say("delta_begin_not_known", batch=latest.batch))
        if start is not None and to.version <= start.last_read:
            raise BeforeBatch(say("delta_before_batch", batch=latest.batch, version=start.version))
        return move_along(
            latest, new, latest.offset.version, to.version, *(() if new.said else (BOOK.text("delta_not_asked"),))
        )


def _check_fit(old: DeltaOffset, to: DeltaOffset) -> None:
    if to.table_id != old.table_id:
        raise CannotEndThere(say("delta_other_table", table=old.table_id))
    if to.source_version != old.source_version:
        raise CannotEndThere(say("delta_other_form", version=old.source_version))
    if old.initial_snapshot or to.initial_snapshot:
        raise CannotEndThere(say("delta_still_first" if old.initial_snapshot else "delta_first_again"))
    if not to.at_boundary:
        raise CannotEndThere(say("delta_inside", index=to.index, base=old.base_index))


def write_offset(offset: DeltaOffset) -> dict[str, Json]:
    """Write an offset as the log has it."""
    return {
        "sourceVersion": offset.source_version,
        "reservoirId": offset.table_id,
        "reservoirVersion": offset.version,
        "index": offset.index,
        "isStartingVersion": offset.initial_snapshot,
    }
