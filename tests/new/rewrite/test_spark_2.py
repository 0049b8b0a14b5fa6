"""State of Spark 2 in RocksDB: Spark of today continues it. From Spark's own tests, whose source files stand in for."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import ckpt
from tests.new.rewrite.continuing import state
from tests.restart.oracle.cases.old_spark import COUNTS, DEDUP, JOIN, schemas_of_join
from tests.support.places import GOLDENS
from tests.support.spark import mutations, plans, queries

pytestmark = pytest.mark.spark
needs_golden = pytest.mark.skipif(not GOLDENS.is_dir(), reason="there is no ../shared/golden")
GROUPS_FORMAT = "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion"


def _join(rows: Callable[[], Any], how: str = "inner") -> Any:
    from pyspark.sql.functions import expr

    left = rows().selectExpr("value AS leftId", "time AS leftTime").withWatermark("leftTime", "5 seconds")
    right = rows().where("value % 2 = 0").selectExpr("value AS rightId", "time AS rightTime")
    within = expr("rightId = leftId AND rightTime BETWEEN leftTime AND leftTime + INTERVAL 5 SECONDS")
    return left.join(right.withWatermark("rightTime", "5 seconds"), within, how)


def _dedup(rows: Callable[[], Any]) -> Any:
    columns = "value + 10 AS key", "CAST(value AS STRING) AS topic", "value + 100 AS partition", "value + 5 AS offset"
    return rows().selectExpr("value", *columns).dropDuplicates()


def _side(name: str) -> Any:
    return {"key": {"field0": "integer"}, "value": {f"{name}Id": "integer", f"{name}Time": "timestamp"}}


COLUMNS = dict.fromkeys(("partition", "key", "offset"), "integer") | {"topic": "string", "value": "integer"}
"""Of the deduplication, in the order in which Spark 2.4 hashed their names."""


@dataclass(frozen=True)
class Old:
    """A checkpoint of Spark 2, what its state is, and a query that continues it."""

    golden: str
    batches: int
    sources: int
    stores: Any
    query: Callable[[Callable[[], Any]], Any]
    control: Sequence[mutations.Mutation] = ()
    """What the old checkpoint needs to be continued at all."""


OLD = {
    "counts": Old(
        COUNTS,
        2,
        1,
        {"default": {"key": {"value": "integer"}, "value": {"value": "integer", "count": "long"}}},
        lambda rows: rows().groupBy("value").count(),
    ),
    "dedup": Old(DEDUP, 1, 1, {"default": {"key": COLUMNS, "value": {"none": "void"}}}, _dedup),
    "join": Old(JOIN, 1, 2, {side: _side(side) for side in ("left", "right")}, _join, [*schemas_of_join()]),
}


class Continued:
    """The old checkpoint and those written from it; they all read the same files."""

    def __init__(self, spark: Any, folder: Path, old: Old) -> None:
        self._session, self._folder, self._old = spark.newSession(), folder, old
        (folder / "schema.json").write_text(json.dumps({"0": old.stores}))
        schema, golden = str(folder / "schema.json"), GOLDENS / old.golden
        shutil.copytree(golden, folder / "plain")
        mutations.copy_of(golden, folder / "old", old.control)
        for provider in ("hdfs", "rocksdb"):
            assert ckpt.rewrite(str(golden), str(folder / provider), provider=provider, schema=schema).written
        (folder / "in").mkdir()
        for batch in range(old.batches):
            file = self.add(f"seen-{batch}.json", [])
            entry = {"path": file.as_uri(), "timestamp": int(file.stat().st_mtime * 1000), "batchId": batch}
            for name in ("plain", "old", "hdfs", "rocksdb"):
                for source in range(old.sources):
                    (folder / name / f"sources/{source}").mkdir(parents=True, exist_ok=True)
                    (folder / name / f"sources/{source}/{batch}").write_text("v1\n" + json.dumps(entry))

    def add(self, name: str, values: Sequence[int]) -> Path:
        """A file for one batch; a row has the time of as many seconds as its value."""
        rows = (json.dumps({"value": value, "time": f"1970-01-01T00:00:{value:02}Z"}) for value in values)
        (self._folder / "in" / name).write_text("\n".join(rows))
        return self._folder / "in" / name

    def run(self, name: str, query: Callable[[Callable[[], Any]], Any] | None = None) -> dict[int, list[str]]:
        """Run to the end of the files: the rows of each batch."""

        def rows() -> Any:
            reader = self._session.readStream.schema("value INT, time TIMESTAMP").option("maxFilesPerTrigger", 1)
            return reader.json(str(self._folder / "in"))

        frame, mode = (query or self._old.query)(rows), "append" if query else self._mode
        return {batch: sorted(map(str, out)) for batch, out in queries.drain(frame, self._folder / name, mode).items()}

    @property
    def _mode(self) -> str:
        return "update" if self._old.golden == COUNTS else "append"

    def runs(self) -> Iterator[dict[int, list[str]]]:
        """Two starts, each with new rows: what the old one and that in RocksDB put out, which is equal."""
        for start, values in enumerate(([2, 3, 4, 9], [2, 6, 9, 20])):
            self.add(f"{start}.json", values)
            told = [self.run(name) for name in ("old", "rocksdb")]
            assert told[1] == told[0]
            yield told[0]
        assert state(self._folder / "rocksdb") == state(self._folder / "old")
        assert {unit.provider for unit in ckpt.state_units(str(self._folder / "rocksdb"))} == {"rocksdb"}


@needs_golden
@pytest.mark.parametrize("name", OLD)
def test_it_continues_as_on_the_old_one(name: str, spark: Any, tmp_path: Path) -> None:
    first, second = Continued(spark, tmp_path, OLD[name]).runs()
    match name:
        case "counts":  # of 3, 2 and 3 before
            counts = (2, 2), (3, 3), (4, 1), (9, 1)
            assert first[2] == [f"Row(value={value}, count={count})" for value, count in counts]
            assert second[3][0] == "Row(value=2, count=3)"
        case "dedup":
            assert "value=9," in first[1][-1]
            assert len(second[2]) == 2
        case "join":  # old rows meet new ones, and new ones each other
            ids = [row.partition(",")[0] for row in first[1]]
            assert ids == ["Row(leftId=2"] * 3 + ["Row(leftId=4"] * 3


@needs_golden
def test_spark_continues_no_join_of_spark_2_but_what_was_rewritten(spark: Any, tmp_path: Path) -> None:
    """Of inner joins alone: an outer one is refused by Spark itself."""
    join = Continued(spark, tmp_path, OLD["join"])
    join.add("new.json", [2])
    with pytest.raises(Exception, match="Unsupported schema writer version: 1"):
        join.run("plain")
    with pytest.raises(Exception, match="LeftOuter join with state format version 1"):
        join.run("hdfs", lambda rows: _join(rows, "leftOuter"))
    assert [len(rows) for rows in join.run("hdfs").values()] == [3]


def _count(key: tuple[int], frames: Iterator[Any], kept: Any) -> Iterator[Any]:
    import pandas as pd

    rows = (kept.get[0] if kept.exists else 0) + sum(map(len, frames))
    kept.update((rows, f"k{key[0]}"))
    yield pd.DataFrame({"key": [key[0]], "rows": [rows]})


def _grouped(session: Any) -> Any:
    rows, output, kept = plans.keyed(session), "key BIGINT, rows BIGINT", "rows BIGINT, last STRING"
    return rows.groupBy("key").applyInPandasWithState(_count, output, kept, "append", "NoTimeout")


def test_groups_of_state_format_1_continue(spark: Any, tmp_path: Path) -> None:
    """As Spark 2 kept those of (flat)MapGroupsWithState, without a schema; a query of today states it."""
    session = queries.own_session(spark, {GROUPS_FORMAT: "1", **queries.STATE_STORES["hdfs"]})

    def run(name: str) -> dict[int, list[str]]:
        batches = queries.drain(_grouped(session), tmp_path / name)
        return {batch: sorted(map(str, rows)) for batch, rows in batches.items()}

    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    run("old")
    rows = ckpt.read_state_arrow(old)
    assert rows.column_names == ["key_key", "value_rows", "value_last"]
    described = {"same.json": _grouped(session)}
    session = queries.own_session(session, {GROUPS_FORMAT: "2"})
    described["today.json"] = _grouped(session)
    for folder in tmp_path.rglob("_metadata"):
        shutil.rmtree(folder)
    for name, frame in described.items():
        ckpt.describe_query(frame).write(str(tmp_path / name))
        assert ckpt.read_state_arrow(old, schema=str(tmp_path / name)) == rows
    assert ckpt.rewrite(old, new, provider="rocksdb", schema=str(tmp_path / "today.json")).written
    for _ in range(2):
        told = [run(name) for name in ("old", "new")]
        assert told[0] == told[1]
    assert "Row(key=0, rows=5)" in told[0][2]
    assert state(tmp_path / "new") == state(tmp_path / "old")
