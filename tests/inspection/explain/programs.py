"""Driver logs of programs whose own code, settings or sink fail: the suite `failed-programs` of `tests.record`.

Each is the whole log of one program, as those of `drivers.py` are, and stands beside them.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.inspection.explain.drivers import LOGS, WAIT_S, logged, record_log
from tests.record.suite import Whole
from tests.record.worker import Installed, Worker
from tests.support.services.kafka import connector_jars, kafka_broker
from tests.support.spark import topics

_STATE = "spark.sql.streaming.stateStore."
_ROWS = 20  # each batch reads as many, numbered from 0


def _rows(spark: Any) -> Any:
    """A stream of numbers; the row 7 is in its first batch."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", _ROWS).option("numPartitions", 1)
    return source.load()


def _counts(spark: Any) -> Any:
    return _rows(spark).selectExpr("value % 5 AS key").groupBy("key").count()


def _write(frame: Any, folder: Path) -> Any:
    """A writer without a sink that fails."""
    return frame.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(folder / "ck"))


def _run(writer: Any) -> None:
    handle = writer.start()
    try:
        handle.awaitTermination(WAIT_S)
    finally:
        handle.stop()


def _stop_after(writer: Any, batches: int) -> None:
    """Let a query run some batches, and stop it."""
    handle = writer.start()
    while (handle.lastProgress or {"batchId": -1})["batchId"] < batches and handle.isActive:
        time.sleep(0.1)
    handle.stop()


def foreach_batch_raises(spark: Any, folder: Path) -> None:
    """A function of foreachBatch that refuses a row."""

    def load(frame: Any, batch: int) -> None:
        if frame.where("value = 7").count():
            raise ValueError(f"batch {batch} holds the poison row 7")

    _run(_write(_rows(spark), folder).foreachBatch(load))


def foreach_batch_merge(spark: Any, folder: Path) -> None:
    """A function of foreachBatch that names a table which is not there."""
    _run(_write(_rows(spark), folder).foreachBatch(lambda frame, _: frame.sparkSession.table("shop.prices").count()))


def foreach_raises(spark: Any, folder: Path) -> None:
    """A function of foreach that refuses a row."""

    def send(row: Any) -> None:
        if row.value == 7:
            raise ConnectionError("the shop answered 503")

    _run(_write(_rows(spark), folder).foreach(send))


def udf_raises(spark: Any, folder: Path) -> None:
    """A Python function of a row that divides by zero."""
    from pyspark.sql.functions import udf

    share = udf(lambda value: 100 // (value - 7), "long")
    _run(_write(_rows(spark).select(share("value")), folder))


def udf_out_of_memory(spark: Any, folder: Path) -> None:
    """A Python function of a row that asks for more memory than there is."""
    from pyspark.sql.functions import udf

    _run(_write(_rows(spark).select(udf(lambda value: len(bytearray(1 << 62)) + value, "long")("value")), folder))


def assertion_in_sql(spark: Any, folder: Path) -> None:
    """`assert_true` for a row of which it is false."""
    _run(_write(_rows(spark).selectExpr("assert_true(value <> 7, 'the row 7 is not allowed')"), folder))


def division_by_zero(spark: Any, folder: Path) -> None:
    """SQL that divides by zero."""
    spark.conf.set("spark.sql.ansi.enabled", "true")
    _run(_write(_rows(spark).selectExpr("100 / (value - 7)"), folder))


def driver_out_of_memory(spark: Any, folder: Path) -> None:
    """A function of foreachBatch that fills the memory of the driver."""
    _run(_write(_rows(spark), folder).foreachBatch(lambda _, batch: spark._jvm.java.util.ArrayList(2_147_483_647)))


def state_of_a_class_that_is_missing(spark: Any, folder: Path) -> None:
    """The class of a state store provider whose jar was forgotten."""
    spark.conf.set(_STATE + "providerClass", "com.example.state.FastStateStoreProvider")
    _run(_write(_counts(spark), folder))


def state_of_no_provider(spark: Any, folder: Path) -> None:
    """The class of a state store provider that is none."""
    spark.conf.set(_STATE + "providerClass", "java.lang.String")
    _run(_write(_counts(spark), folder))


def file_manager_is_missing(spark: Any, folder: Path) -> None:
    """The class of a checkpoint file manager whose jar was forgotten."""
    spark.conf.set("spark.sql.streaming.checkpointFileManagerClass", "com.example.AtomicFileManager")
    _run(_write(_rows(spark), folder))


def source_is_missing(spark: Any, folder: Path) -> None:
    """A source whose jar was forgotten."""
    _run(_write(spark.readStream.format("kafkaesque").load(), folder))


def no_watermark(spark: Any, folder: Path) -> None:
    """An aggregation that cannot be written row by row."""
    _run(_write(_counts(spark), folder).outputMode("append"))


def sink_log_with_a_hole(spark: Any, folder: Path) -> None:
    """A file sink whose log lost an entry that is compacted."""
    writer = _rows(spark).writeStream.format("json").option("checkpointLocation", str(folder / "ck"))
    writer = writer.option("path", str(folder / "out"))
    _stop_after(writer, 4)
    for name in ("2", ".2.crc"):
        (folder / "out" / "_spark_metadata" / name).unlink()
    _run(writer)


def sink_that_knows_the_batches(spark: Any, folder: Path) -> None:
    """A new checkpoint on the output of an older one: the sink drops the batches; nothing fails."""
    writer = _rows(spark).writeStream.format("json").option("path", str(folder / "out"))
    _stop_after(writer.option("checkpointLocation", str(folder / "old")), 3)
    _stop_after(writer.option("checkpointLocation", str(folder / "ck")), 2)


def output_is_a_file(spark: Any, folder: Path) -> None:
    """The checkpoint is where a file is."""
    folder.mkdir(exist_ok=True)
    (folder / "ck").write_text("not a folder")
    _run(_write(_rows(spark), folder))


def names_for_the_sources_of_an_old_checkpoint(spark: Any, folder: Path) -> None:
    """Sources are given names, after the checkpoint was written without."""
    (folder / "in").mkdir(parents=True)
    source = spark.readStream.schema("value long")
    for number in range(3):
        (folder / "in" / f"{number}.json").write_text(f'{{"value": {number}}}\n')
        _stop_after(_write(source.json(str(folder / "in")), folder), number)
    spark.conf.set("spark.sql.streaming.queryEvolution.enableSourceEvolution", "true")
    _run(_write(source.name("orders").json(str(folder / "in")), folder))


def delta_sink_of_other_columns(spark: Any, folder: Path) -> None:
    """Rows with a column that the Delta table does not have."""
    path = str(folder / "table")
    spark.range(3).write.format("delta").save(path)
    frame = _rows(spark).selectExpr("value AS id", "'x' AS city").writeStream.format("delta")
    _run(frame.option("checkpointLocation", str(folder / "ck")).option("path", path))


def delta_column_added(spark: Any, folder: Path) -> None:
    """A column is added to a Delta table while a query reads it."""
    path = str(folder / "table")
    spark.range(3).write.format("delta").save(path)
    handle = _write(spark.readStream.format("delta").load(path), folder).start()
    handle.processAllAvailable()
    spark.range(3, 6).selectExpr("id", "'x' AS city").write.format("delta").mode("append").option(
        "mergeSchema", "true"
    ).save(path)
    try:
        handle.awaitTermination(WAIT_S)
    finally:
        handle.stop()


def delta_rows_deleted(spark: Any, folder: Path) -> None:
    """Rows are deleted from a Delta table that a query reads."""
    path = str(folder / "table")
    spark.range(30).repartition(1).write.format("delta").save(path)
    _stop_after(_write(spark.readStream.format("delta").load(path), folder), 0)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")
    _run(_write(spark.readStream.format("delta").load(path), folder))


def processor_raises(spark: Any, folder: Path) -> None:
    """A Python function of a group with state that refuses a row."""
    from pyspark.sql.streaming.state import GroupStateTimeout

    def count(key: Any, frames: Any, state: Any) -> Any:
        for frame in frames:
            raise KeyError(f"no price for {key[0]} among {len(frame)} rows")
        yield from ()

    grouped = _rows(spark).selectExpr("value % 5 AS key", "value").groupBy("key")
    frame = grouped.applyInPandasWithState(count, "key long", "n long", "update", GroupStateTimeout.NoTimeout)
    _run(_write(frame, folder))


def _topic(rows: int) -> tuple[Any, str]:
    """The broker, with a new topic of two partitions of so many rows each."""
    from tests.live.kafka.cases import Broker

    broker, topic = Broker(topics.options()["kafka.bootstrap.servers"]), f"orders-{os.urandom(3).hex()}"
    broker.create(topic)
    broker.fill(topic, rows)
    return broker, topic


def _read_topic(spark: Any, topic: str, folder: Path, **options: str) -> Any:
    """A writer of a query that reads what a topic has, and ends."""
    source = spark.readStream.format("kafka").options(**topics.options()).option("startingOffsets", "earliest")
    return _write(source.option("subscribe", topic).options(**options).load(), folder).trigger(availableNow=True)


def kafka_topic_created_again(spark: Any, folder: Path) -> None:
    """A topic was deleted and created again while the query was stopped."""
    broker, topic = _topic(20)
    _run(_read_topic(spark, topic, folder))
    broker.delete(topic)
    broker.create(topic)
    broker.fill(topic, 5)
    _run(_read_topic(spark, topic, folder))


def kafka_topic_deleted(spark: Any, folder: Path) -> None:
    """A topic was deleted while the query was stopped."""
    broker, topic = _topic(20)
    _run(_read_topic(spark, topic, folder))
    broker.delete(topic)
    _run(_read_topic(spark, topic, folder))


def kafka_rows_expired(spark: Any, folder: Path) -> None:
    """The rows that come next expired while the query was stopped."""
    broker, topic = _topic(20)
    _run(_read_topic(spark, topic, folder))
    broker.fill(topic, 20)
    broker.expire(topic, 30)
    _run(_read_topic(spark, topic, folder))


def kafka_does_not_answer(spark: Any, folder: Path) -> None:
    """No broker listens at the address."""
    options = {"kafka.bootstrap.servers": "127.0.0.1:1"}
    options |= {"kafka.default.api.timeout.ms": "4000", "kafka.request.timeout.ms": "3000"}
    _run(_read_topic(spark, "orders", folder, **options))


def kafka_row_without_topic(spark: Any, folder: Path) -> None:
    """A row that is written to Kafka names no topic."""
    _, topic = _topic(1)
    frame = _rows(spark).selectExpr(f"IF(value = 7, NULL, '{topic}') AS topic", "CAST(value AS STRING) AS value")
    writer = frame.writeStream.format("kafka").options(**topics.options())
    _run(writer.option("checkpointLocation", str(folder / "ck")))


Program = Callable[[Any, Path], None]
_EVERYWHERE: dict[Program, str] = {
    foreach_batch_raises: "user-function",
    foreach_batch_merge: "user-function",
    foreach_raises: "user-code",
    udf_raises: "user-code",
    assertion_in_sql: "user-code",
    state_of_a_class_that_is_missing: "class-not-found",
    no_watermark: "query-not-supported",
    sink_log_with_a_hole: "file-sink-log-hole",
    sink_that_knows_the_batches: "sink-skips-batch",
}
_NEWEST: dict[Program, str] = {
    udf_out_of_memory: "user-code",
    division_by_zero: "task-failed",
    driver_out_of_memory: "array-too-large",
    state_of_no_provider: "class-not-found",
    file_manager_is_missing: "checkpoint-file-manager",
    source_is_missing: "source-not-installed",
    output_is_a_file: "storage-refused",
    names_for_the_sources_of_an_old_checkpoint: "batch-does-not-exist",
    processor_raises: "user-code",
    delta_sink_of_other_columns: "delta-sink-schema",
    delta_column_added: "delta-schema-changed",
    delta_rows_deleted: "delta-deletes",
    kafka_topic_created_again: "kafka-offset-changed",
    kafka_topic_deleted: "kafka-topic-missing",
    kafka_rows_expired: "kafka-rows-expired",
    kafka_does_not_answer: "kafka-no-answer",
    kafka_row_without_topic: "kafka-row-refused",
}
_BY_VERSION: dict[str, dict[Program, str]] = {
    "3.5": _EVERYWHERE | {assertion_in_sql: "task-failed"},  # which has no error class for it
    "4.2": _EVERYWHERE | _NEWEST,
    "4.3": {program: _EVERYWHERE[program] for program in (foreach_batch_raises, udf_raises)},
}
CAUSES = {minor: {p.__name__: cause for p, cause in programs.items()} for minor, programs in _BY_VERSION.items()}
"""Version -> program -> the entry that comes first in its log."""


def answer(spark: Any, job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run a program in a session of its own; the log, and the traceback, go to standard error."""
    folder.mkdir(parents=True)
    program: Program = globals()[job["program"]]
    with logged(spark):
        program(spark.newSession(), folder)
    shutil.rmtree(folder, ignore_errors=True)
    return {"folder": str(folder)}


def session(scratch: Path) -> Any:
    """The session of the worker, with Delta where it is installed, and Kafka where there is a broker."""
    from tests.support.services.delta import delta_settings
    from tests.support.spark import queries

    delta, kafka = delta_settings(), topics.settings()
    jars = [jar for jar in (delta.get("spark__jars"), kafka.get("spark.jars")) if jar]
    spark = queries.session(
        app="shop",
        master="local[1]",
        spark__local__dir=str(scratch / "local"),
        spark__sql__warehouse__dir=str(scratch / "warehouse"),
        **delta | ({"spark__jars": ",".join(jars)} if jars else {}),
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


class Programs(Whole):
    """Logs of programs; a version without a list of its own has none. Recorded are those missing; if none is, all."""

    def wanted(self, minor: str) -> list[str]:
        return [*CAUSES.get(minor, ())]

    def recorded(self, minor: str) -> list[str]:
        return [name for name in self.wanted(minor) if path_of(minor, name).exists()]

    def ask_all(self, spark: Installed) -> None:
        names = self.wanted(spark.minor)
        missing = [name for name in names if name not in self.recorded(spark.minor)]
        with TemporaryDirectory(prefix="ckpt-programs-") as scratch, _settings(spark.minor, Path(scratch)) as settings:
            log = Path(scratch) / "log"
            with Worker(spark.python, log, "failed-programs", settings) as worker:
                for name in missing or names:
                    record_log(worker, log, {"program": name}, path_of(spark.minor, name))


@contextmanager
def _settings(minor: str, folder: Path) -> Iterator[dict[str, str]]:
    """The environment of the worker: a broker, where a program needs one."""
    if not any(name.startswith("kafka") for name in CAUSES[minor]):
        yield {}
        return
    (folder / "broker").mkdir()
    with kafka_broker(folder / "broker") as broker:
        yield {topics.JARS: ",".join(map(str, connector_jars(minor))), topics.BROKER: broker}


def path_of(minor: str, program: str) -> Path:
    return LOGS / f"{minor}-program-{program.replace('_', '-')}.log.gz"


SUITE = Programs()
