"""Lists the folder of a file source, and compares it with the log that the source keeps in the checkpoint."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from urllib.parse import unquote

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.history import batch_entries
from ckpt.checkpoint.sources.file_logs import refused, source_folder
from ckpt.errors import NotFound, SourceError, StorageError, UsageError
from ckpt.formats.compaction import compactible_log
from ckpt.formats.names import compactible_id
from ckpt.formats.sourcelogs import SourceFile, parse_source_log
from ckpt.live.options import flag
from ckpt.live.records import FilesNow
from ckpt.live.sink.records import FILE_LOG
from ckpt.model import Unreadable
from ckpt.storage import FileInfo, ReadRequest, Storage, open_storage
from ckpt.storage.base import one_line
from ckpt.storage.locations import is_same_place, local_path
from ckpt.texts import masked

_WEEK_MS = 7 * 24 * 3600 * 1000
_CHOOSES = ("pathglobfilter", "modifiedbefore", "modifiedafter", "filenameonly")
_AGE = re.compile(r"([0-9]{1,12})(ms|s|m|min|h|d)")
_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
OUTPUT_OF_A_SINK = (
    "its path is the output of a file sink: of that Spark reads the files that _spark_metadata names, and no others"
)
_LEVELS = 16  # of folders below the place, in which files are looked for


def other_files(given: Mapping[str, str]) -> str | None:
    """Why the files of a reader with these options, in lower case, cannot be listed; None where they can."""
    chosen = next((key for key in _CHOOSES if key in given), None)
    if chosen is not None:
        return f"with the option {chosen} ckpt cannot tell which files are read"
    pattern = re.search(r"[*?\[{]", _place(given["path"]))
    return "its path is a pattern, which ckpt does not expand" if pattern else None


def _place(path: str) -> str:
    """A path without options of the file system behind it."""
    return path if local_path(path) is not None else path.partition("?")[0]


def ask_files(
    checkpoint: Checkpoint, index: int, given: Mapping[str, str], of_checkpoint: Mapping[str, str], same: bool
) -> FilesNow | None:
    """What there is at the option ``path`` for source ``index`` of a checkpoint; None: it is the output of a file sink.

    Args:
        checkpoint: Its logs say which files were read.
        index: Of the source.
        given: Options of the reader, in lower case.
        of_checkpoint: Options of the checkpoint's file system.
        same: Whether they are also for that of the path.

    Raises:
        SourceError: Nothing is there, or the source's log cannot be read.
        StorageError, UsageError: A place cannot be reached, or an option is wrong.

    """
    path, where = given["path"], one_line(masked(given["path"]))
    storage = open_storage(path, of_checkpoint if same else {})
    recursive = flag(given, "recursiveFileLookup", False)
    try:
        if FILE_LOG in storage.list_level().folders:
            return None
        there = _listed(storage, recursive)
    except NotFound:
        raise SourceError(f"{where}: nothing is there; check the option `path` of source {index}") from None
    log = _log(open_storage(checkpoint.uri, of_checkpoint), checkpoint, index)
    named = [(_listable(_below(path, one.path), recursive), one) for one in log]
    read, planned = batch_entries(checkpoint, index)
    batch = [(name, one) for name, one in named if read < one.log_offset <= planned]
    names = {name for name, _ in named}
    limit = _age(given)
    newest = max((one.timestamp_ms for one in log), default=0)
    unseen = {name: info for name, info in there.items() if name not in names}
    old = [info for info in unseen.values() if limit is not None and (info.mtime_ms or newest) < newest - limit]
    return FilesNow(
        files=len(there),
        seen=len(log),
        unseen=len(unseen) + sum(one.log_offset > planned for one in log) - len(old),
        old=len(old),
        oldest_ms=max(newest - min(info.mtime_ms or newest for info in old), 0) if old else 0,
        planned=len(batch),
        gone=tuple(sorted(one.path for name, one in batch if name is not None and name not in there)),
        apart=sum(name is None for name, _ in batch),
        refused=None if recursive else refused((one.path for _, one in batch), _place(path)),
        partitions=any("=" in name.rpartition("/")[0] for name in there),
        place=_place(path),
        changed=sum(_changed(name, one, there) for name, one in named if one.log_offset <= read),
        changed_last=sum(_changed(name, one, there) for name, one in batch),
        elsewhere=bool(log) and names == {None},
    )


def _changed(name: str | None, read: SourceFile, there: Mapping[str, FileInfo]) -> bool:
    """Whether a file is younger than when it was read; a second, because some file systems count in those."""
    now = there.get(name) if name is not None else None
    return now is not None and (now.mtime_ms or 0) // 1000 > read.timestamp_ms // 1000


def _listed(storage: Storage, recursive: bool) -> dict[str, FileInfo]:
    """The files that Spark lists: those of the folder itself, or of all folders if they are partitions."""
    found: dict[str, FileInfo] = {}
    folders = [""]
    for _ in range(_LEVELS):
        below: list[str] = []
        for folder in folders:
            level = storage.list_level(folder)
            prefix = f"{folder}/" if folder else ""
            found |= {prefix + name: info for name, info in level.files.items() if _is_data(name)}
            below += [
                prefix + name
                for name in sorted(level.folders)
                if not name.startswith(("_", ".")) and (recursive or "=" in name)
            ]
        if not below:
            break
        folders = below
    return found


def _is_data(name: str) -> bool:
    """Whether Spark reads a file of this name (``HadoopFSUtils.shouldFilterOutPathName``)."""
    hidden = (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_")
    return not hidden


def _log(storage: Storage, checkpoint: Checkpoint, index: int) -> Sequence[SourceFile]:
    latest = checkpoint.offsets.readable(checkpoint.offsets.latest)
    folder = source_folder(checkpoint.listing, latest, index)
    log = compactible_log(checkpoint.listing.in_folder(folder))
    if log.latest is None:
        return ()
    wanted = [
        name
        for name in checkpoint.listing.in_folder(folder)
        if (entry := compactible_id(name)) is not None and log.first_needed <= entry and name == log.name_of(entry)
    ]
    found: dict[str, SourceFile] = {}
    for answer in storage.read_many([ReadRequest(f"{folder}/{name}") for name in wanted]):
        files = answer if isinstance(answer, StorageError) else parse_source_log(folder, answer)
        if isinstance(files, StorageError | Unreadable) or log.missing:
            raise SourceError(f"the log of source {index} ({folder}) cannot be read: `ckpt inspect` says why")
        for one in files:
            found.setdefault(one.path, one)
    return tuple(found.values())


def _age(given: Mapping[str, str]) -> int | None:
    """``maxFileAge`` in ms; None where files of any age are read."""
    limited = "maxfilespertrigger" in given or "maxbytespertrigger" in given
    if flag(given, "latestFirst", False) and limited:
        return None
    text = given.get("maxfileage", "")
    found = _AGE.fullmatch(text.lower())
    if text and found is None:
        raise UsageError("`source_options`: maxFileAge is a number with ms, s, m, h or d, such as 30d")
    return int(found[1]) * _MS[found[2]] if found else _WEEK_MS


def _below(place: str, logged: str) -> str | None:
    """What a path of the log is called below a place; None where it is elsewhere."""
    folder, _, name = unquote(logged).rpartition("/")
    prefix = _prefix(folder, place)
    return None if prefix is None else prefix + name


def _listable(name: str | None, recursive: bool) -> str | None:
    """A name below the place, if Spark lists such folders; None where it does not."""
    return name if name is None or recursive or all("=" in one for one in name.split("/")[:-1]) else None


@lru_cache(maxsize=10_000)
def _prefix(folder: str, place: str) -> str | None:
    prefix = ""
    for _ in range(_LEVELS):
        if is_same_place(folder, place, links=False):  # Spark knows files by their paths as text
            return prefix
        folder, _, name = folder.rpartition("/")
        prefix = f"{name}/{prefix}"
        if not folder.strip("/"):
            break
    return None
