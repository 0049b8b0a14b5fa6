"""Offsets of file sources; their logs are in ``file_logs``."""

from dataclasses import dataclass

from ckpt.checkpoint.sources.book import say
from ckpt.checkpoint.sources.ends import BeforeBatch, CannotEndThere, LatestEnd, MovedEnd, RequestedEnd, move_along
from ckpt.checkpoint.sources.kind import Advance, SourceKind, SourceType, Unit, advance_number, whole_number
from ckpt.checkpoint.sources.starts import ReaderStart, StartFacts, StartingPoint
from ckpt.model import Json


@dataclass(frozen=True, slots=True)
class FileOffset:
    """``{"logOffset": n}``: entry n of ``sources/<k>`` was read (Spark class ``FileStreamSourceOffset``)."""

    log_offset: int


def entry_at(offset: object) -> int:
    """Return the newest log entry that a file source has read at an offset; -1 where there is no such offset."""
    return offset.log_offset if isinstance(offset, FileOffset) else -1


class FilesKind(SourceKind[FileOffset]):
    """Folders of files."""

    name = SourceType.FILE
    record = FileOffset
    settable = True
    at_path = reads_files = True
    _not_an_offset = "files_not_an_offset"

    def decode(self, value: Json) -> FileOffset | None:
        number = whole_number(value.get("logOffset")) if isinstance(value, dict) else None  # others are ignored
        return None if number is None else FileOffset(number)

    def advance(self, old: FileOffset, new: FileOffset) -> Advance:
        return advance_number(old.log_offset, new.log_offset, Unit.ENTRIES)

    def to_json(self, offset: FileOffset) -> dict[str, Json]:
        return {"log_offset": offset.log_offset}

    def to_text(self, offset: FileOffset) -> str:
        return f"entry {offset.log_offset} of its log"

    def start_after(self, offset: FileOffset, facts: StartFacts) -> ReaderStart:
        if not isinstance(facts.seen, str | None):
            conditions = (say("files_filter"), say("files_same_folder"))
            return ReaderStart(StartingPoint.EXACT, seen=tuple(facts.seen), conditions=conditions)
        return ReaderStart(StartingPoint.REFUSED, refused=say("files_no_option") if facts.seen is None else facts.seen)

    def _can_end_at(self, offset: FileOffset, value: Json) -> bool:
        return offset.log_offset >= -1 and value == {"logOffset": offset.log_offset}

    def move_end(self, latest: LatestEnd[FileOffset], new: RequestedEnd) -> MovedEnd:
        """Spark class ``FileStreamSource``; the next batch takes every entry after the end at once."""
        old, to, start = map(entry_at, (latest.offset, self.decode(new.value), latest.start))
        newest = latest.newest_entry
        if newest is None or to > newest:
            raise CannotEndThere(say("files_no_log" if newest is None else "files_after_log", newest=newest))
        if not latest.start_known:
            raise CannotEndThere(say("files_begin_not_known", batch=latest.batch))
        if to < start:
            raise BeforeBatch(say("files_before_batch", batch=latest.batch, start=start))
        return move_along(latest, new, old, to)
