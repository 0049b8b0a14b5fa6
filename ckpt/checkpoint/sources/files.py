"""Offsets of file sources; their logs are in ``file_logs``."""

from dataclasses import dataclass

from ckpt.checkpoint.sources.ends import CannotEndThere, LatestEnd, MovedEnd, RequestedEnd, cut_json, move_along
from ckpt.checkpoint.sources.kind import Advance, SourceKind, SourceType, Unit, advance_number, whole_number
from ckpt.checkpoint.sources.starts import Begin, ReaderStart, StartFacts
from ckpt.errors import UsageError
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
            return ReaderStart(Begin.EXACT, seen=tuple(facts.seen), conditions=_CONDITIONS)
        return ReaderStart(Begin.REFUSED, refused=_NO_OPTION if facts.seen is None else facts.seen)

    def parse_end(self, value: Json, what: str) -> RequestedEnd:
        offset = self.decode(value)
        if offset is None or offset.log_offset < 0 or value != {"logOffset": offset.log_offset}:
            raise UsageError(f'{what} is not an offset of a file source, such as {{"logOffset":12}}: {cut_json(value)}')
        return RequestedEnd(value)

    def move_end(self, latest: LatestEnd[FileOffset], new: RequestedEnd) -> MovedEnd:
        """Spark class ``FileStreamSource``; the next batch takes every entry after the end at once."""
        old, to, start = map(entry_at, (latest.offset, self.decode(new.value), latest.start))
        newest = latest.newest_entry
        if newest is None or to > newest:
            raise CannotEndThere(f"the log of the source ends at entry {newest}: a start fails on missing entries")
        if not latest.start_known:
            raise CannotEndThere(
                f"the log does not say where batch {latest.batch} begins, and a file source looks at its range again"
            )
        if to < start:
            raise CannotEndThere(
                f"batch {latest.batch} begins after entry {start}, and a file source fails at a start if it ends "
                'before that ("assertion failed"): a rewind goes further back'
            )
        return move_along(latest, new, old, to)


_NO_OPTION = (
    "no reader option says where a file source begins; a handoff has the filter that leaves out the files that were "
    "read"
)
_CONDITIONS = (
    "no reader option says where to begin: filter what the reader loads by _metadata.file_path, before anything else "
    "is done to it; the code that ckpt writes does so",
    "the new query must read the same folder under the same URI, spelled in the same way: paths are compared as they "
    "are, so through a symbolic link, or with s3 for s3a, every file is read again",
)
