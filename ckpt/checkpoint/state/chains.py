"""Chains: the files that a load of one version reads, and those it falls back to; and the ``Context`` of a load.

Format 1 (``HDFSBackedStateStoreProvider.loadMap``, ``RocksDB.loadWithoutCheckpointId``): the newest snapshot at or
below the version, or nothing, and every delta or changelog after it. Format 2 (``RocksDB.loadWithCheckpointId``): the
snapshot of exactly this version and unique id, or the lineage that its changelog begins with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from ckpt import settings
from ckpt.checkpoint.checkpoint import Log
from ckpt.checkpoint.state.folders import FileId, StoreNames, StorePartition
from ckpt.checkpoint.state.read_steps import Step
from ckpt.formats.compression import HEAD
from ckpt.formats.statefiles import LZ4, Lineage, parse_lineage
from ckpt.model import CommitLog, OffsetLog, Provider
from ckpt.storage.base import ReadRequest

_NAMED = 1000  # missing files of a chain that are named
_HEAD = 1 << 16  # bytes from the beginning of a changelog that surely hold its first block, with the lineage


class WantedVersion(NamedTuple):
    """The version of a store that is to be loaded; a ``FileId``."""

    version: int
    unique_id: str | None = None  # format 2


class Chain(NamedTuple):
    """The files that lead to one version of a store, in reading order: a snapshot, if any, and the logs after it."""

    snapshot: FileId | None
    logs: tuple[FileId, ...]  # that are there, up to the first hole
    missing: tuple[FileId, ...] = ()  # the logs that are not there; of very many the first
    holes: int = 0  # how many are not there
    after: tuple[FileId, ...] = ()  # logs that are there, after the first hole
    lost_snapshot: FileId | None = None  # format 2: the lineage begins at a snapshot that is not there

    @property
    def complete(self) -> bool:
        """True if every file is there."""
        return not self.missing and self.lost_snapshot is None


def chain_to(names: StoreNames, target: WantedVersion, lineage: Lineage | None = None) -> Chain:
    """The files that Spark reads to load ``target``; ``lineage`` is that of its changelog, where there is one."""
    if target.unique_id is None:
        below = [version for version, unique_id in names.snapshots if unique_id is None and version <= target.version]
        return _chain_by_number(names, (max(below), None) if below else None, target.version)
    if target in names.snapshots:
        return Chain(target, ())
    if target not in names.logs or lineage is None:
        return _chain_by_lineage(names, None, [target])
    steps: list[FileId] = [*lineage, target]
    for index in range(len(steps) - 1, -1, -1):
        if steps[index] in names.snapshots:
            return _chain_by_lineage(names, steps[index], steps[index + 1 :])
    if steps[0][0] == 1:
        return _chain_by_lineage(names, None, steps)
    chain = _chain_by_lineage(names, None, steps[1:])
    return chain._replace(lost_snapshot=steps[0])


def fallbacks(names: StoreNames, target: WantedVersion, chain: Chain) -> list[Chain]:
    """Complete chains from older snapshots, newest first, and last from nothing (Spark's ``AutoSnapshotLoader``)."""
    first = chain.snapshot or chain.lost_snapshot
    if first is None:
        return []
    formats_agree = [i for i in names.snapshots if (i[1] is None) is (target.unique_id is None)]
    tried = sorted((i for i in formats_agree if i[0] < first[0]), reverse=True)
    if target.unique_id is None:
        chains = [_chain_by_number(names, snapshot, target.version) for snapshot in (*tried, None)]
    else:
        # Measured on 4.2.0: a lineage is followed back to its beginning only if some older zip is there.
        ways = [
            (snapshot, _find_lineage_before(names, snapshot, first)) for snapshot in (*tried, *[None][: len(tried)])
        ]
        chains = [
            _chain_by_lineage(names, snapshot, [*logs, *chain.logs]) for snapshot, logs in ways if logs is not None
        ]
    return [candidate for candidate in chains if candidate.complete] if not chain.missing else []


def _chain_by_number(names: StoreNames, snapshot: FileId | None, version: int) -> Chain:
    """Every log after a snapshot up to a version, format 1."""
    base = snapshot[0] if snapshot else 0
    there = sorted(i for i in names.logs if base < i[0] <= version and i[1] is None)
    holes = version - base - len(there)
    if not holes:
        return Chain(snapshot, tuple(there))
    whole = next((i for i, (version_there, _) in enumerate(there) if version_there != base + 1 + i), len(there))
    numbers = {log[0] for log in there}
    gone = (number for number in range(base + 1, version + 1) if number not in numbers)
    missing = tuple((number, None) for number in islice(gone, _NAMED))
    return Chain(snapshot, tuple(there[:whole]), missing, holes, tuple(there[whole:]))


def _chain_by_lineage(names: StoreNames, snapshot: FileId | None, logs: Sequence[FileId]) -> Chain:
    """The logs of a lineage, format 2."""
    missing = tuple(log for log in logs if log not in names.logs)
    if not missing:
        return Chain(snapshot, tuple(logs))
    first = logs.index(missing[0])
    after = tuple(log for log in logs[first:] if log in names.logs)
    return Chain(snapshot, tuple(logs[:first]), missing[:_NAMED], len(missing), after)


def _find_lineage_before(names: StoreNames, snapshot: FileId | None, first: FileId) -> list[FileId] | None:
    """The logs after ``snapshot`` up to ``first``, if the names alone identify them."""
    by_version: dict[int, list[FileId]] = {}
    for file_id in names.logs:
        by_version.setdefault(file_id[0], []).append(file_id)
    by_version[first[0]] = [first]
    base = snapshot[0] if snapshot else 0
    if first[0] - base > len(names.logs):
        return None
    steps = [by_version.get(version, []) for version in range(base + 1, first[0] + 1)]
    return [ids[0] for ids in steps] if all(len(ids) == 1 for ids in steps) else None


def read_lineages(targets: Mapping[StorePartition, WantedVersion], codec: str) -> Step[dict[StorePartition, Lineage]]:
    """Read the lineage that the changelog of the wanted version begins with, unless there is a zip."""
    requests: dict[StorePartition, ReadRequest] = {}
    for store, target in targets.items():
        names = store.names
        if target.unique_id is not None and target not in names.snapshots and target in names.logs:
            requests[store] = ReadRequest(f"{store.folder}/{names.logs[target]}", 0, _HEAD if codec == LZ4 else HEAD)
    if not requests:
        return {}
    answers = zip(requests, (yield list(requests.values())), strict=True)
    parsed = {store: parse_lineage(answer, codec) for store, answer in answers if isinstance(answer, bytes)}
    return {store: lineage for store, lineage in parsed.items() if lineage is not None}


_PROVIDERS = {
    settings.HDFS_PROVIDER.rpartition(".")[2]: Provider.HDFS,
    settings.ROCKSDB_PROVIDER.rpartition(".")[2]: Provider.ROCKSDB,
}


def is_known_provider(class_name: str) -> bool:
    """Tell whether a class is one of Spark's providers: that of Databricks has the same name in another package."""
    return class_name in (settings.HDFS_PROVIDER, settings.ROCKSDB_PROVIDER)


@dataclass(frozen=True, slots=True)
class Context:
    """The logs, as the judgement of state needs them."""

    conf: Mapping[str, str]  # recorded in the latest offsets: it wins over the session's
    latest: int | None  # the latest planned batch
    needed_version: int | None  # what the next start loads; None where it loads nothing
    unique_ids: Mapping[int, tuple[tuple[str, ...], ...]]  # format 2: operator -> [partition][store], of that version
    committed: tuple[int, ...] | None  # batches with a commit; None where there is no commit log
    oldest_needed: int | None = None  # the oldest version that a start needs, now or after a rewind; None: unknown

    @property
    def provider(self) -> Provider:
        """The provider that the conf names."""
        return _PROVIDERS.get(self.conf.get(settings.PROVIDER_CLASS, "").rpartition(".")[2], Provider.UNKNOWN)

    @property
    def codec(self) -> str | None:
        """How deltas and changelogs are compressed, by Spark's short name; None where it is not recorded."""
        codec = self.conf.get(settings.COMPRESSION_CODEC)
        return None if codec is None else codec.rpartition(".")[2].lower().removesuffix("compressioncodec")

    @property
    def shuffle_partitions(self) -> int | None:
        """The recorded number of shuffle partitions: how many partitions of state a start loads."""
        number = self.conf.get(settings.SHUFFLE_PARTITIONS, "")
        return int(number) if number.isascii() and number.isdecimal() and len(number) < 10 else None

    def target(self, store: StorePartition) -> WantedVersion | None:
        """Return the version that the next start loads of a partition; None for none, or if the logs do not say."""
        version = self.needed_version
        count = self.shuffle_partitions
        if version is None or (count is not None and store.partition >= count):
            return None
        if not self.unique_ids:
            return WantedVersion(version)
        of_partitions = self.unique_ids.get(store.operator, ())
        if store.partition >= len(of_partitions):
            return None
        ids, names = of_partitions[store.partition], store.names
        there = [i for i in ids if (version, i) in names.logs or (version, i) in names.snapshots]
        if len(there) != 1 and len(ids) != 1:
            return None
        return WantedVersion(version, there[0] if there else ids[0])


def oldest_needed(offsets: Log[OffsetLog], commits: Log[CommitLog]) -> int | None:
    """The oldest version of state from which a query can be started, now or after a rewind; None if unknown.

    The state after batch B, which has a commit, is version B + 1. The newest batch may have to run again, from the
    version of its own number: that is kept in any case.
    """
    if offsets.latest is None or offsets.names.odd or commits.names.odd or not (commits.ids or offsets.latest == 0):
        return None
    return min(offsets.latest, commits.ids[0] + 1) if commits.ids else 0


def context_of(offsets: Log[OffsetLog], commits: Log[CommitLog]) -> Context:
    """Work out which state version the next start loads.

    Batch B reads version B and writes B + 1. After batch L is committed the next start runs L + 1; otherwise it runs L
    again (``MicroBatchExecution.populateStartOffsets``). The unique ids of version V are in the commit of V - 1; those
    of an operator that no other commit names are none of this query, and Spark ignores them.
    """
    entry, latest, needed = offsets.newest, offsets.latest, None
    if latest is not None:
        needed = latest + 1 if commits.latest == latest else latest
    commit = commits.readable(needed - 1) if needed else None
    ids = (commit.state_unique_ids or {}) if commit else {}
    others = [other.state_unique_ids for other in commits.entries.values() if isinstance(other, CommitLog)]
    earlier = {operator for known in others if known and known is not ids for operator in known}
    return Context(
        conf=entry.metadata.conf if entry and entry.metadata else {},
        latest=latest,
        needed_version=needed or None,
        unique_ids={operator: ids[operator] for operator in ids if operator in earlier or not earlier},
        committed=commits.ids or None,
        oldest_needed=oldest_needed(offsets, commits),
    )
