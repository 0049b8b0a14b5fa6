"""``ckpt offsets move`` between two real brokers: a real query continues there, and its rows are counted one by one.

Each case sends records to the old cluster, has a query read some of them into a Delta table, and copies them as a
mirror would. Where the plan says exact, the query continues with the copy, and the table has each record once.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ckpt.changes.offsets.move import MovePlan, offsets_move
from tests.changes.offsets.clusters import Clusters
from tests.changes.offsets.test_places import rows, write
from tests.support.services.fixtures import or_skip
from tests.support.services.kafka import kafka_broker

pytestmark = [pytest.mark.spark, pytest.mark.service]


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A second broker."""
    with or_skip("Kafka"), kafka_broker(tmp_path_factory.mktemp("other")) as servers:
        yield servers


@dataclass
class Moving:
    """A query of the old cluster."""

    spark: Any
    checkpoint: Path
    clusters: Clusters
    options: dict[str, str] = field(default_factory=dict)  # of the reader
    later: Callable[[], None] = lambda: None  # what the mirror does after the move

    def query(self, servers: str, topic: str) -> None:
        """Read a topic to its end."""

        def build(session: Any) -> Any:
            made = session.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
            made = made.option("subscribe", topic).option("startingOffsets", "earliest").options(**self.options)
            return made.load().selectExpr("CAST(value AS STRING) AS value", "partition")

        write(self.spark, build, self.checkpoint)

    def read(self) -> None:
        """Read what the old topic has."""
        self.query(self.clusters.old, self.clusters.name)


def copied(moving: Moving, *, foreign: int = 7, **copy: Any) -> None:
    """Records that are read, others that are not, and a copy with other records in front of it."""
    clusters = moving.clusters
    clusters.create(clusters.old, clusters.name)
    clusters.create(clusters.new, clusters.copy, clusters.config)
    clusters.send(range(-foreign, 0), clusters.new, clusters.copy)
    clusters.send(range(30))
    moving.read()
    clusters.send(range(30, 55))
    clusters.mirror(**copy)


def renamed(moving: Moving) -> None:
    """The name that MirrorMaker gives a copy."""
    moving.clusters.copy = f"old.{moving.clusters.name}"
    copied(moving)


def copies_unread_records_later(moving: Moving) -> None:
    """The mirror has copied all records that were read, and copies the others later."""
    copied(moving, end=34)
    moving.later = partial(moving.clusters.mirror, start=34)


def by_mirror_maker(moving: Moving) -> None:
    """Kafka's own mirror; all records have one timestamp, so that its topic of offsets shows where to look."""
    clusters = moving.clusters
    clusters.copy, clusters.at_once = f"old.{clusters.name}", True
    clusters.create(clusters.old, clusters.name)
    clusters.send(range(300))
    moving.read()
    clusters.send(range(300, 400))
    clusters.run_mirror_maker(moving.checkpoint.parent)


def in_transactions(moving: Moving, *, isolation: str = "read_committed", aborted: bool = True) -> None:
    """Abort some transactions: their records and markers leave gaps in the old cluster's offsets."""
    clusters = moving.clusters
    moving.options["kafka.isolation.level"] = isolation
    clusters.create(clusters.old, clusters.name)
    clusters.create(clusters.new, clusters.copy)
    for number in range(0, 30, 5):
        clusters.send(range(number, number + 5), transaction=True)
        if aborted:
            clusters.send(range(100 + number, 102 + number), aborted=True)
    moving.read()
    for number in range(30, 50, 5):
        clusters.send(range(number, number + 5), transaction=True)
    clusters.mirror()


def compacted(moving: Moving) -> None:
    """Real compaction on the old cluster, before the copy is made."""
    clusters = moving.clusters
    quick = {"segment.ms": "200", "min.cleanable.dirty.ratio": "0.001", "max.compaction.lag.ms": "500"}
    clusters.create(clusters.old, clusters.name, {"cleanup.policy": "compact", **quick})
    clusters.create(clusters.new, clusters.copy)
    clusters.send(range(20), key="first")  # of one key: all but the last go
    time.sleep(1)
    clusters.send(range(20, 40))
    moving.read()
    clusters.send(range(40, 60))
    until, extra = time.monotonic() + 120, iter(range(60, 1000))
    while len(there := clusters.read(clusters.old, clusters.name, 0)) > 55 and time.monotonic() < until:
        time.sleep(2)
        clusters.send([next(extra)])  # rolls the segment
    assert len(there) < len(clusters.sent) / 2 - 15
    clusters.mirror()


def compacted_copy(moving: Moving) -> None:
    """The copy lacks records that the old topic has, before the end and after it."""
    copied(moving, without=[11, 12, 33])


def began_with_the_end(moving: Moving) -> None:
    """The records that were read have expired on the old cluster, and some records in the copy."""
    copied(moving)
    moving.clusters.expire(30)


def expired_unread(moving: Moving) -> None:
    copied(moving)
    moving.clusters.expire(33)


def copied_twice(moving: Moving) -> None:
    """A mirror that was killed copies some records again."""
    copied(moving, end=40)
    moving.clusters.mirror(start=25)


def recreated_copy(moving: Moving) -> None:
    """The copy was removed, and made again from a later offset on: it has another id, and other offsets."""
    copied(moving)
    clusters = moving.clusters
    clusters.delete(clusters.new, clusters.copy)
    clusters.create(clusters.new, clusters.copy)
    clusters.mirror(start=12)


def recreated(moving: Moving) -> None:
    """The topic was removed on its only cluster, and filled again."""
    copied(moving)
    clusters = moving.clusters
    clusters.delete(clusters.old, clusters.name)
    clusters.create(clusters.old, clusters.name)
    clusters.send(range(4000, 4040))  # later than the batch


def same_cluster(moving: Moving) -> None:
    copied(moving)
    moving.clusters.new = moving.clusters.old


def more_partitions(moving: Moving) -> None:
    moving.clusters.partitions = 3
    copied(moving)


def own_timestamps(moving: Moving) -> None:
    moving.clusters.config = {"message.timestamp.type": "LogAppendTime"}
    copied(moving, foreign=30)


def equal_records(moving: Moving) -> None:
    """Records that nothing tells apart."""
    moving.clusters.equal = True
    copied(moving, foreign=0)


def one_partition(moving: Moving) -> None:
    """Nothing was ever sent to the other one."""
    moving.clusters.used = (0,)
    copied(moving)


CASES: dict[str, tuple[Callable[[Moving], None], str]] = {
    "mirrored": (copied, ""),
    "lags": (partial(copied, end=23), "the mirror has not yet copied the last 7 rows that the query has read"),
    "copies unread records later": (copies_unread_records_later, ""),
    "transactions": (in_transactions, ""),
    "transactions read uncommitted": (
        partial(in_transactions, isolation="read_uncommitted"),
        "6 rows around the query's end exist on only one of the clusters",
    ),
    "markers only": (partial(in_transactions, isolation="read_uncommitted", aborted=False), ""),
    "compacted": (compacted, ""),
    "compacted copy": (compacted_copy, "3 rows around the query's end exist on only one of the clusters"),
    "renamed": (renamed, ""),
    "MirrorMaker": (by_mirror_maker, ""),
    "recreated copy": (recreated_copy, ""),
    "recreated": (recreated, "was recreated or has lost rows"),
    "same cluster": (same_cluster, "are the same topic"),
    "more partitions": (more_partitions, "has 2 partitions, but"),
    "copied twice": (copied_twice, "several places look right"),
    "own timestamps": (own_timestamps, ""),
    "equal records": (equal_records, "several places look right"),
    "read rows expired": (began_with_the_end, ""),
    "unread rows expired": (expired_unread, "no longer has 3 rows that the query has not read"),
    "one partition": (one_partition, ""),
}
"""Each case, and why its plan is refused; empty where it is exact."""
RUN = [*CASES] if "CKPT_MOVES" in os.environ else ["transactions", "renamed", "lags"]
"""All take minutes: ``CKPT_MOVES=FILE`` runs them, and writes the table of docs/evidence/repairs.md into FILE."""


def counted(name: str, plan: MovePlan, clusters: Clusters, written: Counter[Any] | None = None) -> None:
    """Add a row to the table."""
    if file := os.environ.get("CKPT_MOVES"):
        what = str(plan.refused).partition("; ")[0] if plan.refused else "exact"
        rows = f"{len(clusters.sent)} sent, {written.total()} written, {len(written)} different" if written else "-"
        with Path(file).open("a") as out:
            out.write(f"| {name} | {what} | {rows} |\n")


@pytest.mark.parametrize("name", RUN)
def test_each_record_comes_once_where_the_plan_is_exact(
    name: str,
    kafka: str,
    other: str,
    kafka_jars: str,
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepare, refused = CASES[name]
    monkeypatch.setattr("ckpt.changes.offsets.move._SLACK", 20)
    monkeypatch.setattr("ckpt.changes.offsets.move._WINDOW", 150)
    moving = Moving(spark, tmp_path / "ck", Clusters(kafka, other, name))
    prepare(moving)
    clusters = moving.clusters
    level = {key: value for key, value in moving.options.items() if key.startswith("kafka.")}
    plan, receipt = offsets_move(
        moving.checkpoint,
        from_options={"kafka.bootstrap.servers": kafka, **level},
        to_options={"kafka.bootstrap.servers": clusters.new, **level},
        topic={clusters.name: clusters.copy} if clusters.copy != clusters.name else None,
        apply=True,
        grace=0,
    )
    if refused:
        counted(name, plan, clusters)
        assert refused in str(plan.refused)
        return
    assert receipt.applied, (plan.refused, receipt.problem)
    moving.later()
    moving.query(other, clusters.copy)
    written = rows(spark, moving.checkpoint)
    counted(name, plan, clusters, written)
    assert written == Counter(clusters.sent)
