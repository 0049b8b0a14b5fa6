"""The damaged samples, as data: each is another sample after the mutations named here.

Those that the documentation shows are in the repository; `made.py` makes all of them where tests look.
"""

from __future__ import annotations

from dataclasses import dataclass

from .mutations import Mutation


@dataclass(frozen=True)
class Damaged:
    """The sample `name`: a copy of `base` after `mutations`; `about` says what that stands for in real
    life."""

    name: str
    base: str
    about: str
    mutations: tuple[Mutation, ...]


def _delete(*paths: str) -> tuple[Mutation, ...]:
    return tuple({"op": "delete", "path": path} for path in paths)


def _write(path: str, text: str) -> tuple[Mutation, ...]:
    return ({"op": "write", "path": path, "text": text},)


def _cut(path: str, size: int) -> tuple[Mutation, ...]:
    return ({"op": "truncate", "path": path, "bytes": size},)


def _remove(path: str) -> tuple[Mutation, ...]:
    return ({"op": "delete_tree", "path": path},)


def _edit(path: str, old: str, new: str) -> tuple[Mutation, ...]:
    return ({"op": "replace_text", "path": path, "old": old, "new": new},)


_TMP = "5c1f2ab6-0f5e-4c43-9a0b-1b7f0a6d9e11.tmp"

_LOGS = (
    # stateless-3.5 holds batches 0 to 5, all committed.
    ("missing-predecessor", "Offsets of batch 4 lost", _delete("offsets/4")),
    ("missing-predecessor-uncommitted", "The same, batch 5 not committed", _delete("offsets/4", "commits/5")),
    ("old-gap", "Offsets 1 and commit 2 lost, which no start reads", _delete("offsets/1", "commits/2")),
    ("empty-offset", "Latest offset file empty, as after a full disk", _write("offsets/5", "")),
    ("empty-predecessor", "Offset file before the latest empty", _write("offsets/4", "")),
    ("empty-old-offset", "An old offset file empty, which no start reads", _write("offsets/1", "")),
    ("truncated-offset", "Latest offset file truncated inside its JSON", _cut("offsets/5", 150)),
    ("version-only-offset", "Latest offset file truncated after its first line", _write("offsets/5", "v1")),
    ("garbage-offset", "Latest offset file is not a log", _write("offsets/5", "hello")),
    ("newer-offset-version", "Latest offset file says v9", _edit("offsets/5", "v1\n", "v9\n")),
    ("newer-commit-version", "Latest commit says v9", _edit("commits/5", "v1\n", "v9\n")),
    ("empty-commit", "Latest commit file empty", _write("commits/5", "")),
    (
        "version-only-commit",
        "Latest commit truncated after its first line, which Spark accepts",
        _write("commits/5", "v1"),
    ),
    ("commits-ahead-of-offsets", "Latest offset file lost, its commit kept", _delete("offsets/5")),
    ("commits-far-behind", "Last three commits lost", _delete("commits/3", "commits/4", "commits/5")),
    ("no-commits", "All commits lost", _delete(*(f"commits/{batch}" for batch in range(6)))),
    ("no-offsets", "All offsets lost, commits kept", _delete(*(f"offsets/{batch}" for batch in range(6)))),
    ("missing-metadata", "`metadata` lost", _delete("metadata")),
    ("empty-metadata", "`metadata` empty", _write("metadata", "")),
    ("garbled-metadata", "`metadata` is not JSON", _write("metadata", '{"id":"16da3b92-')),
    (
        "offset-backwards",
        "Source offset smaller than the batch before",
        _edit("offsets/5", '"offset":60', '"offset":20'),
    ),
    (
        "orphan-commit-crc",
        "`commits/5` deleted by hand, its hidden checksum left",
        ({"op": "delete", "path": "commits/5", "keep_crc": True},),
    ),
    (
        "orphan-offset-crc",
        "The checksum of an offset file not yet written",
        ({"op": "copy", "path": "offsets/.5.crc", "to": "offsets/.6.crc"},),
    ),
    (
        "stale-crc",
        "`offsets/5` edited by hand, its checksum not",
        (
            {
                "op": "replace_text",
                "path": "offsets/5",
                "old": '"offset":60',
                "new": '"offset":55',
                "keep_crc": True,
            },
        ),
    ),
    ("directory-named-like-batch", "A folder where batch 6 is to be written", _write("offsets/6/stray", "")),
    (
        "leftover-temp",
        "Temporary files of a writer that died",
        _write(f"offsets/.6.{_TMP}", "v1") + _write(f"commits/.5.{_TMP}", ""),
    ),
)

_STATE = (
    # aggregation-hdfs-3.5 holds state versions 1 to 6 in two partitions, as deltas.
    ("missing-delta", "aggregation-hdfs-3.5", "A delta lost in one partition", _delete("state/0/0/3.delta")),
    ("truncated-delta", "aggregation-hdfs-3.5", "Latest delta truncated", _cut("state/0/1/6.delta", -8)),
    ("empty-delta", "aggregation-hdfs-3.5", "Latest delta empty", _write("state/0/1/6.delta", "")),
    ("missing-partition", "aggregation-hdfs-3.5", "All of partition 1 lost", _remove("state/0/1")),
    ("missing-state", "aggregation-hdfs-3.5", "`state/` lost", _remove("state")),
    (
        "expired-deltas",
        "aggregation-hdfs-3.5",
        "Oldest files deleted by a storage lifecycle rule",
        _delete("state/0/*/1.delta", "state/0/*/2.delta", "offsets/0", "commits/0"),
    ),
    (
        "state-ahead",
        "aggregation-hdfs-3.5",
        "Rewound by hand to batch 3; newer state files left",
        _delete("offsets/4", "offsets/5", "commits/4", "commits/5"),
    ),
    ("truncated-zip", "aggregation-rocksdb-3.5", "Latest zip truncated", _cut("state/0/0/4.zip", -40)),
    ("missing-zip", "aggregation-rocksdb-3.5", "Latest zip lost", _delete("state/0/0/4.zip")),
    (
        "missing-sst",
        "aggregation-rocksdb-3.5",
        "Newest SST file lost",
        _delete("state/0/0/SSTs/000029-*.sst"),
    ),
    (
        "truncated-sst",
        "aggregation-rocksdb-3.5",
        "Newest SST file short",
        _cut("state/0/0/SSTs/000029-*.sst", -16),
    ),
    ("missing-changelog", "aggregation-changelog-4.0", "A changelog lost", _delete("state/0/1/4.changelog")),
    ("truncated-changelog", "aggregation-changelog-4.0", "Latest one cut", _cut("state/0/1/6.changelog", -8)),
    (
        "missing-operator-metadata",
        "aggregation-changelog-4.0",
        "Operator metadata lost: restarts, but the state reader cannot see it",
        _delete("state/0/_metadata/metadata"),
    ),
    (
        "missing-state-schema",
        "aggregation-changelog-4.0",
        "State schema lost: restarts, but the state reader cannot read it",
        _delete("state/0/0/_metadata/schema"),
    ),
)

_STATE_OF_4_2 = (
    (
        "truncated-snapshot",
        "aggregation-hdfs-4.2",
        "Latest snapshot truncated; every delta is there",
        _cut("state/0/0/{latest}.snapshot", -8),
    ),
    (
        "missing-snapshot-zip",
        "aggregation-changelog-4.2",
        "Newest RocksDB snapshot lost; an older one and the changelogs replace it",
        _delete("state/0/0/{latest}.zip"),
    ),
    (
        "missing-unique-ids",
        "aggregation-format2-4.2",
        "Latest commit rewritten by hand without the state's unique ids",
        _write("commits/7", 'v2\n{"nextBatchWatermarkMs":0}'),
    ),
    (
        "short-of-recorded-size",
        "aggregation-format2-4.2",
        "Latest changelog shorter than its checksum file says",
        _cut("state/0/0/8_*.changelog", -8),
    ),
    ("tws-missing-schema", "tws-rocksdb-4.2", "State schemas lost", _remove("state/0/_stateSchema")),
)

_OTHERS = (
    (
        "one-source-short",
        "two-sources-3.5",
        "The second source's line is gone from the latest two offset files",
        _edit("offsets/2", '\n{"offset":60,"timestamp":1700000003000}', "")
        + _edit("offsets/3", '\n{"offset":80,"timestamp":1700000004000}', ""),
    ),
    (
        "topic-recreated",
        "kafka-4.2",
        "The latest offsets are smaller than those before, as after the topic was recreated",
        _edit("offsets/5", '{"0":51,"1":49}', '{"0":3,"1":2}'),
    ),
    (
        "async-uncommitted",
        "async-3.5",
        "Asynchronous tracking, the latest batch not committed",
        _delete("commits/{latest}"),
    ),
    (
        "file-source-log-hole",
        "file-source-3.5",
        "A batch of the file source's own log lost",
        _delete("sources/0/10"),
    ),
    (
        "file-source-no-compact",
        "file-source-3.5",
        "The compacted file of the file source's log lost",
        _delete("sources/0/9.compact"),
    ),
    ("file-source-log-lost", "file-source-3.5", "The whole log of the file source lost", _remove("sources")),
    (
        "missing-join-store",
        "join-hdfs-3.5",
        "One of a join's four stores lost",
        _remove("state/0/1/right-keyToNumValues"),
    ),
)

DAMAGED: tuple[Damaged, ...] = tuple(
    Damaged(f"damaged-{name}", base, about, mutations)
    for name, base, about, mutations in (
        *((name, "stateless-3.5", about, mutations) for name, about, mutations in _LOGS),
        *_STATE,
        *_STATE_OF_4_2,
        *_OTHERS,
    )
)

BUNDLED = ("damaged-missing-sst",)
"""The damaged samples in the repository: those on which the documentation runs ckpt."""
