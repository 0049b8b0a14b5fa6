"""A few of the changes of ``changes.py``, tried with the Spark of the test run; `record.py` has tried all of them."""

from pathlib import Path
from tempfile import gettempdir
from types import SimpleNamespace
from typing import Any

import pytest

import ckpt as library
from ckpt.errors import SourceError, UsageError
from tests.conftest import Ckpt
from tests.inspection.preflight import changes, starts
from tests.support.places import SAMPLES
from tests.support.spark.live import trace
from tests.support.spark.plans import keyed

pytestmark = pytest.mark.spark
TRIED = ("aggregation: nothing", "aggregation: key type", "aggregation: max for sum")


def left_behind() -> set[str]:
    return {one.name for one in Path(gettempdir()).glob("ckpt-preflight-*")}


@pytest.fixture(scope="module")
def made(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return starts.make(spark, changes.BY_NAME["aggregation"], tmp_path_factory.mktemp("made"))


@pytest.mark.parametrize("name", TRIED)
def test_preflight_says_what_the_start_does(
    name: str, spark: Any, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ckpt.inspection.preflight._RECENT_S", 0.0)
    before = left_behind()
    change = next(one for one in changes.CHANGES if one.id == name)
    told = starts.try_change(spark, change, made, tmp_path)

    assert told["python"]["go"] == (told["spark"]["error"] is None) == (name != "aggregation: key type")
    assert not told["python"]["touched"]
    assert left_behind() <= before


def test_a_description_is_compared_without_spark(
    spark: Any, made: Path, tmp_path: Path, ckpt: Ckpt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ckpt.inspection.preflight._RECENT_S", 0.0)
    base = changes.BY_NAME["aggregation"]
    before = trace(made)
    for build, code in ((base.build, 0), (changes.aggregated("count(*) AS n", keys=("key",)), 1)):
        query = library.describe_query(build(spark, tmp_path), output_mode="update", checkpoint=str(made))
        query.write(str(tmp_path / "query.json"))
        run = ckpt("preflight", made, "--expect", tmp_path / "query.json", "-o", "json")
        assert run.exit_code == code, run.stdout
        assert run.json()["query"]["operators"] == ["stateStoreSave"]
    assert trace(made) == before


def test_a_query_is_described_with_what_it_computes(spark: Any, made: Path, tmp_path: Path) -> None:
    """The same query has the same text on each run; a sum of another column is held with the old description."""
    base = changes.BY_NAME["aggregation"]
    texts = [
        library.describe_query(base.build(spark, tmp_path), output_mode="update", checkpoint=str(made))
        for _ in range(2)
    ]
    assert texts[0].to_json() == texts[1].to_json()
    other = changes.aggregated("count(*) AS n", "sum(value * 2) AS total")(spark, tmp_path)
    for old, code in ((None, []), (texts[0], ["CKPT448"])):
        readiness = library.preflight(str(made), query=other, output_mode="update", from_query=old)
        assert [rated.finding.diagnosis.code for rated in readiness.holds] == code, readiness.verdict


def test_what_makes_the_rows_of_a_table_shows(spark: Any, tmp_path: Path) -> None:
    """Which rows of a joined table there are: limits, groups, samples and ranks, with their orders."""
    from pyspark.sql import Window
    from pyspark.sql.functions import expr, row_number

    prices = spark.read.schema("value BIGINT, price INT").json(str(tmp_path))
    ranked = [Window.partitionBy("value").orderBy(expr("price")), Window.partitionBy("value").orderBy(expr("-price"))]
    ordered = [prices.orderBy(expr("price").asc()), prices.orderBy(expr("price").desc())]
    tables = [
        prices,
        prices.limit(2),
        prices.limit(3),
        *(rows.limit(2) for rows in ordered),
        prices.distinct(),
        prices.sample(0.5, seed=1),
        prices.groupBy("value").agg(expr("max(price) AS price")),
        prices.groupBy("value", expr("price % 2")).agg(expr("max(price) AS price")),
        *(prices.withColumn("rank", row_number().over(rank)).where("rank = 1").drop("rank") for rank in ranked),
    ]

    def describe(table: Any) -> str:
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
        query = rows.join(table, "value").groupBy("value").agg(expr("sum(price) AS total"))
        return str(library.describe_query(query, output_mode="update").to_json())

    texts = [describe(table) for table in tables]
    assert len(set(texts)) == len(tables)
    assert describe(prices.limit(2)) == texts[1]
    assert describe(prices.hint("broadcast").alias("p")) == texts[0]


def test_rows_that_a_plan_has_are_told_apart(spark: Any) -> None:
    """``VALUES``, and no data frame that Python made: its rows are in no plan."""
    from pyspark.sql.functions import expr

    def describe(values: str) -> str:
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
        table = spark.sql(f"SELECT * FROM VALUES {values} AS t(value, price)")
        query = rows.join(table, "value").groupBy("value").agg(expr("sum(price) AS total"))
        return str(library.describe_query(query, output_mode="update").to_json())

    before = describe("(1L, 'a'), (2L, NULL)")
    assert describe("(1L, 'a'), (2L, NULL)") == before
    assert describe("(1L, 'b'), (2L, NULL)") != before
    assert describe("(1L, 'a'), (2L, '')") != before


def test_months_that_are_added_depend_on_the_time_zone(spark: Any) -> None:
    from pyspark.sql.functions import expr

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    counts = rows.groupBy(expr("timestamp + INTERVAL 1 MONTH AS due"), expr("timestamp + INTERVAL 1 HOUR AS soon"))
    (operator,) = library.describe_query(counts.count(), output_mode="update").operators or ()
    assert ["[timezone=" in key.sql for key in operator.keys or ()] == [True, False]


@pytest.mark.parametrize("ansi", ["false", "true"])
def test_what_gives_null_for_an_overflow_shows_where_others_wrap_around(ansi: str, spark: Any) -> None:
    """In ANSI mode no row was counted that overflowed, and such a change is how a query is mended that fails."""
    from pyspark.sql.functions import expr

    def describe(function: str, key: str = "value % 2 AS key") -> str:
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
        frame = rows.groupBy(expr(key)).agg(expr(f"{function} AS total"))
        return str(library.describe_query(frame, output_mode="update").to_json())

    pairs = [("sum(value + 1)", "sum(try_add(value, 1))"), ("max(int(value))", "max(try_cast(value AS INT))")]
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        assert '"window": null' not in describe(
            "sum(CASE WHEN value > 1 THEN value + 1 END)", "window(timestamp, '1 hour')"
        )
        assert [describe(plain) != describe(trying) for plain, trying in pairs] == [ansi == "false"] * 2
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def test_empty_buffers_are_those_of_spark(spark: Any) -> None:
    """Of functions of every kind: by expressions, by serialized objects, and by registers."""
    from pyspark.sql.functions import expr

    functions = (
        "sum(value)",
        "avg(value)",
        "collect_list(value)",
        "approx_count_distinct(value)",
        "regr_slope(value, key)",
    )
    frame = keyed(spark).groupBy("key").agg(*map(expr, functions))
    (operator,) = library.describe_query(frame, output_mode="update").operators or ()
    empty = [[buffer.empty for buffer in aggregate.buffers] for aggregate in operator.aggregates or ()]
    assert all(buffer.empty_known for aggregate in operator.aggregates or () for buffer in aggregate.buffers)
    assert empty[0] == [None]
    assert empty[1] == [0.0, 0]
    assert empty[2] == ["000000000000000008000000100000000000000000000000"]
    assert empty[3] == [0] * 52
    assert empty[4] == [0.0] * 7


def test_a_reader_of_kafka(spark: Any, kafka_jars: str) -> None:
    """Its options say what it reads, are those with which Kafka is asked, and are kept nowhere."""
    assert "kafka" in kafka_jars
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "127.0.0.1:1")
    reader = reader.option("kafka.ssl.key.password", "HUSHHUSH").option("subscribe", "refunds")
    frame = reader.load().select("key", "value")
    sample = str(SAMPLES / "kafka-4.2")
    found = library.preflight(sample, query=frame)

    assert [one.finding.diagnosis.code for one in found.holds] == ["CKPT444"]
    assert found.query is not None
    assert "HUSH" not in found.query.to_json() + repr(found)
    with pytest.raises(SourceError, match=r"127\.0\.0\.1:1"):
        library.preflight(sample, query=frame, sources=True)


def test_what_is_no_unstarted_query(spark: Any, made: Path) -> None:
    rows = spark.range(3)
    with pytest.raises(UsageError, match="is not streaming"):
        library.preflight(str(made), query=rows)
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    with pytest.raises(UsageError, match="`output_mode`"):
        library.describe_query(stream, output_mode="overwrite")


def test_where_no_folder_is_yet_spark_starts_at_batch_0(spark: Any, tmp_path: Path) -> None:
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()
    checkpoint = tmp_path / "cp" / "team" / "orders"
    readiness = library.preflight(checkpoint, query=rows, sources=True)

    assert readiness.go
    assert {(one.outcome, one.batch_id) for one in readiness.inspection.counted} == {("starts-fresh", 0)}
    query = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = query.trigger(availableNow=True).start()
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    assert (checkpoint / "commits" / "0").is_file()


def test_a_table_is_described_by_its_format_and_not_by_its_name(spark: Any, tmp_path: Path) -> None:
    """Read by its name or by its folder; one of a file format is read as files."""
    spark.range(3).write.format("delta").save(str(tmp_path / "table"))
    spark.sql(f"CREATE TABLE preflight_delta USING delta LOCATION '{tmp_path / 'table'}'")
    spark.range(3).write.saveAsTable("preflight_files", path=str(tmp_path / "files"))
    readers = {
        "delta": (
            spark.readStream.table("preflight_delta"),
            spark.readStream.format("delta").load(f"{tmp_path}/table"),
        ),
        "file": (spark.readStream.table("preflight_files"),),
    }
    for kind, frames in readers.items():
        assert {library.describe_query(frame).sources[0].kind for frame in frames} == {kind}
    for name in ("preflight_delta", "preflight_files"):
        spark.sql(f"DROP TABLE {name}")


class _Leaf:
    """The `StreamingRelationV2` of a table in a catalog, with the answers of Iceberg 1.11.0 on Spark 4.1.4."""

    def __init__(self, provider: str | None) -> None:
        self._properties = {} if provider is None else {"provider": provider, "format": "iceberg/parquet"}

    def getClass(self) -> Any:
        return SimpleNamespace(getSimpleName=lambda: "StreamingRelationV2")

    def catalog(self) -> Any:
        return SimpleNamespace(isEmpty=lambda: False)

    def table(self) -> Any:
        return SimpleNamespace(properties=lambda: self._properties)

    def sourceName(self) -> str:
        return "orders"


def test_a_table_of_a_catalog_is_of_its_provider() -> None:
    from ckpt.spark.preflight import _kind

    assert [_kind(_Leaf(provider)) for provider in ("iceberg", None)] == ["iceberg", "orders"]
