"""Every stateful sample through Spark: rows, counts, round trips; and nothing in any of them is touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ckpt
import ckpt as ckpt_library  # where a fixture has its name
from ckpt.errors import CkptError
from ckpt.state.reading.columns import BLURRED
from ckpt.state.reading.units import StateUnit
from ckpt.versions import Spark
from tests.conftest import Ckpt
from tests.state.export import rows
from tests.support.places import SAMPLES
from tests.support.spark.live import EVERY_CASE

pytestmark = pytest.mark.spark


def needs(spark: Any, unit: StateUnit) -> None:
    if unit.oldest_spark is not None and not Spark(spark.version[:3]).at_least(unit.oldest_spark):
        pytest.skip(f"Spark {spark.version} cannot read it; matrix.json has what later ones say")


@pytest.mark.parametrize(("sample", "unit"), rows.every_unit())
def test_rows_are_those_of_an_independent_reading(sample: str, unit: StateUnit, spark: Any) -> None:
    needs(spark, unit)
    path = str(SAMPLES / sample)
    answer = rows.answer(sample, unit)

    frame = ckpt.read_state(path, session=spark, **rows.choice(unit))

    columns = _columns(unit)
    assert [(field.name, _type(field.dataType.jsonValue())) for field in frame.schema] == [
        (column.name, _type(column.type)) for column in columns.kept
    ]
    assert rows.content(frame) == rows.flattened(answer, columns)
    told = {column.path for column in columns.kept} | {one.path for one in columns.dropped if one.why != BLURRED}
    assert told == {path for row in answer for path in rows.all_leaves(row)} - {("partition_id",)}


def _type(kind: Any) -> Any:
    """A type in Spark's JSON without what it says of nulls."""
    if isinstance(kind, dict):
        return {name: _type(inner) for name, inner in kind.items() if name not in ("nullable", "metadata")}
    return [_type(inner) for inner in kind] if isinstance(kind, list) else kind


def _columns(unit: StateUnit) -> Any:
    """The columns as the files alone promise them."""
    from ckpt.state.reading.columns import flat_columns

    assert unit.schema is not None
    return flat_columns(unit.schema)


def _of_other_columns() -> list[str]:
    """Samples that have a unit of columns that none before has: a table takes the same columns in the same way."""
    found, seen = [], set[str]()
    units = {sample: rows.units_of(SAMPLES / sample) for sample in rows.ANSWERS}
    for sample in sorted(units, key=lambda name: any(unit.oldest_spark for unit in units[name])):
        shown = map(_columns, units[sample])
        columns = {str([(column.name, column.type) for column in one.kept]) for one in shown}
        if not columns <= seen or EVERY_CASE:
            found.append(sample)
        seen |= columns
    return found


@pytest.mark.parametrize(
    ("sample", "kind"),
    [
        (sample, kind)
        for kind in ("parquet", "delta")
        for sample in _of_other_columns()
        if EVERY_CASE or kind == "parquet" or sample.startswith("tws-changelog")
    ],
)
def test_a_round_trip_of_everything_changes_nothing(
    sample: str, kind: str, spark: Any, ckpt: Ckpt, tmp_path: Path
) -> None:
    """Every unit: what is read back is the independent reading."""
    if kind == "delta":
        pytest.importorskip("delta", reason="delta-spark is not installed")
    units = rows.units_of(SAMPLES / sample)
    for unit in units:
        needs(spark, unit)
    words = ["--all-units", "--to", tmp_path / "all", "--format", kind, "-o", "json"]
    result = ckpt("export-state", "--engine", "spark", f"sample_checkpoints/{sample}", *words)
    assert result.exit_code == 0, result.stderr
    counts = {one["to"].rpartition("/")[2]: one["rows"] for one in result.json()["exports"]}
    assert counts.keys() == {unit.folder for unit in units}
    for unit in units:
        back = spark.read.format(kind).load(str(tmp_path / "all" / unit.folder))
        expected = rows.flattened(rows.answer(sample, unit), _columns(unit))
        assert rows.content(back) == expected
        assert counts[unit.folder] == len(expected)


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ("windowed-aggregation-hdfs-4.2", ()),
        ("session-window-changelog-4.2", ()),
        ("join-format2-4.3", ("--side", "left")),
        ("dedup-hdfs-4.0", ()),
        ("pandas-with-state-hdfs-3.5", ()),
        ("tws-avro-changelog-4.2", ("--timers",)),
    ],
)
@pytest.mark.parametrize("kind", ["json", "csv"])
def test_a_round_trip_as_text_changes_nothing(
    sample: str, words: tuple[str, ...], kind: str, spark: Any, ckpt: Ckpt, tmp_path: Path
) -> None:
    """The manifest has the schema that text lacks."""
    from pyspark.sql.types import StructType

    target = tmp_path / "out"
    source = f"sample_checkpoints/{sample}"

    result = ckpt("export-state", "--engine", "spark", source, "--to", target, "--format", kind, *words, "-o", "json")

    assert result.exit_code == 0, result.stderr
    (told,) = result.json()["exports"]
    manifest = json.loads((target / "_ckpt_export.json").read_text())
    back = (
        spark.read.format(kind).option("header", True).schema(StructType.fromJson(manifest["schema"])).load(str(target))
    )
    assert ckpt("export-state", "--engine", "spark", source, "--to", tmp_path / "parquet", *words).exit_code == 0
    content = rows.content(spark.read.parquet(str(tmp_path / "parquet")))
    assert content == rows.content(back)
    assert back.count() == manifest["rows"] == told["rows"] == len(content)


def test_the_session_of_the_caller_is_as_it_was(spark: Any) -> None:
    before = dict(spark.conf.getAll)
    ckpt.read_state(str(SAMPLES / "aggregation-format2-4.2"), session=spark).count()
    ckpt.read_state(str(SAMPLES / "tws-rocksdb-4.2"), session=spark, variable="rows").count()
    assert dict(spark.conf.getAll) == before


def test_a_session_that_is_active_elsewhere_is_used_and_not_stopped(spark: Any, ckpt: Ckpt, tmp_path: Path) -> None:
    """Which session is active is a matter of threads; the one that there is belongs to somebody."""
    spark._jvm.org.apache.spark.sql.classic.SparkSession.clearActiveSession()
    sample = "sample_checkpoints/aggregation-hdfs-4.2"
    assert ckpt("export-state", "--engine", "spark", sample, "--to", tmp_path / "out").exit_code == 0
    assert spark.range(3).count() == 3


def test_frames_stay_lazy_and_live_side_by_side(spark: Any) -> None:
    """Of checkpoints that need contrary settings; views belong to the session of the caller."""
    two = ckpt.read_state(str(SAMPLES / "aggregation-format2-4.2"), session=spark)
    one = ckpt.read_state(str(SAMPLES / "aggregation-hdfs-4.2"), session=spark)
    moved = ckpt.read_state(str(SAMPLES / "tws-rocksdb-4.2"), session=spark, variable="rows")
    one.createOrReplaceTempView("one")
    assert [frame.count() for frame in (two, one, moved)] == [7, 7, 5]
    assert spark.sql("SELECT count(*) FROM one").head()[0] == 7
    both = two.join(one.withColumnsRenamed({name: f"one_{name}" for name in one.columns}), two.key_key == one_key())
    assert both.count() == 7


def one_key() -> Any:
    from pyspark.sql.functions import col

    return col("one_key_key")


def test_the_partition_is_kept_on_request(spark: Any) -> None:
    frame = ckpt.read_state(str(SAMPLES / "aggregation-hdfs-4.2"), session=spark, partition_id=True)
    assert frame.columns == ["key_key", "value_count", "value_sum", "partition_id"]
    kept = {(row.key_key, row.partition_id) for row in frame.collect()}
    answer = rows.ANSWERS["aggregation-hdfs-4.2"]["operators"]["0"]["views"][0]["rows"]
    assert kept == {(row["key"]["key"], row["partition_id"]) for row in answer}


@pytest.mark.parametrize("sample", ["aggregation-hdfs-4.2", "join-rocksdb-4.0", "join-hdfs-3.5", "tws-rocksdb-4.2"])
def test_raw_is_what_spark_gives(sample: str, spark: Any) -> None:
    for unit in rows.units_of(SAMPLES / sample):
        frame = ckpt.read_state(str(SAMPLES / sample), session=spark, shape="raw", **rows.choice(unit))
        answer = sorted(json.dumps(row, sort_keys=True) for row in rows.answer(sample, unit))
        assert rows.content(frame) == answer


def test_every_committed_batch_can_be_read(spark: Any) -> None:
    """The state after batch B holds the rows of batches 0 to B: ten each."""
    for sample in ("aggregation-hdfs-4.2", "aggregation-changelog-4.2", "aggregation-format2-4.2"):
        for batch in range(8) if EVERY_CASE else (0, 3, 7):
            frame = ckpt.read_state(str(SAMPLES / sample), session=spark, batch=batch)
            assert frame.selectExpr("sum(value_count)", "sum(value_sum)").head() == (
                10 * (batch + 1),
                sum(range(10 * (batch + 1))),
            )


@pytest.mark.parametrize(
    "sample", ["aggregation-hdfs-4.2", "aggregation-changelog-4.2", "aggregation-hdfs-3.5", "aggregation-format2-4.2"]
)
def test_changes_add_up_to_the_state(sample: str, spark: Any) -> None:
    """The last change of each key up to a batch is its state after that batch."""
    from pyspark.sql import Window
    from pyspark.sql.functions import col, row_number

    path = str(SAMPLES / sample)
    changes = ckpt.read_changes(path, session=spark, first=0, last=4)
    assert changes.columns[:2] == ["batch_id", "change_type"]
    assert {row[0] for row in changes.select("batch_id").distinct().collect()} == {0, 1, 2, 3, 4}
    newest = row_number().over(Window.partitionBy("key_key").orderBy(col("batch_id").desc()))
    last = changes.withColumn("newest", newest).where("newest = 1")
    state = ckpt.read_state(path, session=spark, batch=4)
    assert rows.content(last.select(*state.columns)) == rows.content(state)


def test_changes_of_a_variable_and_of_a_store(spark: Any) -> None:
    assert ckpt.read_changes(str(SAMPLES / "tws-changelog-4.0"), session=spark, first=1, variable="rows").count() == 10
    store = ckpt.read_changes(
        str(SAMPLES / "join-changelog-4.2"), session=spark, first=0, last=0, store="left-keyWithIndexToValue"
    )
    assert store.select("key_field0").distinct().count() == 10
    assert store.count() == 15  # five rows are written again when they have found their match


@pytest.mark.parametrize(
    ("sample", "words", "says"),
    [
        ("aggregation-rocksdb-4.2", {}, "without changelog checkpointing"),
        ("join-changelog-4.2", {"store": None}, "choose one"),
        ("aggregation-hdfs-4.2", {"first": 10}, "`changes_from=10`: the changes end at batch 9"),
    ],
)
def test_changes_that_are_not_there(sample: str, words: dict[str, Any], says: str, spark: Any) -> None:
    with pytest.raises(CkptError, match=says):
        ckpt.read_changes(str(SAMPLES / sample), session=spark, **{"first": 0} | words)


def test_nothing_is_collected_before_it_is_asked_for(spark: Any) -> None:
    """Making a frame runs no job of its own."""
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    ckpt.read_state(str(SAMPLES / "tws-rocksdb-4.2"), session=spark, variable="rows")
    assert set(tracker.getJobIdsForGroup(None)) == before


def test_all_writes_a_folder_for_each_unit(ckpt: Ckpt, spark: Any, tmp_path: Path) -> None:
    result = ckpt(
        "export-state",
        "--engine",
        "spark",
        "sample_checkpoints/tws-rocksdb-4.2",
        "--all-units",
        "--to",
        tmp_path / "all",
        "-o",
        "json",
    )
    assert result.exit_code == 0, result.stderr
    names = {path.name for path in (tmp_path / "all").iterdir() if path.is_dir()}
    variables = {"recent", "last", "recentTtl", "parity", "parityTtl", "rows"}
    assert names == {f"operator-0-variable-{name}" for name in variables} | {"operator-0-timers"}
    counts = {one["to"].rpartition("/")[2]: one["rows"] for one in result.json()["exports"]}
    for name in names:
        assert spark.read.parquet(str(tmp_path / "all" / name)).count() == counts[name]
    manifest = json.loads((tmp_path / "all" / "_ckpt_export.json").read_text())
    assert {one["folder"]: one["rows"] for one in manifest["folders"]} == counts
    assert manifest["batch"] == 2

    words = ["--all-units", "--batch", "1", "--to", tmp_path / "all", "--mode", "overwrite"]
    over = ckpt("export-state", "--engine", "spark", "sample_checkpoints/tws-rocksdb-4.2", *words)
    assert over.exit_code == 0, over.stderr
    assert json.loads((tmp_path / "all" / "_ckpt_export.json").read_text())["batch"] == 1


def test_a_change_feed_is_exported(ckpt: Ckpt, spark: Any, tmp_path: Path) -> None:
    """By the command: the rows of ``read_changes``, and a manifest that says of which batches."""
    words = ["--changes-from", "3", "--batch", "5", "--to", tmp_path / "changes"]
    result = ckpt("export-state", "--engine", "spark", "sample_checkpoints/aggregation-hdfs-4.2", *words)
    assert result.exit_code == 0, result.stderr
    manifest = json.loads((tmp_path / "changes" / "_ckpt_export.json").read_text())
    assert (manifest["changes_from"], manifest["batch"], manifest["rows"]) == (3, 5, 21)
    frame = ckpt_library.read_changes(str(SAMPLES / "aggregation-hdfs-4.2"), session=spark, first=3, last=5)
    assert rows.content(spark.read.parquet(str(tmp_path / "changes"))) == rows.content(frame)
