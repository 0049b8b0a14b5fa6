"""``ckpt scan`` as one call."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath

from ckpt.errors import CkptError, UsageError
from ckpt.inspection.scan.discovery import discover
from ckpt.inspection.scan.rows import ScannedCheckpoint, make_unreadable_row
from ckpt.inspection.scan.workers import look
from ckpt.live.kafka.options import translate_options
from ckpt.model import Location
from ckpt.restart.findings import Severity
from ckpt.storage import open_storage
from ckpt.values import Value

Watcher = Callable[[int, int], None]
"""Called with how many checkpoints are done, and of how many."""


@dataclass(frozen=True, slots=True)
class ScannedRoot:
    """A root that was asked for."""

    uri: str
    checkpoints: int = 0  # found below it, those that have not changed included
    error: str | None = None  # why nothing of it could be listed


@dataclass(frozen=True, slots=True)
class Scan(Value):
    """All checkpoints below some roots, the worst first."""

    roots: tuple[ScannedRoot, ...]
    checkpoints: tuple[ScannedCheckpoint, ...]  # those that have not changed are left out
    began_ms: int
    ended_ms: int

    @property
    def problems(self) -> tuple[str, ...]:
        """Of roots that could not be listed, and of those without a checkpoint."""
        roots = (root for root in self.roots if not root.checkpoints)
        return tuple(root.error or f"{root.uri}: there is no checkpoint here" for root in roots)

    def fails(self, least: Severity = Severity.WARNING) -> bool:
        """Tell whether some finding is as bad as ``least``, or worse."""
        return any(checkpoint.fails(least) for checkpoint in self.checkpoints)

    def age_ms(self, checkpoint: ScannedCheckpoint) -> int | None:
        """How old the latest batch of a checkpoint was when the scan ended, in ms."""
        return None if checkpoint.latest_ms is None else max(self.ended_ms - checkpoint.latest_ms, 0)


def scan(
    roots: Location | Sequence[Location],
    storage_options: Mapping[str, str] | None = None,
    *,
    depth: int | None = None,
    jobs: int | None = None,
    changed_since_ms: int | None = None,
    kafka_options: Mapping[str, str] | None = None,
    watcher: Watcher | None = None,
) -> Scan:
    """Find all checkpoints at and below some roots, and inspect each; only reads, and starts no JVM.

    What is wrong with one checkpoint, or with one root, is said in its place, and does not stop the others.

    Args:
        roots: Local paths or URIs, of a checkpoint or of any folder above checkpoints.
        storage_options: For the file system of the URIs.
        depth: How many levels below a root are searched; 0 is the root alone, None is all.
        jobs: How many processes look at checkpoints, at most; by default one for each core.
        changed_since_ms: Leave out those whose logs have no file written since then, in ms since 1970 UTC.
        kafka_options: Also ask every Kafka source what it has now: options of its reader as Spark calls them, at least
            ``kafka.bootstrap.servers``, the same for all checkpoints.
        watcher: Called after each checkpoint with how many are done, and of how many.

    Raises:
        UsageError: ``depth`` or ``jobs`` is out of range, or the options of Kafka cannot be used, or are missing.

    >>> found = ckpt.scan("sample_checkpoints", depth=1)
    >>> found.checkpoints[0].severity, len(found.checkpoints) > 40
    (<Severity.ERROR: 'error'>, True)

    """
    if depth is not None and depth < 0:
        raise UsageError("`depth` has to be 0 or more")
    if jobs is not None and jobs < 1:
        raise UsageError("`jobs` has to be 1 or more")
    if kafka_options:
        translate_options(kafka_options)
    began, options = _read_clock_ms(), storage_options or {}
    below = _find([fspath(root) for root in ([roots] if isinstance(roots, str | PathLike) else roots)], options, depth)
    rows = {row.path: row for row in below.unlisted}
    done, total = 0, sum(map(len, below.checkpoints.values()))
    for uri, paths in below.checkpoints.items():
        for row in look(uri, options, paths, jobs or os.cpu_count() or 1, changed_since_ms, kafka_options):
            done += 1
            if watcher is not None:
                watcher(done, total)
            if row is not None:
                rows[row.path] = row
    return Scan(tuple(below.roots), tuple(sorted(rows.values(), key=_rank)), began, _read_clock_ms())


@dataclass(slots=True)
class _Found:
    """The checkpoints below all roots."""

    roots: list[ScannedRoot] = field(default_factory=list)
    checkpoints: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by root, relative to it
    unlisted: list[ScannedCheckpoint] = field(default_factory=list)  # folders that could not be listed


def _find(roots: Iterable[str], options: Mapping[str, str], depth: int | None) -> _Found:
    collected = _Found()
    for uri in dict.fromkeys(roots):
        try:
            storage = open_storage(uri, options)
            below = discover(storage, depth)
        except CkptError as error:
            collected.roots.append(ScannedRoot(uri, error=str(error)))
            continue
        collected.roots.append(ScannedRoot(uri, len(below.checkpoints)))
        collected.checkpoints[uri] = below.checkpoints
        collected.unlisted += [make_unreadable_row(storage.below(path).uri, why) for path, why in below.unlisted]
    return collected


def _rank(row: ScannedCheckpoint) -> tuple[int, bool, bool, str]:
    rank = -1 if row.severity is None else row.severity.rank
    runs = row.outcome is not None and row.outcome.runs
    return -rank, row.error is None, runs, row.path


def _read_clock_ms() -> int:
    return time.time_ns() // 1_000_000
