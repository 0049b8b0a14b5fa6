"""Lists the folder of a file source, and compares it with the log that the source keeps in the checkpoint."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from urllib.parse import unquote

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.history import batch_entries, walk_source_log
from ckpt.checkpoint.sources.file_logs import file_source_logs, find_refused_file, source_folder
from ckpt.errors import NotFound, SourceError, StorageError, one_line
from ckpt.formats.sourcelogs import SourceFile, parse_source_log
from ckpt.live.book import BOOK
from ckpt.live.kind import SourceRequest, read_flag, unusable_option
from ckpt.live.records import FilesNow, NotAsked
from ckpt.live.sink.records import FILE_LOG
from ckpt.model import Unreadable
from ckpt.storage import FileInfo, ReadRequest, Storage, open_storage
from ckpt.storage.locations import is_same_place, local_path
from ckpt.texts import mask_secrets

_WEEK_MS = 7 * 24 * 3600 * 1000
_CHOOSES = ("pathglobfilter", "modifiedbefore", "modifiedafter", "filenameonly")
_AGE = re.compile(r"([0-9]{1,12})(ms|s|m|min|h|d)")
_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_OUTPUT_OF_A_SINK = "its path is the output of a file sink: Spark reads only the files that _spark_metadata names"
_LEVELS = 16  # of folders below the place, in which files are looked for


def _strip_options(path: str) -> str:
    """Return a path without options of the file system behind it."""
    return path if local_path(path) is not None else path.partition("?")[0]


def find_folder(checkpoint: Checkpoint, index: int) -> str | None:
    """Find the folder of a source in its log; None where the log names files of several folders, or none.

    Folders of partitions count as part of the one above. A reader that goes through folders, or reads a pattern, may
    have others that its log does not name yet.
    """
    folders = set()
    for file in walk_source_log(checkpoint, index):
        folder = unquote(file.path).rpartition("/")[0]
        while "=" in folder.rpartition("/")[2]:
            folder = folder.rpartition("/")[0]
        folders.add(folder)
    folder = folders.pop() if len(folders) == 1 else ""
    return folder if folder.strip("/") and "?" not in folder else None  # what follows it could name another host


def ask_files(request: SourceRequest) -> FilesNow | NotAsked:
    """List the folder at the option ``path``, and compare it with what the logs of a source have read.

    Raises SourceError where nothing is there, or the source's log cannot be read; StorageError, UsageError.
    """
    request = request.with_path()
    chosen = next((key for key in _CHOOSES if key in request.options), None)
    if chosen is not None:
        return NotAsked(f"with the option {chosen} ckpt cannot tell which files are read")
    if re.search(r"[*?\[{]", _strip_options(request.path)):
        return NotAsked("its path is a pattern, which ckpt does not expand")
    checkpoint, index, path, options = request.checkpoint, request.index, request.path, request.options
    storage = open_storage(path, request.path_storage_options)
    recursive = read_flag(options, "recursiveFileLookup", False)
    try:
        if FILE_LOG in storage.list_level().folders:
            return NotAsked(_OUTPUT_OF_A_SINK)
        there = _list_files(storage, recursive)
    except NotFound:
        raise SourceError(f"{one_line(mask_secrets(path))}: it does not exist; {request.advice}") from None
    log = read_log(request)
    named = [(_find_below(path, file.path, recursive=recursive), file) for file in log]
    read, planned = batch_entries(checkpoint, index)
    batch = [(name, file) for name, file in named if read < file.log_offset <= planned]
    names = {name for name, _ in named}
    limit = _read_max_age(options)
    newest = max((file.timestamp_ms for file in log), default=0)
    unseen = {name: info for name, info in there.items() if name not in names}
    old = [info for info in unseen.values() if limit is not None and (info.mtime_ms or newest) < newest - limit]
    return FilesNow(
        files=len(there),
        seen=len(log),
        unseen=len(unseen) + sum(file.log_offset > planned for file in log) - len(old),
        old=len(old),
        oldest_ms=max(newest - min(info.mtime_ms or newest for info in old), 0) if old else 0,
        planned=len(batch),
        gone=tuple(sorted(file.path for name, file in batch if name is not None and name not in there)),
        apart=sum(name is None for name, _ in batch),
        refused=None if recursive else find_refused_file((file.path for _, file in batch), _strip_options(path)),
        partitions=any("=" in name.rpartition("/")[0] for name in there),
        place=_strip_options(path),
        changed=sum(_has_changed(name, file, there) for name, file in named if file.log_offset <= read),
        changed_last=sum(_has_changed(name, file, there) for name, file in batch),
        elsewhere=bool(log) and names == {None},
    )


def _has_changed(name: str | None, read: SourceFile, there: Mapping[str, FileInfo]) -> bool:
    """Tell whether a file is younger than when it was read; by seconds, because some file systems count in those."""
    now = there.get(name) if name is not None else None
    return now is not None and (now.mtime_ms or 0) // 1000 > read.timestamp_ms // 1000


def _list_files(storage: Storage, recursive: bool) -> dict[str, FileInfo]:
    """List files as Spark does: those of the folder itself, or of all folders if they are partitions."""
    files: dict[str, FileInfo] = {}
    folders = [""]
    for _ in range(_LEVELS):
        below: list[str] = []
        for folder in folders:
            level = storage.list_level(folder)
            prefix = f"{folder}/" if folder else ""
            files |= {prefix + name: info for name, info in level.files.items() if _is_data(name)}
            shown = (name for name in sorted(level.folders) if not name.startswith(("_", ".")))
            below += (prefix + name for name in shown if recursive or "=" in name)
        folders = below
    return files


def _is_data(name: str) -> bool:
    """Tell whether Spark reads a file of this name (``HadoopFSUtils.shouldFilterOutPathName``)."""
    return not ((name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_"))


def read_log(request: SourceRequest) -> Sequence[SourceFile]:
    """Read which files a source has read, by its log in the checkpoint. Raises SourceError, StorageError."""
    checkpoint, index = request.checkpoint, request.index
    storage, latest = open_storage(checkpoint.uri, request.storage_options), checkpoint.offsets.newest
    folder = source_folder(checkpoint.listing, latest, index)
    (log,) = (log for log in file_source_logs(checkpoint.listing, latest) if log.folder == folder)
    log_files: dict[str, SourceFile] = {}
    for answer in storage.read_many(map(ReadRequest, log.needed())):
        files = answer if isinstance(answer, StorageError) else parse_source_log(folder, answer)
        if isinstance(files, StorageError | Unreadable) or log.log.missing:
            raise SourceError(BOOK.text("files_log_unread", index=index, folder=folder))
        for file in files:
            log_files.setdefault(file.path, file)
    return tuple(log_files.values())


def _read_max_age(options: Mapping[str, str]) -> int | None:
    """Read ``maxFileAge`` in ms; None where files of any age are read."""
    limited = "maxfilespertrigger" in options or "maxbytespertrigger" in options
    if read_flag(options, "latestFirst", False) and limited:
        return None
    text = options.get("maxfileage", "")
    age = _AGE.fullmatch(text.lower())
    if text and age is None:
        raise unusable_option("maxFileAge must be a number with ms, s, m, h or d, such as 30d")
    return int(age[1]) * _MS[age[2]] if age else _WEEK_MS


def _find_below(root: str, logged: str, *, recursive: bool) -> str | None:
    """Name a path of the log by where it is below a folder; None where it is elsewhere, or Spark does not list it."""
    folder, _, name = unquote(logged).rpartition("/")
    prefix = _find_prefix(folder, root)
    listed = prefix is not None and (recursive or all("=" in folder for folder in prefix.split("/")[:-1]))
    return f"{prefix}{name}" if listed else None


@lru_cache(maxsize=10_000)
def _find_prefix(folder: str, root: str) -> str | None:
    prefix = ""
    for _ in range(_LEVELS):
        if is_same_place(folder, root, links=False):  # Spark knows files by their paths as text
            return prefix
        folder, _, name = folder.rpartition("/")
        prefix = f"{name}/{prefix}"
        if not folder.strip("/"):
            break
    return None
