"""Starts in real-time mode, and starts in micro-batches of checkpoints that real-time mode wrote, as data.

The broker has offsets 0 to 99 in each of two partitions of `orders`; the samples end near 50 in each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.restart.oracle.cases import younger
from tests.restart.oracle.cases.model import SAMPLES, Case, Mutation, delete, delete_logs, latest, write
from tests.support.spark import queries

S42, S43, AGGREGATE = "real-time-4.2", "real-time-4.3", younger.AGGREGATE
STATELESS = (S42, S43, "kafka-4.2")
COUNTS = ("aggregation-hdfs-4.2", "aggregation-rocksdb-4.2", "aggregation-changelog-4.2", "aggregation-format2-4.2")
ALLOW_FORMAT_1 = {"spark.sql.streaming.realTimeMode.dangerouslyAllowCheckpointV1.enabled": "true"}
FORMAT_1 = {"spark.sql.streaming.stateStore.checkpointFormatVersion": "1"}
HDFS = queries.STATE_STORES["hdfs"]


@dataclass(frozen=True)
class Start:
    """A case, started in one mode: `realtime` or `sync`."""

    case: Case
    mode: str
    conf: dict[str, str] = field(default_factory=dict)
    sink: str = "console"
    since: str = "4.1"
    rewritten: bool = False  # on the checkpoint that `ckpt rewrite --provider rocksdb --format-version 2` wrote of it

    repaired: bool = False  # after `ckpt repair --choose to-real-time --apply`

    @property
    def updates(self) -> bool:
        """True if the query starts in output mode update, as real-time mode demands."""
        return self.case.query != "kafka-appended"

    @property
    def name(self) -> str:
        """Such as `real-time-4.3-whole/realtime`."""
        return f"{self.case.name}/{self.mode}"


def plan(sample: str, batch: int, end: str) -> Mutation:
    """Plan a batch with the metadata of the newest one of a sample."""
    version, metadata, *_ = (SAMPLES / sample / "offsets" / str(latest(sample))).read_text().split("\n")
    return write(f"offsets/{batch}", f"{version}\n{metadata}\n{end}")


def read_kafka(sample: str) -> list[Mutation]:
    """Let a sample that counts by key read `orders`: five offsets of each partition a batch."""
    damage = [write("sources/0/0", b'\0v1\n{"orders":{"0":0,"1":0}}')]
    for batch in range(latest(sample) + 1):
        version, metadata, _ = (SAMPLES / sample / "offsets" / str(batch)).read_text().split("\n")
        ends = json.dumps({"orders": dict.fromkeys("01", 5 * batch + 5)}, separators=(",", ":"))
        damage.append(write(f"offsets/{batch}", f"{version}\n{metadata}\n{ends}"))
    return damage


PLANNED = '{"orders":{"0":60,"1":60}}'


def _kills(sample: str) -> Iterator[tuple[str, list[Mutation]]]:
    """Samples as kills of the driver and edits by hand leave them."""
    newest = latest(sample)
    yield "whole", []
    yield "planned", [plan(sample, newest + 1, PLANNED)]
    yield "planned-twice", [plan(sample, newest + 1, PLANNED), plan(sample, newest + 2, PLANNED.replace("60", "70"))]
    yield "uncommitted", delete_logs(commits=[newest])
    yield "all-uncommitted", delete("commits/[0-9]*")
    yield "predecessor-missing", delete_logs([newest - 1], [newest - 1])
    yield "predecessor-missing-uncommitted", delete_logs([newest - 1], [newest - 1, newest])
    yield "predecessor-missing-planned", [plan(sample, newest + 1, PLANNED), *delete_logs([newest])]
    yield "commits-ahead", delete_logs([newest])
    yield "no-offsets", delete("offsets/[0-9]*")
    yield "fresh", delete("offsets/[0-9]*", "commits/[0-9]*")
    yield "offsets-empty", [write(f"offsets/{newest}", "")]
    yield "planned-empty", [write(f"offsets/{newest + 1}", "")]
    yield "planned-v9", [write(f"offsets/{newest + 1}", "v9\n{}\n{}")]
    yield "commit-empty", [write(f"commits/{newest}", "")]
    yield "commit-only-v1", [write(f"commits/{newest}", "v1")]
    yield "commit-v1", [write(f"commits/{newest}", 'v1\n{"nextBatchWatermarkMs":0}')]
    commit_v2 = write(f"commits/{newest}", 'v2\n{"nextBatchWatermarkMs":0}')
    yield "commit-v2", [commit_v2]
    yield "commit-v2-planned", [commit_v2, plan(sample, newest + 1, PLANNED)]
    yield "commit-v9", [write(f"commits/{newest}", 'v9\n{"nextBatchWatermarkMs":0}')]
    yield "metadata-missing", delete("metadata")


_ONCE = ("whole", "planned", "uncommitted", "predecessor-missing", "predecessor-missing-uncommitted", "all-uncommitted")


def _stateless() -> Iterator[Start]:
    for sample in STATELESS:
        for name, damage in _kills(sample):
            if name == "all-uncommitted" and sample != "kafka-4.2":
                damage = [*damage, *delete("offsets/1")]
            case = Case(f"{sample}-{name}", sample, tuple(damage), "kafka-orders", sync_only=True)
            yield Start(case, "realtime")
            if sample != "kafka-4.2" and name in (*_ONCE, "fresh"):
                yield Start(case, "sync")
    for sample in (S43, "kafka-4.2"):
        for store in ("rocksdb", "format2"):
            yield Start(Case(f"{sample}-in-{store}", sample, (), "kafka-orders", store), "realtime")
        yield Start(Case(f"{sample}-in-hdfs", sample, (), "kafka-orders"), "realtime", HDFS)
    for name, damage in (("repaired", []), ("planned-repaired", [plan("kafka-4.2", latest("kafka-4.2") + 1, PLANNED)])):
        case = Case(f"kafka-4.2-{name}", "kafka-4.2", tuple(damage), "kafka-orders", sync_only=True)
        yield Start(case, "realtime", since="4.3", repaired=True)
    continuous = younger.CONTINUOUS
    yield Start(Case("continuous-whole", continuous, (), "kafka-orders"), "realtime")
    planned = delete_logs(commits=[latest(continuous)])
    yield Start(Case("continuous-uncommitted", continuous, tuple(planned), "kafka-orders"), "realtime")


def _counting(sample: str, name: str, *more: Mutation) -> Case:
    return Case(f"{sample}-{name}", sample, (*read_kafka(sample), *more), "kafka-aggregation", "default")


def _stateful() -> Iterator[Start]:
    for name, damage in _kills(AGGREGATE):
        if name == "all-uncommitted":
            damage = [*damage, *delete("offsets/1")]
        if name.startswith("commit-v2"):
            continue
        case = Case(f"{AGGREGATE}-{name}", AGGREGATE, tuple(damage), "kafka-counts", "default")
        yield Start(case, "realtime", since="4.2")
        if name in _ONCE:
            yield Start(case, "sync", since="4.2")
    first = Case(f"{AGGREGATE}-first-batch", AGGREGATE, younger.FIRST_BATCH, "kafka-counts", "default")
    yield Start(first, "realtime", since="4.2")
    for store in ("rocksdb", "format2"):
        yield Start(Case(f"{AGGREGATE}-in-{store}", AGGREGATE, (), "kafka-counts", store), "realtime", since="4.2")
    in_hdfs = Case(f"{AGGREGATE}-in-hdfs", AGGREGATE, (), "kafka-counts", "default")
    yield Start(in_hdfs, "realtime", HDFS, since="4.2")
    for sample in COUNTS:
        newest = latest(sample)
        planned = plan(sample, newest + 1, PLANNED)
        yield Start(_counting(sample, "whole"), "realtime", since="4.2")
        yield Start(_counting(sample, "planned", planned), "realtime", since="4.2")
        uncommitted = _counting(sample, "uncommitted", *delete_logs(commits=[newest]))
        yield Start(uncommitted, "realtime", since="4.2")
        yield Start(_counting(sample, "format-1-allowed"), "realtime", ALLOW_FORMAT_1, since="4.3")
        if "format2" not in sample:
            for kind, more in (("rewritten", ()), ("planned-rewritten", (planned,))):
                yield Start(_counting(sample, kind, *more), "realtime", since="4.3", rewritten=True)


def _questions() -> Iterator[Start]:
    """First starts: the demands of real-time mode on a query, a sink and a session."""
    fresh = delete("offsets/[0-9]*", "commits/[0-9]*")

    def new(name: str, query: str, store: str = "default", sink: str = "console", **more: object) -> Start:
        sample = "stateless-4.2" if query in ("stateless", "file-source") else S42
        return Start(Case(f"new-{name}", sample, tuple(fresh), query, store), "realtime", sink=sink, **more)  # type: ignore[arg-type]

    yield new("rate", "stateless")
    yield new("files", "file-source")
    yield new("append", "kafka-appended")
    yield new("limited", "kafka")
    yield new("noop", "kafka-orders", sink="noop")
    for query in ("kafka-counts", "kafka-dedup", "kafka-join", "kafka-sessions"):
        yield new(query, query)
    yield new("hdfs", "kafka-orders", conf=HDFS)
    yield new("counts-hdfs", "kafka-counts", conf=HDFS)
    yield new("format-1", "kafka-orders", conf=FORMAT_1)
    for sample in ("stateless-4.3", "file-source-4.2", "windowed-aggregation-rocksdb-4.3"):
        query = {"stateless-4.3": "stateless", "file-source-4.2": "file-source"}.get(sample, "windowed-aggregation")
        yield Start(Case(f"{sample}-whole", sample, (), query, "default"), "realtime")


STARTS: tuple[Start, ...] = (*_stateless(), *_stateful(), *_questions())
