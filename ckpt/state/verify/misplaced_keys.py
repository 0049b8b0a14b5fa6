"""Find keys outside the partitions where Spark looks for them: the first of each, as of the newest batch.

Files in the folder of another partition are as they were written, and Spark loads them without an error; it then does
not find their keys.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ckpt.checkpoint.state.chains import Chain
from ckpt.errors import CkptError
from ckpt.model import DamageKind, FileDamage, StateFileKind
from ckpt.state.native import shapes
from ckpt.state.native.batches import columns_of
from ckpt.state.native.entries import entries_in
from ckpt.state.native.layout import UnitLayout, layout_of
from ckpt.state.native.lookup import KeyPart, partition_for, spread_over
from ckpt.state.native.store_files import StoreFiles, files_of
from ckpt.state.reading.columns import Columns
from ckpt.state.reading.reading import Chosen
from ckpt.state.reading.units import StateUnit

_KEYS = 50  # of a partition: of files that were swapped, nearly all are wrong
_LOGS = 5  # how many of the newest deltas or changelogs are opened to find a key
_LARGEST = 64 << 20  # bytes of a file that is decompressed for that, and of what comes of it
_OF_KEYS = ("key", "user_map_key")


def misplaced_keys(chosen: Chosen) -> Iterator[FileDamage]:
    """The folders of partitions whose keys belong to others. What cannot be read without Spark is left out."""
    for unit in chosen.units:
        try:
            yield from _of_unit(chosen, unit)
        except CkptError:
            continue


def _of_unit(chosen: Chosen, unit: StateUnit) -> Iterator[FileDamage]:
    count = spread_over(chosen)
    if count is None:
        return
    layout, columns = layout_of(chosen, unit), columns_of(unit)
    for files in files_of(chosen, unit.operator, layout.store):
        place = files.place
        found = [partition_for(unit, parts, count) for parts in _keys(files, unit, layout, columns)]
        wrong = [partition for partition in found if partition not in (None, place.partition)]
        if wrong:
            detail = f"{len(wrong)} of {len(found)} keys of {unit.label} belong to other partitions"
            yield FileDamage(place.folder, DamageKind.WRONG_PARTITION, f"{detail}, such as {wrong[0]}")


def _keys(files: StoreFiles, unit: StateUnit, layout: UnitLayout, columns: Columns) -> list[list[KeyPart]]:
    """The first keys in one file of a partition: the newest changes that have any, or its snapshot."""
    kept = [(place, column) for place, column in enumerate(columns.kept) if column.path[0] in _OF_KEYS]
    for part in _one_by_one(files, layout):
        with closing(entries_in(part, unit, layout)) as entries:
            first = next((some for some in entries if len(some.keys)), None)
        if first is None:
            continue
        rows = shapes.flat(columns, shapes.raw(unit, first).slice(0, _KEYS))
        values = [_counted(rows.column(place)).to_pylist() for place, _ in kept]
        return [
            [KeyPart(column, value) for (_, column), value in zip(kept, row, strict=True)]
            for row in zip(*values, strict=True)
        ]
    return []


def _one_by_one(files: StoreFiles, layout: UnitLayout) -> Iterator[StoreFiles]:
    """The files of a version, each as if it were alone: a key is in its partition in every one of them.

    Only snapshots have the numbers of column families.
    """
    names = files.place.names
    files = replace(files, most=_LARGEST)
    for log in files.chain.logs[: -_LOGS - 1 : -1] if layout.family is None else ():
        if files.place.log(log).size <= _LARGEST:
            yield replace(files, chain=Chain(None, (log,)))
    snapshot = files.chain.snapshot
    zipped = names.snapshot_kind is StateFileKind.ZIP  # of remote ones all SST files would be fetched again
    if snapshot is not None and (files.storage.local if zipped else files.place.snapshot(snapshot).size <= _LARGEST):
        yield replace(files, chain=Chain(snapshot, ()))


def _counted(array: Any) -> Any:
    """Dates in days and times in microseconds."""
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.int64())
    return array.cast(pa.int32()) if pa.types.is_date32(array.type) else array
