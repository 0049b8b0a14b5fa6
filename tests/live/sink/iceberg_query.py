"""A query into an Iceberg table, and what happens to the table: a role.

The table is made and put back at one place, `now`: it names its files by absolute paths.
"""

from __future__ import annotations

import contextlib
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.live.iceberg.cases import TABLE, Table, active_session
from tests.support.spark.queries import STATE_STORES

BATCHES, ROWS, NEW, OLDER = 6, 10, 20, 3  # as in tests/live/sink/remedies_followed.py and asked.py, which need ckpt


def answer(spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
    """What came of a job, in a session of its own whose catalog is in the folder `now` of `folder`."""
    folder = Path(job["folder"])
    do: dict[str, Callable[..., dict[str, Any] | None]]
    do = {"make": make, "put": put, "table": change, "start": start, "times": times}
    with active_session(spark, folder / "now", STATE_STORES["format2"] if job.get("format 2") else {}) as own:
        return do[job["do"]](own, folder, job) or {}


def make(spark: Any, folder: Path, job: dict[str, Any]) -> None:
    """A query as it was meant to run, a file in each batch; its checkpoint of batch 2 is kept as `older`."""
    now, kind = folder / "now", job["kind"]
    shutil.rmtree(now, ignore_errors=True)
    shutil.rmtree(folder / "in", ignore_errors=True)
    Table(spark).sql("CREATE TABLE {table} (id BIGINT) USING iceberg")
    for first, last in ((0, OLDER), (OLDER, BATCHES)):
        _add(spark, folder, first, last)
        start(spark, folder, {"most": 1, "kind": kind})
        if last == OLDER:
            shutil.copytree(now / "checkpoint", folder / f"older {kind}")
    _add(spark, folder, BATCHES, BATCHES + NEW // ROWS)
    shutil.copytree(now, folder / f"made {kind}")
    shutil.copytree(folder / "in", folder / f"in {kind}")


def _add(spark: Any, folder: Path, first: int, last: int) -> None:
    for batch in range(first, last):
        rows = spark.range(batch * ROWS, (batch + 1) * ROWS).coalesce(1)
        rows.write.mode("append").json(str(folder / "in"))


def put(_: Any, folder: Path, job: dict[str, Any]) -> None:
    for name in ("now", "in"):
        shutil.rmtree(folder / name, ignore_errors=True)
    shutil.copytree(folder / f"made {job['kind']}", folder / "now")
    shutil.copytree(folder / f"in {job['kind']}", folder / "in")


def change(spark: Any, _: Path, job: dict[str, Any]) -> None:
    """Methods of `Table`, one after the other."""
    for name, *given in job["steps"]:
        getattr(Table(spark), name)(*given)


def start(spark: Any, folder: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Read what there is, so many files in a batch; what it failed with."""
    now, kind = folder / "now", job["kind"]
    rows = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", job.get("most", 2)).json(str(folder / "in"))
    if kind == "complete":
        rows = rows.groupBy("id").count().select("id")
    elif kind != "stateless":
        rows = rows.dropDuplicates(["id"])
    writer = rows.writeStream.outputMode("complete" if kind == "complete" else "append")
    writer = writer.option("checkpointLocation", str(now / "checkpoint")).trigger(availableNow=True)
    handle = None
    try:
        handle = writer.format("iceberg").toTable(TABLE) if not job.get("noop") else writer.format("noop").start()
        handle.awaitTermination(300)
    except Exception as error:
        return {"error": str(error).partition("\n")[0][:500]}
    finally:
        if handle is not None:
            with contextlib.suppress(Exception):
                handle.stop()
    return {"error": ""}


def times(spark: Any, _: Path, __: dict[str, Any]) -> dict[str, Any]:
    """How often each row is in the table."""
    return {"times": dict(sorted(Counter(row.id for row in spark.read.table(TABLE).collect()).items()))}
