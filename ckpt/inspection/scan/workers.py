"""Checkpoints of a root inspected one by one, or by several processes; what goes wrong with one is said in its line."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, Checkpoint
from ckpt.checkpoint.history import sources
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.errors import CkptError, NotFound, SourceError
from ckpt.inspection.inspection import inspect
from ckpt.inspection.scan.rows import ScannedCheckpoint, make_row, make_unreadable_row
from ckpt.live.asking import ask_sources
from ckpt.processes import Processes
from ckpt.storage import Root, open_storage
from ckpt.storage.locations import is_in_memory

_WORTH_A_PROCESS = 40  # checkpoints: what takes as long to inspect as a process to start
_AT_ONCE = 8  # remote checkpoints that one process looks at side by side
UNCHANGED = b""


def look(
    uri: str,
    options: Mapping[str, str],
    paths: Sequence[str],
    jobs: int,
    since_ms: int | None = None,
    reader: Mapping[str, str] | None = None,
) -> Iterator[ScannedCheckpoint | None]:
    """Make the row of each checkpoint below a root, as they are done; None for one that has not changed since a time.

    ``reader`` are options for every Kafka source: without them no source is asked.
    """
    root = {"uri": uri, "options": dict(options), "since_ms": since_ms, "reader": reader and dict(reader)}
    count = min(jobs, len(paths) // _WORTH_A_PROCESS) if not is_in_memory(uri) else 1
    size = 1 if open_storage(uri, options).local else _AT_ONCE
    tasks = [paths[first : first + size] for first in range(0, len(paths), size)]
    for _, answer in Processes(count).run(make_looker, root, tasks):
        yield None if answer == UNCHANGED else ScannedCheckpoint.from_json(answer)


def make_looker(task: Any) -> Callable[[Sequence[str]], Iterator[bytes]]:
    """Inspect some checkpoints of a root in a process of its own: the row of each, as JSON."""
    root = open_storage(task["uri"], task["options"])
    line = partial(_make_line, root, since_ms=task["since_ms"], reader=task["reader"])

    def do(paths: Sequence[str]) -> Iterator[bytes]:
        if len(paths) < 2:
            yield from map(line, paths)
            return
        with ThreadPoolExecutor(len(paths), thread_name_prefix="ckpt-scan") as pool:
            yield from pool.map(line, paths)

    return do


def _make_line(root: Root, path: str, since_ms: int | None, reader: Mapping[str, str] | None) -> bytes:
    storage = root.below(path)
    try:
        if since_ms is not None and not _has_changed(storage, since_ms):
            return UNCHANGED
        return _inspect_one(read_checkpoint(storage), reader).to_json()
    except CkptError as error:
        return make_unreadable_row(storage.uri, str(error)).to_json()
    except Exception as error:  # whatever one checkpoint does to ckpt, the others are looked at
        return make_unreadable_row(
            storage.uri, f"{storage.uri}: ckpt failed ({type(error).__name__}: {error})"
        ).to_json()


def _inspect_one(checkpoint: Checkpoint, reader: Mapping[str, str] | None) -> ScannedCheckpoint:
    """Make the row of a checkpoint, with what its Kafka sources have now if these are to be asked."""
    kafka = [view.index for view in sources(checkpoint) if view.type is SourceType.KAFKA] if reader else []
    if not (reader and kafka):
        return make_row(inspect(checkpoint), checkpoint.uri)
    try:
        live = ask_sources(checkpoint, dict.fromkeys(kafka, reader))
    except SourceError as error:
        return make_row(inspect(checkpoint), checkpoint.uri, sources_error=str(error))
    return make_row(inspect(checkpoint, live=live), checkpoint.uri)


def _has_changed(storage: Root, since_ms: int) -> bool:
    """Tell whether a batch was planned or committed since then, judging by the times of files; unknown is yes."""
    newest: list[int | None] = []
    for folder in (OFFSETS, COMMITS):
        try:
            newest += [info.mtime_ms for info in storage.list_level(folder).files.values()]
        except NotFound:
            continue
    return not newest or any(time is None or time >= since_ms for time in newest)
