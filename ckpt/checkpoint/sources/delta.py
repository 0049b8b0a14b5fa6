"""Offsets of Delta tables."""

from collections.abc import Mapping
from dataclasses import dataclass

from ckpt.checkpoint.sources.kind import Advance, SourceKind, SourceType, Unit, whole_number
from ckpt.model import Json

_BASE_INDEXES = {1: -1, 3: -100}  # of each sourceVersion: DeltaSourceOffset.BASE_INDEX_V1 and BASE_INDEX_V3


@dataclass(frozen=True, slots=True)
class DeltaOffset:
    """A place in a Delta table (``DeltaSourceOffset`` of delta-spark, serialized as version 1 or 3)."""

    table_id: str  # reservoirId
    version: int  # reservoirVersion
    index: int  # of the last file of the version that was read; negative: none of it yet
    initial_snapshot: bool  # isStartingVersion: still reading what was there when the query began

    @property
    def at_boundary(self) -> bool:
        """Whether nothing of ``version`` was read: ``startingVersion`` continues exactly there."""
        return self.index in _BASE_INDEXES.values() and not self.initial_snapshot

    @property
    def place(self) -> tuple[int, int]:
        """Version and index, by which two places in a table can be compared."""
        bases = _BASE_INDEXES.values()
        return self.version, min(bases) if self.index in bases else self.index

    @property
    def last_read(self) -> int:
        """The newest version of which something was read."""
        return self.version - 1 if self.at_boundary else self.version


class DeltaKind(SourceKind[DeltaOffset]):
    """Delta tables."""

    record = DeltaOffset

    def decode(self, value: Json) -> DeltaOffset | None:
        if not isinstance(value, dict):
            return None
        table_id, initial = value.get("reservoirId"), value.get("isStartingVersion")
        version, index = whole_number(value.get("reservoirVersion")), whole_number(value.get("index"))
        if not isinstance(table_id, str) or not isinstance(initial, bool) or version is None or index is None:
            return None
        known = whole_number(value.get("sourceVersion")) in _BASE_INDEXES
        return DeltaOffset(table_id, version, index, initial) if known else None

    def type_of(self, offset: DeltaOffset) -> SourceType:
        return SourceType.DELTA

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


def base_index(value: Mapping[str, Json]) -> int:
    """The index that is the beginning of a version, in offsets of Delta that are written as this one is."""
    return _BASE_INDEXES[1 if value.get("sourceVersion") == 1 else 3]
