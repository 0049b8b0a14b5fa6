"""The files that a file source had read by an entry of its log (Spark class ``FileStreamSourceLog``)."""

import re
from collections.abc import Iterator

from ckpt.formats.limits import LARGEST_SOURCE_LOG
from ckpt.formats.names import COMPACT, compactible_id
from ckpt.formats.sourcelogs import parse_source_log
from ckpt.model import Unreadable
from ckpt.storage import Listing, ReadRequest, Storage


def files_read(storage: Storage, listing: Listing, folder: str, entry: int) -> tuple[str, ...] | str:
    """List the files of the entries up to ``entry``, as ``_metadata.file_path`` spells them, or say which is missing.

    ``N.compact`` names the files of all entries up to N. The log may have entries that no batch has read yet: those
    after ``entry`` are left out.
    """
    paths: list[str] = []
    total = 0
    for name in _needed(listing, folder, entry):
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


def _needed(listing: Listing, folder: str, entry: int) -> Iterator[str]:
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
