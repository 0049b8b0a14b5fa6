"""State with snapshots: HDFS-backed `.snapshot`, RocksDB `.zip` with SST files, and logs beside them."""

from __future__ import annotations

import random
from collections.abc import Iterator

from .model import Case, Mutation, copy, delete, delete_logs, latest, truncate, versions, write

P0 = "state/0/0"
SEED = 20261122
QUERY = "aggregation"


def _variants(name: str, sample: str, *damage: Mutation) -> Iterator[Case]:
    uncommitted = delete_logs(commits=[latest(sample)])
    yield Case(name, sample, tuple(damage), QUERY)
    yield Case(f"{name}-uncommitted", sample, (*damage, *uncommitted), QUERY)


def _broken(path: str) -> dict[str, list[Mutation]]:
    return {
        "missing": delete(path),
        "empty": [write(path, "")],
        "half": [truncate(path, 60)],
        "last-byte-cut": [truncate(path, -1)],
        "end-cut": [truncate(path, -30)],
        "garbage": [write(path, "garbage")],
    }


def _of_files(prefix: str, sample: str, log: str, snapshot: str) -> Iterator[Case]:
    """Snapshots broken with and without the deltas or changelogs that could replace them."""
    needed = latest(sample) + 1
    snapshots = [version for version in versions(sample, P0, snapshot) if version <= needed]
    logs = versions(sample, P0, log)
    newest, older = snapshots[-1], snapshots[:-1]
    path = f"{P0}/{newest}.{snapshot}"
    without_old = delete(*(f"{P0}/{version}.{log}" for version in logs if version <= newest))
    for form, damage in _broken(path).items():
        yield from _variants(f"{prefix}-newest-snapshot-{form}", sample, *damage)
        name = f"{prefix}-newest-snapshot-{form}-no-older-{log}s"
        yield from _variants(name, sample, *damage, *without_old)
    for version in older:
        file = f"{P0}/{version}.{snapshot}"
        yield from _variants(f"{prefix}-snapshot-{version}-missing", sample, *delete(file))
        yield from _variants(f"{prefix}-snapshot-{version}-empty", sample, write(file, ""))
    all_gone = delete(*(f"{P0}/{version}.{snapshot}" for version in versions(sample, P0, snapshot)))
    yield from _variants(f"{prefix}-no-snapshots", sample, *all_gone)
    yield from _variants(f"{prefix}-no-older-{log}s", sample, *without_old)
    yield from _variants(f"{prefix}-no-{log}s", sample, *delete(f"{P0}/*.{log}"))
    for version in logs[-3:]:
        for form in ("missing", "empty", "end-cut"):
            damage = _broken(f"{P0}/{version}.{log}")[form]
            yield from _variants(f"{prefix}-{log}-{version}-{form}", sample, *damage)
    back = [latest(sample) - one for one in range(3)]
    yield Case(f"{prefix}-rewound-by-3", sample, tuple(delete_logs(back, back)), QUERY)


def _ssts(prefix: str, sample: str) -> Iterator[Case]:
    for name, damage in {
        "all-missing": delete(f"{P0}/SSTs/*.sst"),
        "folder-missing": [{"op": "delete_tree", "path": f"{P0}/SSTs"}],
        "all-empty": [truncate(f"{P0}/SSTs/*.sst", 0)],
        "all-cut": [truncate(f"{P0}/SSTs/*.sst", -10)],
    }.items():
        yield from _variants(f"{prefix}-sst-{name}", sample, *damage)


def _random_versions(prefix: str, sample: str, count: int) -> Iterator[Case]:
    """Pseudo-random subsets of the state files of one partition, deleted."""
    rng = random.Random(f"{SEED}-{prefix}")
    for number in range(count):
        share = rng.choice([0.1, 0.25, 0.5])
        names = {
            f"{version}.{suffix}"
            for suffix in ("snapshot", "delta", "zip", "changelog")
            for version in versions(sample, P0, suffix)
            if rng.random() < share
        }
        damage = delete(*(f"{P0}/{name}" for name in sorted(names)))
        case = list(_variants(f"random-state-{prefix}-{number:02}", sample, *damage))[rng.random() < 0.5]
        if names:
            yield case


def _zips() -> Iterator[Case]:
    """RocksDB without changelogs: a zip for every version."""
    prefix, sample = "zips", "aggregation-rocksdb-4.2"
    needed = latest(sample) + 1
    for version in (needed, needed - 1, needed - 3):
        for form, damage in _broken(f"{P0}/{version}.zip").items():
            yield from _variants(f"{prefix}-zip-{version}-{form}", sample, *damage)
    yield from _variants(f"{prefix}-above-present", sample, copy(f"{P0}/{needed}.zip", f"{P0}/{needed + 1}.zip"))
    yield from _ssts(prefix, sample)


def _version_2() -> Iterator[Case]:
    """Snapshots of state store checkpoint format 2 as Spark 4.0 writes them: their metadata entry begins with v2."""
    sample, every = "aggregation-format2-4.2", "state/0/*/*.zip"
    as_4_0 = [{"op": "zip_entry", "path": every, "entry": "metadata", "old": "v1\n", "new": "v2\n"}]
    as_4_0 += delete(f"{every}.crc")
    older = delete(*(f"state/0/*/{version}_*.changelog" for version in (1, 2, 3, 4, 5, 6)))
    yield Case("snapshots-of-4.0", sample, tuple(as_4_0), QUERY)
    yield Case("snapshots-of-4.0-no-older-changelogs", sample, (*as_4_0, *older), QUERY)


def cases() -> Iterator[Case]:
    yield from _of_files("snapshots", "aggregation-hdfs-4.2", "delta", "snapshot")
    yield from _of_files("changelogs", "aggregation-changelog-4.2", "changelog", "zip")
    yield from _ssts("changelogs", "aggregation-changelog-4.2")
    yield from _zips()
    yield from _version_2()
    yield from _random_versions("hdfs", "aggregation-hdfs-4.2", 15)
    yield from _random_versions("changelog", "aggregation-changelog-4.2", 15)
