"""``ckpt skip``: the batch that was planned and not committed counts as done, without its rows."""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from os import fspath
from typing import ClassVar, Unpack
from uuid import NAMESPACE_URL, uuid5

from ckpt.advice import NO_ROWS, UNKNOWN_ROWS, RowsEffect, Words, left_out
from ckpt.changes.apply import ApplyOptions, ChangeResult, run_change
from ckpt.changes.book import BOOK
from ckpt.changes.check_fix import check_fix, must_run_first
from ckpt.changes.plan import OF_EPOCHS, STOP_FIRST, ChangePlan, NoWay, adapt_to_sink, name_log_problem
from ckpt.changes.rewind.files_after import state_above
from ckpt.changes.steps import FileStep, plan_creating, plan_unread_removals
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, SKIPPED, STATE, Checkpoint
from ckpt.checkpoint.history import find_recreated_topics, rate_sources
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.sources.file_logs import files_between, source_folder
from ckpt.checkpoint.sources.files import FileOffset, entry_at
from ckpt.checkpoint.sources.registry import SourceRange, offset_of, source_ranges, source_views
from ckpt.checkpoint.sources.starts import StartFacts
from ckpt.checkpoint.state.chains import WantedVersion, context_of
from ckpt.checkpoint.state.folders import StorePartition, find_store_partitions
from ckpt.formats.commits import format_commit_log
from ckpt.formats.compression import MAGIC, Corrupt, decompress_first_block, store_block
from ckpt.formats.metadata import build_skipped
from ckpt.formats.names import COMPACT, DEFAULT_INTERVAL
from ckpt.formats.sidecars import build_spark_sidecar
from ckpt.formats.statefiles import CHECKSUM, LZ4, parse_lineage
from ckpt.formats.text import read_utf, write_utf
from ckpt.inspection.inspection import inspect
from ckpt.live.sink.reader import ask_sink
from ckpt.live.sink.records import SinkLog
from ckpt.model import Kind, Location, PlannedBatch, StateFileKind
from ckpt.restart.sinks import AnySink, InSink
from ckpt.storage import ReadRequest, Storage

_HEAD = 1 << 16  # bytes from the beginning of a file that surely hold its first block
_MARKED = 100  # skipped batches that are marked: Spark keeps as many batches by default
_NO_RECORD_INT, _NO_RECORD_BYTE = struct.pack(">i", -1), b"\x00"
UniqueIds = Mapping[int, tuple[tuple[str, ...], ...]]
"""Of state files in format 2: operator -> [partition][store]."""


@dataclass(frozen=True, slots=True)
class _Store:
    """One store in one partition, the version it has, and the file that this was written as."""

    place: StorePartition
    version: WantedVersion
    name: str

    @property
    def path(self) -> str:
        return f"{self.place.folder}/{self.name}"


def plan_empty_version(checkpoint: Checkpoint, storage: Storage) -> tuple[list[FileStep], UniqueIds]:
    """The version after the one that the next start loads, equal to it; in format 2 with what the commit calls it.

    Batch L reads version L of each store and writes version L + 1. Written here, as real batches without rows write it:

    - HDFS-backed: a delta without records (``HDFSBackedStateStoreProvider.finalizeDeltaFile``: an int of -1).
    - RocksDB without changelogs: a copy of the zip, in which nothing names the version; the SST files are shared.
    - Changelogs v1 and v2: without records (``StateStoreChangelogWriterV1``: -1; ``V2``: its version, then a zero
      byte).
    - Changelogs v3 and v4 (format 2): the lineage first (``StateStoreChangelogWriterV3``), under a new unique id.

    Restarts continued as those of a query whose batch had no rows (measured on 4.2.0; on 3.5.9 without format 2).
    Raises NoWay, StorageError.
    """
    context = context_of(checkpoint.offsets, checkpoint.commits)
    if context.codec not in (None, LZ4):
        raise NoWay(f"state is compressed with {context.codec}, but ckpt writes only lz4")
    count = context.shuffle_partitions
    stores = []
    for partition in find_store_partitions(checkpoint.listing, context.provider):
        if count is not None and partition.partition >= count:
            continue
        target = context.target(partition)
        if target is None:
            raise NoWay(f"the commit log does not say which files {partition.folder} has")
        stores.append(_Store(partition, target, _find_version_file(partition, target)))
    requests = [ReadRequest(store.path, 0, None if store.name.endswith(".zip") else _HEAD) for store in stores]
    steps: list[FileStep] = []
    renamed: dict[str, str] = {}
    for store, data in zip(stores, storage.read_all(requests), strict=True):
        steps += _plan_steps(checkpoint, store, data, renamed)
    ids = rename_ids(context.unique_ids, renamed, "the commit log names state files with the id {}, which are missing")
    return steps, ids


def _find_version_file(partition: StorePartition, target: WantedVersion) -> str:
    """The file as which a version was written: its delta or changelog, or, where there is none, its zip."""
    this = (target.version, target.unique_id)
    if this in partition.names.logs:
        return partition.names.logs[this]
    snapshot = partition.names.snapshots.get(this)
    if snapshot is not None and target.unique_id is not None:
        raise NoWay(BOOK.text("no_changelog", folder=partition.folder, snapshot=snapshot))
    if snapshot is not None and partition.names.snapshot_kind is StateFileKind.ZIP:
        return snapshot
    stem = str(target.version) if target.unique_id is None else f"{target.version}_{target.unique_id}"
    raise NoWay(f"{partition.folder}/{stem}.{partition.names.log_kind} is missing")


def _plan_steps(checkpoint: Checkpoint, store: _Store, data: bytes, renamed: dict[str, str]) -> Iterator[FileStep]:
    """The file of the next version, with its checksum files where the one before has them."""
    version, old = store.version.version + 1, store.version.unique_id
    ending = store.name.rpartition(".")[2]
    is_copy = ending == "zip"
    written = data if is_copy else store_block(_make_empty_file(store, data))
    stem = str(version)
    if old is not None:
        renamed[old] = str(uuid5(NAMESPACE_URL, f"{checkpoint.query_id}/{store.place.folder}/{version}/{old}"))
        stem = f"{version}_{renamed[old]}"
    path = f"{store.place.folder}/{stem}.{ending}"
    yield from plan_creating(checkpoint.listing, path, written, store.path, store.path if is_copy else None)
    checksum = f"{store.path}{CHECKSUM}"
    if checkpoint.listing.info(checksum) is not None:
        recorded = build_spark_sidecar(written, checkpoint.planned_ms(checkpoint.offsets.latest))
        yield from plan_creating(checkpoint.listing, f"{path}{CHECKSUM}", recorded, checksum)


def _make_empty_file(store: _Store, head: bytes) -> bytes:
    """Return a delta or changelog of the file's kind without a record. Raises NoWay."""
    try:
        block = decompress_first_block(head)
    except Corrupt:
        why = "its first block is damaged" if head.startswith(MAGIC) else "it is not compressed with lz4"
        raise NoWay(f"{store.path} cannot be read ({why}), and ckpt writes only lz4") from None
    kind = _read_changelog_version(block) if store.place.names.log_kind is StateFileKind.CHANGELOG else "v1"
    if kind == "v1":
        return _NO_RECORD_INT
    if kind == "v2":
        return write_utf(kind) + _NO_RECORD_BYTE
    lineage, this = parse_lineage(head), store.version
    if kind not in ("v3", "v4") or lineage is None or this.unique_id is None:
        raise NoWay(f"ckpt does not know the start of changelog {store.path}")
    last = (this.version, this.unique_id)
    items = [last] if last in store.place.names.snapshots else [*lineage, last]
    text = json.dumps([{"version": v, "checkpointUniqueId": i} for v, i in items], separators=(",", ":"))
    return write_utf(kind) + write_utf(text) + (_NO_RECORD_INT if kind == "v3" else _NO_RECORD_BYTE)


def _read_changelog_version(block: bytes) -> str:
    """Return the first words of a changelog; v1 has none (``StateStoreChangelogReaderFactory.readVersion``)."""
    try:
        version, _ = read_utf(block, 0)
    except (ValueError, struct.error):
        return "v1"
    return version if version.startswith("v") and version[1:].isdecimal() else "v1"


def rename_ids(ids: UniqueIds, renamed: Mapping[str, str], lost: str) -> UniqueIds:
    """The ids of another version, each in the place of an old one. Raises NoWay, which is ``lost``, for one without."""
    try:
        return {op: tuple(tuple(renamed[i] for i in part) for part in parts) for op, parts in ids.items()}
    except KeyError as missing:
        raise NoWay(lost.format(missing.args[0])) from None


@dataclass(frozen=True, slots=True)
class SkippedSource:
    """The range of one source in the skipped batch, and the reader options that begin there."""

    range: SourceRange
    options: Mapping[str, str]  # empty where none says it
    files: tuple[str, ...] | None = None  # of a file source, as URIs; None of any other, or where its log is damaged


@dataclass(frozen=True, slots=True)
class Skipped:
    """A batch that is left out."""

    batch: int
    sources: tuple[SkippedSource, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipPlan(ChangePlan):
    """A commit for the latest batch, and state that has not seen it."""

    command: ClassVar[str] = "skip"

    skipped: tuple[Skipped, ...] = ()

    @property
    def rows_effect(self) -> RowsEffect:
        """The rows of the batch are left out."""
        return left_out(self.skipped[0].batch) if self.skipped else NO_ROWS


def skip(
    checkpoint: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    sink: str | None = None,
    **how: Unpack[ApplyOptions],
) -> ChangeResult[SkipPlan]:
    """Do what ``ckpt skip`` does; return the plan and its receipt. Without ``apply`` or ``undo`` it only plans.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        sink: The query's sink, as for ``inspect``: the plan then shows what that sink needs.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier skip; see ``ApplyOptions``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, or the backup would be inside the checkpoint.

    >>> plan, receipt = ckpt.skip("sample_checkpoints/aggregation-killed-hdfs-4.0")
    >>> plan.skipped[0].batch, plan.after[0].batch_id, receipt.applied
    (4, 5, False)
    """
    uri = fspath(checkpoint)

    def plan(storage: Storage) -> SkipPlan:
        log = ask_sink(sink, uri, storage_options or {})
        return adapt_to_sink(plan_skip(storage, log), log)

    return run_change(SkipPlan, plan, uri, storage_options, **how)


def plan_skip(storage: Storage, sink: SinkLog | None = None) -> SkipPlan:
    """Plan to skip a batch, as ``skip`` does. Raises NotACheckpoint, NotFound, StorageError."""
    inspection = inspect(read_checkpoint(storage, batches=0), sink=sink)
    checkpoint = inspection.checkpoint
    latest = checkpoint.offsets.latest
    if latest is None or latest in checkpoint.commits:
        why = "no batch was planned" if latest is None else f"batch {latest}, the latest, is committed"
        return SkipPlan(inspection=inspection, needed=False, why=why)
    plan = SkipPlan(inspection=inspection, needed=True)
    problem = _refuse_skip(checkpoint, latest)
    if problem is not None:
        return replace(plan, refused=problem)
    try:
        state, ids = plan_empty_version(checkpoint, storage) if checkpoint.stateful else ([], {})
    except NoWay as error:
        return replace(plan, refused=f"version {latest + 1} of the state cannot be written: {error}")
    commit, before = checkpoint.commits.readable(latest - 1), f"{COMMITS}/{latest - 1}"
    assert commit is not None  # no row was seen that moves its watermark
    commit = replace(commit, state_unique_ids=ids) if ids else commit
    # of the file that fills the hole which the log of a file sink may not have; measured on Spark 4.2.0
    name = "do_not_skip" if (latest + 1) % DEFAULT_INTERVAL == 0 else "fill_hole"
    hole = BOOK.text(name, batch=latest, due=f"{latest}{COMPACT}")
    leftovers = (*state_above(checkpoint.listing, latest), f"{COMMITS}/{latest}")  # of its crashed attempt
    plan = replace(
        plan,
        steps=(
            *plan_unread_removals(checkpoint.listing, leftovers),
            *state,
            _plan_mark(storage, checkpoint, latest),
            *plan_creating(checkpoint.listing, f"{COMMITS}/{latest}", format_commit_log(commit), before),
        ),
        why=f"batch {latest} is marked as done"
        + (f", and state version {latest + 1} equals version {latest}" if checkpoint.stateful else ""),
        skipped=(Skipped(latest, tuple(_describe_skipped_sources(storage, checkpoint, latest))),),
        warnings=tuple(_warn_of_skip(checkpoint, latest)),
        any_sink=AnySink(hole, kinds=(InSink("file", UNKNOWN_ROWS, hole),)),
    )
    return check_fix(plan, storage, must_run_first(latest + 1))


def _refuse_skip(checkpoint: Checkpoint, latest: int) -> str | None:
    """Why the latest batch cannot be left out, by the file that is missing."""
    offsets, commits = checkpoint.offsets, checkpoint.commits
    if checkpoint.kind is Kind.CONTINUOUS:
        return OF_EPOCHS
    if latest == 0:
        return "batch 0 is the first: there is no earlier batch to continue from. Start with a new checkpoint"
    for log, batch in ((offsets, latest), (offsets, latest - 1), (commits, latest - 1)):
        if (problem := name_log_problem(log, batch)) is not None:
            return problem
    if commits.latest != latest - 1:
        return f"{COMMITS}/{commits.latest} exists, but {OFFSETS}/{commits.latest} does not"
    before, end = (len(log.sources) for log in map(offsets.readable, (latest - 1, latest)) if log is not None)
    if before != end:
        return f"{OFFSETS}/{latest - 1} and {OFFSETS}/{latest} name different numbers of sources: {before} and {end}"
    if checkpoint.stateful is None:
        return f"{STATE}/ is missing, and it is unknown whether the query is stateful"
    return None


def _plan_mark(storage: Storage, checkpoint: Checkpoint, latest: int) -> FileStep:
    """Plan to mark the batch as skipped, so that nobody sends the query back to it for the sake of a sink."""
    was = storage.read(SKIPPED) if checkpoint.listing.info(SKIPPED) is not None else None
    marked = (*checkpoint.marked_skipped, PlannedBatch(latest, checkpoint.planned_ms(latest)))
    return FileStep(SKIPPED, was, build_skipped(marked[-_MARKED:]), like=f"{COMMITS}/{latest - 1}")


def _describe_skipped_sources(storage: Storage, checkpoint: Checkpoint, latest: int) -> Iterator[SkippedSource]:
    """Describe the rows that are left out, and how to read them by hand."""
    before, end = checkpoint.offsets.readable(latest - 1), checkpoint.offsets.readable(latest)
    assert before is not None
    views = source_views(before, rate_sources(checkpoint))
    for index, (view, source_range) in enumerate(zip(views, source_ranges(before, end), strict=True)):
        facts = StartFacts(recreated=find_recreated_topics(checkpoint, latest - 1, index))
        files, last = None, offset_of(end, index)
        if isinstance(last, FileOffset):
            folder = source_folder(checkpoint.listing, end, index)
            files = files_between(storage, folder, entry_at(offset_of(before, index)), last.log_offset)
        yield SkippedSource(source_range, view.start_after(facts).options, files)


def _warn_of_skip(checkpoint: Checkpoint, latest: int) -> Iterator[Words]:
    yield BOOK.text("end_first") if checkpoint.stateful else STOP_FIRST
    yield BOOK.text("not_read_again", latest=latest)
    yield BOOK.text("of_an_attempt", latest=latest)
    if checkpoint.stateful:
        yield BOOK.text("one_batch_later", latest=latest, next=latest + 1)
