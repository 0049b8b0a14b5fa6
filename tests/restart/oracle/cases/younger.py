"""Checkpoints of real-time mode and of continuous processing, started as micro-batches."""

from __future__ import annotations

from collections.abc import Iterator

from .model import Case, Mutation, delete, delete_logs, delete_tree, latest, replace, write

REAL_TIME = ("real-time-4.2", "real-time-4.3")
AGGREGATE = "real-time-aggregation-4.3"
FIRST_BATCH = (
    *delete("offsets/[0-9]*", "commits/[0-9]*", "state/0/[01]/[0-9]*"),
    *delete_tree("state/0/_metadata"),
    write("state/0/0/.1_c724ac0d-c9a2-4a43-afc7-ac9e403dc837.changelog.6a78e19c-4451-4ea8-ba12-75934119d8c2.tmp", ""),
)
"""What real-time mode leaves of `AGGREGATE` if it is killed in its first batch."""
CONTINUOUS = "continuous-kafka-4.2"
L = latest(CONTINUOUS)
IN_MICRO_BATCHES = """v1
{"batchWatermarkMs":0,"batchTimestampMs":1795578600000,"conf":{"spark.sql.shuffle.partitions":"200"}}
{"orders":{"0":51,"1":49}}"""
"""The newest offsets of the sample as `ckpt repair` writes them, but for the time."""


OF_ROCKSDB = "aggregation-changelog-4.2"


FOREIGN = ("com.acme.MyProvider", "com.databricks.sql.streaming.state.RocksDBStateStoreProvider")
OF_SPARK = "org.apache.spark.sql.execution.streaming.state."
BASES = {"aggregation-hdfs-3.5": "HDFSBackedStateStoreProvider", "aggregation-rocksdb-3.5": "RocksDBStateStoreProvider"}


def name_provider(sample: str, provider: str, batches: int = 2) -> list[Mutation]:
    """Let the newest offsets, as many as are said, record another provider."""
    newest = latest(sample)
    own = OF_SPARK + BASES[sample]
    return [replace(f"offsets/{batch}", own, provider) for batch in range(newest, newest - batches, -1)]


def _of_foreign_providers() -> Iterator[Case]:
    """State whose recorded provider is none of Spark's, though Spark's own wrote it, and sessions that set another."""
    for sample in BASES:
        newest = latest(sample)
        uncommitted = delete_logs(commits=[newest])
        for provider in FOREIGN:
            name = f"recorded-stateStore.providerClass={provider.split('.')[1]}"
            damage = name_provider(sample, provider, newest + 1)
            yield _case(f"{name}-in-all", sample, *damage, query="aggregation")
            yield _case(f"{name}-in-all-uncommitted", sample, *damage, *uncommitted, query="aggregation")
            yield _case(f"{name}-session-default", sample, *damage, query="aggregation", store="default")
        older = name_provider(sample, FOREIGN[0], newest + 1)[2:]
        yield _case("older-offsets-record-acme", sample, *older, query="aggregation")
        yield _case("older-offsets-record-acme-uncommitted", sample, *older, *uncommitted, query="aggregation")
    of_stateless = replace(f"offsets/{latest('stateless-3.5')}", OF_SPARK + BASES["aggregation-hdfs-3.5"], FOREIGN[0])
    yield _case("records-acme", "stateless-3.5", of_stateless, query="stateless", store="default")


def _case(name: str, sample: str, *damage: Mutation, query: str = "kafka-orders", store: str = "own") -> Case:
    return Case(f"{sample}-{name}", sample, tuple(damage), query, store, sync_only=True)


def cases() -> Iterator[Case]:
    """Every case of this module; each query reads all that there is in one batch, so no second one follows it."""
    for sample in REAL_TIME:
        yield _case("whole", sample)
        yield _case("uncommitted", sample, *delete_logs(commits=[latest(sample)]))
    older = write("commits/0", 'v1\n{"nextBatchWatermarkMs":0}')
    yield _case("in-format-2", "real-time-4.3", store="format2")
    yield _case("after-older-commits", "real-time-4.3", older)
    yield _case("predecessor-missing", "real-time-4.3", *delete_logs([0], [0]))
    yield _case("whole", AGGREGATE, query="kafka-counts")
    first_again = (*delete("commits/[0-9]*"), *delete_logs([latest(AGGREGATE)]))
    yield _case("batch-0-uncommitted", AGGREGATE, *first_again, query="kafka-counts", store="default")
    yield _case("uncommitted", AGGREGATE, *delete_logs(commits=[latest(AGGREGATE)]), query="kafka-counts")
    yield _case("first-batch", AGGREGATE, *FIRST_BATCH, query="kafka-counts")
    yield _case("first-batch-without-state", AGGREGATE, *FIRST_BATCH, *delete_tree("state"), query="kafka-counts")
    changed = replace(f"offsets/{latest(OF_ROCKSDB)}", "org.apache.spark.sql.execution", "com.databricks.sql")
    yield _case("recorded-stateStore.providerClass=com.databricks", OF_ROCKSDB, changed, query="aggregation")
    yield from _of_foreign_providers()
    yield Case(f"{CONTINUOUS}-whole", CONTINUOUS, (), "kafka-orders")
    yield _case("in-micro-batches", CONTINUOUS, write(f"offsets/{L}", IN_MICRO_BATCHES))
    planned = (write(f"offsets/{L + 1}", IN_MICRO_BATCHES), write(f"offsets/{L}", IN_MICRO_BATCHES))
    yield _case("in-micro-batches-planned", CONTINUOUS, *planned)
