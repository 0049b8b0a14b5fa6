"""Damage to the state of stateful queries, each with the latest batch committed and uncommitted.

Batch B reads state version B and writes version B + 1. With batches 0 to `L`, all committed, the next start
loads version `L + 1`; with `L` uncommitted it loads version `L` and writes `L + 1` again.
"""

from __future__ import annotations

from collections.abc import Iterator

from .model import Case, Mutation, copy, delete, delete_logs, delete_tree, mkdir, replace, truncate, write

L = 5
NEXT = L + 1
UNCOMMITTED = delete_logs(commits=[L])
P0 = "state/0/0"
DELTAS, CHANGELOGS = "aggregation-hdfs-3.5", "aggregation-changelog-4.0"


def _both(name: str, sample: str, query: str, *damage: Mutation) -> Iterator[Case]:
    yield Case(name, sample, tuple(damage), query)
    yield Case(f"{name}-uncommitted", sample, (*damage, *UNCOMMITTED), query)


def _damaged(path: str) -> dict[str, list[Mutation]]:
    """Ways in which one state file can be broken."""
    return {
        "missing": delete(path),
        "empty": [write(path, "")],
        "one-byte": [truncate(path, 1)],
        "half": [truncate(path, 40)],
        "last-byte-cut": [truncate(path, -1)],
        "end-mark-cut": [truncate(path, -21)],
        "end-mark-and-a-byte-cut": [truncate(path, -22)],
        "garbage": [write(path, "garbage")],
        "cut-stale-crc": [truncate(path, -22) | {"keep_crc": True}],
    }


def _logs(prefix: str, sample: str, query: str) -> Iterator[Case]:
    """The logs of a stateful query, with its state whole."""
    latest_unwritten = delete(f"state/0/*/{NEXT}.*")
    layouts = {
        "whole": [],
        "uncommitted": UNCOMMITTED,
        "uncommitted-state-not-written": [*UNCOMMITTED, *latest_unwritten],
        "commits-behind-by-2": delete_logs(commits=[L - 1, L]),
        "commits-empty": delete_logs(commits=range(L + 1)),
        "commits-ahead": delete_logs([L]),
        "predecessor-missing": delete_logs([L - 1]),
        "predecessor-missing-uncommitted": delete_logs([L - 1], [L]),
        "rewound-by-1": delete_logs([L], [L]),
        "rewound-by-1-state-too": [*delete_logs([L], [L]), *latest_unwritten],
        "rewound-by-3": delete_logs([L - 2, L - 1, L], [L - 2, L - 1, L]),
        "rewound-to-0": delete_logs(range(1, L + 1), range(1, L + 1)),
        "logs-gone-state-left": delete_logs(range(L + 1), range(L + 1)),
        "offsets-gone": delete_logs(range(L + 1)),
        "metadata-missing": delete("metadata"),
    }
    for name, damage in layouts.items():
        yield Case(f"{prefix}-logs-{name}", sample, tuple(damage), query, refusal=name in ("whole", "rewound-to-0"))


def _folders(prefix: str, sample: str, query: str) -> Iterator[Case]:
    """Whole folders gone, and strangers among the state files."""
    damages: dict[str, list[Mutation]] = {
        "state-gone": delete_tree("state"),
        "operator-gone": delete_tree("state/0"),
        "partition-0-gone": delete_tree(P0),
        "partition-1-gone": delete_tree("state/0/1"),
        "partition-1-empty": [*delete_tree("state/0/1"), mkdir("state/0/1")],
        "partition-2-extra": [copy("state/0/1", "state/0/2")],
        "operator-1-extra": [copy("state/0", "state/1")],
        "schema-gone": delete(f"{P0}/_metadata/schema"),
        "schema-gone-crc-left": [
            *delete(f"{P0}/_metadata/schema"),
            copy("offsets/.0.crc", f"{P0}/_metadata/.schema.crc"),
        ],
        "schema-empty": [write(f"{P0}/_metadata/schema", "")],
        "schema-cut": [truncate(f"{P0}/_metadata/schema", 30)],
        "schema-unknown-type": [replace(f"{P0}/_metadata/schema", '"long"', '"strg"')],
        "schema-unknown-key": [replace(f"{P0}/_metadata/schema", '"type"', '"tyte"')],
        "tmp-leftover": [write(f"{P0}/.{NEXT + 1}.delta.0a1b.tmp", "x"), write(f"{P0}/{NEXT + 1}.tmp", "x")],
    }
    for name, damage in damages.items():
        yield from _both(f"{prefix}-{name}", sample, query, *damage)


def _operator_metadata(prefix: str, sample: str, query: str) -> Iterator[Case]:
    path = "state/0/_metadata/metadata"
    for name, damage in {
        "missing": delete(path),
        "missing-crc-left": [*delete(path), copy("offsets/.0.crc", "state/0/_metadata/.metadata.crc")],
        "empty": [write(path, "")],
        "cut": [truncate(path, 20)],
        "v9": [write(path, "v9\n{}")],
        "unknown-operator": [replace(path, "stateStoreSave", "stateStoreSafe")],
    }.items():
        yield from _both(f"{prefix}-operator-metadata-{name}", sample, query, *damage)


def _hdfs_deltas() -> Iterator[Case]:
    """HDFS-backed state that consists of deltas only."""
    prefix, sample, query = "hdfs", DELTAS, "aggregation"
    yield from _logs(prefix, sample, query)
    yield from _folders(prefix, sample, query)
    for form, damage in _damaged(f"{P0}/{NEXT}.delta").items():
        yield from _both(f"{prefix}-delta-{NEXT}-{form}", sample, query, *damage)
    for form, damage in _damaged(f"{P0}/{L}.delta").items():
        yield from _both(f"{prefix}-delta-{L}-{form}", sample, query, *damage)
    for version in (1, 3):
        for form in ("missing", "empty", "last-byte-cut"):
            yield from _both(
                f"{prefix}-delta-{version}-{form}", sample, query, *_damaged(f"{P0}/{version}.delta")[form]
            )
    for name, damage in {
        "all-deltas-3-missing": delete("state/0/*/3.delta"),
        "delta-crc-missing": delete(f"{P0}/.{NEXT}.delta.crc"),
        "delta-above-present": [copy(f"state/0/{p}/6.delta", f"state/0/{p}/7.delta") for p in (0, 1)],
        "delta-above-garbage": [write(f"state/0/{p}/7.delta", "garbage") for p in (0, 1)],
        "delta-above-crc-orphan": [copy(f"{P0}/.6.delta.crc", f"{P0}/.7.delta.crc")],
        "delta-above-directory": [mkdir(f"{P0}/7.delta")],
        "delta-in-partition-1-missing": delete("state/0/1/5.delta"),
        "snapshot-garbage-above": [write(f"{P0}/9.snapshot", "garbage")],
        "snapshot-garbage-needed": [write(f"{P0}/{NEXT}.snapshot", "garbage")],
        "snapshot-empty-below": [write(f"{P0}/3.snapshot", "")],
    }.items():
        yield from _both(f"{prefix}-{name}", sample, query, *damage)


def _rocksdb_changelogs() -> Iterator[Case]:
    """RocksDB state that consists of changelogs only."""
    prefix, sample, query = "changelog", CHANGELOGS, "aggregation"
    yield from _logs(prefix, sample, query)
    yield from _folders(prefix, sample, query)
    yield from _operator_metadata(prefix, sample, query)
    for version in (L, NEXT):
        for form, damage in _damaged(f"{P0}/{version}.changelog").items():
            yield from _both(f"{prefix}-changelog-{version}-{form}", sample, query, *damage)
    for version in (1, 3):
        for form in ("missing", "empty", "last-byte-cut"):
            damage = _damaged(f"{P0}/{version}.changelog")[form]
            yield from _both(f"{prefix}-changelog-{version}-{form}", sample, query, *damage)
    for name, damage in {
        "changelog-crc-missing": delete(f"{P0}/.{NEXT}.changelog.crc"),
        "changelog-above-present": [copy(f"state/0/{p}/6.changelog", f"state/0/{p}/7.changelog") for p in (0, 1)],
        "changelog-above-crc-orphan": [copy(f"{P0}/.6.changelog.crc", f"{P0}/.7.changelog.crc")],
        "zip-garbage-needed": [write(f"{P0}/{NEXT}.zip", "garbage")],
        "zip-garbage-above": [write(f"{P0}/9.zip", "garbage")],
        "zip-empty-below": [write(f"{P0}/3.zip", "")],
    }.items():
        yield from _both(f"{prefix}-{name}", sample, query, *damage)


def cases() -> Iterator[Case]:
    yield from _hdfs_deltas()
    yield from _rocksdb_changelogs()
