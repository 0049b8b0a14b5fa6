"""A planned reading as a DataFrame: Spark's state reader under the settings that the plan names, flat, or by key."""

import atexit
import json
import shutil
import tempfile
import uuid
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import Column as SparkColumn, DataFrame, SparkSession, functions as F
from pyspark.sql.types import StructField, StructType

from ckpt.model import Json
from ckpt.spark.jobs import translate_failures
from ckpt.spark.session import clone_session, hand_over
from ckpt.state.reading.columns import Column, Columns, Holds, type_names
from ckpt.state.reading.initial import InitialColumn, InitialPlan
from ckpt.state.reading.mount import ROOT, VIEW, Mount
from ckpt.state.reading.reading import Reading
from ckpt.state.reading.units import StateUnit, UnitKind
from ckpt.storage.locations import spark_uri

_UNORDERED = frozenset({"map", "variant", "interval"})


def read_raw_frame(spark: SparkSession, reading: Reading) -> DataFrame:
    """The state as Spark gives it, one row for each entry; lazy, and nothing is collected.

    The settings are set on a clone of the session, and are settled when the frame is loaded (Spark's ``StateTable`` and
    its scan keep them), so the session of the caller is not touched, and the frame can be used for as long as the
    checkpoint is there. Raises SparkFailed, with Spark's own words.
    """
    own = clone_session(spark)
    for conf in reading.confs:
        own.conf.set(conf.name, conf.value)
    location = spark_uri(reading.checkpoint) if reading.mount is None else _mount_checkpoint(own, reading.mount)
    with translate_failures(
        f"reading the state of {reading.checkpoint} ({reading.unit.label}, batch {reading.moment.batch})"
    ):
        _ = own.streams  # Spark 4.2.0 finds its StateStoreCoordinator only once this was touched
        frame = own.read.format("statestore").options(**reading.options).load(location)
        if reading.unit.kind is UnitKind.SIDE:
            frame = _select_buffered_rows(frame, reading.unit)
        return hand_over(frame, spark)


def _select_buffered_rows(frame: DataFrame, unit: StateUnit) -> DataFrame:
    """Of the rows of a join side only what the query buffered, and what Spark declares.

    Read store by store they carry an index and whether they were matched; read by Spark's ``joinSide`` the latter
    too, undeclared, which kills ``struct(*)``.
    """
    declared: StructType = frame.schema
    if unit.row_store is not None:
        fields = {field.name: field.dataType for field in StructType.fromJson(unit.schema).fields}
        declared = StructType([StructField(f.name, fields.get(f.name, f.dataType)) for f in declared.fields])
    columns = []
    for field, wanted in zip(frame.schema.fields, declared.fields, strict=True):
        column = F.col(field.name)
        if isinstance(wanted.dataType, StructType):
            places = [StructField(f"_{i}", inner.dataType) for i, inner in enumerate(field.dataType.fields)]
            names = {inner.name.lower() for inner in field.dataType.fields}
            told_apart = len(names) == len(places)
            by_place = column if told_apart else column.cast(StructType(places))
            parts = [
                by_place.getField(inner.name if told_apart else f"_{i}").alias(inner.name)
                for i, inner in enumerate(wanted.dataType.fields)
            ]
            column = F.struct(*parts).alias(field.name)
        columns.append(column)
    return frame.select(*columns)


def _mount_checkpoint(own: SparkSession, mount: Mount) -> str:
    """Set up a view of the checkpoint in a session, and return the path of the checkpoint in it."""
    name = f"ckpt-{uuid.uuid4().hex}"  # Hadoop remembers views by name
    root = f"{VIEW}://{name}"
    links = dict(mount.links)
    if mount.replaced:
        staging = Path(tempfile.mkdtemp(prefix="ckpt-"))
        atexit.register(shutil.rmtree, staging, ignore_errors=True)
        for path, text in mount.replaced.items():
            staged = staging / path
            staged.parent.mkdir(parents=True, exist_ok=True)
            staged.write_text(text.replace(ROOT, root), encoding="utf-8")
        links |= {f"/{folder}": (staging / folder).as_uri() for folder in mount.folders}
    for path, target in links.items():
        own.conf.set(f"fs.viewfs.mounttable.{name}.link.{path}", target)
    return root + mount.path


def schema_of(frame: DataFrame) -> Json:
    """The schema of a frame in Spark's JSON."""
    schema: Json = json.loads(frame.schema.json())
    return schema


def flatten_columns(frame: DataFrame, columns: Columns) -> DataFrame:
    """Flatten a frame to one column for each leaf."""
    return frame.select(*(select_leaf(frame, column.places).alias(column.name) for column in columns.kept))


def select_leaf(frame: DataFrame, places: Sequence[int]) -> SparkColumn:
    """A field of a field ..., by position: names may repeat."""
    field = frame.schema.fields[places[0]]
    renamed = _make_distinct(field)
    value: SparkColumn = F.col(f"`{field.name}`")
    if renamed != field:
        value = value.cast(renamed.dataType)
    kind = renamed.dataType
    for ordinal in places[1:]:
        inner = kind.fields[ordinal]
        value, kind = value.getField(inner.name), inner.dataType
    return value


def _make_distinct(field: StructField) -> StructField:
    """The field with nested names that are told apart where they were not: a cast goes by position."""
    if not isinstance(field.dataType, StructType):
        return field
    fields = [_make_distinct(inner) for inner in field.dataType.fields]
    names = [inner.name.lower() for inner in fields]
    if len(set(names)) < len(names):
        fields = [StructField(f"_{ordinal}", f.dataType, f.nullable) for ordinal, f in enumerate(fields)]
    return StructField(field.name, StructType(fields), field.nullable)


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
            has_order = _UNORDERED.isdisjoint(type_names(column.inner[0].type))
            return _sort_array(entries, lambda entry: entry["key"]) if has_order else entries
        case Holds.SESSIONS:
            return F.struct(*(select_leaf(frame, field.places).alias(field.name) for field in column.inner))
        case Holds.ROWS:
            last = len(frame.schema.fields[0].dataType.fields) - 1  # of the key: an index, or the time
            order = F.struct(select_leaf(frame, (0, last)), F.monotonically_increasing_id())
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
