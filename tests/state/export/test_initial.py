"""The frame of initial state through Spark: every stateful sample, and queries made to be difficult."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.errors import CkptError
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.initial import plan_initial_state
from ckpt.state.reading.reading import StateRequest
from ckpt.state.reading.units import StateUnit, UnitKind
from ckpt.versions import Spark
from tests.conftest import Ckpt
from tests.state.export import difficult, grouped, rows
from tests.state.export.test_samples import needs
from tests.support.places import SAMPLES

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(("sample", "operator"), rows.every_operator())
def test_every_key_has_all_its_state_and_nothing_else(sample: str, operator: int, spark: Any) -> None:
    """Contents are those that Spark's reader gave part by part; there a row of a join does not say if it matched."""
    path = SAMPLES / sample
    units = rows.units_of(path, operator)
    for unit in units:
        needs(spark, unit)

    frame = ckpt.read_initial_state(str(path), session=spark, operator=operator)

    assert grouped.found_in(frame) == grouped.wanted_of(sample, units)
    plan = plan_initial_state(StateRequest(str(path), RequestedPart(operator)))
    columns = [*plan.shape.keys, *plan.shape.state]
    assert frame.columns == [column.name for column in columns]
    types = [field["type"] for field in json.loads(frame.schema.json())["fields"]]
    assert list(map(bare, types)) == [bare(column.type) for column in columns]
    assert all(field["metadata"] == {} for field in json.loads(frame.schema.json())["fields"])


def bare(kind: Any) -> Any:
    """A type without what is nullable in it, and without metadata."""
    if isinstance(kind, dict):
        left_out = ("nullable", "containsNull", "valueContainsNull", "metadata")
        return {name: bare(inner) for name, inner in kind.items() if name not in left_out}
    return [bare(inner) for inner in kind] if isinstance(kind, list) else kind


@pytest.mark.parametrize(
    ("sample", "exchanges"),
    [
        ("aggregation-format2-4.2", 0),
        ("windowed-aggregation-hdfs-4.2", 0),
        ("dedup-within-watermark-hdfs-3.5", 0),
        ("pandas-with-state-changelog-4.2", 0),
        ("limit-hdfs-4.2", 0),
        ("session-window-changelog-4.2", 1),
        ("join-changelog-4.2", 1),
        ("tws-changelog-4.0", 1),
    ],
)
def test_one_shuffle_where_keys_are_brought_together_and_none_elsewhere(
    sample: str, exchanges: int, spark: Any
) -> None:
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    frame = ckpt.read_initial_state(str(SAMPLES / sample), session=spark)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert plan.count("Exchange") == exchanges, plan
    assert set(tracker.getJobIdsForGroup(None)) == before


@pytest.mark.parametrize(
    ("sample", "kind"),
    [
        ("join-rocksdb-4.0", "parquet"),
        ("tws-rocksdb-4.2", "delta"),
    ],
)
def test_what_is_written_is_read_back_equal(sample: str, kind: str, spark: Any, ckpt: Ckpt, tmp_path: Path) -> None:
    if kind == "delta":
        pytest.importorskip("delta", reason="delta-spark is not installed")
    for unit in rows.units_of(SAMPLES / sample, 0):
        needs(spark, unit)
    source, target = f"sample_checkpoints/{sample}", tmp_path / "initial"
    words = ("--shape", "initial-state", "--format", kind)

    result = ckpt("export-state", "--engine", "spark", source, "--to", target, *words, "-o", "json")

    assert result.exit_code == 0, result.stderr
    (told,) = result.json()["exports"]
    manifest = json.loads((target / "_ckpt_export.json").read_text())
    back, frame = (
        spark.read.format(kind).load(str(target)),
        library().read_initial_state(str(SAMPLES / sample), session=spark),
    )
    assert bare(json.loads(back.schema.json())) == bare(json.loads(frame.schema.json())) == bare(manifest["schema"])
    assert rows.content(back) == rows.content(frame)
    assert back.count() == manifest["rows"] == told["rows"]
    keys = [column["name"] for column in manifest["columns"] if column["holds"] == "key"]
    assert back.groupBy(*keys).count().where("count > 1").count() == 0


def library() -> Any:
    return ckpt


def test_all_writes_a_folder_for_each_operator(ckpt: Ckpt, spark: Any, tmp_path: Path) -> None:
    source, words = "sample_checkpoints/dedup-aggregation-hdfs-4.2", ("--shape", "initial-state", "--all-units")
    result = ckpt("export-state", "--engine", "spark", source, "--to", tmp_path / "all", *words)
    assert result.exit_code == 0, result.stderr
    assert {path.name for path in (tmp_path / "all").iterdir() if path.is_dir()} == {"operator-0", "operator-1"}
    counts = [spark.read.parquet(str(tmp_path / "all" / f"operator-{operator}")).count() for operator in (0, 1)]
    assert counts == [4, 25]


def test_an_earlier_batch(ckpt: Ckpt, spark: Any, tmp_path: Path) -> None:
    words = ("sample_checkpoints/tws-changelog-4.0", "--shape", "initial-state", "--batch", "0")
    result = ckpt("export-state", "--engine", "spark", *words, "--to", tmp_path / "out", "-o", "json")
    (told,) = result.json()["exports"]
    assert (told["batch"], told["rows"]) == (0, 5)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert {row["key"]: len(row["timers"]) for row in rows} == dict.fromkeys(range(5), 1)


def test_damage_of_one_part_is_damage(spark: Any) -> None:
    """All state of a key, or none: a frame without a side of a join would pass for the whole."""
    with pytest.raises(CkptError, match=r"CKPT304 .*right side"):
        ckpt.read_initial_state(str(SAMPLES / "damaged-missing-join-store"), session=spark)


# Queries of this Spark.


@pytest.fixture(scope="module")
def made(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> difficult.Made:
    return difficult.Made(spark, tmp_path_factory.mktemp("difficult"))


def bare_rows(spark: Any, path: Path, **options: str) -> list[dict[str, Any]]:
    """What Spark's reader gives by itself, in its order."""
    assert not spark.streams.active  # 4.2.0 cannot read state before its streams were touched
    frame = spark.read.format("statestore").options(**options).load(str(path))
    found = frame.selectExpr("to_json(struct(*), map('ignoreNullFields', 'false'))").collect()
    return [json.loads(row[0]) for row in found]


def frame_rows(spark: Any, path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in rows.content(ckpt.read_initial_state(str(path), session=spark))]


def test_keys_that_have_only_some_of_the_state(made: difficult.Made, spark: Any) -> None:
    """A NULL key, keys with nothing but timers, a map or a list; lists in their order; values past their time."""
    path = made.transform_with_state()
    found = {row.pop("k"): row for row in frame_rows(spark, path)}

    assert set(found) == {None, "0", "1", "2", "3"}
    nothing: dict[str, Any] = {"list": [], "listTtl": [], "value": None, "map": [], "timers": []}
    nothing |= {"gone": None, "gone_expires_at_ms": None}
    assert all(found["0"].values())
    assert found["0"]["timers"] == [difficult.FAR, difficult.FAR + 1]
    assert [element["n"] for element in found["0"]["listTtl"]] == [3, 1, 2]
    assert found["1"] == nothing | {"timers": [difficult.FAR - 5, difficult.FAR, difficult.FAR + 7]}
    entries = [{"key": {"name": name}, "value": {"rows": rows}} for name, rows in ((None, 9), ("a", 2), ("b", 1))]
    assert found["2"] == nothing | {"map": entries}
    elements = [{"n": n, "s": s} for n, s in ((30, "x"), (10, None), (20, "x"), (7, "y"), (9, "y"))]
    assert found["3"] == nothing | {"list": elements}
    expired = found[None]["gone_expires_at_ms"]
    assert expired < time.time() * 1000
    assert found[None] == nothing | {"gone": {"n": None}, "gone_expires_at_ms": expired}

    def alone(unit: StateUnit) -> list[dict[str, Any]]:
        if unit.kind is UnitKind.TIMERS:
            return bare_rows(spark, path, readRegisteredTimers="true")
        return bare_rows(spark, path, stateVarName=str(unit.variable))

    again = grouped.by_key(rows.units_of(path, 0), alone)
    for row in again:
        row["map"].sort(key=lambda one: one["key"]["name"] or "")
    assert grouped.as_text(again) == grouped.as_text(frame_rows(spark, path))


@pytest.mark.parametrize("state_format", [2, 3, 4])
def test_rows_of_a_join_in_their_order(state_format: int, made: difficult.Made, spark: Any) -> None:
    """Several rows of a key, some at the same time; keys of one side only; rows that found no match."""
    if state_format > 2 and Spark(spark.version[:3]).rules.runs_join_format < state_format:
        pytest.skip(f"Spark {spark.version} has no such join")
    path = made.join(state_format)
    store = "keyWithTsToValues" if state_format == 4 else "keyWithIndexToValue"

    def in_order(unit: StateUnit) -> list[dict[str, Any]]:
        found = bare_rows(spark, path, storeName=f"{unit.side}-{store}")
        return found if state_format == 4 else sorted(found, key=lambda row: row["key"]["index"])

    found = frame_rows(spark, path)
    assert grouped.as_text(found) == grouped.as_text(grouped.by_key(rows.units_of(path, 0), in_order))
    by_key = {row["field0"]: row for row in found}
    assert set(by_key) == {0, 1, 2, 3}
    assert [row["lv"] for row in by_key[0]["left"]] == [0, 3, 6, 9, 12, 15, 18]
    assert (by_key[3]["left"], [row["matched"] for row in by_key[3]["right"]]) == ([], [False])


def test_sessions_whose_buffers_are_called_alike(made: difficult.Made, spark: Any) -> None:
    path = made.sessions()
    frame = ckpt.read_initial_state(str(path), session=spark)
    assert frame.columns == ["a", "b", "sessions"]
    assert frame.schema["sessions"].dataType.elementType.names == ["start", "end", "sum", "sum_2", "count"]
    found = {(row["a"], row["b"]): row["sessions"] for row in frame_rows(spark, path)}
    assert set(found) == {(value % 3, value % 2) for value in range(20)}
    for (a, b), sessions in found.items():
        assert [session["start"] for session in sessions] == sorted(session["start"] for session in sessions)
        mine = [value for value in range(20) if (value % 3, value % 2) == (a, b)]
        assert sum(session["sum"] for session in sessions) == sum(mine)
        assert sum(session["sum_2"] for session in sessions) == 100 * sum(mine)
        assert sum(session["count"] for session in sessions) == len(mine)
    assert max(map(len, found.values())) > 1


def test_an_aggregation_with_a_null_key_and_names_that_clash(made: difficult.Made, spark: Any) -> None:
    path = made.aggregation()
    frame = ckpt.read_initial_state(str(path), session=spark)
    assert frame.dtypes[:3] == [("count", "smallint"), ("st_p", "decimal(12,3)"), ("st_q", "string")]
    assert frame.columns[3:] == ["count_2", "max_value", "max_sum"]
    found = {row["count"]: row["count_2"] for row in frame_rows(spark, path)}
    assert found == {None: 5, 0: 2, 1: 2, 2: 1}


def test_an_aggregation_without_a_key(made: difficult.Made, spark: Any) -> None:
    assert frame_rows(spark, made.total()) == [{"count": 10, "sum": 45}]
