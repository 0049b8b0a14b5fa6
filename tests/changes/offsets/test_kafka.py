"""``ckpt offsets set`` with a real broker: which records each restart reads, by topic, partition and offset.

Each topic has 60 records, 30 in each of two partitions. A query reads 20 of each partition in two batches and stops; a
copy of its checkpoint is changed for each case, and the query reads on to the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ckpt.changes.offsets.exchange import offsets_export, offsets_import
from tests.changes.fixes.async_gap import kafka_query
from tests.changes.offsets.running import copied, moved, run
from tests.support.spark import topics

pytestmark = [pytest.mark.spark, pytest.mark.service]

RECORDS, READ = 30, 20  # of each partition: there, and read before anything is changed
Record = tuple[str, int, int]


@pytest.fixture
def broker(kafka: str, kafka_jars: str, spark: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("CKPT_KAFKA", kafka)
    return kafka


@pytest.fixture(scope="module")
def stopped(kafka: str, kafka_jars: str, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A query of topic `one` that stopped after two batches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CKPT_KAFKA", kafka)
        for topic in ("one", "two"):
            fill(spark, topic, RECORDS)
        checkpoint = tmp_path_factory.mktemp("stopped") / "ck"
        early = READ // 2 * topics.PARTITIONS
        ran = run(spark, lambda session: reader(session, kafka, "one", maxOffsetsPerTrigger=str(early)), checkpoint)
        assert len(ran) == RECORDS * 2 // early
        for log in ("offsets", "commits"):
            for name in ("2", ".2.crc"):
                (checkpoint / log / name).unlink()
        assert end(checkpoint) == {"one": {"0": READ, "1": READ}}
        yield checkpoint


def fill(spark: Any, topic: str, records: int) -> None:
    kafka_query.fill(spark, {"topic": topic, "count": records * topics.PARTITIONS})


NUMBERED = ("partition", "CAST(value AS STRING) AS value", "offset")


def records(session: Any, servers: str, topics: str, **options: str) -> Any:
    made = session.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    return made.option("subscribe", topics).option("startingOffsets", "earliest").options(**options).load()


def reader(session: Any, servers: str, topics: str, **options: str) -> Any:
    """Topic, partition and offset of each record."""
    return records(session, servers, topics, **options).select("topic", "partition", "offset")


def end(checkpoint: Path) -> Any:
    newest = max(int(file.name) for file in (checkpoint / "offsets").glob("[0-9]*"))
    return json.loads((checkpoint / "offsets" / str(newest)).read_text().splitlines()[2])


def reads(spark: Any, servers: str, topics: str, checkpoint: Path) -> dict[int, list[Record]]:
    return run(spark, lambda session: reader(session, servers, topics), checkpoint)


def rest(begins: Mapping[str, Mapping[int, int]]) -> list[Record]:
    """Every record from some offsets to the ends of the topics."""
    return sorted(
        (topic, partition, offset)
        for topic, partitions in begins.items()
        for partition, begin in partitions.items()
        for offset in range(begin, RECORDS)
    )


@pytest.mark.parametrize(
    ("how", "begins"),
    [
        ({"shift": ["one/0=+6", "one/1=-7"]}, {"one": {0: 26, 1: 13}}),
        ({"shift": ["one/0=-15", "one/1=-20"]}, {"one": {0: 5, 1: 0}}),  # also before the start of the batch
        ({"to": '{"one":{"0":20,"1":30}}'}, {"one": {0: 20, 1: 30}}),
        ({"to": '{"one":{"0":25,"1":null}}'}, {"one": {0: 25, 1: 0}}),  # left out: from its beginning
        ({"to": '{"one":{"0":20,"1":20},"two":{"0":4,"1":9}}'}, {"one": {0: 20, 1: 20}, "two": {0: 4, 1: 9}}),
        ({"to": '{"one":{"0":20,"1":20},"two":{"0":4}}'}, {"one": {0: 20, 1: 20}, "two": {0: 4, 1: 0}}),
        ({"to": '{"one":{"0":null,"1":null},"two":{"0":7,"1":8}}'}, {"two": {0: 7, 1: 8}}),
    ],
)
def test_the_next_batch_reads_from_what_was_set(
    how: Any, begins: Mapping[str, Mapping[int, int]], broker: str, stopped: Path, spark: Any, tmp_path: Path
) -> None:
    checkpoint = copied(stopped, tmp_path / "ck")
    moved(checkpoint, **how)
    assert reads(spark, broker, ",".join(begins), checkpoint) == {2: rest(begins)}


@pytest.mark.parametrize(("first", "second"), [(25, 12), (10, 10), (20, 20)])
def test_an_uncommitted_batch_runs_over_its_new_range(
    first: int, second: int, broker: str, stopped: Path, spark: Any, tmp_path: Path
) -> None:
    """Batch 1 begins at 10 in both partitions; ended at its start, it is empty."""
    checkpoint = copied(stopped, tmp_path / "ck")
    for name in ("1", ".1.crc"):
        (checkpoint / "commits" / name).unlink()
    to = json.dumps({"one": {"0": first, "1": second}})
    if (first, second) != (20, 20):
        moved(checkpoint, to=to)
    ran = reads(spark, broker, "one", checkpoint)
    after = {("one", partition, at) for partition, end in ((0, first), (1, second)) for at in range(10, end)}
    assert ran == {1: sorted(after), 2: sorted({*rest({"one": {0: 10, 1: 10}})} - after)}


@pytest.mark.parametrize(
    ("how", "warning", "error"),
    [
        ({"shift": [f"one/0=+{RECORDS}"]}, "Some data may have been lost", "Some data may have been lost"),
        ({"to": '{"one":{"0":20,"1":20},"two":{"0":4,"1":4}}'}, "must subscribe to two", "have been deleted"),
    ],
    ids=["no such offset", "a topic that is not read"],
)
def test_what_cannot_be_read_fails_as_is_said(
    how: Any, warning: str, error: str, broker: str, stopped: Path, spark: Any, tmp_path: Path
) -> None:
    checkpoint = copied(stopped, tmp_path / "ck")
    plan = moved(checkpoint, **how)
    assert any(warning in str(text) for text in plan.warnings)
    with pytest.raises(Exception, match=error):
        reads(spark, broker, "one", checkpoint)


def test_a_topic_that_moved_continues_with_the_record_that_comes_next(
    broker: str, stopped: Path, spark: Any, tmp_path: Path
) -> None:
    """The copy has four records in front that the original does not have, and other offsets so."""
    checkpoint, document = copied(stopped, tmp_path / "ck"), offsets_export(str(stopped)).document
    ahead = 4
    fill(spark, "moved", ahead)
    original = spark.read.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", "one").load()
    original.coalesce(1).sortWithinPartitions("offset").select("value", "partition").write.format("kafka").option(
        "kafka.bootstrap.servers", broker
    ).option("topic", "moved").save()
    (source,) = document["sources"]
    source["offset"] = {"one": {part: at + ahead for part, at in source["offset"]["one"].items()}}
    backup = str(tmp_path / "backup")
    plan, receipt = offsets_import(
        str(checkpoint), json.dumps(document), topic={"one": "moved"}, apply=True, backup=backup, grace=0
    )
    assert receipt.applied, plan.refused
    ran = run(spark, lambda session: records(session, broker, "moved").selectExpr(*NUMBERED), checkpoint)
    assert ran == {
        2: sorted(
            (partition, str(partition + topics.PARTITIONS * at), at + ahead)
            for partition in (0, 1)
            for at in range(READ, RECORDS)
        )
    }
