"""``ckpt offsets set`` and a real restart: the rows of every later batch are those that follow from what was set.

What is expected is computed from the ranges alone. Batches that run after the change read 20 rows where those before
read 10, so that a file that is left of the old timeline shows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ckpt.changes.offsets.plan import offsets_set
from tests.changes.offsets.running import copied, moved, rate, run
from tests.changes.offsets.test_file_times import TIMES, ended
from tests.restart.oracle.cases.model import delete_logs
from tests.support.spark import mutations, plans, queries
from tests.support.spark.live import EVERY_CASE

pytestmark = pytest.mark.spark

KEYS = 7
STATEFUL = {"hdfs": 9, "rocksdb": 5, "changelog": 9, "format2": 7}
"""Samples of the aggregation, and their latest batch: each batch read ten rows."""
STORES = [*STATEFUL] if EVERY_CASE else ["hdfs", "format2"]


def offset(rows: int) -> str:
    return json.dumps({"offset": rows, "timestamp": plans.START_MS + rows * 100})


def twenty(session: Any) -> Any:
    return rate(session, 20).selectExpr("value", "value * 2 AS twice")


def counts(session: Any) -> Any:
    return (
        rate(session, 20)
        .selectExpr("timestamp", "value", f"value % {KEYS} AS key")
        .groupBy("key")
        .agg({"*": "count", "value": "sum"})
    )


def counted(read: Iterable[int], last: range) -> list[tuple[int, int, int]]:
    """What the aggregation emits in update mode for the rows of its last batch, of all that it has read."""
    number, total = Counter[int](), Counter[int]()
    for value in read:
        number[value % KEYS] += 1
        total[value % KEYS] += value
    return sorted((key, number[key], total[key]) for key in {value % KEYS for value in last})


@pytest.mark.parametrize("begin", [95, 60 + 20, 45, 3])
def test_rate_micro_batch_begins_elsewhere(begin: int, spark: Any, tmp_path: Path) -> None:
    checkpoint = copied("stateless-4.2", tmp_path / "ck")
    plan = moved(checkpoint, to=offset(begin))

    for number in (0, 1):
        values = range(begin + number * 20, begin + number * 20 + 20)
        assert run(spark, twenty, checkpoint) == {6 + number: [(value, value * 2) for value in values]}
    assert {(f.batch_id, json.dumps(f.sources[0].start)) for f in plan.starts} == {(6, offset(begin))}


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("by", [35, -18])
def test_state_counts_what_was_skipped_never_and_what_is_read_again_twice(
    by: int, store: str, spark: Any, tmp_path: Path
) -> None:
    checkpoint, latest = copied(f"aggregation-{store}-4.2", tmp_path / "ck"), STATEFUL[store]
    end = (latest + 1) * 10
    moved(checkpoint, to=offset(end + by))

    read = [*range(end)]
    for number in range(3):
        last = range(end + by + number * 20, end + by + number * 20 + 20)
        read += last
        assert run(spark, counts, checkpoint, store=store, mode="update") == {latest + 1 + number: counted(read, last)}


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("by", [10, -7, -10])
def test_an_uncommitted_batch_runs_over_its_new_range(by: int, store: str, spark: Any, tmp_path: Path) -> None:
    """What it wrote into the state before it failed is gone, or the state would count rows of two timelines."""
    latest = STATEFUL[store]
    checkpoint = copied(f"aggregation-{store}-4.2", tmp_path / "ck", *delete_logs(commits=[latest]))
    start, end = latest * 10, latest * 10 + 10 + by
    plan = moved(checkpoint, to=offset(end))

    assert any(step.path.startswith("state/") for step in plan.steps)
    first = {latest: counted(range(end), range(start, end))}
    second = {latest + 1: counted(range(end + 20), range(end, end + 20))}
    ran = run(spark, counts, checkpoint, store=store, mode="update")
    assert ran in ({**first, **second}, first)
    if ran == first:
        assert run(spark, counts, checkpoint, store=store, mode="update") == second
    read, last = range(end + 40), range(end + 20, end + 40)
    assert run(spark, counts, checkpoint, store=store, mode="update") == {latest + 2: counted(read, last)}


# Files: the log of the sample has entries 0 to 11, of one file with five rows each.


def files(session: Any) -> Any:
    return queries.QUERIES["file-source"].build(session, queries.INPUTS / "file-source")


def rows_of(*parts: int) -> list[tuple[int, str]]:
    return [(part * 5 + row, f"row {row}") for part in parts for row in range(5)]


@pytest.fixture
def _inputs() -> None:
    if not (queries.INPUTS / "file-source").is_dir():
        queries.write_input_files(queries.INPUTS / "file-source")


@pytest.mark.usefixtures("_inputs")
def test_a_file_source_goes_back_to_the_start_of_its_latest_batch(spark: Any, tmp_path: Path) -> None:
    checkpoint = copied("file-source-4.2", tmp_path / "ck")
    moved(checkpoint, to='{"logOffset":10}')
    assert run(spark, files, checkpoint) == {12: rows_of(11)}


@pytest.mark.usefixtures("_inputs")
def test_a_file_source_skips_entries_that_no_batch_has_read(spark: Any, tmp_path: Path) -> None:
    damage = delete_logs([10, 11], [10, 11])
    left, skipped = (copied("file-source-4.2", tmp_path / name, *damage) for name in ("left", "skipped"))
    moved(skipped, to='{"logOffset":10}')
    assert run(spark, files, left) == {10: rows_of(10, 11)}
    assert run(spark, files, skipped) == {10: rows_of(11)}


@pytest.mark.usefixtures("_inputs")
@pytest.mark.parametrize(("committed", "to", "begin"), TIMES if EVERY_CASE else TIMES[::3])
def test_a_file_source_goes_on_at_a_time(committed: int, to: Any, begin: int, spark: Any, tmp_path: Path) -> None:
    checkpoint = ended(committed, tmp_path / "ck")
    moved(checkpoint, to=to)
    ran = run(spark, files, checkpoint)
    assert sorted(row for rows in ran.values() for row in rows) == rows_of(*range(begin, 12))


@pytest.mark.usefixtures("_inputs")
@pytest.mark.parametrize(("end", "batches"), [(9, {10: [], 11: rows_of(10, 11)}), (11, {10: rows_of(10, 11)})])
def test_an_uncommitted_batch_of_files(end: int, batches: Any, spark: Any, tmp_path: Path) -> None:
    checkpoint = copied("file-source-4.2", tmp_path / "ck", *delete_logs([11], [10, 11]))
    moved(checkpoint, to=json.dumps({"logOffset": end}))
    assert run(spark, files, checkpoint) == batches


# Delta: a table of versions 0 to 9 (0 is its creation), each with the one row of its number.


@pytest.fixture(scope="module")
def table(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("delta")
    folder = tmp_path_factory.mktemp("delta") / "table"
    spark.range(0).write.format("delta").save(str(folder))
    for number in range(1, 10):
        spark.range(number, number + 1, 1, 1).write.format("delta").mode("append").save(str(folder))
    return folder


@pytest.fixture(scope="module")
def following(table: Path, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that has read the table to its end, a version a batch."""
    checkpoint = tmp_path_factory.mktemp("following") / "ck"
    ran = run(spark, lambda session: versions(session, table), checkpoint)
    assert [row for rows in ran.values() for (row,) in rows] == [*range(1, 10)]
    return checkpoint


def versions(session: Any, table: Path) -> Any:
    reader = session.readStream.format("delta").option("startingVersion", 1).option("maxFilesPerTrigger", 1)
    return reader.load(str(table))


def ends(checkpoint: Path) -> list[Any]:
    """The end of every batch, in order."""
    logged = sorted((int(file.name), file) for file in (checkpoint / "offsets").glob("[0-9]*"))
    return [json.loads(file.read_text().splitlines()[2]) for _, file in logged]


def back_to(following: Path, copy: Path, batch: int, *, committed: bool) -> Path:
    """A copy as if nothing had run after a batch."""
    last = len(ends(following)) - 1
    gone = range(batch + 1, last + 1)
    return copied_without(following, copy, gone, gone if committed else range(batch, last + 1))


def copied_without(source: Path, copy: Path, offsets: Iterable[int], commits: Iterable[int]) -> Path:
    copied(source, copy)
    mutations.apply(copy, delete_logs(offsets, commits))
    return copy


@pytest.mark.parametrize(("version", "committed"), [(8, True), (6, True), (8, False), (6, False)])
def test_delta_begins_at_another_version(
    version: int, committed: bool, following: Path, table: Path, spark: Any, tmp_path: Path
) -> None:
    """Batch 5 of the query begins at version 6; the next batches read all versions from the new end on."""
    checkpoint = back_to(following, tmp_path / "ck", 5, committed=committed)
    was = ends(checkpoint)
    begin = was[-2]["reservoirVersion"]
    assert begin == 6
    moved(checkpoint, to=json.dumps({**was[-1], "reservoirVersion": version, "index": was[-1]["index"]}))
    ran = run(spark, lambda session: versions(session, table), checkpoint)
    rows = [row for batch in sorted(ran) for (row,) in ran[batch]]
    assert rows == [*range(version if committed else begin, 10)]


def test_delta_is_not_set_where_rows_would_be_lost_or_doubled(following: Path, tmp_path: Path) -> None:
    checkpoint = back_to(following, tmp_path / "ck", 5, committed=True)
    was = ends(checkpoint)
    for wrong, said in (
        ({"reservoirVersion": was[-2]["reservoirVersion"] - 1}, "rewind to go back further"),
        ({"reservoirId": "another"}, "a start refuses offsets of another table"),
        ({"isStartingVersion": True}, "write false"),
        ({"index": 0}, "inside a version"),
    ):
        plan, _ = offsets_set(str(checkpoint), to=json.dumps({**was[-1], **wrong}))
        assert said in str(plan.refused), wrong
