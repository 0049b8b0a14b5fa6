"""``ckpt scan`` as one call: finds all checkpoints below some folders, and inspects each."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from os import PathLike, fspath
from typing import Annotated, Any, NamedTuple

from ckpt.advice import Option, words
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, PARTS
from ckpt.checkpoint.history import sources
from ckpt.checkpoint.pipelines import parse_flow, sort_versions
from ckpt.checkpoint.points import list_points
from ckpt.checkpoint.reader import look_beside, read_checkpoint
from ckpt.checkpoint.recognised import is_checkpoint
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.errors import CkptError, NotFound, SourceError, StorageError, UsageError, one_line
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.inspection.scan.rows import ScannedCheckpoint, make_row, make_unreadable_row
from ckpt.inspection.scan.unfinished import ScanRequest, Unfinished, keep_unfinished, read_clock_ms
from ckpt.live.asking import ask_sources
from ckpt.live.kafka.options import SERVERS, translate_options
from ckpt.model import Location
from ckpt.processes import Processes
from ckpt.restart.findings import Severity
from ckpt.storage import Folder, Root, Storage, open_storage
from ckpt.storage.locations import is_in_memory
from ckpt.storage.remote import share_requests
from ckpt.texts import mask_secrets
from ckpt.values import Value
from ckpt.versions import __version__

_AGO = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TABLES = frozenset(("_delta_log", "_spark_metadata"))  # a Delta table, the output of a file sink
_NEVER = _TABLES | {"_temporary", ".hoodie"}  # folders that hold no checkpoint
_NAME_A_STORE = ("endpoint", "authority", "account_name", "host")  # options of a storage, not who asks it
_FOLDERS_AT_ONCE = 32  # folders of a remote root that are listed side by side


@dataclass(slots=True)
class Discovered:
    """The folders below a root; paths are relative to it, ``""`` is the root itself."""

    root: Root
    all_versions: bool
    checkpoints: list[str] = field(default_factory=list)
    superseded: int = 0  # versions of flows of pipelines that no run uses, and that are left out
    unlisted: list[tuple[str, str]] = field(default_factory=list)  # folders that could not be listed, and why
    points: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of a query, by the newest of them

    def list_folder(self, folder: str) -> Folder | None:
        """List one folder; None where it has vanished, or cannot be listed, which is noted unless it is the root."""
        try:
            return self.root.list_level(folder)
        except NotFound:
            if not folder:
                raise
        except StorageError as error:
            if not folder:
                raise
            self.unlisted.append((folder, str(error)))
        return None

    def note_points(self, folder: str, level: Folder) -> frozenset[str]:
        """Note the newest point of each query for all of them; return the names that need no look."""
        points, unfinished = list_points(self.root.below(folder), level)
        newest = {f"{folder}/{own[-1].name}".lstrip("/"): tuple(each.name for each in own) for own in points.values()}
        self.points |= newest
        self.checkpoints += newest
        return frozenset(unfinished).union(*newest.values())

    def choose_folders(self, folder: str, level: Folder) -> list[tuple[str, bool]]:
        """Note a checkpoint; return the folders to be looked at next, and whether they are links."""
        flow = parse_flow(self.root.below(folder).uri)
        names = (*level.files, *level.folders)  # a run takes a file for a version too, and fails
        if flow is not None and flow[1] is None and (versions := sort_versions(names)):
            live = versions if self.all_versions else versions[-1:]
            self.superseded += len(versions) - len(live)
            self.checkpoints += [f"{folder}/{name}".lstrip("/") for name in live]
            return []
        left_out = _NEVER | self.note_points(folder, level)
        if is_checkpoint(self.root, level, folder):
            self.checkpoints.append(folder)
            left_out |= set(PARTS)
        table = not level.folders.isdisjoint(_TABLES)
        chosen = (name for name in sorted(level.folders - left_out) if not (table and "=" in name))
        return [(f"{folder}/{name}".lstrip("/"), name in level.links) for name in chosen]


def discover(root: Root, depth: int | None = None, *, all_versions: bool = False) -> Discovered:
    """Find the checkpoints at a root and at most ``depth`` levels below it (None: all).

    Of a flow of a declarative pipeline that is the version that runs use, or with ``all_versions`` each.

    A symbolic link is looked at and not followed further. In a Delta table, and in the output of a file sink, folders
    of partitions (``day=1``) are left out. Raises NotFound or StorageError where the root itself cannot be listed.
    """
    search = Discovered(root, all_versions)
    level: list[tuple[str, bool]] = [("", False)]  # folders, and whether they are symbolic links
    below = 0
    with ThreadPoolExecutor(1 if root.local else _FOLDERS_AT_ONCE, thread_name_prefix="ckpt-discover") as pool:
        while level:
            look = map if root.local else pool.map
            listed = list(look(search.list_folder, [folder for folder, _ in level]))
            deeper: list[tuple[str, bool]] = []
            for (folder, linked), inside in zip(level, listed, strict=True):
                chosen = search.choose_folders(folder, inside) if inside is not None else []
                deeper += [] if linked else chosen
            below += 1
            level = deeper if depth is None or below <= depth else []
    search.checkpoints.sort()
    search.unlisted.sort()
    return search


_WORTH_A_PROCESS = 40  # checkpoints: what takes as long to inspect as a process to start
_PRESENTED, _PRESENTED_LENGTH = 200, 10_000_000  # checkpoints, and characters of all: what a browser still opens
_AT_ONCE = 8  # remote checkpoints that one process looks at side by side
_MOST_REMOTE = 3  # processes beside this one, for a remote root: each has its share of the connections

Watcher = Callable[[int, int], None]  # called with how many checkpoints are done, and of how many
Prepare = Callable[[Storage, Mapping[str, str]], None]  # says how much of the state is read; goes to other processes


def read_loaded(storage: Storage, storage_options: Mapping[str, str]) -> None:
    """Have the state that the next start loads read up to a bound, as by default."""


class InspectOptions(NamedTuple):
    """How each checkpoint is inspected: how much of its state is read, and for which versions or releases of Spark."""

    prepare: Prepare = read_loaded
    spark: tuple[str, ...] = ()
    storage_options: Mapping[str, str] = {}
    kafka_options: Mapping[str, str] | None = None  # for every Kafka source: without them no source is asked

    def __str__(self) -> str:
        return " ".join((self.prepare.__name__, *self.spark))


BY_DEFAULT = InspectOptions()


@dataclass(frozen=True, slots=True)
class ScannedRoot:
    """A root that was asked for."""

    uri: Annotated[str, "as given"]
    checkpoints: Annotated[int, "checkpoints found below it, including those left out by `--changed-since`"] = 0
    error: Annotated[str | None, "why it could not be listed"] = None
    superseded: Annotated[int, "flow versions that no run uses, left out without `--all-versions`"] = 0


@dataclass(frozen=True, slots=True)
class Scan(Value):
    """All checkpoints below some roots, the worst first."""

    roots: tuple[ScannedRoot, ...]
    checkpoints: tuple[ScannedCheckpoint, ...]  # those that have not changed are left out
    began_ms: int
    ended_ms: int
    resumed: Annotated[int, "how many were inspected before the scan was interrupted; it began at `began_ms`"] = 0
    started_over: Annotated[
        str | None, "with `--resume`: why the rows of an interrupted scan could not be used, and all were made again"
    ] = None

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


def scan_all(
    roots: Location | Sequence[Location],
    *,
    storage_options: Mapping[str, str] | None = None,
    depth: int | None = None,
    jobs: int | None = None,
    changed_since: str | datetime | None = None,
    sources: bool = False,
    source_options: Mapping[str, str] | None = None,
    all_versions: bool = False,
    how: InspectOptions = BY_DEFAULT,
    resume: str | PathLike[str] | None = None,
    watcher: Watcher | None = None,
) -> Scan:
    """Scan as ``ckpt.scan`` does; ``how`` says how each checkpoint is inspected."""
    if depth is not None and depth < 0:
        raise UsageError.of("{--depth} must be at least 0")
    if jobs is not None and jobs < 1:
        raise UsageError.of("{--jobs} must be at least 1")
    since = None if changed_since is None else _parse_moment(changed_since)
    if source_options and not sources:
        raise UsageError(words("{given} needs {needed}", given=Option("source_options"), needed=Option("sources")))
    if sources:
        translate_options(source_options or {})
    locations = [roots] if isinstance(roots, str | PathLike) else roots
    uris = tuple(dict.fromkeys(fspath(root) for root in locations))
    brokers = (source_options or {}).get(SERVERS)
    storage_options = storage_options or {}
    relative = any("://" not in uri and not os.path.isabs(uri) for uri in uris)
    folder = os.getcwd() if resume is not None and relative else None
    stores = (name for name in sorted(storage_options) if any(part in name for part in _NAME_A_STORE))
    store = tuple(mask_secrets(f"{name}={storage_options[name]}") for name in stores)
    limits = folder, store, depth, all_versions, brokers, since, str(how)
    request = ScanRequest(__version__, uris, *limits, began_ms=read_clock_ms())
    how = how._replace(storage_options=dict(storage_options), kafka_options=source_options and dict(source_options))
    with keep_unfinished(None if resume is None else fspath(resume), request) as unfinished:
        return _scan(how, jobs or os.cpu_count() or 1, watcher, unfinished)


def _scan(how: InspectOptions, jobs: int, watcher: Watcher | None, unfinished: Unfinished) -> Scan:
    request, before = unfinished.request, unfinished.rows
    scanned: list[ScannedRoot] = []
    below: dict[str, list[str]] = {}
    points: dict[str, tuple[str, ...]] = {}
    rows: dict[str, ScannedCheckpoint] = {}
    for uri in request.roots:
        try:
            storage = open_storage(uri, how.storage_options)
            discovered = discover(storage, request.depth, all_versions=request.all_versions)
        except CkptError as error:
            if any(root == uri for root, _ in before):
                raise _stay(error, unfinished) from error
            scanned.append(ScannedRoot(uri, error=str(error)))
            continue
        scanned.append(ScannedRoot(uri, len(discovered.checkpoints), superseded=discovered.superseded))
        below[uri] = discovered.checkpoints
        points |= {storage.below(path).uri: kept for path, kept in discovered.points.items()}
        unlisted = (make_unreadable_row(storage.below(path).uri, why) for path, why in discovered.unlisted)
        rows |= {row.path: row for row in unlisted}
    taken = [before[uri, path] for uri, paths in below.items() for path in paths if (uri, path) in before]
    rows |= {row.path: row for row in taken if row is not None}
    done, total = len(taken), sum(map(len, below.values()))
    for uri, paths in below.items():
        left = [path for path in paths if (uri, path) not in before]
        unread = 0
        for path, row in _look(uri, left, jobs, request.changed_since_ms, how):
            done += 1
            if watcher is not None:
                watcher(done, total)
            if row is not None:
                rows[row.path] = row
            unfinished.keep((uri, path), row)
            unread = unread + 1 if row is not None and row.error is not None else 0
            if unfinished.path and unread and not unread % _AT_ONCE:
                _must_answer(uri, how.storage_options, unfinished)
    ordered = tuple(sorted((replace(row, points=points.get(path, ())) for path, row in rows.items()), key=_rank))
    return Scan(tuple(scanned), ordered, request.began_ms, read_clock_ms(), len(taken), unfinished.started_over)


def _must_answer(uri: str, options: Mapping[str, str], unfinished: Unfinished) -> None:
    """Raise StorageError where a root cannot be listed any more, as with credentials that have expired."""
    try:
        open_storage(uri, options).list_level()
    except StorageError as error:
        raise _stay(error, unfinished) from error


def _parse_moment(moment: str | datetime) -> int:
    """An ISO 8601 time (UTC unless it says otherwise), or how long ago: ``15m``; in ms since 1970 UTC.

    Raises UsageError.
    """
    if isinstance(moment, str):
        text = moment
        if ago := _AGO.fullmatch(text):
            return read_clock_ms() - int(ago[1]) * _MS[ago[2]]
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            option = Option("changed_since", one_line(text))
            raise UsageError(words("{given}: write 2026-11-22T08:00:00Z, or 15m, 8h, 7d", given=option)) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _stay(error: CkptError, unfinished: Unfinished) -> StorageError:
    """An error after which the next scan continues."""
    return StorageError(f"{error}; the results so far are in {one_line(unfinished.path)}")


def _look(
    uri: str, paths: Sequence[str], jobs: int, since_ms: int | None, how: InspectOptions
) -> Iterator[tuple[str, ScannedCheckpoint | None]]:
    """Make the row of each checkpoint below a root, as they are done; None for one without a change since then."""
    local = open_storage(uri, how.storage_options).local
    count = min(jobs if local else min(jobs, _MOST_REMOTE), len(paths) // _WORTH_A_PROCESS)
    count = max(count, 1) if not is_in_memory(uri) else 1
    size = 1 if local else _AT_ONCE
    tasks = [paths[first : first + size] for first in range(0, len(paths), size)]
    yield from (row for _, row in Processes(count).run(make_looker, (uri, since_ms, how, count), tasks))


def make_looker(shared: Any) -> Callable[[Sequence[str]], Iterator[tuple[str, ScannedCheckpoint | None]]]:
    """Inspect some checkpoints of a root in a process of its own: the row of each, None for one without a change."""
    uri, since_ms, how, processes = shared
    share_requests(processes if processes == 1 else processes + 1)  # whoever lists has its connections too
    root = open_storage(uri, how.storage_options)

    def make(path: str) -> ScannedCheckpoint | None:
        storage = root.below(path)
        try:
            if since_ms is not None and not _has_changed(storage, since_ms):
                return None
        except CkptError as error:
            return make_unreadable_row(storage.uri, str(error))
        return _inspect_one(storage, how)[0]

    def do(paths: Sequence[str]) -> Iterator[tuple[str, ScannedCheckpoint | None]]:
        if len(paths) < 2:
            yield from zip(paths, map(make, paths), strict=True)
            return
        with ThreadPoolExecutor(len(paths), thread_name_prefix="ckpt-scan") as pool:
            yield from zip(paths, pool.map(make, paths), strict=True)

    return do


def _inspect_one(storage: Storage, how: InspectOptions) -> tuple[ScannedCheckpoint, Inspection | None]:
    """Inspect a checkpoint, with what its Kafka sources have now if these are to be asked; None where it cannot."""
    options, reader = how.storage_options, how.kafka_options
    try:
        how.prepare(storage, options)
        checkpoint = look_beside(read_checkpoint(storage, look_only=True), options)
        kafka = {view.index: reader for view in sources(checkpoint) if reader and view.type is SourceType.KAFKA}
        unasked = None
        try:
            live = ask_sources(checkpoint, kafka, given_only=True) if kafka else ()
        except SourceError as error:
            live, unasked = (), str(error)
        inspection = inspect(checkpoint, how.spark, live=live)
        return make_row(inspection, checkpoint.uri, sources_error=unasked), inspection
    except CkptError as error:
        return make_unreadable_row(storage.uri, str(error)), None
    except Exception as error:  # whatever one checkpoint does to ckpt, the others are looked at
        why = f"{storage.uri}: ckpt failed ({type(error).__name__}: {error})"
        return make_unreadable_row(storage.uri, why), None


def present_worst(
    scan: Scan,
    present: Callable[[Inspection], str],
    storage_options: Mapping[str, str] | None = None,
    kafka_options: Mapping[str, str] | None = None,
    how: InspectOptions = BY_DEFAULT,
) -> tuple[Scan, dict[str, str]]:
    """Inspect the worst checkpoints of a scan once more: the scan with their rows of now, and a text of each by path.

    An inspection may be large, so that it is presented at once and not kept.
    """
    rows, texts, length = list(scan.checkpoints), dict[str, str](), 0
    how = how._replace(storage_options=storage_options or {}, kafka_options=kafka_options)

    def look(row: ScannedCheckpoint) -> tuple[ScannedCheckpoint, str | None]:
        if row.error is not None:
            return row, None
        again, inspection = _inspect_one(open_storage(row.path, how.storage_options), how)
        return replace(again, points=row.points), None if inspection is None else present(inspection)

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="ckpt-present") as pool:
        for number, (row, text) in enumerate(pool.map(look, rows[:_PRESENTED])):
            rows[number] = row
            length += len(text or "")
            if text is not None and length <= _PRESENTED_LENGTH:
                texts[row.path] = text
    return replace(scan, checkpoints=tuple(sorted(rows, key=_rank))), texts


def _has_changed(storage: Root, since_ms: int) -> bool:
    """Tell whether a batch was planned or committed since then, judging by the times of files; unknown is yes."""
    newest: list[int | None] = []
    for folder in (OFFSETS, COMMITS):
        try:
            newest += [info.mtime_ms for info in storage.list_level(folder).files.values()]
        except NotFound:
            continue
    return not newest or any(time is None or time >= since_ms for time in newest)


def _rank(row: ScannedCheckpoint) -> tuple[int, bool, bool, str]:
    rank = -1 if row.severity is None else row.severity.rank
    runs = row.outcome is not None and row.outcome.runs
    return -rank, row.error is None, runs, row.path
