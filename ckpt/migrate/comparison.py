"""Compare both sides of a switch of changelog checkpointing: how versions of a RocksDB store were written.

With changelog checkpointing a batch writes ``V.changelog``, and maintenance uploads ``V.zip`` for some versions later;
without it a batch writes ``V.zip`` alone (Spark class ``RocksDB``, ``commit``).

A version that has a snapshot, and changelogs that lead to it from an older one, can be read from either. Across a
switch to changelogs that is the first snapshot behind it: from its own file, and from the last version of the old way
through every changelog since. A switch to snapshots leaves no changelog behind it; there it is the newest version of
the old way that can be read so. What the last version of the old way and the first snapshot behind it have in common
tells how much was carried across. Reading under the setting on and off is no second way: Spark takes the same files
(class ``RocksDB``, ``load``; measured on 4.2).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise, takewhile
from typing import Annotated

from ckpt.checkpoint.state.folders import FileId, StorePartition, find_operators
from ckpt.model import Provider
from ckpt.storage import Listing

_SHOWN = 5  # how many of the newest versions are listed file by file


@dataclass(frozen=True, slots=True)
class Version:
    """The files of one version; paths are relative to the checkpoint."""

    version: int
    changelog: Annotated[str | None, "the file, relative to the checkpoint"]
    snapshot: str | None


@dataclass(frozen=True, slots=True)
class Written:
    """One store in one partition."""

    operator: int
    store: str
    partition: int
    newest: int | None  # the highest version
    since: int | None  # from which version on all were written as wanted; None: the newest was not
    versions: Annotated[tuple[Version, ...], "the newest five"]


@dataclass(frozen=True, slots=True)
class TwoWays:
    """One store in one partition. Versions are None where there are none."""

    operator: int
    store: str
    partition: int
    last: int | None = None  # the last version written the old way, while Spark can still read its batch
    later: int | None = None  # the first snapshot behind it
    version: int | None = None  # what can be read in two ways
    older: int | None = None  # the snapshot from which the longer way to ``version`` begins
    why: str | None = None  # why there are no two ways


class ComparisonVerdict(StrEnum):
    """The result of a comparison of state."""

    SAME = "same"  # every partition was compared
    DIFFERENT = "different"
    UNKNOWN = "unknown"  # no difference, but not every partition could be compared
    NOT_COMPARED = "not-compared"  # Spark is missing or failed


@dataclass(frozen=True, slots=True)
class VersionComparison:
    """One version of one unit of state, in some partitions, read in two ways; rows are counted by key and value."""

    operator: int
    unit: Annotated[str, "for people; its words are not fixed"]
    version: Annotated[int, "of the state store"]
    older: int
    partitions: tuple[int, ...]
    rows: Annotated[int, "read from the snapshot of the version"]
    rows_replayed: Annotated[int, "read the longer way"]
    only_direct: Annotated[int, "rows (key and value) that the longer way does not return"]
    only_replayed: Annotated[int, "rows that only the longer way returns"]
    different: Annotated[tuple[int, ...], "partitions"]


@dataclass(frozen=True, slots=True)
class Carried:
    """Two versions of one unit with the same rows: the last of the old way, and the first snapshot behind it."""

    operator: int
    unit: Annotated[str, "for people; its words are not fixed"]
    last: int
    later: int
    partitions: tuple[int, ...]
    rows: Annotated[int, "of the last version before the switch"]
    rows_later: Annotated[int, "of the first snapshot after it"]
    unchanged: Annotated[int, "rows that are in both; batches in between rewrote or removed the others"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Spark's answer about a switch."""

    ways: tuple[TwoWays, ...]
    compared: tuple[VersionComparison, ...] = ()
    carried: Annotated[
        tuple[Carried, ...],
        "rows that are the same in the last version before the switch and the first snapshot after it; not part of "
        "the verdict",
    ] = ()
    spark: Annotated[str | None, "the version that read"] = None
    failed: Annotated[str | None, "why it stopped; its words are not fixed"] = None

    @property
    def verdict(self) -> ComparisonVerdict:
        """The worst of it."""
        if any(unit.different for unit in self.compared):
            return ComparisonVerdict.DIFFERENT
        if self.failed is not None:
            return ComparisonVerdict.NOT_COMPARED
        return ComparisonVerdict.SAME if self.compared and not self.alone else ComparisonVerdict.UNKNOWN

    @property
    def alone(self) -> tuple[TwoWays, ...]:
        """The units that could be read in one way only."""
        return tuple(way for way in self.ways if way.why is not None)


def find_written(listing: Listing, *, changelog: bool) -> Iterator[Written]:
    """Every store in every partition; a version with both files counts as written with ``changelog``, as wanted."""
    for store in _list_partitions(listing):
        logs = {version: f"{store.folder}/{name}" for (version, _), name in store.names.logs.items()}
        snapshots = {version: f"{store.folder}/{name}" for (version, _), name in store.names.snapshots.items()}
        versions = [Version(v, logs.get(v), snapshots.get(v)) for v in sorted({*logs, *snapshots})]
        as_wanted = takewhile(lambda version: (version.changelog is not None) is changelog, reversed(versions))
        since = min((version.version for version in as_wanted), default=None)
        newest = versions[-1].version if versions else None
        yield Written(store.operator, store.store, store.partition, newest, since, tuple(versions[-_SHOWN:]))


def find_two_ways(
    listing: Listing, parts: Iterable[Written], committed: Collection[int], *, changelog: bool
) -> Iterator[TwoWays]:
    """Every store in every partition that was switched; ``changelog`` is how it is written now.

    ``committed`` are batch ids.
    """
    for store, part in zip(_list_partitions(listing), parts, strict=True):
        if part.since is not None:
            yield _make_two_ways(store, part.since, committed, changelog=changelog)


def _list_partitions(listing: Listing) -> Iterator[StorePartition]:
    for operator in find_operators(listing, Provider.ROCKSDB):
        for partitions in operator.stores.values():
            yield from (store for _, store in sorted(partitions.items()))


def _make_two_ways(store: StorePartition, first: int, committed: Collection[int], *, changelog: bool) -> TwoWays:
    """``first`` is the first version written the new way."""
    where = (store.operator, store.store, store.partition)
    if first <= 1:
        return TwoWays(*where, why="no remaining version of it was written with the old setting")
    last = first - 1
    once = Counter(version for version, _ in {*store.names.snapshots, *store.names.logs})
    snapshots = {version for version in _find_versions(store.names.snapshots, once) if version - 1 in committed}
    logs = _find_versions(store.names.logs, once)
    later = min((version for version in snapshots if version > last), default=None)
    if changelog:
        pairs = [(last, later)] if last in snapshots and later is not None else []
        gone = f"{last}.zip, the last version before the switch, no longer exists"
        why = gone if last not in snapshots else f"no snapshot after version {last} was uploaded yet"
    else:
        pairs = [*pairwise(sorted(version for version in snapshots if version <= last))][::-1]
        why = f"up to version {last}, no two snapshots remain with all changelogs between them"
    across = (last if last - 1 in committed else None, later)
    for older, version in pairs:
        if version - older <= len(logs) and logs.issuperset(range(older + 1, version + 1)):
            return TwoWays(*where, *across, version, older)
    return TwoWays(*where, *across, why=why)


def _find_versions(files: Collection[FileId], once: Counter[int]) -> set[int]:
    """The versions of some files; in state format 2 without those that were written more than once."""
    return {version for version, _ in files if once[version] == 1}
