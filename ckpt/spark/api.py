"""State as DataFrames: ``read_state``, ``read_changes``, ``read_initial_state``; pyspark is imported then only."""

from collections.abc import Mapping
from functools import partial
from os import fspath
from typing import TYPE_CHECKING, Any, Unpack

from ckpt.advice import call, words
from ckpt.checkpoint.times import BatchOrTime
from ckpt.errors import UsageError
from ckpt.model import Location
from ckpt.spark.connect import A_CLASSIC_ONE, is_connect, make_frame, require_classic
from ckpt.spark.installed import find_pyspark_version
from ckpt.state.reading.choose import Part, RequestedPart
from ckpt.state.reading.columns import Shape
from ckpt.state.reading.initial import plan_initial_state
from ckpt.state.reading.reading import StateRequest, plan_readings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_state(
    checkpoint: Location,
    *,
    session: "SparkSession",
    batch: BatchOrTime | None = None,
    shape: str = "flat",
    partition_id: bool = False,
    storage_options: Mapping[str, str] | None = None,
    **part: Unpack[Part],
) -> "DataFrame":
    """Return the state after a committed batch as a lazy DataFrame; nothing is collected or written.

    ``part`` picks one of ``state_units``; a checkpoint that has only one needs none. Times in state are what the query
    stored: timers and TTL in ms since 1970, ``expiresAtMicros`` in microseconds. The session's settings are not
    changed.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        session: The session that reads. To one of Spark Connect ckpt itself reads the state, with the packages of
            ``native``, and sends it the rows: the frame is then not lazy.
        batch: The id of a committed batch, by default the newest.
        shape: ``flat`` (a column for each leaf: ``key_user``, ``value_count``) or ``raw`` (Spark's structs).
        partition_id: Keep the state partition of each row.
        storage_options: For the file system of the path.
        part: The part of the state.

    Raises:
        StateDamaged: Files of that state are missing or damaged.
        UsageError: The choice does not exist.
        SparkFailed: Spark failed; the text quotes it.
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.

    >>> ckpt.read_state("sample_checkpoints/aggregation-hdfs-4.2", session=spark).columns
    ['key_key', 'value_count', 'value_sum']
    """
    if is_connect(session):
        how = {"batch": batch, "shape": _check_shape(shape), "partition_id": partition_id, **part}
        return make_frame(session, partial(_read_without_spark, checkpoint, storage_options=storage_options, **how))
    question = StateRequest(fspath(checkpoint), RequestedPart(**part), batch=batch)
    return _read(session, question, storage_options, shape, partition_id)


def read_changes(
    checkpoint: Location,
    *,
    session: "SparkSession",
    first: BatchOrTime,
    last: BatchOrTime | None = None,
    operator: int | None = None,
    store: str | None = None,
    variable: str | None = None,
    shape: str = "flat",
    partition_id: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> "DataFrame":
    """Read the changes of batches ``first`` to ``last`` (the newest committed), both included, as a lazy DataFrame.

    One row for each change: ``batch_id``, ``change_type`` (update, append, delete), then the columns of
    ``read_state``. HDFS-backed stores and RocksDB with changelog checkpointing have them, for as long as the files of
    these batches are there (``StateUnit.change_batches``); joins by ``store``.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        session: The session that reads; not one of Spark Connect (``state_diff`` needs none).
        first: The id of the first batch.
        last: The id of the last batch.
        operator: The id of a stateful operator.
        store: A store of a join, as Spark keeps it.
        variable: A variable of transformWithState.
        shape: ``flat`` or ``raw``, as for ``read_state``.
        partition_id: Keep the state partition of each row.
        storage_options: For the file system of the path.

    Raises:
        StateDamaged: Files of that state are missing or damaged.
        UsageError: The choice does not exist, or the changes of a batch are missing.
        SparkFailed: Spark failed; the text quotes it.
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.

    >>> ckpt.read_changes("sample_checkpoints/aggregation-hdfs-4.2", session=spark, first=8, last=9).columns[:2]
    ['batch_id', 'change_type']
    """
    instead = words(
        "{diff} compares two batches without Spark; changes are read in {session}",
        diff=call("state_diff"),
        session=A_CLASSIC_ONE,
    )
    require_classic(session, instead)
    wanted = RequestedPart(operator, store, None, variable)
    question = StateRequest(fspath(checkpoint), wanted, batch=last, changes_from=first)
    return _read(session, question, storage_options, shape, partition_id)


def read_initial_state(
    checkpoint: Location,
    *,
    session: "SparkSession",
    batch: BatchOrTime | None = None,
    operator: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> "DataFrame":
    """Return all state of an operator, one row per grouping key, as a lazy DataFrame: initial state for another query.

    The key columns come first, in the types of the state schema and named as in ``flat`` without ``key_``;
    ``ckpt.state.reading.initial.Holds`` describes the others. Values whose time to live is over, but which Spark has
    not removed yet, are included, with their expiry. Write the frame to Parquet or Delta and start the new query on
    that: Spark plans it again and again, even after the old checkpoint is gone.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        session: The session that reads. To one of Spark Connect ckpt itself reads the state, with the packages of
            ``native``, and sends it the rows: the frame is then not lazy.
        batch: The id of a committed batch, by default the newest.
        operator: The id of the stateful operator, where there are several.
        storage_options: For the file system of the path.

    Raises:
        StateDamaged: Files of that state are missing or damaged.
        UsageError: The choice does not exist.
        SparkFailed: Spark failed; the text quotes it.
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.

    >>> ckpt.read_initial_state("sample_checkpoints/aggregation-hdfs-4.2", session=spark).columns
    ['key', 'count', 'sum']
    """
    if is_connect(session):
        how = {"batch": batch, "shape": Shape.INITIAL_STATE, "operator": operator}
        return make_frame(session, partial(_read_without_spark, checkpoint, storage_options=storage_options, **how))
    from ckpt.spark.frames import read_initial_frame

    question = StateRequest(fspath(checkpoint), RequestedPart(operator), batch=batch)
    return read_initial_frame(session, plan_initial_state(question, storage_options, find_pyspark_version()))


def _read(
    spark: "SparkSession",
    question: StateRequest,
    storage_options: Mapping[str, str] | None,
    shape: str,
    partition_id: bool,
) -> "DataFrame":
    from ckpt.spark.export import shape_reading

    (reading,) = plan_readings(question, storage_options, find_pyspark_version())
    return shape_reading(spark, reading, _check_shape(shape), partition_id=partition_id)[0]


def _read_without_spark(checkpoint: Location, **how: Any) -> Any:
    from ckpt.state.native.api import read_state_arrow  # a classic session needs no package of it

    return read_state_arrow(checkpoint, **how)


def _check_shape(shape: str) -> Shape:
    if shape not in (Shape.FLAT, Shape.RAW):
        raise UsageError(f"shape {shape!r}: must be flat or raw")
    return Shape(shape)
