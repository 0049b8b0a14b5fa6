"""What Spark's own state reader says of a checkpoint: exports and inventories are held against it.

`python -m tests.support.spark.answers FILE NAME ...` adds the answers for these samples, read at their origin.
"""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .queries import session
from .samples import ORIGIN, SAMPLES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

_TIMERS = ("$procTimers", "$eventTimers")


def reader_of(version: str) -> str:
    """The Spark version that reads the state of a checkpoint written by `version`: 3.5 has no reader."""
    return "4.2" if version == "3.5" else version


def answer(spark: SparkSession, checkpoint: Path, format2: bool, batch: int | None = None) -> dict[str, Any]:
    """Read all of `checkpoint`'s state: `{"reader", "batch", "operators": {id: {"name", "views": [...]}}}`.

    A view is one read with the `statestore` format: its `options`, the number of rows, and the rows
    themselves as JSON objects, ordered. `batch` is what is read, by default the latest committed one.
    """
    own = spark.newSession()
    own.conf.set("spark.sql.streaming.stateStore.checkpointFormatVersion", "2" if format2 else "1")
    assert not own.streams.active  # 4.2.0 cannot read state before its streams were touched
    state = checkpoint / "state"
    ids = sorted(int(path.name) for path in state.glob("[0-9]*")) if state.is_dir() else []
    latest = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
    wanted = latest if batch is None else batch
    operators = {str(operator): _operator(own, checkpoint, operator, wanted) for operator in ids}
    return {"reader": spark.version, "batch": wanted, "operators": operators}


def _operator(spark: SparkSession, checkpoint: Path, operator: int, batch: int) -> dict[str, Any]:
    rows = spark.read.format("state-metadata").load(str(checkpoint)).collect()
    described = [row.asDict() for row in rows if row["operatorId"] == operator]
    name = described[0]["operatorName"] if described else None
    views = []
    for options in _views(checkpoint, operator, described[0] if described else {}):
        reader = spark.read.format("statestore").option("operatorId", operator).options(**options)
        reader = reader.option("batchId", batch)
        content = sorted(row[0] for row in _declared_only(reader.load(str(checkpoint))).collect())
        views.append({"options": options, "count": len(content), "rows": [json.loads(row) for row in content]})
    return {"name": name, "views": views}


def _views(checkpoint: Path, operator: int, described: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The reads that together show all of an operator's state."""
    properties = json.loads(described.get("operatorProperties") or "{}")
    if "stateVariables" in properties:
        for variable in properties["stateVariables"]:
            name = variable["stateName"]
            yield {"readRegisteredTimers": "true"} if name.startswith(_TIMERS) else {"stateVarName": name}
    elif (checkpoint / "state" / str(operator) / "0" / "left-keyToNumValues").is_dir() or (
        described.get("operatorName") == "symmetricHashJoin"
    ):
        yield {"joinSide": "left"}
        yield {"joinSide": "right"}
    else:
        yield {}


def _declared_only(frame: DataFrame) -> DataFrame:
    """One JSON column of named leaves: join rows carry an undeclared field that kills `struct(*)`."""
    from pyspark.sql.functions import col, struct, to_json

    columns = [_leaves(col(field.name), field.dataType).alias(field.name) for field in frame.schema.fields]
    return frame.select(to_json(struct(*columns), {"ignoreNullFields": "false"}))


def _leaves(column: Column, kind: DataType) -> Column:
    from pyspark.sql.functions import lit, struct, when
    from pyspark.sql.types import NullType, StructType

    if isinstance(kind, NullType):
        return lit(None).cast("string")
    if not isinstance(kind, StructType):
        return column
    fields = [_leaves(column.getField(field.name), field.dataType).alias(field.name) for field in kind.fields]
    return when(column.isNotNull(), struct(*fields))


def _written(answers: dict[str, Any]) -> str:
    """JSON with a line for each row of state, so that a change of a row is a change of a line."""
    rows: list[str] = []

    def shelve(row: dict[str, Any]) -> str:
        rows.append(json.dumps(row))
        return f"row {len(rows) - 1}"

    def shelved(view: dict[str, Any]) -> dict[str, Any]:
        return view | {"rows": [shelve(row) for row in view["rows"]]}

    outline = {
        name: one
        | {
            "operators": {
                number: operator | {"views": [shelved(view) for view in operator["views"]]}
                for number, operator in one["operators"].items()
            }
        }
        for name, one in sorted(answers.items())
    }
    text = json.dumps(outline, indent=1)
    return re.sub(r'"row (\d+)"', lambda match: rows[int(match[1])], text) + "\n"


def main(file: Path, names: list[str]) -> int:
    """Read the samples called `names` and keep what was read in `file`; return how many could not be read."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = session()
    spark.sparkContext.setLogLevel("ERROR")
    answers = json.loads(file.read_text()) if file.exists() else {}
    failed = 0
    for sample in SAMPLES:
        if sample.name in names:
            try:
                answers[sample.name] = answer(spark, ORIGIN / sample.name, sample.store == "format2")
            except Exception:
                failed += 1
                traceback.print_exc()
    file.write_text(_written(answers))
    spark.stop()
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
