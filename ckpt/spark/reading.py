"""A planned reading as a DataFrame: Spark's state reader under the settings that the plan names."""

import atexit
import shutil
import tempfile
import uuid
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, functions as F
from pyspark.sql.types import StructField, StructType

from ckpt.spark.errors import translate_failures
from ckpt.spark.session import clone_session, hand_over, require_classic
from ckpt.state.reading.mount import ROOT, VIEW, Mount
from ckpt.state.reading.reading import Reading
from ckpt.state.reading.units import StateUnit, UnitKind


def read_raw_frame(spark: SparkSession, reading: Reading) -> DataFrame:
    """The state as Spark gives it, one row for each entry; lazy, and nothing is collected.

    The settings are set on a clone of the session, and are settled when the frame is loaded (Spark's ``StateTable`` and
    its scan keep them), so the session of the caller is not touched, and the frame can be used for as long as the
    checkpoint is there. Raises SparkFailed, with Spark's own words.
    """
    own = clone_session(require_classic(spark))
    for conf in reading.confs:
        own.conf.set(conf.name, conf.value)
    location = reading.location if reading.mount is None else _mount_checkpoint(own, reading.mount)
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
            names = {inner.name for inner in field.dataType.fields}
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
