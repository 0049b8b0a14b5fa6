"""The frame of initial state, from its plan: one row for each grouping key, lazy, and with one shuffle at most."""

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column as SparkColumn, DataFrame, SparkSession, functions as F

from ckpt.model import Json
from ckpt.spark.reading import read_raw_frame
from ckpt.spark.shapes import select_leaf
from ckpt.state.reading.columns import Column, Holds, type_names
from ckpt.state.reading.initial import InitialColumn, InitialPlan

_UNORDERED = frozenset({"map", "variant", "interval"})


def read_initial_frame(spark: SparkSession, plan: InitialPlan) -> DataFrame:
    """All state of each key in its row. Raises SparkFailed; nothing is collected.

    What an operator keeps for a key is in several readings (variables, timers, sides of a join). Their rows are put
    below one another and grouped once, so that a key is there if any of them has it, and NULL keys are one group.
    """
    parts = [_read_part(read_raw_frame(spark, reading), plan, number) for number, reading in enumerate(plan.readings)]
    if not plan.grouped:
        return parts[0]
    rows = reduce(lambda above, below: above.unionByName(below, allowMissingColumns=True), parts)
    together = [_collect_rows(column).alias(column.name) for column in plan.shape.state]
    return rows.groupBy(*(F.col(f"`{key.name}`") for key in plan.shape.keys)).agg(*together)


def _read_part(frame: DataFrame, plan: InitialPlan, number: int) -> DataFrame:
    """One reading: the key, and what it holds of the state."""
    keys = [select_leaf(frame, key.places).alias(key.name, metadata={}) for key in plan.shape.keys]
    state = [
        _take_held(frame, column).alias(column.name, metadata={})
        for column in plan.shape.state
        if column.reading == number
    ]
    return frame.select(*keys, *state)


def _take_held(frame: DataFrame, column: InitialColumn) -> SparkColumn:
    """Return the part of one row that a column holds: its value, or an element of its array."""
    match column.holds:
        case Holds.LIST:
            elements = select_leaf(frame, column.places)
            return F.transform(elements, _make_struct(column.inner)) if column.ttl else elements
        case Holds.MAP:
            entries = F.transform(F.map_entries(select_leaf(frame, column.places)), _make_struct(column.inner))
            return _sort_array(entries, lambda entry: entry["key"]) if _has_order(column.inner[0].type) else entries
        case Holds.SESSIONS:
            return F.struct(*(select_leaf(frame, field.places).alias(field.name) for field in column.inner))
        case Holds.ROWS:
            key = frame.schema.fields[0].dataType
            order = F.struct(
                select_leaf(frame, (0, len(key.fields) - 1)), F.monotonically_increasing_id()
            )  # index, or time
            row = F.struct(*(select_leaf(frame, field.places).alias(field.name) for field in column.inner))
            return F.struct(order.alias("place"), row.alias("row"))
    return select_leaf(frame, column.places)


def _collect_rows(column: InitialColumn) -> SparkColumn:
    """Everything that the rows of a key hold of a column."""
    held = F.col(f"`{column.name}`")
    match column.holds:
        case Holds.LIST | Holds.MAP:
            return F.flatten(F.collect_list(held))  # at most one, and an empty array for none
        case Holds.TIMERS:
            return F.sort_array(F.collect_list(held))
        case Holds.SESSIONS:
            return _sort_array(F.collect_list(held), lambda session: session["start"])
        case Holds.ROWS:
            rows = _sort_array(F.collect_list(held), lambda row: row["place"])
            return F.transform(rows, lambda row: row["row"])
    return F.first(held, ignorenulls=True)


def _make_struct(inner: tuple[Column, ...]) -> Callable[[SparkColumn], SparkColumn]:
    """Make a struct of the parts of an element, which are named alike in no struct of Spark's."""

    def build_struct(element: SparkColumn) -> SparkColumn:
        return F.struct(*(reduce(SparkColumn.getField, part.path, element).alias(part.name) for part in inner))

    return build_struct


def _sort_array(array: SparkColumn, key: Callable[[SparkColumn], SparkColumn]) -> SparkColumn:
    """Sort by part of each element only: not everything that state holds has an order."""

    def compare(element: SparkColumn, other: SparkColumn) -> SparkColumn:
        return F.when(key(element) < key(other), -1).when(key(element) > key(other), 1).otherwise(0)

    return F.array_sort(array, compare)


def _has_order(kind: Json) -> bool:
    return _UNORDERED.isdisjoint(type_names(kind))
