"""Offsets of file sources; their logs are in ``file_logs``."""

from dataclasses import dataclass

from ckpt.checkpoint.sources.kind import Advance, SourceKind, SourceType, Unit, advance_number, whole_number
from ckpt.model import Json


@dataclass(frozen=True, slots=True)
class FileOffset:
    """``{"logOffset": n}``: entry n of ``sources/<k>`` was read (Spark class ``FileStreamSourceOffset``)."""

    log_offset: int


class FilesKind(SourceKind[FileOffset]):
    """Folders of files."""

    record = FileOffset

    def decode(self, value: Json) -> FileOffset | None:
        number = whole_number(value.get("logOffset")) if isinstance(value, dict) and len(value) == 1 else None
        return None if number is None else FileOffset(number)

    def type_of(self, offset: FileOffset) -> SourceType:
        return SourceType.FILE

    def advance(self, old: FileOffset, new: FileOffset) -> Advance:
        return advance_number(old.log_offset, new.log_offset, Unit.ENTRIES)

    def to_json(self, offset: FileOffset) -> dict[str, Json]:
        return {"log_offset": offset.log_offset}

    def to_text(self, offset: FileOffset) -> str:
        return f"entry {offset.log_offset} of its log"
