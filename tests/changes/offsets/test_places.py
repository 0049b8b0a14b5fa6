"""``ckpt offsets set --to earliest``, ``latest``, a time or a duration: the broker or the table says where that is.

A real query continues there and writes to a Delta table, whose rows are counted one by one. Kafka's own tool gives the
same offsets for the same topics.
"""

import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ckpt.changes.offsets.plan import offsets_set
from tests.changes.offsets.running import moved
from tests.changes.offsets.test_kafka import end, reader
from tests.changes.offsets.test_reset_tool import BEGAN_MS, EARLIEST, ENDS, READ, TOPIC, at, topic as topic
from tests.support.spark import queries

pytestmark = [pytest.mark.spark, pytest.mark.service]


def write(spark: Any, build: Any, checkpoint: Path) -> None:
    """Run a query to the end of what is there, into the Delta table beside its checkpoint."""
    query = queries.Query("built here", lambda session, _: build(session), "append")
    queries.run(spark, query, checkpoint, sink="delta", options={"path": str(checkpoint.parent / "sink")})


def rows(spark: Any, checkpoint: Path) -> Counter[tuple[Any, ...]]:
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    frame = spark.newSession().read.format("delta").load(str(checkpoint.parent / "sink"))
    return Counter(tuple(row) for row in frame.collect())


@pytest.fixture(scope="module")
def stopped(topic: str, kafka_jars: str, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A query that has read 20 records of one partition, and all of the other, into a Delta table."""
    folder = tmp_path_factory.mktemp("places")
    ends = json.dumps({TOPIC: {str(partition): number for partition, number in READ.items()}})
    first = folder / "ck"
    write(spark, lambda session: reader(session, topic, TOPIC), first)
    moved(first, to=ends)  # the rest of the first partition is read after each case
    shutil.rmtree(folder / "ck backup")
    return folder


def parts_from(begins: Mapping[int, int]) -> Counter[tuple[Any, ...]]:
    return Counter((TOPIC, part, at) for part, begin in begins.items() for at in range(begin, ENDS[part]))


PLACES: dict[str, tuple[Any, dict[str, Any], Mapping[int, int]]] = {
    "earliest": ("earliest", {}, EARLIEST),
    "latest": ("latest", {}, ENDS),
    "a tie": (at(14), {}, {0: 14, 1: 10}),
    "between two": (at(6.5), {}, {0: 7, 1: 7}),
    "none in a partition": (at(12), {}, {0: 12, 1: 10}),
    "none": (at(60), {}, ENDS),
    "before all": (at(-1), {}, EARLIEST),
    "a partition": (at(8), {"only": [f"{TOPIC}/1"]}, {0: 20, 1: 8}),
    "a topic": ("earliest", {"only": [TOPIC]}, EARLIEST),
}


@pytest.mark.parametrize("name", PLACES)
def test_the_query_continues_there(name: str, topic: str, stopped: Path, spark: Any, tmp_path: Path) -> None:
    to, how, begins = PLACES[name]
    checkpoint = Path(shutil.copytree(stopped, tmp_path / "copy")) / "ck"
    before = rows(spark, checkpoint)
    plan = moved(checkpoint, to=to, source_options={0: {"kafka.bootstrap.servers": topic}}, **how)
    assert end(checkpoint) == {TOPIC: {str(part): begin for part, begin in begins.items()}}
    again = sum(max(READ[part] - begin, 0) for part, begin in begins.items())
    skipped = sum(max(begin - READ[part], 0) for part, begin in begins.items())
    assert count(plan) == (again, skipped)
    write(spark, lambda session: reader(session, topic, TOPIC), checkpoint)
    assert rows(spark, checkpoint) - before == parts_from(begins)
    assert any("has no row of" in str(text) for text in plan.warnings) is (name.startswith("none") or name == "a tie")


def count(plan: Any) -> tuple[int, int]:
    """Rows that are read again, and that are skipped, as the plan has them."""
    again = [spanned for replay in plan.replay for spanned in replay.sources]
    return tuple(
        sum(
            offset - (spanned.start or {}).get(topic, {}).get(part, 0)
            for spanned in ranges
            for topic, parts in spanned.end.items()
            for part, offset in parts.items()
        )
        for ranges in (again, plan.skipped)
    )


def numbers(table: Path, **options: str) -> Any:
    return lambda session: session.readStream.format("delta").options(**options).load(str(table))


@pytest.fixture(scope="module")
def of_delta(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A query of a table with versions 0 to 7, of ten rows each: it has read 0 to 4, and 3 and 4 in its last batch."""
    folder = tmp_path_factory.mktemp("places-delta")
    add(spark, folder / "table", 3)
    write(spark, numbers(folder / "table"), folder / "ck")
    add(spark, folder / "table", 2)
    write(spark, numbers(folder / "table"), folder / "ck")
    add(spark, folder / "table", 3)
    return folder


def add(spark: Any, table: Path, versions: int) -> None:
    there = len([*table.glob("_delta_log/*.json")])
    for version in range(there, there + versions):
        frame = spark.newSession().range(version * 10, version * 10 + 10, 1, 2)
        frame.write.format("delta").mode("append").save(str(table))
        when = BEGAN_MS / 1000 + version * 60
        os.utime(table / "_delta_log" / f"{version:020}.json", (when, when))
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


@pytest.mark.parametrize(
    ("to", "begin"),
    [("latest", 8), (at(6), 6), (at(5.5), 6), (at(4), 4), (at(2.5), 3), (at(60), 8), (at(5), None)],
    ids=["latest", "a tie", "between two", "back", "to the start of the batch", "none since", "nothing to do"],
)
def test_a_query_of_delta_continues_there(
    to: Any, begin: int | None, of_delta: Path, spark: Any, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(of_delta, tmp_path / "copy"))
    checkpoint, options = folder / "ck", {0: {"path": str(of_delta / "table")}}
    if begin is None:
        plan, _ = offsets_set(str(checkpoint), to=to, source_options=options)
        assert not plan.needed
        return
    before = rows(spark, checkpoint)
    plan = moved(checkpoint, to=to, source_options=options)
    between = abs(begin - 5) * 10
    assert f"with {between} rows." in str(plan.warnings)
    write(spark, numbers(of_delta / "table"), checkpoint)
    expected = Counter((number,) for number in range(begin * 10, 80))
    assert rows(spark, checkpoint) - before == expected
    if isinstance(to, datetime) and begin < 8:  # as Spark takes it
        new = tmp_path / "new" / "ck"
        write(spark, numbers(of_delta / "table", startingTimestamp=to.strftime("%Y-%m-%d %H:%M:%S")), new)
        assert rows(spark, new) == expected


def test_a_time_before_the_batch_of_delta_is_refused(of_delta: Path) -> None:
    options = {0: {"path": str(of_delta / "table")}}
    plan, _ = offsets_set(str(of_delta / "ck"), to="earliest", source_options=options)
    assert "begins at version 3" in str(plan.refused) or "batch 1" in str(plan.refused)
