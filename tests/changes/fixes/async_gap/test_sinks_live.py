"""Sinks after a repair-async: Spark allows asynchronous tracking for these only, and a file sink drops these rows."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException

from tests.conftest import Ckpt

pytestmark = pytest.mark.spark


def rows(spark: Any, count: int) -> Any:
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", count).load()


def run(writer: Any, checkpoint: Path, batches: int) -> None:
    """Run a query until it has committed so many batches."""
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime="0 seconds").start()
    while not (checkpoint / "commits" / str(batches - 1)).exists():
        assert query.exception() is None
        query.awaitTermination(0.02)
    query.stop()


@pytest.mark.parametrize("sink", ["noop", "console", "memory"])
def test_sinks_that_remember_no_batch_ids_may_take_asynchronous_tracking(sink: str, spark: Any, tmp_path: Path) -> None:
    writer = rows(spark, 1).writeStream.queryName(f"async_{sink}").option("asyncProgressTrackingEnabled", "true")
    query = writer.format(sink).option("checkpointLocation", str(tmp_path)).start()
    query.stop()
    assert query.exception() is None


@pytest.mark.parametrize("sink", ["parquet", "delta", "foreachBatch", "foreach"])
def test_sinks_that_may_remember_batch_ids_may_not(sink: str, spark: Any, tmp_path: Path) -> None:
    writer = rows(spark, 1).writeStream.option("asyncProgressTrackingEnabled", "true")
    code = {"foreachBatch": lambda w: w.foreachBatch(lambda *_: None), "foreach": lambda w: w.foreach(lambda _: None)}
    writer = code[sink](writer) if sink in code else writer.format(sink)
    with pytest.raises(IllegalArgumentException, match="does not support async progress tracking"):
        writer.option("checkpointLocation", str(tmp_path / "cp")).option("path", str(tmp_path / "out")).start()


def test_a_rewind_of_another_gap_announces_the_rows_that_a_file_sink_drops(
    spark: Any, tmp_path: Path, ckpt: Ckpt
) -> None:
    """Batches 4 and on have ids that the sink knows, and other rows than before: with 15 a batch instead of 10."""
    checkpoint, out = tmp_path / "cp", tmp_path / "out"

    def start(count: int, batches: int) -> None:
        run(rows(spark, count).writeStream.format("parquet").option("path", str(out)), checkpoint, batches)

    start(10, 6)
    last = max(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdecimal())
    written = spark.read.parquet(str(out)).count()
    for batch in (last - 1, last + 1):  # the query may have planned one more before it was stopped
        (checkpoint / "offsets" / f"{batch}").unlink(missing_ok=batch > last)
        (checkpoint / "offsets" / f".{batch}.crc").unlink(missing_ok=batch > last)
    words = ("repair-async", checkpoint, "--strategy", "rewind")
    plan = ckpt(*words, "-o", "json").json()

    assert [step["rows"] for step in plan["next"]] == ["left-out"]
    assert "--accept-skip" in plan["next"][0]["command"]
    (file,) = [each for each in plan["in_sinks"] if each["kind"] == "file"]
    assert (file["rows"], "To lose none: " in file["says"]) == ("left-out", True)
    refused = ckpt(*words, "--accept-replay", "--apply", "--grace", 0, "-o", "json")
    assert refused.exit_code == 3
    assert "--accept-skip" in refused.json()["refused"]
    named = ckpt(*words, "--sink", out, "-o", "json")
    assert named.exit_code == 3
    assert "the sink would drop new rows" in named.json()["refused"]

    assert ckpt(*words, "--accept-replay", "--accept-skip", "--apply", "--grace", 0).exit_code == 0
    kept = last - 2
    start(15, last + 2)
    values = {row.value for row in spark.read.parquet(str(out)).select("value").collect()}
    first_new = 10 * (kept + 1) + 15 * (last - kept)  # the first row of the first batch that the sink does not know
    assert {value for value in range(first_new) if value not in values} == set(range(written, first_new)) != set()
