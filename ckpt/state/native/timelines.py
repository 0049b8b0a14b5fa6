"""Snapshots of abandoned batches: they hold other rows than the deltas or changelogs up to them.

After going back by hand, newer state files stay. Batches that run again write their deltas and changelogs over, but a
snapshot only where maintenance happens to write one of the same version. A start loads the newest snapshot at or below
its version (``HDFSBackedStateStoreProvider.loadMap``, ``RocksDB.loadWithoutCheckpointId``), and continues with the rows
of the abandoned batches. Format 2 tells files of either by their unique id.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from ckpt.checkpoint.state.chains import Chain, WantedVersion, fallbacks
from ckpt.errors import CkptError
from ckpt.formats.rows.hdfs import keep_newest
from ckpt.model import StateFileKind
from ckpt.state.native import rocksdb
from ckpt.state.native.entries import read_records
from ckpt.state.native.store_files import StoreFiles, find_fitting_files, layout_of
from ckpt.state.reading.reading import ChosenState
from ckpt.state.reading.units import StateUnit

_MOST_COMPARED = 4 << 20  # bytes of files of a partition: a second or two of CPU


def list_foreign_snapshots(chosen: ChosenState, unit: StateUnit, only: int | None = None) -> Iterator[str]:
    """The snapshots that are read for a unit and are of abandoned batches, where files are small."""
    for files in find_fitting_files(chosen, unit.operator, layout_of(chosen, unit).store, only):
        yield from filter(None, [find_foreign_snapshot(files, _MOST_COMPARED)])


def find_foreign_snapshot(files: StoreFiles, most: int) -> str | None:
    """The snapshot that a load begins with, if it is of abandoned batches. None where ckpt cannot tell.

    Rows are compared where the snapshot is older than the log of its own version, as it also is of a batch that ran
    again over the same rows, and where there are not more than ``most`` bytes of files.
    """
    names, own, outdated = files.place.names, files.chain.snapshot, files.place.list_outdated()
    if own not in outdated:
        return None
    alone = Chain(own, ())
    others = names.without({names.snapshots[i] for i in outdated})
    for other in fallbacks(others, WantedVersion(own[0]), alone)[:1]:
        both = replace(files, chain=alone), replace(files, chain=other)
        with suppress(CkptError):
            if sum(map(_measure, both)) <= most and _read_rows(both[0]) != _read_rows(both[1]):
                return files.snapshot
    return None


def _measure(files: StoreFiles) -> int:
    recorded = rocksdb.read_recorded(files) if files.place.names.snapshot_kind is StateFileKind.ZIP else None
    return files.size + (recorded.bytes if recorded else 0)


def _read_rows(files: StoreFiles) -> Mapping[bytes, bytes | None]:
    """The keys and values of a store, as they are stored."""
    if files.place.names.snapshot_kind is StateFileKind.ZIP:
        with rocksdb.store(files) as store:
            return dict(chain.from_iterable(store.batches(b"")))
    newest = keep_newest(read_records(files), distinct=files.snapshot is not None)
    return dict(chain.from_iterable(records.pairs() for records in newest))
