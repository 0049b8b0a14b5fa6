"""The warnings and errors that each sample must show, by hand, from what was done to it (``support/spark/damage.py``).

What Spark itself did with these checkpoints (``tests/restart/oracle``) decides; an answer of ckpt never does. A sample
that is not named in ``MUST_SHOW`` must show neither a warning nor an error.
"""

_LEFT_BY_ASYNCHRONOUS_TRACKING = {"CKPT201"}  # a warning, as both progress modes are asked about
_MOVED = {"CKPT305"}  # written below another path, which stands in the operator metadata

MUST_SHOW: dict[str, set[str]] = {
    "async-3.5": _LEFT_BY_ASYNCHRONOUS_TRACKING,
    "async-4.2": _LEFT_BY_ASYNCHRONOUS_TRACKING,
    "async-kafka-4.2": _LEFT_BY_ASYNCHRONOUS_TRACKING,
    "damaged-async-uncommitted": _LEFT_BY_ASYNCHRONOUS_TRACKING,
    # transformWithState names its schema files by absolute path, and so do joins with column families
    "tws-changelog-4.0": _MOVED,
    "tws-rocksdb-4.2": _MOVED,
    "tws-event-time-changelog-4.2": _MOVED,
    "tws-avro-changelog-4.2": _MOVED,
    "tws-format2-4.3": _MOVED,
    "join-v3-changelog-4.2": {"CKPT311"},  # a moved join restarts, and the state reader does not find its schemas
    "join-v4-changelog-4.3": {"CKPT311"},
    "damaged-tws-missing-schema": _MOVED,
    "continuous-4.2": {"CKPT601"},  # a start in micro-batches fails
    "continuous-kafka-4.2": {"CKPT601"},
    # logs: offsets 4 and 5, the newest commit and metadata are what a start reads of stateless-3.5
    "damaged-missing-predecessor": {"CKPT202"},  # its commit is there: asynchronous tracking leaves no such gap
    "damaged-missing-predecessor-uncommitted": {"CKPT202", "CKPT213"},
    "damaged-empty-offset": {"CKPT101"},
    "damaged-empty-predecessor": {"CKPT101"},
    "damaged-truncated-offset": {"CKPT101"},
    "damaged-version-only-offset": {"CKPT101"},
    "damaged-garbage-offset": {"CKPT101"},
    "damaged-empty-commit": {"CKPT101"},
    "damaged-newer-offset-version": {"CKPT105"},
    "damaged-newer-commit-version": {"CKPT105"},
    "damaged-missing-metadata": {"CKPT103", "CKPT108"},  # stops 4.2 and later; before, a new query id
    "damaged-empty-metadata": {"CKPT104"},
    "damaged-garbled-metadata": {"CKPT104"},
    "damaged-commits-ahead-of-offsets": {"CKPT204"},
    "damaged-commits-far-behind": {"CKPT205"},  # batches 3 and 4
    "damaged-no-commits": {"CKPT205"},  # batches 0 to 4
    "damaged-no-offsets": {"CKPT206"},
    "damaged-offset-backwards": {"CKPT401"},
    "damaged-topic-recreated": {"CKPT401"},
    "damaged-orphan-commit-crc": {"CKPT501"},
    "damaged-orphan-offset-crc": {"CKPT501"},
    "damaged-directory-named-like-batch": {"CKPT504"},
    "damaged-one-source-short": {"CKPT106"},  # two sources in offsets 0 and 1, one in 2 and 3: Spark fails
    "damaged-file-source-log-hole": {"CKPT403"},
    "damaged-file-source-no-compact": {"CKPT403"},
    "damaged-file-source-log-lost": {"CKPT407"},
    # state that the next start loads
    "damaged-missing-delta": {"CKPT301"},
    "damaged-expired-deltas": {"CKPT301"},
    "damaged-missing-changelog": {"CKPT301"},
    "damaged-missing-zip": {"CKPT301"},
    "damaged-missing-unique-ids": {"CKPT111"},  # without ids Spark looks for other names
    "damaged-empty-delta": {"CKPT302"},
    "damaged-short-of-recorded-size": {"CKPT302"},
    "damaged-missing-sst": {"CKPT303"},
    "damaged-truncated-sst": {"CKPT303"},
    "damaged-missing-partition": {"CKPT304", "CKPT513"},  # a local path: on a cluster other hosts have it
    "damaged-missing-join-store": {"CKPT304"},
    "damaged-state-ahead": {"CKPT332"},
}

SHRUGGED_OFF: dict[str, str] = {
    "damaged-old-gap": "no start looks at batches 1 and 2",
    "damaged-empty-old-offset": "no start looks at batch 1",
    "damaged-version-only-commit": "Spark reads such a commit as one without a watermark",
    "damaged-stale-crc": "Spark does not check the checksums of its logs",
    "damaged-leftover-temp": "Spark does not list temporary files",
    "damaged-truncated-delta": "8 of the 21 bytes of the end mark are gone, and Spark stops reading before it",
    "damaged-truncated-changelog": "likewise",
    "damaged-truncated-snapshot": "likewise",
    "damaged-truncated-zip": "the last 40 bytes are of the directory at the end, and Spark reads the entries before it",
    "damaged-missing-snapshot-zip": "an older snapshot and every changelog since are there",
    "damaged-missing-operator-metadata": "the next start writes it again",
    "damaged-missing-state-schema": "the next start writes it again",
    "damaged-missing-state": "without state/ the files are those of a stateless query, which starts",
}
"""Damage that no start trips over, and why."""
