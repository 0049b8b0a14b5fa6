"""What Spark's own state reader says of a checkpoint: the answer that exports and inventories are held against."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

_TIMERS = ("$procTimers", "$eventTimers")


def answer(spark: SparkSession, checkpoint: Path, format2: bool) -> dict[str, Any]:
    """Read every operator of `checkpoint`: `{"reader": version, "operators": {id: {"name", "views": [...]}}}`.

    A view is one read with the `statestore` format: its `options`, the number of rows, and the rows themselves as JSON
    objects, ordered. A checkpoint without state has no operators.
    """
    own = spark.newSession()
    own.conf.set("spark.sql.streaming.stateStore.checkpointFormatVersion", "2" if format2 else "1")
    own.streams  # noqa: B018  4.2.0 cannot read state before its streams were touched
    state = checkpoint / "state"
    ids = sorted(int(path.name) for path in state.glob("[0-9]*")) if state.is_dir() else []
    operators = {str(operator): _operator(own, checkpoint, operator) for operator in ids}
    return {"reader": spark.version, "operators": operators}


def _operator(spark: SparkSession, checkpoint: Path, operator: int) -> dict[str, Any]:
    rows = spark.read.format("state-metadata").load(str(checkpoint)).collect()
    described = [row.asDict() for row in rows if row["operatorId"] == operator]
    name = described[0]["operatorName"] if described else None
    views = []
    for options in _views(checkpoint, operator, described[0] if described else {}):
        reader = spark.read.format("statestore").option("operatorId", operator).options(**options)
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
    """One JSON column. Join rows carry an undeclared field that kills `struct(*)`, so leaves are named one by one."""
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
