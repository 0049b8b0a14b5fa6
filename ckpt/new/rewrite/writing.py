"""A new checkpoint, written: rows of each store come from whoever has them, everything else from the old one.

It has the offsets and commits of one batch of the old one and of the batch before, and one snapshot of each store in
each partition: state version batch + 1. Where the next batch is planned, it has its offsets, and its state if every
partition of the old one has it. It lacks what no start looks for. In logs and descriptions only settings, the number of
partitions and the ids of state files change.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any
from uuid import uuid4

from ckpt import settings
from ckpt.checkpoint.checkpoint import COMMITS, FIRST_START, METADATA, OFFSETS, SOURCES
from ckpt.checkpoint.sources.registry import SourceRange, source_ranges
from ckpt.checkpoint.state.folders import STATE, sort_numbers
from ckpt.checkpoint.state.rewritable import count_partitions
from ckpt.errors import NotFound, StorageError
from ckpt.formats.commits import format_commit_log, parse_commit_log
from ckpt.formats.metadata import build_metadata
from ckpt.formats.offsets import format_offset_log, parse_offset_log, record_settings
from ckpt.formats.schemas import DEFAULT_COLUMN_FAMILY, format_state_schema
from ckpt.formats.statefiles import DEFAULT_STORE, JOIN_STORES
from ckpt.inspection.inspection import Inspection
from ckpt.model import ColumnFamily, Json, Operator, Provider, StateFileKind, Store, Unreadable
from ckpt.new.book import BOOK
from ckpt.new.copy.selection import Selection, has_run_since, is_undescribed
from ckpt.new.placing import Placing, Watcher, open_new
from ckpt.new.rewrite.plan import (
    CannotRewrite,
    PlannedRewrite,
    PlannedState,
    Rewrite,
    list_settings,
    list_starting,
)
from ckpt.new.rewrite.snapshots import FileForm, make_changes, make_hdfs_snapshot, make_rocksdb_snapshot, read_file_form
from ckpt.new.rewrite.stored_rows import Families, Stored
from ckpt.state.native.store_files import context_of
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.reading import ChosenState, StateRequest, choose
from ckpt.versions import Spark


@dataclass(slots=True)
class SmallFiles:
    """Logs and descriptions of the new checkpoint."""

    chosen: ChosenState
    selection: Selection
    rewrite: Rewrite
    ids: dict[int, list[list[str]]] = field(default_factory=dict)  # format 2: of state files that were written

    @property
    def newest(self) -> str:
        """The newest offsets, which are written last."""
        return self.selection.newest if self.rewrite.union is None else f"{OFFSETS}/{self.rewrite.batch}"

    def make_file(self, path: str) -> bytes:
        """One of them as it is to be. Raises CannotRewrite, NotFound, StorageError."""
        storage = self.chosen.storage if self.rewrite.union is None else self.rewrite.union.logs
        data = self.selection.changed.get(path) or storage.read(path)
        folder, _, name = path.rpartition("/")
        if folder == OFFSETS:
            recorded = list_settings(self.rewrite.new)
            recorded.pop(settings.CHECKPOINT_FORMAT)  # which is the session's
            return _change_settings(path, data, recorded)
        if folder == COMMITS:
            ids = self.ids if int(name) == self.rewrite.batch else {}
            return _change_state_ids(path, data, ids if self.ids else None)
        if "_metadata" in folder and name != "schema":
            return _change_partitions(path, data, self.rewrite.new.partitions)
        if path == METADATA and self.rewrite.new_id:
            return build_metadata(str(self.rewrite.query_id))
        return data

    def list_paths(self) -> Iterator[str]:
        """Return the log files beside the newest offsets."""
        batch, mark = self.selection.batch, FIRST_START if self.rewrite.planned is not None else METADATA
        own = (STATE, SOURCES) if self.rewrite.union is None else (STATE,)
        newest: dict[tuple[str, bool], str] = {}  # operator metadata, by folder and whether a planned batch wrote it
        for path in self.selection.first:
            folder, _, name = path.rpartition("/")
            if folder.endswith("/_metadata/v2"):
                if not sort_numbers([name]):
                    continue  # no start reads it
                key = folder, int(name) > batch
                newest[key] = max(newest.get(key, path), path, key=lambda one: int(one.rpartition("/")[2]))
            elif path in (METADATA, mark) or folder.startswith(tuple(f"{each}/" for each in own)):
                yield path
        yield from newest.values()
        if self.rewrite.union is not None:
            tree = self.rewrite.union.logs.list_tree()
            yield from (
                path for log in (SOURCES, OFFSETS, COMMITS) for path, _ in tree.walk(log) if path != self.newest
            )
            return
        yield f"{COMMITS}/{batch}"
        logs = (f"{log}/{number}" for number in (batch, batch - 1) for log in (OFFSETS, COMMITS))
        others = {self.selection.newest, f"{COMMITS}/{batch}"}
        yield from (path for path in logs if path in self.selection.first and path not in others)

    def make_schemas(self) -> dict[str, bytes]:
        """State schemas of a join of Spark before 3.1, as they are stated: Spark since 4.1 cannot write them itself."""
        stated = {(store.operator, store.name) for store in self.chosen.stated if store.name in JOIN_STORES}
        return {
            f"{STATE}/{operator.id}/0/{store.name}/_metadata/schema": format_state_schema(
                2, [ColumnFamily(DEFAULT_COLUMN_FAMILY, store.key_schema, store.value_schema)]
            )
            for operator, store in self.chosen.checkpoint.stores()
            if (operator.id, store.name) in stated
        }


def _change_settings(path: str, data: bytes, recorded: Mapping[str, str]) -> bytes:
    """A file of the offset log (``OffsetSeqLog``) with other recorded settings."""
    log = parse_offset_log(path, data)
    if isinstance(log, Unreadable):
        raise CannotRewrite(f"{path} cannot be read: {log.reason}")
    if log.metadata is None or not log.metadata.conf:
        raise CannotRewrite(f"{path} records no settings, as Spark has done since 2.2")
    return format_offset_log(record_settings(log, recorded))


def _change_state_ids(path: str, data: bytes, ids: Mapping[int, Sequence[Sequence[str]]] | None) -> bytes:
    """A file of the commit log (``CommitLog``) that names these state files: [partition][store] of each operator.

    None: state store checkpoint format 1, which names none; version 2 is then of no use, and 3 names sinks.
    """
    commit = parse_commit_log(path, data)
    if isinstance(commit, Unreadable):
        raise CannotRewrite(f"{path} cannot be read: {commit.reason}")
    if ids is None:
        version = 1 if commit.version == 2 else commit.version
        return format_commit_log(replace(commit, version=version, state_unique_ids=None))
    names = {operator: tuple(map(tuple, partitions)) for operator, partitions in ids.items()}
    return format_commit_log(replace(commit, version=max(commit.version, 2), state_unique_ids=names))


def _change_partitions(path: str, data: bytes, partitions: int) -> bytes:
    """Operator metadata (``OperatorStateMetadata``) with another number of partitions."""
    version, _, text = data.partition(b"\n")
    try:
        metadata: Json = json.loads(text)
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise CannotRewrite(f"{path} is not the JSON that Spark writes")
    stores = metadata.get("stateStoreInfo")
    for store in stores if isinstance(stores, list) else ():
        if isinstance(store, dict):
            store["numPartitions"] = partitions
    return version + b"\n" + json.dumps(metadata, separators=(",", ":"), ensure_ascii=False).encode()


@dataclass(frozen=True, slots=True)
class NewState:
    """The state files of a new checkpoint: how they are called, and what is in them."""

    provider: Provider
    partitions: int
    batch: int
    ids: Mapping[int, Sequence[Sequence[str]]]  # format 2: of each operator [partition][store]
    form: FileForm
    of_planned: bool = False  # with the state of the batch after, which is planned
    numbers: Mapping[int, int] = field(default_factory=dict)  # of operators that get another one: the new by the old

    def make_files(
        self,
        operator: Operator,
        store: Store,
        partition: int,
        rows: Stored,
        families: Families,
        planned: Stored | None = None,
    ) -> dict[str, bytes]:
        """Return the files of one store in one partition, by path; one that names others is last. Raises CkptError.

        ``planned`` are its rows after the batch that is planned.
        """
        number = self.numbers.get(operator.id, operator.id)
        folder = f"{STATE}/{number}/{partition}" + ("" if store.name == DEFAULT_STORE else f"/{store.name}")
        name = str(self.batch + 1)
        if self.ids:
            position = [sibling.name for sibling in operator.stores].index(store.name)
            name = f"{name}_{self.ids[operator.id][partition][position]}"
        if self.provider is Provider.HDFS:
            files = {f"{name}.snapshot": make_hdfs_snapshot(rows, self.form)}
        else:
            files = make_rocksdb_snapshot(rows, families, name, self.form)
        if planned is not None:
            rocksdb = self.provider is Provider.ROCKSDB
            kind = StateFileKind.CHANGELOG if rocksdb else StateFileKind.DELTA
            changes = make_changes(rows, planned, self.form, families=bool(families.numbers), rocksdb=rocksdb)
            files = {f"{self.batch + 2}.{kind}": changes, **files}
        return {f"{folder}/{path}": data for path, data in files.items()}


@dataclass
class StateWriting(ABC):
    """A ``Division`` whose tasks make the state of a new checkpoint, and what they share.

    One that is pickled does without what it has computed, and opens the old checkpoints again.
    """

    into: str  # the new checkpoint
    options: Mapping[str, str]  # for its file system
    writes: bool  # tasks write files themselves

    def __getstate__(self) -> dict[str, Any]:
        return {own.name: getattr(self, own.name) for own in fields(self)}

    @cached_property
    def targets(self) -> Mapping[Any, int]:
        """The number of each target."""
        return {target: number for number, target in enumerate(self.list_targets())}

    @abstractmethod
    def list_targets(self) -> Iterable[Any]:
        """List what is made of pieces, each by one task."""

    def deliver(self, files: Mapping[str, bytes]) -> Mapping[str, bytes | int]:
        """Write files where tasks do so, and then return their bytes' numbers. Raises StorageError.

        What an attempt that failed has left in their folders is removed first.
        """
        if not self.writes or not files:
            return files
        placing = open_new(self.into, self.options)
        for folder in {path.rpartition("/")[0] for path in files}:
            with suppress(NotFound):
                for name in placing.storage.list_level(folder).files:
                    placing.writer.remove(f"{folder}/{name}")
        for path, data in files.items():
            placing.put({path: data})
        return placing.sizes


def make_new(
    plan: PlannedRewrite,
    placing: Placing,
    fill: Callable[[NewState], Iterator[Mapping[str, bytes | int]]],
    watcher: Watcher | None,
) -> Rewrite:
    """Write a new checkpoint, and read it again. Raises CkptError, after which ``placing`` is to remove it.

    It is written in the order in which no crash leaves what a start takes for complete.
    ``fill`` makes the files of each store in each partition, in any order; of one that is written already its bytes'
    number.
    """
    chosen, _, rewrite = plan
    small, new = SmallFiles(*plan), rewrite.new
    placing.begin(small.newest)
    total = 0
    for operator, store in chosen.checkpoint.stores():
        places = count_partitions(operator, store, new.partitions)
        total += places
        if new.version > 1:
            for ids in small.ids.setdefault(operator.id, [[] for _ in range(places)]):
                ids.append(str(uuid4()))
    of_planned, form = rewrite.planned_state is PlannedState.WRITTEN, read_file_form(context_of(chosen))
    state = NewState(new.provider, new.partitions, rewrite.batch, small.ids, form, of_planned)
    for done, files in enumerate(fill(state), 1):
        placing.take(files)
        if watcher is not None:
            watcher(done, total)
    placing.put(small.make_schemas())
    for path in small.list_paths():
        placing.put({path: small.make_file(path)})
    placing.finish(small.make_file(small.newest))
    made = placing.check(rewrite.into, "the new checkpoint", "the old one", partial(_continues, rewrite))
    unwritten = tuple(store for store in chosen.stated if store.name not in JOIN_STORES)
    wanted = RequestedPart(schema=unwritten or None)
    choose(StateRequest(rewrite.into, wanted, all_units=True), placing.options)
    for each in (chosen,) if rewrite.union is None else rewrite.union.chosen:
        if has_run_since(each.checkpoint, each.storage):  # a sink has batches that the new one would run again
            raise StorageError(BOOK.text("rewrite_running", uri=each.checkpoint.uri))
    starts_with, sizes = list_starting(made), placing.sizes.values()
    return replace(rewrite, starts_with=starts_with, written=True, files=len(sizes), bytes=sum(sizes))


def _continues(rewrite: Rewrite, made: Inspection) -> bool:
    """Tell whether every start continues from the new checkpoint as from the old one, but for those that are named."""
    old = {} if rewrite.salvage else _list_starts(rewrite.inspection)  # of damaged state none counts
    if rewrite.union is not None:
        after = rewrite.batch + 1, source_ranges(rewrite.union.newest, None)
        old = dict.fromkeys((*rewrite.starts_with, *rewrite.stopped), after)
    if is_undescribed(rewrite.inspection) and is_undescribed(made):
        return True
    starts = _list_starts(made)
    return (
        bool(starts)
        and all(old.get(spark, new) == new and new[0] == rewrite.batch + 1 for spark, new in starts.items())
        and old.keys() <= starts.keys() | set(rewrite.stopped)
    )


def _list_starts(inspection: Inspection) -> dict[Spark, tuple[int | None, tuple[SourceRange, ...]]]:
    return {f.spark: (f.batch_id, f.sources) for f in inspection.counted if f.outcome.runs}
