"""Queries that hit a known bug of a connector, as in `cases.py`. Nothing here imports ckpt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.inspection.bugs.cases import ALWAYS, NOW, Case, run, wrote
from tests.live.iceberg.cases import TABLE, Table, active_session
from tests.support.remedies import remove
from tests.support.spark import topics

ROWS, FILES = "streaming-max-rows-per-micro-batch", "streaming-max-files-per-micro-batch"
PARTITIONS = 3


def read_table(spark: Any, folder: Path, limits: dict[str, str], trigger: str = ALWAYS) -> dict[str, Any]:
    """Read the Iceberg table of the session."""
    return run(spark.readStream.format("iceberg").options(**limits).load(TABLE), folder, trigger=trigger)


def large_file(spark: Any, folder: Path) -> dict[str, Any]:
    """A limit of two rows: a file of one row, one of three, and one of one."""
    table = Table(spark)
    table.create()
    for number, rows in enumerate((1, 3, 1)):
        table.append(number, rows)
    return read_table(spark, folder, {ROWS: "2"})


def large_file_continued(spark: Any, folder: Path) -> dict[str, Any]:
    Table(spark).append(3, 1)
    return read_table(spark, folder, {ROWS: "2"})


def large_file_avoided(spark: Any, folder: Path) -> dict[str, Any]:
    return read_table(spark, folder, {ROWS: "3"})


def first_file_alone(spark: Any, folder: Path) -> dict[str, Any]:
    """A limit of one file with `availableNow`, started twice: three files."""
    table = Table(spark)
    table.create()
    for number in range(3):
        table.append(number, 1)
    return {name: read_table(spark, folder, {FILES: "1"}, NOW) for name in ("first", "then")}


def first_file_alone_continued(spark: Any, folder: Path) -> dict[str, Any]:
    Table(spark).append(3, 1)
    return read_table(spark, folder, {FILES: "1"}, NOW)


def first_file_alone_avoided(spark: Any, folder: Path) -> dict[str, Any]:
    return read_table(spark, folder, {}, NOW)


def compacted_file(spark: Any, folder: Path) -> dict[str, Any]:
    """A limit of one row: two files of one row are read, and then compacted into one; another file of one row."""
    table = Table(spark)
    table.create()
    for number in range(2):
        table.append(number, 1)
    first = read_table(spark, folder, {ROWS: "1"})
    table.compact()
    table.append(2, 1)
    return {"first": first, "then": read_table(spark, folder, {ROWS: "1"})}


def compacted_file_continued(spark: Any, folder: Path) -> dict[str, Any]:
    """With a higher limit: the offset is before the compacted file, which blocks 1.5.0 as well."""
    Table(spark).append(3, 1)
    return read_table(spark, folder, {ROWS: "2"})


def compacted_file_avoided(spark: Any, folder: Path) -> dict[str, Any]:
    return read_table(spark, folder, {ROWS: "2"})


def read_topic(spark: Any, folder: Path, trigger: str = NOW) -> dict[str, Any]:
    """Read the topic of the folder's name."""
    reader = spark.readStream.format("kafka").options(**topics.options(), subscribe=folder.name)
    rows = reader.option("startingOffsets", "earliest").load().selectExpr("CAST(value AS STRING)")
    return run(rows, folder, trigger=trigger)


def plan(spark: Any, folder: Path) -> None:
    """Leave a batch that was planned and not committed, as of a query that is killed."""
    topics.fill(spark, folder.name, 2)
    read_topic(spark, folder)
    remove(folder / "checkpoint" / "commits" / "0")


def added_partition(spark: Any, folder: Path) -> dict[str, Any]:
    """A partition that is added to a topic while a batch is planned, and `availableNow`."""
    plan(spark, folder)
    kafka = spark._jvm.org.apache.kafka.clients.admin
    admin = kafka.AdminClient.create({"bootstrap.servers": topics.options()["kafka.bootstrap.servers"]})
    admin.createPartitions({folder.name: kafka.NewPartitions.increaseTo(PARTITIONS)}).all().get()
    admin.close()
    return read_topic(spark, folder)


def added_partition_avoided(spark: Any, folder: Path) -> dict[str, Any]:
    return read_topic(spark, folder, ALWAYS)


def planned_batch(spark: Any, folder: Path) -> dict[str, Any]:
    """A batch that was planned and not committed."""
    plan(spark, folder)
    return read_topic(spark, folder)


def planned_batch_continued(spark: Any, folder: Path) -> dict[str, Any]:
    topics.fill(spark, folder.name, 4, 2)
    return read_topic(spark, folder)


CASES: dict[str, Case] = {
    "apache/iceberg#8980": compacted_file,
    "apache/iceberg#12260": first_file_alone,
    "apache/iceberg#12988": large_file,
    "SPARK-53560": added_partition,
    "SPARK-57438": planned_batch,
}
CONTINUED: dict[str, Case] = {
    "apache/iceberg#8980": compacted_file_continued,
    "apache/iceberg#12260": first_file_alone_continued,
    "apache/iceberg#12988": large_file_continued,
    "SPARK-53560": read_topic,
    "SPARK-57438": planned_batch_continued,
}
AVOIDED: dict[str, Case] = {
    "apache/iceberg#8980": compacted_file_avoided,
    "apache/iceberg#12260": first_file_alone_avoided,
    "apache/iceberg#12988": large_file_avoided,
    "SPARK-53560": added_partition_avoided,
    "SPARK-57438": planned_batch_continued,
}
_PLANNED = wrote([0, "0"], [0, "1"])
_LATER = wrote([1, "2"], [1, "3"])
_LARGE = [[1, "10"], [1, "11"], [1, "12"], [2, "20"]]
RIGHT: dict[str, dict[str, Any]] = {
    "apache/iceberg#8980": {"first": wrote([0, "0"], [1, "10"]), "then": wrote([2, "20"])},
    "apache/iceberg#12260": {"first": wrote([0, "0"], [0, "10"], [0, "20"]), "then": wrote()},
    "apache/iceberg#12988": wrote([0, "0"], [0, "10"], [0, "11"], [0, "12"], [1, "20"]),
    "SPARK-53560": _PLANNED,
    "SPARK-57438": _PLANNED,
}
CONTINUED_RIGHT: dict[str, dict[str, Any]] = {
    "apache/iceberg#8980": wrote([4, "20"], [4, "30"]),
    "apache/iceberg#12260": wrote([1, "10"], [1, "20"], [1, "30"]),
    "apache/iceberg#12988": wrote(*_LARGE, [2, "30"]),
    "SPARK-53560": _PLANNED,
    "SPARK-57438": _LATER,
}
AVOIDED_RIGHT: dict[str, dict[str, Any]] = {
    "apache/iceberg#8980": wrote([4, "20"]),
    "apache/iceberg#12260": wrote([1, "10"], [1, "20"]),
    "apache/iceberg#12988": wrote(*_LARGE),
    "SPARK-53560": _PLANNED,
    "SPARK-57438": _LATER,
}
"""As in `cases.py`."""


def answer(spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
    """Run a case in a session whose Iceberg catalog is its folder: a role of `tests/record/process.py`."""
    folder, cases = Path(job["folder"]), {"continued": CONTINUED, "avoided": AVOIDED}.get(job["how"], CASES)
    folder.mkdir(parents=True, exist_ok=True)
    with active_session(spark, folder) as own:
        return cases[job["bug"]](own, folder)
