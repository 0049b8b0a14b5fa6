"""Files among the state files whose names are of the other state store checkpoint format, or of none."""

from __future__ import annotations

from collections.abc import Iterator

from .model import Case, Mutation, copy, write

P0 = "state/0/0"
UUID = "5d1ed5a6-0c0e-4b6a-9e0f-3e1f5d2a7b11"


def cases() -> Iterator[Case]:
    yield from _of("hdfs", "aggregation-hdfs-3.5", "aggregation", _hdfs())
    yield from _of("changelog", "aggregation-changelog-4.0", "aggregation", _changelogs(6))
    yield from _of("rocksdb", "aggregation-rocksdb-3.5", "aggregation", _zips(4))
    yield from _of("changelog-zips", "aggregation-changelog-4.2", "aggregation", _changelogs(10) | _copies(9))
    yield from _of("snapshots", "aggregation-hdfs-4.2", "aggregation", _hdfs_snapshots())
    yield from _of("format2", "aggregation-format2-4.2", "aggregation", _without_ids())


def _of(prefix: str, sample: str, query: str, damages: dict[str, Mutation]) -> Iterator[Case]:
    for name, mutation in damages.items():
        yield Case(f"stray-{prefix}-{name}", sample, (mutation,), query)


def _hdfs() -> dict[str, Mutation]:
    return {
        "delta-1-id": write(f"{P0}/1_abc.delta", "x"),
        "delta-1-uuid": copy(f"{P0}/1.delta", f"{P0}/1_{UUID}.delta"),
        "delta-needed-id": write(f"{P0}/6_abc.delta", "x"),
        "snapshot-3-id": write(f"{P0}/3_abc.snapshot", "x"),
        "delta-without-number": write(f"{P0}/abc.delta", "x"),
    }


def _changelogs(needed: int) -> dict[str, Mutation]:
    return {
        "changelog-1-id": write(f"{P0}/1_abc.changelog", "x"),
        "changelog-needed-uuid": copy(f"{P0}/{needed}.changelog", f"{P0}/{needed}_{UUID}.changelog"),
        "zip-1-id": write(f"{P0}/1_abc.zip", "x"),
        "changelog-without-number": write(f"{P0}/abc.changelog", "x"),
    }


def _zips(needed: int) -> dict[str, Mutation]:
    return {
        "zip-1-id": write(f"{P0}/1_abc.zip", "x"),
        "zip-needed-uuid": copy(f"{P0}/{needed}.zip", f"{P0}/{needed}_{UUID}.zip"),
        "zip-without-number": write(f"{P0}/abc.zip", "x"),
        "zip-hidden": write(f"{P0}/.abc.zip", "x"),
    }


def _copies(newest: int) -> dict[str, Mutation]:
    return {
        "zip-hidden": write(f"{P0}/.abc.zip", "x"),
        "zip-copy": copy(f"{P0}/{newest}.zip", f"{P0}/{newest} (copy).zip"),
        "zip-uuid": copy(f"{P0}/{newest}.zip", f"{P0}/{newest}_{UUID}.zip"),
        "zip-in-partition-1": write("state/0/1/abc.zip", "x"),
    }


def _hdfs_snapshots() -> dict[str, Mutation]:
    return {
        "snapshot-without-number": write(f"{P0}/abc.snapshot", "x"),
        "snapshot-uuid": copy(f"{P0}/8.snapshot", f"{P0}/8_{UUID}.snapshot"),
        "snapshot-hidden": write(f"{P0}/.abc.snapshot", "x"),
    }


def _without_ids() -> dict[str, Mutation]:
    return {
        "changelog-1-no-id": write(f"{P0}/1.changelog", "x"),
        "zip-1-no-id": write(f"{P0}/1.zip", "x"),
        "zip-1-id": write(f"{P0}/1_abc.zip", "x"),
        "zip-without-number": write(f"{P0}/abc.zip", "x"),
    }
