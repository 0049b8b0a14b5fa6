"""Offsets of Iceberg tables."""

from dataclasses import dataclass

from ckpt.checkpoint.sources.kind import Advance, SourceKind, SourceType, Unit, advance_number, whole_number
from ckpt.model import Json


@dataclass(frozen=True, slots=True)
class IcebergOffset:
    """A place in an Iceberg table (Iceberg class ``StreamingOffset``, version 1)."""

    snapshot: int | None  # None: the table had none, or none that counts
    position: int  # how many of its files were read
    all_files: bool  # scan_all_files: of the table as of the snapshot, not only of those that it added


class IcebergKind(SourceKind[IcebergOffset]):
    """Iceberg tables."""

    record = IcebergOffset

    def decode(self, value: Json) -> IcebergOffset | None:
        if not isinstance(value, dict) or whole_number(value.get("version")) != 1:
            return None
        snapshot, position = whole_number(value.get("snapshot_id")), whole_number(value.get("position"))
        all_files = value.get("scan_all_files")
        if snapshot is None or position is None or not isinstance(all_files, bool):
            return None
        return IcebergOffset(None if snapshot == -1 else snapshot, position, all_files)

    def type_of(self, offset: IcebergOffset) -> SourceType:
        return SourceType.ICEBERG

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
