"""Runs old queries, hands them over with `ckpt handoff`, runs new ones.

`test_continuity.py` gets what each query read, scenario by scenario. Every row has an id of its own, and every query
notes the ids of each batch.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conftest import Run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

from tests.support.cli import invoke
from tests.support.remedies import obey, remove
from tests.support.spark.queries import drain, own_session

Batches = dict[int, list[int]]


def run(rows: DataFrame, checkpoint: Path) -> Batches:
    """Read everything there is and stop; the ids of each batch that ran."""
    return {number: sorted(row.id for row in batch) for number, batch in drain(rows, checkpoint).items()}


def error_of(action: Callable[[], Any]) -> str:
    """What Spark says of an action that fails."""
    try:
        action()
    except Exception as error:
        return str(error)
    return ""


def handoff(checkpoint: Path, *words: object) -> Run:
    return ckpt("handoff", checkpoint, *words)


def ckpt(*words: object) -> Run:
    """What a command answers, in this process."""
    result = invoke(*words)
    return Run(result.exit_code, result.stdout, result.stderr)


def snippet(checkpoint: Path, *words: object) -> dict[str, Any]:
    """The generated functions by name."""
    answer = handoff(checkpoint, "--snippet", "python", *words)
    if not answer.stdout:
        raise RuntimeError(answer.stderr)
    found: dict[str, Any] = {}
    exec(compile(answer.stdout, "snippet", "exec"), found)
    return found


def cut_behind(checkpoint: Path, batch: int, to: Path) -> Path:
    """A copy of a stateless checkpoint as it was when `batch` was the latest: the files of later ones are not there."""
    shutil.copytree(checkpoint, to)
    for log in ("offsets", "commits"):
        for path in (to / log).glob("[0-9]*"):
            if int(path.name) > batch:
                path.unlink()
                path.with_name(f".{path.name}.crc").unlink()
    return to


def kafka(spark: SparkSession, folder: Path, servers: str) -> dict[str, Any]:
    """A topic of two partitions that gains rows, and then a partition."""
    topic = "handed-over"
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    options |= {"startingOffsetsByTimestampStrategy": "latest", "maxOffsetsPerTrigger": "20"}

    def add(first: int, last: int, partition: str = "NULL") -> None:
        rows = spark.range(first, last).selectExpr(
            "CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value", f"CAST({partition} AS INT) AS partition"
        )
        rows.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()

    def ids(rows: DataFrame) -> DataFrame:
        return rows.selectExpr("CAST(CAST(value AS STRING) AS BIGINT) AS id")

    def load() -> DataFrame:
        return ids(spark.readStream.format("kafka").options(**options).load())

    add(0, 70)
    old = run(load(), folder / "old")
    add(70, 130)
    stale = options | {"startingTimestamp": "0", "startingOffsetsByTimestamp": json.dumps({topic: {"0": 0, "1": 0}})}
    new = run(ids(snippet(folder / "old")["source_0"](spark, stale).load()), folder / "new")
    early = run(ids(snippet(folder / "old", "--batch", 1)["source_0"](spark, options).load()), folder / "early")
    lowered = {case: lowered_offsets(folder, load, case) for case in ("committed", "uncommitted")}
    _add_partition(spark, servers, topic)
    add(130, 140, "2")
    grown = snippet(folder / "new")["source_0"](spark, options)
    refusal = error_of(lambda: run(ids(grown.load()), folder / "grown"))
    (start,) = json.loads(handoff(folder / "new", "-o", "json").stdout)["sources"]
    offsets = json.loads(start["options"]["startingOffsets"])
    offsets[topic]["2"] = -2
    rest = run(ids(grown.option("startingOffsets", json.dumps(offsets)).load()), folder / "rest")
    found = {"old": old, "new": new, "early": early, "refusal": refusal, "rest": rest, "lowered": lowered}
    return found | {"rows": 130}


def lowered_offsets(folder: Path, load: Callable[[], DataFrame], case: str) -> Batches:
    """What a query reads whose latest offsets are lost, once the remedy of `ckpt inspect` is obeyed."""
    copy = folder / case
    shutil.copytree(folder / "old", copy)
    latest = max(int(path.name) for path in (copy / "offsets").glob("[0-9]*"))
    (copy / "offsets" / str(latest)).write_text("")
    if case == "uncommitted":
        remove(copy / "commits" / str(latest))
    obey(inspected(copy)["findings"][0]["remedy"], copy)
    return run(load(), copy)


def recreated(spark: SparkSession, folder: Path, servers: str) -> dict[str, Any]:
    """A topic is deleted and created again with fewer rows; the old query fails, and leaves a batch that never ran.

    `skipped` is what a start with failOnDataLoss=false reads from then on, `new` what the new query of `ckpt handoff`
    reads.
    """
    topic = "recreated"
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}

    def add(first: int, last: int) -> None:
        rows = spark.range(first, last).selectExpr("CAST(id AS STRING) AS value", "CAST(id % 2 AS INT) AS partition")
        rows.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()

    def load(**more: str) -> DataFrame:
        rows = spark.readStream.format("kafka").options(**options | more).load()
        return rows.selectExpr("CAST(CAST(value AS STRING) AS BIGINT) AS id")

    add(0, 60)
    run(load(), folder / "old")
    add(60, 110)
    run(load(), folder / "old")
    with _admin(spark, servers) as client:
        jvm: Any = spark.sparkContext._jvm
        names = jvm.java.util.Collections.singletonList(topic)
        client.deleteTopics(names).all().get()
    _create(spark, servers, topic)
    add(110, 150)
    failure = error_of(lambda: run(load(), folder / "old"))
    found = inspected(folder / "old")
    shutil.copytree(folder / "old", folder / "obeyed")
    skipped = run(load(failOnDataLoss="false"), folder / "obeyed")
    add(150, 160)
    skipped |= run(load(failOnDataLoss="false"), folder / "obeyed")
    answer = json.loads(handoff(folder / "old", "-o", "json").stdout)
    rows = snippet(folder / "old")["source_0"](spark, options).load()
    new = run(rows.selectExpr("CAST(CAST(value AS STRING) AS BIGINT) AS id"), folder / "new")
    return {"failure": failure, "findings": found["findings"], "skipped": skipped, "handoff": answer, "new": new}


def inspected(checkpoint: Path) -> Any:
    return json.loads(ckpt("inspect", checkpoint, "--progress", "sync", "-o", "json").stdout)


@contextmanager
def _admin(spark: SparkSession, servers: str) -> Iterator[Any]:
    jvm: Any = spark.sparkContext._jvm
    settings = jvm.java.util.HashMap()
    settings.put("bootstrap.servers", servers)
    client = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
    yield client
    client.close()


def _create(spark: SparkSession, servers: str, topic: str) -> None:
    """Create a topic of two partitions; a name that was just deleted is not free at once."""
    jvm: Any = spark.sparkContext._jvm
    wanted = jvm.java.util.Collections.singletonList(jvm.org.apache.kafka.clients.admin.NewTopic(topic, 2, 1))
    with _admin(spark, servers) as client:
        for attempt in range(50):
            if not error_of(lambda: client.createTopics(wanted).all().get()):
                return
            time.sleep(0.2 * attempt)
    raise RuntimeError(f"topic {topic} cannot be created")


def _add_partition(spark: SparkSession, servers: str, topic: str) -> None:
    jvm: Any = spark.sparkContext._jvm
    wanted = jvm.java.util.HashMap()
    wanted.put(topic, jvm.org.apache.kafka.clients.admin.NewPartitions.increaseTo(3))
    with _admin(spark, servers) as client:
        client.createPartitions(wanted).all().get()


def delta(spark: SparkSession, folder: Path, _: str) -> dict[str, Any]:
    """A table that a query stops behind, with no newer version yet; and a batch that ends inside a version."""
    table = str(folder / "table")

    def add(first: int, last: int, files: int) -> None:
        spark.range(first, last).repartition(files).write.format("delta").mode("append").save(table)

    options = {"maxFilesPerTrigger": "1", "startingVersion": "0"}
    add(0, 10, 1)
    add(10, 40, 3)
    old = run(spark.readStream.format("delta").options(**options).load(table), folder / "old")
    inside = cut_behind(folder / "old", 1, folder / "inside")
    refused = handoff(inside, "--snippet", "python")
    whole = run(spark.readStream.format("delta").load(table), inside)

    def start() -> DataFrame:
        loaded: DataFrame = snippet(folder / "old")["source_0"](spark, {"startingTimestamp": "2020-01-01"}).load(table)
        return loaded

    too_early = error_of(lambda: run(start(), folder / "early"))
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('handed.over' = 'yes')")
    nothing = run(start(), folder / "new")
    add(40, 60, 2)
    new = run(start(), folder / "new")
    after = run(snippet(inside)["source_0"](spark, {}).load(table), folder / "after")
    return {
        "old": old,
        "new": new,
        "rows": 60,
        "inside": {
            "exit": refused.exit_code,
            "code": refused.stdout,
            "said": refused.stderr,
            "more": whole,
            "after": after,
        },
        "too_early": too_early,
        "nothing": nothing,
    }


# No "?" and no "[": Spark takes them for patterns, and then reads the rows of a batch several times (4.2, measured).
_NAMES = ("plain", "with space", "pct%20x", "umlaut-äöü", "hash#x", "plus+x", "quote'x")


def files(spark: SparkSession, folder: Path, _: str) -> dict[str, Any]:
    """Files with all kinds of names, enough of them that the source log is compacted."""
    inputs = folder / "in put"
    inputs.mkdir(parents=True)

    def add(first: int, last: int) -> None:
        for number in range(first, last):
            name = f"{number:02}-{_NAMES[number % len(_NAMES)]}.json"
            (inputs / name).write_text(f'{{"id": {2 * number}}}\n{{"id": {2 * number + 1}}}\n')

    def load(most: int = 100) -> DataFrame:
        reader = spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", most)
        return reader.json(str(inputs))

    add(0, 13)
    old = run(load(1), folder / "old")
    add(13, 24)
    new = run(snippet(folder / "old")["source_0"](load()), folder / "new")
    early = run(snippet(folder / "old", "--batch", 3)["source_0"](load()), folder / "early")
    return {"old": old, "new": new, "early": early, "rows": 48}


def sinks(spark: SparkSession, folder: Path, _: str) -> dict[str, Any]:
    """What a file sink, a Delta sink and foreachBatch with a fixed txnAppId do with batches of a new checkpoint."""
    table = str(folder / "table")

    def add(first: int, last: int) -> None:
        spark.range(first, last).coalesce(1).write.format("delta").mode("append").save(table)

    def write(kind: str, rows: DataFrame, checkpoint: str) -> None:
        out = str(folder / kind / "out")

        def put(batch: DataFrame, number: int) -> None:
            batch.write.format("delta").mode("append").options(txnAppId="mine", txnVersion=number).save(out)

        drain(rows, folder / kind / checkpoint, sink=put if kind == "fixed" else kind, path=out)

    found: dict[str, Any] = {}
    add(0, 5)
    add(5, 10)
    kinds = ("parquet", "delta", "fixed")
    for kind in kinds:
        write(kind, spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(table), "old")
    add(10, 15)
    for kind in kinds:
        checkpoint = folder / kind / "old"
        write(kind, snippet(checkpoint)["source_0"](spark, {}).load(table), "new")
        out = spark.read.format("delta" if kind == "fixed" else kind).load(str(folder / kind / "out"))
        found[kind] = sorted(row.id for row in out.collect())
    log = sorted((folder / "delta" / "out" / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for path in log for line in path.read_text().splitlines()]
    found["txn"] = [[a["txn"]["appId"], a["txn"]["version"]] for a in actions if "txn" in a]
    found["meanings"] = json.loads(handoff(folder / "delta" / "old", "-o", "json").stdout)["sinks"]
    found["query_id"] = json.loads((folder / "delta" / "old" / "metadata").read_text())["id"]
    return found


def found(spark: SparkSession, folder: Path, servers: str) -> dict[str, Any]:
    """Run every scenario; `servers` are those of Kafka."""
    own = own_session(spark, partitions=1)
    told = {scenario.__name__: scenario(own, folder / scenario.__name__, servers) for scenario in _SCENARIOS}
    as_json: dict[str, Any] = json.loads(json.dumps(told))
    return as_json


_SCENARIOS: tuple[Callable[..., dict[str, Any]], ...] = (delta, files, sinks, kafka, recreated)
