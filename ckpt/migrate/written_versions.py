"""How the newest versions of a RocksDB store were written, partition by partition.

With changelog checkpointing a batch writes ``V.changelog``, and maintenance uploads ``V.zip`` for some versions later;
without it a batch writes ``V.zip`` alone (Spark class ``RocksDB``, ``commit``).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.checkpoint.state.folders import StorePartition, find_operators
from ckpt.model import Provider
from ckpt.storage import Listing

_SHOWN = 5  # how many of the newest versions are listed file by file


@dataclass(frozen=True, slots=True)
class Version:
    """The files of one version; paths are relative to the checkpoint."""

    version: int
    changelog: str | None
    snapshot: str | None

    def as_with(self, *, changelog: bool) -> bool:
        """Tell whether a batch wrote it so; with both files it counts as written with changelogs."""
        return changelog == (self.changelog is not None)


@dataclass(frozen=True, slots=True)
class Written:
    """One store in one partition."""

    operator: int
    store: str
    partition: int
    newest: int | None  # the highest version
    since: int | None  # from which version on all were written as wanted; None: the newest was not
    versions: tuple[Version, ...]  # the newest, in order


def find_written(listing: Listing, *, changelog: bool) -> Iterator[Written]:
    """Every store in every partition; ``changelog`` is how it is wanted."""
    for operator in find_operators(listing, Provider.ROCKSDB):
        for places in operator.stores.values():
            for _, store in sorted(places.items()):
                yield _judge_partition(store, changelog)


def _judge_partition(store: StorePartition, changelog: bool) -> Written:
    logs = {version: f"{store.folder}/{name}" for (version, _), name in store.names.logs.items()}
    snapshots = {version: f"{store.folder}/{name}" for (version, _), name in store.names.snapshots.items()}
    versions = [Version(v, logs.get(v), snapshots.get(v)) for v in sorted({*logs, *snapshots})]
    since = None
    for version in reversed(versions):
        if not version.as_with(changelog=changelog):
            break
        since = version.version
    newest = versions[-1].version if versions else None
    return Written(store.operator, store.store, store.partition, newest, since, tuple(versions[-_SHOWN:]))
