"""The batches of a checkpoint: which are planned and committed, and how far each advanced its sources."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, NamedTuple

from ckpt.checkpoint.checkpoint import SOURCES, STATE, Checkpoint
from ckpt.checkpoint.sources.file_logs import file_source_logs, name_folder, source_folder
from ckpt.checkpoint.sources.files import FileOffset, entry_at
from ckpt.checkpoint.sources.kind import Advance
from ckpt.checkpoint.sources.registry import SourceView, advances, indexed, offset_of, source_views
from ckpt.checkpoint.state.ranges import contains
from ckpt.formats.operators import OperatorName
from ckpt.formats.sidecars import shown_name
from ckpt.formats.sourcelogs import SourceFile
from ckpt.model import DamageKind, Kind, Store, Unreadable


class Pattern(StrEnum):
    """The shape that the two logs make together; a shape, not a proof of origin."""

    CONTIGUOUS = "contiguous"
    ASYNC_PROGRESS = "async-progress"
    GAPPED = "gapped"
    EMPTY = "empty"


class Uncomputed(NamedTuple):
    """Committed batches whose state is not there, though all state before them is."""

    first: int
    last: int
    anywhere: bool  # some operator, or some partition, has state of these batches
    whole: bool  # each operator lacks it in all of its partitions, or in none, and nothing else is wrong


class Batch(NamedTuple):
    """One planned batch, from its offset file."""

    batch_id: int
    timestamp_ms: Annotated[int | None, "when it was planned"]
    watermark_ms: int | None
    committed: bool
    unreadable: Annotated[str | None, "why its offsets cannot be read"]
    advanced: tuple[Advance | None, ...]  # per source, from the nearest earlier batch; None: not known


def uncommitted(checkpoint: Checkpoint) -> tuple[int, ...]:
    """Batches with offsets and no commit."""
    committed = frozenset(checkpoint.commits.ids)
    return tuple(i for i in checkpoint.offsets.ids if i not in committed)


def unplanned(checkpoint: Checkpoint) -> tuple[int, ...]:
    """Batches with a commit and no offsets."""
    planned = frozenset(checkpoint.offsets.ids)
    return tuple(i for i in checkpoint.commits.ids if i not in planned)


def pattern(checkpoint: Checkpoint) -> Pattern:
    """The shape of the two logs.

    ``async-progress``: at least one gap, every commit has its offsets, at most the latest batch is uncommitted (batches
    without rows apart, such as ``ckpt repair-async`` writes), and the query is stateless.
    """
    offsets, commits = checkpoint.offsets, checkpoint.commits
    if not offsets.ids and not commits.ids:
        return Pattern.EMPTY
    if not offsets.missing and not commits.missing:
        return Pattern.CONTIGUOUS
    as_asynchronous = (
        bool(offsets.missing)
        and not unplanned(checkpoint)
        and all(i == offsets.latest or is_empty(checkpoint, i) for i in uncommitted(checkpoint))
        and not checkpoint.stateful
    )
    return Pattern.ASYNC_PROGRESS if as_asynchronous else Pattern.GAPPED


def find_uncomputed(checkpoint: Checkpoint) -> Uncomputed | None:
    """Find committed batches that their sink may not have computed; None where it has, or files before them are lost.

    Measured on 4.2.0: state of format 1 (HDFS-backed, RocksDB with and without changelogs) then ends at one version in
    all partitions. In format 2 such a batch fails before its commit. Lost files may look so, unless their hidden
    checksums have stayed.
    """
    state, last = checkpoint.state, checkpoint.commits.latest
    if state is None or last is None or state.needed_version != last + 1 or state.format_version > 1:
        return None
    missing = [each for each in state.damages if each.kind in (DamageKind.MISSING, DamageKind.MISSING_PARTITION)]
    lacking = {damage.operator for damage in missing}
    stores = [(operator.id, store, set(_list_ends(store))) for operator, store in checkpoint.stores()]
    ends = set[int]().union(*(versions for _, _, versions in stores))
    begun = min((min(versions) for operator, _, versions in stores if operator in lacking), default=last + 1)
    if begun > last or ends - {begun, last + 1} or checkpoint.offsets.readable(begun) is None:
        return None
    whole = all(len(versions) == 1 for operator, _, versions in stores if operator in lacking)
    whole = whole and len(missing) == len(state.damages)
    anywhere = last + 1 in ends
    kept = (_is_kept(store, begun - 1) for operator, store, _ in stores if operator in lacking)
    if (begun < last and not whole) or not all(kept):
        return None
    lost = _had_state(checkpoint, (begun + 1, last + 1), anywhere=anywhere)
    return None if lost else Uncomputed(begun, last, anywhere, whole)


def _is_kept(store: Store, batch: int) -> bool:
    """Tell whether the state after a batch is there; before the first one, the schemas that Spark writes beforehand."""
    if batch < 0:
        return store.key_schema is not None or bool(store.column_families)
    return contains(store.readable_batches, batch)


def _list_ends(store: Store) -> Iterator[int]:
    """List the newest versions of a store's partitions; 0: one has none, or is not there."""
    count = store.expected_partitions or len(store.partitions)
    there = [partition.newest_version or 0 for partition in store.partitions if partition.partition < count]
    yield from there
    yield from [0] * (len(there) < count)


def _had_state(checkpoint: Checkpoint, versions: Iterable[int], *, anywhere: bool) -> bool:
    """Tell whether state of these versions was lost: files of another provider are there, or hidden checksums."""
    begins = tuple(f"{dot}{version}." for version in versions for dot in ("", "."))
    for path, _ in checkpoint.listing.walk(STATE):
        folder, _, name = path.rpartition("/")
        if name.startswith(begins) and not (anywhere and checkpoint.listing.info(f"{folder}/{shown_name(name)}")):
            return True
    return False


def in_real_time(checkpoint: Checkpoint) -> bool:
    """Tell whether files show that real-time mode wrote a checkpoint: that of Spark 4.3, as earlier ones leave no sign.

    It names an aggregation in its own way, and writes commits of version 2 without state too
    (``RealTimeStreamExecution``; otherwise only a session that is set to state format 2 does).
    """
    if any(operator.name == OperatorName.REAL_TIME_AGGREGATION for operator in checkpoint.operators):
        return True
    commit = checkpoint.commits.newest
    of_format_2 = commit is not None and commit.version == 2 and not commit.state_unique_ids
    return of_format_2 and not checkpoint.listing.has_folder(STATE)


def name_lagging_mode(checkpoint: Checkpoint) -> str | None:
    """How a log was written that may lag behind the sink, in words; None where each batch is logged before it runs."""
    if checkpoint.kind is Kind.CONTINUOUS:
        return "by continuous processing"
    if in_real_time(checkpoint):
        return "in real-time mode"
    return "with asynchronous progress tracking" if pattern(checkpoint) is Pattern.ASYNC_PROGRESS else None


def is_empty(checkpoint: Checkpoint, batch_id: int) -> bool:
    """Tell whether a planned batch ends where the one before it in the log does, so that it had no rows."""
    offsets = checkpoint.offsets
    before, end = offsets.readable(offsets.before(batch_id)), offsets.readable(batch_id)
    return before is not None and end is not None and before.sources == end.sources


def batches(checkpoint: Checkpoint, newest: int = 10) -> tuple[Batch, ...]:
    """The newest batches that have offsets, oldest first; 0 gives all. Their files must have been read."""
    offsets = checkpoint.offsets
    shown = offsets.ids[-newest:] if newest else offsets.ids
    committed = frozenset(checkpoint.commits.ids)
    batches = []
    for batch_id in shown:
        log, entry = offsets.readable(batch_id), offsets.entries.get(batch_id)
        earlier = offsets.readable(offsets.before(batch_id))
        metadata = log.metadata if log else None
        advanced: tuple[Advance | None, ...] = (None,) * len(log.sources) if log else ()
        if log and earlier and len(earlier.sources) == len(log.sources):
            advanced = advances(earlier, log)
        batches.append(
            Batch(
                batch_id,
                metadata.timestamp_ms if metadata else None,
                metadata.watermark_ms if metadata else None,
                batch_id in committed,
                entry.reason if isinstance(entry, Unreadable) else None,
                advanced,
            )
        )
    return tuple(batches)


def sources(checkpoint: Checkpoint) -> tuple[SourceView, ...]:
    """The position of each source at the end of the latest batch; a file source with the files of its last entry."""
    latest = checkpoint.offsets.newest
    views = []
    for view in source_views(latest, rate_sources(checkpoint)) if latest else ():
        last = entry_at(view.record)
        if isinstance(view.record, FileOffset):
            named = _list_files(checkpoint, view.index, last - 1, last)
            view = replace(view, decoded={**view.decoded, "files": [*named]}, files=named)
        views.append(view)
    return tuple(views)


def _list_files(checkpoint: Checkpoint, source: int, after: int, last: int) -> tuple[str, ...]:
    """The files that entries of the log of a source name, as far as they were read with the checkpoint."""
    files = (file.path for file in walk_source_log(checkpoint, source) if after < file.log_offset <= last)
    return tuple(dict.fromkeys(files))


def walk_source_log(checkpoint: Checkpoint, source: int) -> Iterator[SourceFile]:
    """Walk through the files that the log of a source names, as far as they were read with the checkpoint."""
    folder = source_folder(checkpoint.listing, checkpoint.offsets.newest, source)
    logs = (files for path, files in checkpoint.source_entries.items() if path.startswith(f"{folder}/"))
    return (file for files in logs if not isinstance(files, Unreadable) for file in files)


def batch_entries(checkpoint: Checkpoint, source: int) -> tuple[int, int]:
    """The newest log entry of a source before the latest batch, and the newest in it."""
    latest = checkpoint.offsets.latest
    before = None if latest is None else latest - 1
    read, planned = (entry_at(offset_of(checkpoint.offsets.readable(batch), source)) for batch in (before, latest))
    return read, planned


def find_renumbered_entry(checkpoint: Checkpoint, batch: int) -> int | None:
    """Find an entry of a file source's log that a batch has read, and that has other files now.

    Such a log ends before the offsets do: it lost entries, and a start began again after what was left. That start
    failed and left offsets that go back to the first new entry; without these, files show it that are younger than the
    batch.
    """
    offsets = checkpoint.offsets
    log, newest = offsets.readable(batch), offsets.newest
    for source_log in file_source_logs(checkpoint.listing, newest) if log and newest else ():
        ends = [entry_at(offset_of(offsets.readable(i), source_log.source)) for i in offsets.ids]
        read = entry_at(offset_of(log, source_log.source))
        if source_log.next_entry > max(ends):
            continue
        if ends[-1] < max(ends) and read >= ends[-1]:
            return ends[-1]
        planned_ms = log.metadata.timestamp_ms if log and log.metadata else None
        for file in walk_source_log(checkpoint, source_log.source):
            if planned_ms is not None and file.log_offset <= read and file.timestamp_ms > planned_ms:
                return file.log_offset
    return None


def batch_files(checkpoint: Checkpoint, source: int) -> tuple[str, ...]:
    """The files of a source that the latest batch has, as URIs, as far as they were read with the checkpoint."""
    return _list_files(checkpoint, source, *batch_entries(checkpoint, source))


def find_recreated_topics(checkpoint: Checkpoint, batch: int, source: int) -> dict[str, tuple[int, ...]]:
    """Find topics of a source that later batches show to be recreated after a batch, with their newest partitions."""
    logs = [log for i, log in checkpoint.offsets.records.items() if i >= batch]
    recreated: dict[str, tuple[int, ...]] = {}
    for before, after in pairwise(logs):
        advance = advances(before, after)[source : source + 1]
        recreated |= advance[0].recreated if advance and advance[0] is not None else {}
    return recreated


def rate_sources(checkpoint: Checkpoint) -> tuple[int, ...]:
    """Numbers of the sources whose folder holds only a file ``0``: a bare number is a rate source's offset there."""
    listing, newest = checkpoint.listing, checkpoint.offsets.newest
    numbers = {name: int(name) for name in listing.subfolders(SOURCES) if name.isdecimal()}
    numbers |= {source.name: k for k, source in indexed(newest.sources) if source.name} if newest is not None else {}
    files = {number: listing.in_folder(name_folder(number, name)) for name, number in numbers.items()}
    return tuple(number for number, names in files.items() if [name for name in names if name[0] != "."] == ["0"])
