"""The part of the logs that matters to state: recorded settings, and the version that the next start loads."""

from collections.abc import Mapping
from dataclasses import dataclass

from ckpt import settings
from ckpt.checkpoint.checkpoint import Log
from ckpt.checkpoint.state.chains import WantedVersion
from ckpt.checkpoint.state.folders import StorePartition
from ckpt.model import CommitLog, OffsetLog, Provider

_PROVIDERS = {
    settings.HDFS_PROVIDER.rpartition(".")[2]: Provider.HDFS,
    settings.ROCKSDB_PROVIDER.rpartition(".")[2]: Provider.ROCKSDB,
}


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
    again (``MicroBatchExecution.populateStartOffsets``). The unique ids of version V are in the commit of V - 1.
    """
    entry, latest, needed = offsets.newest, offsets.latest, None
    if latest is not None:
        needed = latest + 1 if commits.latest == latest else latest
    commit = commits.readable(needed - 1) if needed else None
    return Context(
        conf=entry.metadata.conf if entry and entry.metadata else {},
        latest=latest,
        needed_version=needed or None,
        unique_ids=(commit.state_unique_ids or {}) if commit else {},
        committed=commits.ids or None,
        oldest_needed=oldest_needed(offsets, commits),
    )
