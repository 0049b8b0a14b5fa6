"""Who obeys the remedies of CKPT116, 118, 119, 214, 329, 331 to 336, 509: Spark starts the query, and rows are counted.

Those of CKPT432 are obeyed in ``new/evolve``.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ckpt
from tests.inspection.alarms.damages import damages
from tests.laws.next_obeyed import announced_rows, obey, obey_with_copy
from tests.laws.starting import start, starts_at
from tests.restart.oracle import starts
from tests.restart.oracle.cases import CASES, Case
from tests.restart.oracle.cases.model import delete, write
from tests.restart.oracle.cases.operators import HOMES
from tests.support.spark import mutations
from tests.support.spark.samples import ORIGIN

pytestmark = pytest.mark.spark

_DAMAGE = {damage.name: damage for damage in damages()}
_STORES = "081 stores exchanged in join-changelog-4.2"
_LARGE = Case(
    "the newest offsets have 5 MB",
    "two-sources-offsets-v2-4.2",
    (write("offsets/3", "x" * 5_000_000),),
    query="two-sources",
)
_CASE = {case.name: case for case in CASES} | {
    _STORES: Case(_STORES, _DAMAGE[_STORES].sample, _DAMAGE[_STORES].mutations, "join"),
    _LARGE.name: _LARGE,
}
_FEWER = "aggregation-changelog-4.2-recorded-shuffle.partitions=1"
_NO_SNAPSHOTS = {"spark.sql.streaming.stateStore.minDeltasForSnapshot": "1000"}  # none of Spark's own replaces the copy
_FUTURE = datetime(2100, 1, 1)


@pytest.fixture(autouse=True)
def origin_as_it_was() -> Iterator[None]:
    """Remove what the start of a moved sample leaves where it was written: with it the sample counts as not moved."""
    moved = ORIGIN / "join-v3-changelog-4.2"
    was_there = moved.exists()
    yield
    if not was_there:
        shutil.rmtree(moved, ignore_errors=True)


def _codes(ckpt: Ckpt, checkpoint: Path, *words: str) -> set[str]:
    return {
        finding["code"]
        for finding in ckpt("inspect", checkpoint, "--spark", "4.2", *words, "-o", "json").json()["findings"]
        if finding["severity"] != "note"
    }


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("aggregation-changelog-4.2-operator-id-7", "CKPT329"),
        (_STORES, "CKPT333"),
        ("aggregation-rocksdb-4.2-operator-called-dedupe", "CKPT334"),
    ],
)
def test_what_is_put_back_from_a_copy_makes_a_query_that_never_broke(
    name: str, code: str, spark: Any, ckpt: Ckpt, tmp_path: Path
) -> None:
    case = _CASE[name]
    whole = mutations.copy_of(case.folder, tmp_path / "whole")
    checkpoint = mutations.copy_of(case.folder, tmp_path / "checkpoint", case.mutations)
    assert code in _codes(ckpt, checkpoint)
    obeyed, acts = obey_with_copy(checkpoint, whole)
    assert (obeyed.faults, acts > 0, _codes(ckpt, checkpoint)) == ([], True, set())
    assert start(spark, case, checkpoint).rows == start(spark, case, whole).rows


@pytest.mark.parametrize(
    ("name", "announced"),
    [
        ("aggregation-format2-4.2-ids-two-for-a-partition", "again"),
        ("aggregation-format2-4.2-ids-of-one-partition-less", "again"),
        ("aggregation-changelog-4.2-changelog-two-ahead", "left-out"),
        ("aggregation-rocksdb-4.2-zip-two-ahead", "left-out"),
        ("two-sources-offsets-v2-4.2-first-line-gone", "again"),
        ("two-sources-offsets-v2-4.2-last-line-gone", "again"),
        ("join-hdfs-3.5-v2-after-v1-first-only", "left-out"),
        ("tws-rocksdb-4.2-operator-id-7", "again"),
        ("tws-rocksdb-4.2-newest-output-mode-edited", "again"),
        (_FEWER, "left-out"),
        (_LARGE.name, "again"),
    ],
)
def test_a_repair_costs_the_rows_that_it_announces(
    name: str, announced: str, spark: Any, ckpt: Ckpt, tmp_path: Path
) -> None:
    """Totals are right in the end, and batches are read again from where the receipt says; no row is passed over."""
    case = _CASE[name]
    sound = start(spark, case, mutations.copy_of(case.folder, tmp_path / "whole", HOMES[case.sample]))
    checkpoint = mutations.copy_of(case.folder, tmp_path / "checkpoint", case.mutations)
    obeyed = obey(checkpoint, without_copy=True)
    assert (obeyed.faults, announced_rows(obeyed), len(obeyed.applied)) == ([], announced, 1)
    started = start(spark, case, checkpoint, lambda started: started.ends == sound.ends)
    replays = [replay for replay in obeyed.applied[0]["replay"] if replay["sources"]]
    begin = {
        source["index"]: min(starts_at(each["sources"][number]["from"]) for each in replays)
        for number, source in enumerate(replays[0]["sources"] if replays else [])
    }
    first = started.read[min(started.read)]
    assert [begin.get(index, start) for index, (start, _) in enumerate(first)] == [start for start, _ in first]
    for earlier, later in zip(sorted(started.read)[:-1], sorted(started.read)[1:], strict=True):
        assert [end for _, end in started.read[earlier]] == [start for start, _ in started.read[later]]
    assert started.ends == sound.ends
    if case.query in ("aggregation", "transform-with-state"):
        assert started.totals == sound.totals
    if case.query == "two-sources":
        ranges = zip(("left", "right"), (start for start, _ in first), started.ends, strict=True)
        wanted = Counter((side, value) for side, start, end in ranges for value in range(start, end))
        assert Counter(row for rows in started.rows.values() for row in rows) == wanted


def test_a_start_with_fewer_recorded_partitions_counts_without_their_state(spark: Any, tmp_path: Path) -> None:
    """Of CKPT116: there is no error, and a key of the partition that is left out has fewer rows than it had."""
    case = _CASE[_FEWER]
    sound = start(spark, case, mutations.copy_of(case.folder, tmp_path / "whole", HOMES[case.sample]))
    started = start(spark, case, mutations.copy_of(case.folder, tmp_path / "checkpoint", case.mutations))
    fewer = [key for key, row in started.totals.items() if key in sound.totals and row[1] < sound.totals[key][1]]
    assert started.totals.keys() == sound.totals.keys()
    assert fewer


def test_a_snapshot_ahead_is_loaded_by_a_later_start(spark: Any, tmp_path: Path) -> None:
    """So that CKPT306 holds a start whose own batches it does not spoil."""
    damage = _DAMAGE["037 state ahead in tws-event-time-changelog-4.2"]
    case = Case(damage.name, damage.sample, damage.mutations, "transform-with-state-event-time")
    whole = mutations.copy_of(case.folder, tmp_path / "whole", HOMES[case.sample])
    checkpoint = mutations.copy_of(case.folder, tmp_path / "checkpoint", case.mutations)
    alike = []
    for _ in range(4):
        started, sound = (start(spark, case, copy, conf=_NO_SNAPSHOTS) for copy in (checkpoint, whole))
        alike.append(started.rows == sound.rows)
    assert alike[:2] == [True, True]
    assert False in alike


_WITHOUT = Case(
    "without-schema", "aggregation-hdfs-3.5", tuple(delete("state/0/0/_metadata/schema")), query="aggregation"
)


@pytest.mark.parametrize(
    ("case", "code"),
    [(_WITHOUT, "CKPT331"), (_CASE["join-v3-changelog-4.2-schema-void"], "CKPT335")],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_start_writes_the_schema_by_which_rows_are_compared(
    case: Case, code: str, spark: Any, ckpt: Ckpt, tmp_path: Path
) -> None:
    checkpoint = mutations.copy_of(case.folder, tmp_path / "checkpoint", case.mutations)
    assert code in _codes(ckpt, checkpoint, "--deep")
    sound = start(spark, case, mutations.copy_of(case.folder, tmp_path / "whole"))
    assert start(spark, case, checkpoint).rows == sound.rows
    assert _codes(ckpt, checkpoint, "--deep") <= {"CKPT311"}  # the sample of a join was moved


def _windows(spark: Any, events: Path, *, sane: bool) -> Any:
    from pyspark.sql.functions import current_timestamp, expr, window

    rows = spark.readStream.schema("id BIGINT, at TIMESTAMP").option("maxFilesPerTrigger", 1).json(str(events))
    if sane:
        rows = rows.where(rows.at < current_timestamp() + expr("INTERVAL 1 DAY"))
    late = rows.withWatermark("at", "10 seconds")
    return late.groupBy(window("at", "1 hour")).count().selectExpr("window.start AS start", "count")


def _count(spark: Any, events: Path, checkpoint: Path, *, sane: bool) -> dict[int, dict[Any, int]]:
    """The counts by window of each batch of one start."""
    counts: dict[int, dict[Any, int]] = {}

    def keep(rows: Any, batch: int) -> None:
        counts[batch] = {row.start: row["count"] for row in rows.collect()}

    own = spark.newSession()
    own.conf.set("spark.sql.shuffle.partitions", "2")
    writer = _windows(own, events, sane=sane).writeStream.outputMode("update").trigger(availableNow=True)
    writer.option("checkpointLocation", str(checkpoint)).foreachBatch(keep).start().awaitTermination(90)
    starts.forget_state(spark)
    return counts


def test_a_query_goes_back_behind_a_row_of_2100(spark: Any, ckpt: Ckpt, tmp_path: Path) -> None:
    """Its windows have the counts of a query that never saw that row."""
    events, checkpoint = tmp_path / "events", tmp_path / "checkpoint"
    events.mkdir()
    now = datetime.now()
    start = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    written = 0

    def write(*times: datetime) -> None:
        nonlocal written
        rows = [json.dumps({"id": 10 * written + n, "at": at.isoformat()}) for n, at in enumerate(times)]
        (events / f"{written:02}.json").write_text("\n".join(rows))
        written += 1

    for number in range(3):
        write(*(start + timedelta(minutes=number, seconds=second) for second in range(5)))
        _count(spark, events, checkpoint, sane=False)
    write(start + timedelta(minutes=4), _FUTURE)
    _count(spark, events, checkpoint, sane=False)
    write(*(start + timedelta(minutes=5, seconds=second) for second in range(7)))
    lost = _count(spark, events, checkpoint, sane=False)
    assert not any(counts.get(start) for counts in lost.values())  # they were late

    document = ckpt("inspect", checkpoint, "-o", "json").json()
    (finding,) = (finding for finding in document["findings"] if finding["code"] == "CKPT214")
    batch = int(finding["path"].rpartition("/")[2])
    rewind = next(step for step in document["next"] if step["command"] and step["command"][1] == "rewind")
    plan = ckpt(*rewind["command"][1:], "-o", "json").json()
    apply = next(step["command"] for step in plan["next"] if step["command"] and "--apply" in step["command"])
    done = ckpt(*apply[1:], "--grace", "0", "-o", "json").json()
    assert done["applied"]
    assert f"batch {batch}" in finding["detail"]
    again = _count(spark, events, checkpoint, sane=True)
    never = _count(spark, events, tmp_path / "never", sane=True)
    newest = {key: value for counts in (again, never) for _, of in sorted(counts.items()) for key, value in of.items()}
    assert newest == {start: 23}
    assert max(counts.get(start, 0) for counts in again.values()) == 23
