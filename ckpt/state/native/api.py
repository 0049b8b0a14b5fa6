"""State as Arrow tables, without Spark: ``read_state_arrow``, ``read_state_batches``."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from os import fspath
from typing import Unpack

import pyarrow as pa

from ckpt.checkpoint.times import BatchOrTime
from ckpt.errors import UsageError
from ckpt.model import Location
from ckpt.state.book import BOOK
from ckpt.state.native.entries import batches_of, flat_schema, map_partitions, raw_schema
from ckpt.state.native.initial import read_initial_table
from ckpt.state.reading.choose import Part, RequestedPart
from ckpt.state.reading.columns import Shape, columns_of
from ckpt.state.reading.initial import ask_which_operator, check_question, plan_initial_shape
from ckpt.state.reading.reading import StateRequest, choose


def read_state_arrow(
    checkpoint: Location,
    *,
    batch: BatchOrTime | None = None,
    shape: str = "flat",
    partition_id: bool = False,
    jobs: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    **part: Unpack[Part],
) -> pa.Table:
    """Return the state after a committed batch as a ``pyarrow.Table``, read without Spark.

    Columns, names and values are those of ``read_state``; which unit is read is said in the same way. What is damaged,
    or not understood, is refused with its name. Rows are in the order of partitions, and in them in that
    of the files.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        batch: The id of a committed batch, by default the newest.
        shape: ``flat`` (a column for each leaf: ``key_user``, ``value_count``), ``raw`` (Spark's structs) or
            ``initial-state`` (one row for each grouping key, as for ``read_initial_state``).
        partition_id: Keep the state partition of each row.
        jobs: How many processes read large state at a time; by default one per core.
        storage_options: For the file system of the path.
        part: The part of the state.

    Raises:
        StateDamaged: Files of that state are missing or damaged.
        UsageError: The choice does not exist.
        CkptError: The bytes are damaged, or of a kind that only Spark reads; the text names file and reason.
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.

    >>> ckpt.read_state_arrow("sample_checkpoints/aggregation-hdfs-4.2").column_names
    ['key_key', 'value_count', 'value_sum']
    """
    question = StateRequest(fspath(checkpoint), RequestedPart(**part), batch=batch)
    with _open_reader(question, shape, partition_id, jobs, storage_options) as reader:
        return reader.read_all()


def read_state_batches(
    checkpoint: Location,
    *,
    batch: BatchOrTime | None = None,
    shape: str = "flat",
    partition_id: bool = False,
    jobs: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    **part: Unpack[Part],
) -> pa.RecordBatchReader:
    """Read state as a ``pyarrow.RecordBatchReader``, some rows at a time; at most one partition is in memory.

    Of RocksDB it holds the changelogs after the snapshot and one batch of rows. Close the reader, or use it in a
    ``with`` statement, if it is not read to its end: it may have a temporary folder.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        batch: The id of a committed batch, by default the newest.
        shape: As for ``read_state_arrow``; ``initial-state`` is in memory as a whole.
        partition_id: Keep the state partition of each row.
        jobs: How many processes read large state at a time; by default one per core.
        storage_options: For the file system of the path.
        part: The part of the state.

    Raises:
        CkptError: As for ``read_state_arrow``; of the files also while batches are read.

    >>> with ckpt.read_state_batches("sample_checkpoints/aggregation-hdfs-4.2") as reader:
    ...     sum(batch.num_rows for batch in reader)
    7
    """
    question = StateRequest(fspath(checkpoint), RequestedPart(**part), batch=batch)
    return _open_reader(question, shape, partition_id, jobs, storage_options)


def _open_reader(
    question: StateRequest, shape: str, partition_id: bool, jobs: int | None, storage_options: Mapping[str, str] | None
) -> pa.RecordBatchReader:
    if shape not in list(Shape):
        raise UsageError.of("{--shape=} must be one of {shapes}", shape=shape, shapes=", ".join(Shape))
    if shape == Shape.INITIAL_STATE:
        return _read_initial(question, partition_id, jobs, storage_options)
    chosen = choose(question, storage_options)
    (unit,) = chosen.units
    columns = None if shape == Shape.RAW else columns_of(unit, partition_id=partition_id)
    schema = raw_schema(unit) if columns is None else flat_schema(columns)
    return pa.RecordBatchReader.from_batches(schema, map_partitions(chosen, unit, batches_of, columns, jobs))


def _read_initial(
    question: StateRequest, partition_id: bool, jobs: int | None, storage_options: Mapping[str, str] | None
) -> pa.RecordBatchReader:
    """One row for each grouping key of the one operator that there is, or that was asked for."""
    check_question(question)
    if partition_id:
        raise UsageError(BOOK.text("initial_no_partition"))
    chosen = choose(replace(question, all_units=True), storage_options)
    by_operator = groupby(chosen.units, lambda unit: unit.operator)
    shapes = [plan_initial_shape(list(units), question.checkpoint) for _, units in by_operator]
    if len(shapes) > 1:
        raise ask_which_operator(question, shapes)
    return read_initial_table(chosen, shapes[0], jobs).to_reader()
