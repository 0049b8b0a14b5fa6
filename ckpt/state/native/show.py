"""A look at state without Spark: some rows, the rows of a key, how many there are, and which keys are heavy."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from os import fspath
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import numpy as np
import pyarrow as pa

from ckpt.checkpoint.times import BatchOrTime
from ckpt.errors import UsageError
from ckpt.formats.rows.arrow import whole
from ckpt.model import Json, Location
from ckpt.processes import Runner
from ckpt.state.native.entries import (
    batches_of,
    entries_of,
    entry_of,
    flat_schema,
    make_flat,
    map_partitions,
    read_hdfs_rows,
)
from ckpt.state.native.groups import first_of_each, number_groups
from ckpt.state.native.json_values import make_objects
from ckpt.state.native.lookup import (
    KeyPart,
    encode_key_row,
    filter_matching,
    find_partition,
    parse_key_parts,
)
from ckpt.state.native.store_files import find_fitting_files, find_store, layout_of
from ckpt.state.native.timelines import list_foreign_snapshots
from ckpt.state.reading.choose import Part, RequestedPart
from ckpt.state.reading.columns import Column, Columns, columns_of
from ckpt.state.reading.reading import ChosenState, Moment, StateRequest, choose
from ckpt.state.reading.units import StateUnit
from ckpt.values import Value

if TYPE_CHECKING:
    from ckpt.state.native.history import StateHistory


@dataclass(frozen=True, slots=True)
class StateRows(Value):
    """Rows of a unit, flat."""

    checkpoint: str  # as it was given
    unit: StateUnit
    moment: Moment
    columns: tuple[Column, ...]
    rows: tuple[dict[str, Json], ...]
    more: Annotated[bool, "there are more rows than `--limit`"]
    partition: Annotated[int | None, "the only partition that was searched, because the key belongs to it"]
    foreign_snapshots: Annotated[
        tuple[str, ...], "snapshots that were read, but differ from the deltas or changelogs up to them"
    ]
    key: Mapping[str, str | None] = field(default_factory=dict, repr=False)  # as it was given
    part: Part = field(default_factory=Part, repr=False)
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)

    def history(self, limit: int = 20) -> "StateHistory":
        """Find the batches that created, changed and removed the key, newest ``limit`` events: ``state_history``.

        Raises what ``ckpt.state_show`` raises, and UsageError where no key was given.
        """
        from ckpt.state.native.history import state_history  # not at the top: showing rows needs none of it

        return state_history(
            self.checkpoint, storage_options=self.storage_options, key=self.key, limit=limit, **self.part
        )


@dataclass(frozen=True, slots=True)
class StateCount:
    """How many rows a unit has."""

    unit: StateUnit
    rows: int


@dataclass(frozen=True, slots=True)
class StateCounts(Value):
    """How many rows there are of all units that were asked for: at least one."""

    checkpoint: str  # as it was given
    moment: Moment
    units: tuple[StateCount, ...]


def state_show(
    checkpoint: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    batch: BatchOrTime | None = None,
    key: Mapping[str, str | None] | None = None,
    limit: int = 20,
    jobs: int | None = None,
    engine: Runner | None = None,
    **part: Unpack[Part],
) -> StateRows:
    """Show rows of the state after a committed batch, read without Spark.

    A complete key is looked up in the one partition that Spark's hash gives, if the operator is known to partition its
    rows that way; otherwise all partitions are searched.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the path.
        batch: The id of a committed batch, by default the newest.
        key: Columns of the key, with or without ``key_``, and their values as text: dates and times in ISO 8601 (UTC),
            binaries in base64, arrays in JSON; None is NULL.
        limit: Return at most this many rows.
        jobs: How many processes search large state for a key at a time; by default one per core.
        engine: By default processes on this machine read; ``ckpt.types.Executors()`` uses Spark's.
        part: The part of the state.

    Raises:
        StateDamaged, UsageError, CkptError: As for ``read_state_arrow``.

    >>> ckpt.state_show("sample_checkpoints/aggregation-hdfs-4.2", key={"key": "3"}).rows
    ({'key_key': 3, 'value_count': 14, 'value_sum': 679},)
    """
    path = fspath(checkpoint)
    if limit < 1:
        raise UsageError.of("{--limit} must be at least 1")
    chosen = choose(StateRequest(path, RequestedPart(**part), batch=batch), storage_options)
    (unit,) = chosen.units
    columns = columns_of(unit)
    parts = parse_key_parts(columns, key or {})
    only = find_partition(chosen, unit, parts)
    rows: list[dict[str, Json]] = []
    what = parts, limit + 1
    if engine is None and (only is not None or not parts):  # the first partitions have enough, or one has all
        shown = _show_matches(chosen, unit, what, only)
    else:
        shown = map_partitions(chosen, unit, _show_matches, what, jobs, engine, only)
    with closing(shown):
        for objects in shown:
            rows += objects
            if len(rows) > limit:
                break
    more = len(rows) > limit
    foreign = tuple(list_foreign_snapshots(chosen, unit, only))
    request = (dict(key or {}), part, storage_options)
    return StateRows(path, unit, chosen.moment, columns.kept, tuple(rows[:limit]), more, only, foreign, *request)


def _show_matches(
    chosen: ChosenState, unit: StateUnit, what: tuple[tuple[KeyPart, ...], int], partition: int | None
) -> Generator[list[dict[str, Json]], None, None]:
    """Rows of a partition that have a key, or of all partitions; not more than so many."""
    parts, left = what
    columns = columns_of(unit)
    with closing(read_matching_batches(chosen, unit, columns, parts, partition)) as batches:
        for table in batches:
            objects = make_objects(table.slice(0, left))
            yield objects
            left -= len(objects)
            if not left:
                return


def state_count(
    checkpoint: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    batch: BatchOrTime | None = None,
    key: Mapping[str, str | None] | None = None,
    jobs: int | None = None,
    engine: Runner | None = None,
    **part: Unpack[Part],
) -> StateCounts:
    """Count the rows of each requested unit after a committed batch, without Spark.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the path.
        batch: The id of a committed batch, by default the newest.
        key: Count only rows with this key, as for ``state_show``.
        jobs: How many processes read large state at a time; by default one per core.
        engine: By default processes on this machine count; ``ckpt.types.Executors()`` uses Spark's.
        part: The part of the state.

    Raises:
        StateDamaged, UsageError, CkptError: As for ``read_state_arrow``.

    >>> [unit.rows for unit in ckpt.state_count("sample_checkpoints/join-rocksdb-4.0").units]
    [30, 15]
    """
    path = fspath(checkpoint)
    wanted = RequestedPart(**part)
    chosen = choose(StateRequest(path, wanted, all_units=True, batch=batch, only_count=not key), storage_options)
    counts = []
    for unit in chosen.units:
        parts = parse_key_parts(columns_of(unit), key or {})
        only = find_partition(chosen, unit, parts)
        count = _count_matches if unit.described else _count_keys
        total = sum(map_partitions(chosen, unit, count, parts, jobs, engine, only))
        counts.append(StateCount(unit, total))
    return StateCounts(path, chosen.moment, tuple(counts))


def _count_matches(chosen: ChosenState, unit: StateUnit, parts: tuple[KeyPart, ...], partition: int) -> Iterator[int]:
    matching = read_matching_batches(chosen, unit, columns_of(unit), parts, partition)
    return (table.num_rows for table in matching)


def _count_keys(chosen: ChosenState, unit: StateUnit, parts: tuple[KeyPart, ...], partition: int) -> Iterator[int]:
    """Count the keys of HDFS-backed state that no schema describes, as bytes."""
    files = find_fitting_files(chosen, unit.operator, find_store(unit), partition)
    return (len(keys) for own in files for keys, _ in read_hdfs_rows(own))


def read_matching_batches(
    chosen: ChosenState, unit: StateUnit, columns: Columns, parts: tuple[KeyPart, ...], only: int | None
) -> Generator[Any, None, None]:
    """The rows of a unit, flat, that have a key.

    A key whose bytes are known is looked for as such first; if it is not found, all of its partition is searched.
    """
    layout = layout_of(chosen, unit)
    whole = only is not None and only == find_partition(chosen, unit, parts)
    row = encode_key_row(layout.key, parts) if whole and layout.rows_are_keys else None
    if row is not None and only is not None:
        rows = [make_flat(columns, unit, entries) for entries in entry_of(chosen, unit, layout, only, row)]
        if rows:
            yield from rows
            return
    for batch in batches_of(chosen, unit, columns, only):
        yield filter_matching(parts, columns, batch) if parts else batch


@dataclass(frozen=True, slots=True)
class HeavyKey:
    """A key, and what is stored for it: rows, and the bytes of their values without compression and overhead."""

    key: Annotated[dict[str, Json], "an object with a value for each column, as in `rows` of `ckpt state show`"]
    rows: int
    bytes: Annotated[int, "size of their values as stored, before compression"]
    partition: int


@dataclass(frozen=True, slots=True)
class PartitionSize:
    """One partition's part of a unit, measured as ``HeavyKey`` is."""

    partition: int
    keys: Annotated[int, "different keys"]
    rows: int
    bytes: Annotated[int, "as of `keys[].bytes`"]


@dataclass(frozen=True, slots=True)
class StateSizes(Value):
    """The heaviest keys of a unit, heaviest first, and every partition that holds rows of it."""

    checkpoint: str  # as it was given
    unit: StateUnit
    moment: Moment
    columns: tuple[Column, ...]  # of the key
    keys: Annotated[tuple[HeavyKey, ...], "the heaviest, heaviest first"]
    partitions: Annotated[tuple[PartitionSize, ...], "every partition that has rows"]


def state_keys(
    checkpoint: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    batch: BatchOrTime | None = None,
    limit: int = 20,
    jobs: int | None = None,
    engine: Runner | None = None,
    **part: Unpack[Part],
) -> StateSizes:
    """Find the keys with the most bytes after a committed batch, and measure each partition, without Spark.

    The rows of a list, a map or a side of a join count together for their key. The keys of one partition are in memory
    at once.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the path.
        batch: The id of a committed batch, by default the newest.
        limit: Return at most this many keys.
        jobs: How many processes read large state at a time; by default one per core.
        engine: By default processes on this machine measure; ``ckpt.types.Executors()`` uses Spark's.
        part: The part of the state.

    Raises:
        StateDamaged, UsageError, CkptError: As for ``read_state_arrow``.

    >>> found = ckpt.state_keys("sample_checkpoints/join-rocksdb-4.0", side="left", limit=1)
    >>> sum(partition.rows for partition in found.partitions)
    30
    """
    path = fspath(checkpoint)
    if limit < 1:
        raise UsageError.of("{--limit} must be at least 1")
    chosen = choose(StateRequest(path, RequestedPart(**part), batch=batch), storage_options)
    (unit,) = chosen.units
    own = Columns(tuple(column for column in columns_of(unit).kept if column.path[0] == "key"), ())
    keys: list[HeavyKey] = []
    partitions = []
    with closing(map_partitions(chosen, unit, _measure_partition, (own, limit), jobs, engine)) as measured:
        for size, heaviest in measured:
            partitions.append(size)
            keys = sorted([*keys, *heaviest], key=lambda key: (-key.bytes, -key.rows))[:limit]
    return StateSizes(path, unit, chosen.moment, own.kept, tuple(keys), tuple(partitions))


def _measure_partition(
    chosen: ChosenState, unit: StateUnit, what: tuple[Columns, int], partition: int
) -> Iterator[tuple[PartitionSize, list[HeavyKey]]]:
    """The size and the heaviest keys of a partition that holds rows."""
    own, limit = what
    batches: list[Any] = []
    stored: list[Any] = [np.zeros(0, np.int64)]
    with closing(entries_of(chosen, unit, partition)) as every:
        for entries in every:
            batches.append(make_flat(own, unit, entries))
            stored.append(entries.sizes)
    table, sizes = pa.Table.from_batches(batches, flat_schema(own)), np.concatenate(stored)
    if not len(sizes):
        return
    groups = number_groups((column.combine_chunks() for column in table.columns), len(sizes))
    counts = np.bincount(groups)
    totals: Any = np.zeros(len(counts), np.int64)
    np.add.at(totals, groups, sizes)
    heaviest = np.lexsort((-counts, -totals))[:limit]
    shown = table.take(whole(pa.int64(), first_of_each(groups)[heaviest]))
    keys = make_objects(shown) if own.kept else [{}] * len(heaviest)
    yield (
        PartitionSize(partition, len(counts), len(sizes), int(totals.sum())),
        [
            HeavyKey(key, int(counts[group]), int(totals[group]), partition)
            for key, group in zip(keys, heaviest.tolist(), strict=True)
        ],
    )
