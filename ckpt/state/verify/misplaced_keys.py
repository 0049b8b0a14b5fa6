"""Find keys outside the partitions where Spark looks for them: the first of each, as of the newest batch.

Files in the folder of another partition are as they were written, and Spark loads them without an error; it then does
not find their keys.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

from ckpt.checkpoint.state.chains import Chain
from ckpt.errors import CkptError
from ckpt.model import DamageKind, FileDamage, StateFileKind
from ckpt.processes import Runner
from ckpt.state.native.batches import make_flat
from ckpt.state.native.entries import entries_in
from ckpt.state.native.layout import UnitLayout, layout_of
from ckpt.state.native.lookup import find_partitions, spread_over
from ckpt.state.native.store_files import StoreFiles, find_store_files
from ckpt.state.reading.columns import Columns, columns_of
from ckpt.state.reading.reading import Chosen
from ckpt.state.reading.units import StateUnit

_KEYS = 50  # of a partition: of files that were swapped, nearly all are wrong
_LOGS = 5  # how many of the newest deltas or changelogs are opened to find a key
_LARGEST = 64 << 20  # bytes of a file that is decompressed for that, and of what comes of it


def find_misplaced_keys(chosen: Chosen, runner: Runner) -> Iterator[FileDamage]:
    """The folders of partitions whose keys belong to others. What cannot be read without Spark is left out."""
    return (damage for _, damage in runner.run(open_units, chosen, chosen.units, ordered=True))


def open_units(chosen: Chosen) -> Callable[[StateUnit], Iterator[FileDamage]]:
    """Look for misplaced keys of units, in any process."""

    def find(unit: StateUnit) -> Iterator[FileDamage]:
        with suppress(CkptError):
            yield from _find_in_unit(chosen, unit)

    return find


def _find_in_unit(chosen: Chosen, unit: StateUnit) -> Iterator[FileDamage]:
    count = spread_over(chosen)
    if count is None:
        return
    layout, columns = layout_of(chosen, unit), columns_of(unit)
    for files in find_store_files(chosen, unit.operator, layout.store):
        store_partition = files.place
        owners = find_partitions(unit, _read_first_keys(files, unit, layout, columns), count) or []
        wrong = [partition for partition in owners if partition != store_partition.partition]
        if wrong:
            detail = f"{len(wrong)} of {len(owners)} keys of {unit.label} belong to other partitions"
            yield FileDamage(store_partition.folder, DamageKind.WRONG_PARTITION, f"{detail}, such as {wrong[0]}")


def _read_first_keys(
    files: StoreFiles, unit: StateUnit, layout: UnitLayout, columns: Columns
) -> Mapping[tuple[int, ...], Any]:
    """Leaves of the first keys in one file of a partition: the newest changes that have any, or its snapshot."""
    for part in _split_files(files, layout):
        with closing(entries_in(part, unit, layout)) as entries:
            first = next((batch for batch in entries if len(batch.keys)), None)
        if first is None:
            continue
        rows = make_flat(columns, unit, first).slice(0, _KEYS)
        return {column.places: array for column, array in zip(columns.kept, rows.columns, strict=True)}
    return {}


def _split_files(files: StoreFiles, layout: UnitLayout) -> Iterator[StoreFiles]:
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
