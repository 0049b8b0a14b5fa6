"""Find heavy keys of the state, and how it is spread over its partitions. Read without Spark."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from os import fspath
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from ckpt.errors import UsageError
from ckpt.formats.rows.arrow import whole
from ckpt.model import Json, Location
from ckpt.processes import Runner
from ckpt.state.native.entries import entries_of, flat_schema, make_flat
from ckpt.state.native.groups import first_of_each, number_groups
from ckpt.state.native.json_values import make_objects
from ckpt.state.native.partitions import map_partitions
from ckpt.state.reading.choose import Part, RequestedPart
from ckpt.state.reading.columns import Column, Columns, columns_of
from ckpt.state.reading.reading import Chosen, Moment, Question, choose
from ckpt.state.reading.units import StateUnit
from ckpt.values import Value


@dataclass(frozen=True, slots=True)
class HeavyKey:
    """A key, and what is stored for it: rows, and the bytes of their values without compression and overhead."""

    key: dict[str, Json]
    rows: int
    bytes: int
    partition: int


@dataclass(frozen=True, slots=True)
class PartitionSize:
    """One partition's part of a unit, measured as ``HeavyKey`` is."""

    partition: int
    keys: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StateSizes(Value):
    """The heaviest keys of a unit, heaviest first, and every partition that holds rows of it."""

    checkpoint: str  # as it was given
    unit: StateUnit
    moment: Moment
    columns: tuple[Column, ...]  # of the key
    keys: tuple[HeavyKey, ...]
    partitions: tuple[PartitionSize, ...]


def state_keys(
    checkpoint: Location,
    storage_options: Mapping[str, str] | None = None,
    *,
    batch: int | None = None,
    limit: int = 20,
    jobs: int | None = None,
    by: Runner | None = None,
    **part: Unpack[Part],
) -> StateSizes:
    """Find the keys with the most bytes after a committed batch, and measure each partition, without Spark.

    The rows of a list, a map or a side of a join count together for their key. The keys of one partition are in memory
    at once.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the path.
        batch: The id of a committed batch, by default the newest.
        limit: How many keys at most.
        jobs: How many processes read large state at a time; by default as many as there are cores.
        by: Who measures: by default processes of this machine, ``on_spark`` the executors of Spark.
        part: Which part of the state.

    Raises:
        StateDamaged, UsageError, CkptError: As of ``read_state_arrow``.

    >>> found = ckpt.state_keys("sample_checkpoints/join-rocksdb-4.0", side="left", limit=1)
    >>> sum(one.rows for one in found.partitions)
    30

    """
    path = fspath(checkpoint)
    if limit < 1:
        raise UsageError("`limit`: at least one key")
    chosen = choose(Question(path, RequestedPart(**part), batch=batch), storage_options)
    (unit,) = chosen.units
    own = Columns(tuple(column for column in columns_of(unit).kept if column.path[0] == "key"), ())
    keys: list[HeavyKey] = []
    partitions = []
    with closing(map_partitions(chosen, unit, _measure_partition, (own, limit), jobs, by)) as measured:
        for size, heaviest in measured:
            partitions.append(size)
            keys = sorted([*keys, *heaviest], key=lambda key: (-key.bytes, -key.rows))[:limit]
    return StateSizes(path, unit, chosen.moment, own.kept, tuple(keys), tuple(partitions))


def _measure_partition(
    chosen: Chosen, unit: StateUnit, what: tuple[Columns, int], partition: int
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
