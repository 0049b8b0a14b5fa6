"""Rows compared with their schema, and with one another: what files say whose every byte is as it was written.

As of the newest batch that can be read, partition by partition, until so much was decoded that it would take longer
than comparing bytes. What ckpt cannot decode is left out.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import pyarrow as pa

from ckpt.checkpoint.state.chains import Chain
from ckpt.checkpoint.state.folders import STATE
from ckpt.errors import CkptError, TooLarge, Unfit
from ckpt.formats.operators import OperatorName
from ckpt.formats.rows.types import arrow_type
from ckpt.formats.statefiles import JOIN_STORES
from ckpt.formats.types import named_fields, struct_of, type_at
from ckpt.model import DamageKind, FileDamage, Json, Operator, StateFileKind
from ckpt.processes import Runner
from ckpt.settings import ROW_CHECKSUM, STRICT_DISTRIBUTION
from ckpt.state.native.contradictions import FamilyRows, find_contradictions, find_missing_rows
from ckpt.state.native.entries import entries_in, make_flat
from ckpt.state.native.lookup import find_partitions, spread_over
from ckpt.state.native.store_files import StoreFiles, UnitLayout, find_store_files, layout_of, layouts_of
from ckpt.state.native.timelines import find_foreign_snapshot
from ckpt.state.reading.columns import columns_of
from ckpt.state.reading.reading import ChosenState
from ckpt.state.reading.units import StateUnit, UnitKind, state_units

MOST_BYTES = 64 << 20
"""Bytes of state files whose rows are decoded: a second or two of CPU, where they are small and hardly compressed."""

_MOST_UNPACKED = 256 << 20  # bytes of a partition that are in memory

_KEYS = 50  # of a partition: of files that were swapped, nearly all are wrong
_LOGS = 5  # how many of the newest deltas or changelogs are opened to find a key
_MOST_REPLAYED = 8 << 20  # bytes of changelogs that are read together with their snapshot, for each variable
_LARGEST = 64 << 20  # bytes of a file that is decompressed for that, and of what comes of it

_ONE_NULL = struct_of([("__dummy__", "void")])  # what a deduplication stores, whatever its schema says


def check_contents(chosen: ChosenState, runner: Runner) -> tuple[tuple[FileDamage, ...], int, int]:
    """Find what is wrong with rows. Never raises for what is in them.

    Also the number of partitions whose rows were all decoded, as far as ckpt can, and the number of all partitions.
    """
    tasks: list[tuple[int, int]] = []
    partitions = 0
    left = MOST_BYTES
    for operator in chosen.checkpoint.operators:
        sizes: Counter[int] = Counter()
        for store in operator.stores:
            sizes.update({partition_size.partition: partition_size.bytes for partition_size in store.partitions})
        partitions += len(sizes)
        for partition, size in sorted(sizes.items()):
            if size <= left:
                left -= size
                tasks.append((operator.id, partition))
    damages = [damages for _, damages in runner.run(_open_contents, chosen, tasks, ordered=True)]
    return tuple(chain.from_iterable(damages)), len(damages), partitions


def _open_contents(chosen: ChosenState) -> Callable[[tuple[int, int]], Iterator[list[FileDamage]]]:
    """Check partitions of operators that fit into memory, in any process: what is wrong with the rows of each."""
    operators = {operator.id: operator for operator in chosen.checkpoint.operators}
    contents = lru_cache(maxsize=1)(lambda operator: _Operator(chosen, operators[operator]))

    def check(task: tuple[int, int]) -> Iterator[list[FileDamage]]:
        operator, partition = task
        with suppress(TooLarge):
            yield contents(operator).damages(partition)

    return check


class _Operator:
    """One operator, and where its rows are."""

    def __init__(self, chosen: ChosenState, operator: Operator) -> None:
        self._units = [unit for unit in state_units(chosen.checkpoint) if unit.operator == operator.id]
        self._folder = f"{STATE}/{operator.id}"
        self._layouts = dict(_layouts(chosen, operator, self._units))
        stores = {layout.store for layout in self._layouts.values()}
        self._files = {store: _files(chosen, operator, store) for store in stores}

    def damages(self, partition: int) -> list[FileDamage]:
        """Find what is wrong with the rows of a partition. Raises TooLarge where they do not fit into memory."""
        stores: dict[str, FamilyRows] = {}
        damages = []
        for name, layout in self._layouts.items():
            files = self._files[layout.store].get(partition)
            if files is None:
                continue
            try:
                stores[name] = self._hold_rows(files, layout)
            except Unfit as error:
                detail = f"rows of {name} do not fit their schema: {str(error).rpartition(': ')[2]}"
                if files.checksums:
                    detail += f"; the newest offsets record {ROW_CHECKSUM}=true"
                damages.append(FileDamage(files.place.folder, DamageKind.BAD_ROW, detail))
            except TooLarge:
                raise
            except CkptError:
                continue
        missing, others = list(find_missing_rows(stores)), list(find_contradictions(stores))
        if missing or others:
            kind = DamageKind.MISSING_ROWS if missing else DamageKind.CONTRADICTION
            damages.append(FileDamage(f"{self._folder}/{partition}", kind, "; ".join(missing + others)))
        of_stores = (files_by_partition.get(partition) for files_by_partition in self._files.values())
        for files in filter(None, of_stores):
            foreign = find_foreign_snapshot(files, MOST_BYTES)
            if foreign is not None:
                detail = "it is older than the changes of its version, and has different rows"
                damages.append(FileDamage(foreign, DamageKind.FOREIGN, detail))
        return damages

    def _hold_rows(self, files: StoreFiles, layout: UnitLayout) -> FamilyRows:
        """All rows of one partition; none where nothing is to be compared with them.

        Raises Unfit, TooLarge, and CkptError for what is not decoded.
        """
        files = replace(files, most=_MOST_UNPACKED)
        together = len(self._layouts) > 1
        if files.place.names.log_kind is StateFileKind.DELTA:
            parts = _split_files(files)
        else:
            parts = iter([] if together else [files])
        for part in parts:
            deque(entries_in(part, self._units[0], layout), maxlen=0)
        keys, last, size = [], [], 0
        for entries in entries_in(files, self._units[0], layout) if together else ():
            size += entries.keys.nbytes
            if size > _MOST_UNPACKED:
                raise TooLarge(f"{files.place.folder} has too many keys")
            keys.append(entries.keys)
            last += entries.values.flatten()[-1:]
        kinds = [kind for _, kind in named_fields(layout.value)][-1:]
        return FamilyRows(_all(layout.key, keys), _all(kinds[0], last) if kinds == ["long"] else None)


def _split_files(files: StoreFiles) -> Iterator[StoreFiles]:
    """The files of an HDFS-backed store, each as if it were alone: Spark also loads rows that later ones replace."""
    if files.chain.snapshot is not None:
        yield replace(files, chain=Chain(files.chain.snapshot, ()))
    for log in files.chain.logs:
        yield replace(files, chain=Chain(None, (log,)))


def _layouts(chosen: ChosenState, operator: Operator, units: list[StateUnit]) -> Iterator[tuple[str, UnitLayout]]:
    yield from ((layout.family or layout.store, layout) for layout in layouts_of(chosen, operator))
    for unit in units:
        own_stores = unit.kind is UnitKind.SIDE and unit.row_store is not None  # each is a unit too
        if own_stores or not unit.described:
            continue
        try:
            layout = layout_of(chosen, unit)
        except CkptError:
            continue
        if layout.family is None:
            yield layout.store, replace(layout, value=_ONE_NULL) if unit.kind is UnitKind.DEDUPLICATION else layout


def _files(chosen: ChosenState, operator: Operator, store: str) -> Mapping[int, StoreFiles]:
    """The files of a store by partition, as far as they are there."""
    files_by_partition: dict[int, StoreFiles] = {}
    with suppress(CkptError):
        for files in find_store_files(chosen, operator.id, store):
            files_by_partition[files.place.partition] = files
    return files_by_partition


def _all(kind: Json, arrays: list[Any]) -> Any:
    return pa.concat_arrays(arrays) if arrays else pa.nulls(0, arrow_type(kind))


def find_misplaced_keys(chosen: ChosenState, runner: Runner) -> Iterator[FileDamage]:
    """The folders of partitions whose first keys belong to other partitions, as of the newest batch.

    Files in the folder of another partition are as they were written, and Spark loads them without an error; it then
    does not find their keys. What cannot be read without Spark is left out.
    """
    return (damage for _, damage in runner.run(_open_units, chosen, chosen.units, ordered=True))


def _open_units(chosen: ChosenState) -> Callable[[StateUnit], Iterator[FileDamage]]:
    return partial(_find_misplaced, chosen)


def _find_misplaced(chosen: ChosenState, unit: StateUnit) -> Iterator[FileDamage]:
    """Look at the first keys of every partition of a unit."""
    with suppress(CkptError):
        count, layout, named = spread_over(chosen), layout_of(chosen, unit), _name_operator(chosen, unit)
        for files in find_store_files(chosen, unit.operator, layout.store) if count is not None else ():
            of_files = [find_partitions(named, keys, count) or [] for keys in _read_first_keys(files, unit, layout)]
            owners = [owner for owners in of_files for owner in owners]
            wrong = [partition for partition in owners if partition != files.place.partition]
            elsewhere = (len(owners) > 1 and files.place.partition not in owners for owners in of_files)
            if wrong and (named is unit or any(elsewhere)):
                detail = f"{len(wrong)} of {len(owners)} keys of {unit.label} belong to other partitions"
                yield FileDamage(files.place.folder, DamageKind.WRONG_PARTITION, f"{detail}, such as {wrong[0]}")


def _name_operator(chosen: ChosenState, unit: StateUnit) -> StateUnit:
    """The unit with the operator that it must be of, where Spark before 4.0 wrote no metadata of it.

    Not where rows may be spread by a part of the key, as before ``useStrictDistribution`` (SPARK-38204).
    """
    if unit.operator_name is not None or chosen.recorded.get(STRICT_DISTRIBUTION, "false").lower() != "true":
        return unit
    if not JOIN_STORES.isdisjoint(unit.stores):
        return replace(unit, operator_name=OperatorName.JOIN)
    key = [name for name, _ in named_fields(type_at(unit.schema, (0,)))] if unit.schema is not None else []
    of_sessions = key[-1:] == ["sessionStartTime"]
    return replace(unit, operator_name=OperatorName.SESSIONS if of_sessions else OperatorName.AGGREGATION)


def _read_first_keys(files: StoreFiles, unit: StateUnit, layout: UnitLayout) -> Iterator[Mapping[tuple[int, ...], Any]]:
    """Leaves of the first keys in each of the newest files of a partition: any of them may be of another one."""
    columns = columns_of(unit)
    for part in _list_worth_opening(files, layout):
        with closing(entries_in(part, unit, layout)) as entries:
            first = next((batch for batch in entries if len(batch.keys)), None)
        if first is None:
            continue
        rows = make_flat(columns, unit, first).slice(0, _KEYS)
        yield {column.places: array for column, array in zip(columns.kept, rows.columns, strict=True)}


def _list_worth_opening(files: StoreFiles, layout: UnitLayout) -> Iterator[StoreFiles]:
    """Files of a version, each as if it were alone: a key is in its partition in every one of them.

    Only snapshots have the numbers of column families: changelogs with these are opened together with theirs.
    """
    names = files.place.names
    files = replace(files, most=_LARGEST)
    logs = [files.place.log(log).size for log in files.chain.logs]
    if layout.family is not None and logs and sum(logs) <= _MOST_REPLAYED:
        yield files
    for log in files.chain.logs[: -_LOGS - 1 : -1] if layout.family is None else ():
        if files.place.log(log).size <= _LARGEST:
            yield replace(files, chain=Chain(None, (log,)))
    snapshot = files.chain.snapshot
    zipped = names.snapshot_kind is StateFileKind.ZIP  # of remote ones all SST files would be fetched again
    if snapshot is not None and (files.storage.local if zipped else files.place.snapshot(snapshot).size <= _LARGEST):
        yield replace(files, chain=Chain(snapshot, ()))
