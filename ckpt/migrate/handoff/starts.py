"""The beginning of a new query in each source, so that it reads on exactly after a batch of the old one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from ckpt.checkpoint.history import find_recreated_topics, rate_sources
from ckpt.checkpoint.sources.file_logs import source_folder
from ckpt.checkpoint.sources.files import FileOffset
from ckpt.checkpoint.sources.registry import SourceView, source_views
from ckpt.checkpoint.sources.starts import ReaderStart, StartFacts
from ckpt.formats.limits import LARGEST_SOURCE_LOG
from ckpt.formats.names import COMPACT, compactible_id
from ckpt.formats.sourcelogs import parse_source_log
from ckpt.inspection.inspection import Inspection
from ckpt.model import Unreadable
from ckpt.storage import Listing, ReadRequest, Storage


@dataclass(frozen=True, slots=True)
class SourceStart(ReaderStart):
    """One source of the new query."""

    view: SourceView = field(kw_only=True)  # at the end of the batch after which it continues


def start_source(view: SourceView, facts: StartFacts) -> SourceStart:
    """Say how a new query begins with a source."""
    start = view.start_after(facts)
    return SourceStart(**{each.name: getattr(start, each.name) for each in fields(start)}, view=view)


def start_sources(storage: Storage, inspection: Inspection, batch: int) -> Iterator[SourceStart]:
    """Say how a new query begins with each source after a batch of a checkpoint in a storage."""
    checkpoint = inspection.checkpoint
    log = checkpoint.offsets.readable(batch)
    for number, view in enumerate(source_views(log, rate_sources(checkpoint)) if log else ()):
        files = None
        if isinstance(view.record, FileOffset):
            folder = source_folder(checkpoint.listing, log, view.index)
            files = _list_files_read(storage, checkpoint.listing, folder, view.record.log_offset)
        recreated = find_recreated_topics(checkpoint, batch, number)
        yield start_source(view, StartFacts(files, recreated, inspection.written_by.may_read_event_hubs))


def _list_files_read(storage: Storage, listing: Listing, folder: str, entry: int) -> tuple[str, ...] | str:
    """List the files of a source's log up to an entry, as ``_metadata.file_path`` spells them, or say which is missing.

    ``N.compact`` names the files of all entries up to N. The log may have entries that no batch has read yet: those
    after ``entry`` are left out.
    """
    paths: list[str] = []
    total = 0
    for name in _list_needed(listing, folder, entry):
        path = f"{folder}/{name}"
        info = listing.info(path)
        if info is None:
            return f"neither {path} nor {path}{COMPACT} exists: it named files that the old query had read"
        paths.append(path)
        total += info.size
        if total > LARGEST_SOURCE_LOG:
            return (
                f"{path}, which names files that the old query had read, is too large: ckpt reads "
                f"{LARGEST_SOURCE_LOG:,} bytes of such files"
            )
    files: dict[str, None] = {}
    for path, data in zip(paths, storage.read_many([ReadRequest(path) for path in paths]), strict=True):
        parsed = parse_source_log(path, data) if isinstance(data, bytes) else None
        if parsed is None or isinstance(parsed, Unreadable):
            why = parsed.reason if parsed else "it was gone when ckpt tried to read it"
            return f"{path}, which names files that the old query had read, cannot be read: {why}"
        files |= {file_path(file.path): None for file in parsed if file.log_offset <= entry}
    return tuple(files)


def file_path(logged: str) -> str:
    """Spell a path of a file source's log as ``_metadata.file_path`` does.

    The log has ``file:///in%20put/a.json``, the column ``file:/in%20put/a.json``: it went through Hadoop's ``Path``,
    which drops an empty authority; both are percent-encoded (measured on Spark 3.5 to 4.3).
    """
    return re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*):///(?!/)", r"\1:/", logged)


def _list_needed(listing: Listing, folder: str, entry: int) -> Iterator[str]:
    """The names of the log files that together name every file up to an entry."""
    names = listing.in_folder(folder)
    compacted = sorted(i for name in names if name.endswith(COMPACT) and (i := compactible_id(name)) is not None)
    behind = [i for i in compacted if i >= entry]
    if behind:
        yield f"{behind[0]}{COMPACT}"
        return
    base = compacted[-1] if compacted else -1
    if base >= 0:
        yield f"{base}{COMPACT}"
    yield from (str(i) for i in range(base + 1, entry + 1))
