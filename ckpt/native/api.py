"""State as Arrow tables, without Spark: ``read_state_arrow``, ``read_state_batches``."""

from collections.abc import Generator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any, Unpack

import pyarrow as pa

from ckpt.errors import UsageError
from ckpt.export.choose import Part, Wanted
from ckpt.export.columns import Columns, flat_columns
from ckpt.export.initial import check_question, initial_shape, which_one
from ckpt.export.reading import Chosen, Question, choose
from ckpt.export.targets import Shape
from ckpt.formats.types import fields_of
from ckpt.model import Json
from ckpt.native import shapes
from ckpt.native.entries import entries_of
from ckpt.native.initial import initial_table
from ckpt.native.layout import layout_of
from ckpt.state.units import StateUnit, UnitKind


def read_state_arrow(
    path: str,
    *,
    batch: int | None = None,
    shape: str = "flat",
    partition_id: bool = False,
    storage_options: Mapping[str, str] | None = None,
    **part: Unpack[Part],
) -> Any:
    """The state of a checkpoint after a committed batch, as a ``pyarrow.Table``, read without Spark.

    Columns, names and values are those of ``read_state``; which unit is read is said in the same way. What is damaged,
    or not understood, is refused with its name. The order of rows is that of the files.

    Args:
        path: A local path, or any URI that ``open_checkpoint`` opens.
        batch: The id of a committed batch, by default the newest.
        shape: ``flat`` (a column for each leaf: ``key_user``, ``value_count``), ``raw`` (Spark's structs) or
            ``initial-state`` (one row for each grouping key, as of ``read_initial_state``).
        partition_id: Keep the state partition of each row.
        storage_options: For the file system of the path.
        part: Which part of the state.

    Raises:
        StateDamaged: Files of that state are missing or damaged.
        UsageError: A choice that does not exist.
        CkptError: The bytes are damaged, or of a kind that only Spark reads; the text names file and reason.
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.

    >>> ckpt.read_state_arrow("sample_checkpoints/aggregation-hdfs-4.2").column_names
    ['key_key', 'value_count', 'value_sum']

    """
    wanted = Wanted(**part)
    with _reader(Question(path, wanted, batch=batch), shape, partition_id, storage_options) as reader:
        return reader.read_all()


def read_state_batches(
    path: str,
    *,
    batch: int | None = None,
    shape: str = "flat",
    partition_id: bool = False,
    storage_options: Mapping[str, str] | None = None,
    **part: Unpack[Part],
) -> Any:
    """The same as a ``pyarrow.RecordBatchReader``: some rows at a time, so that memory holds one partition at most.

    Of RocksDB it holds the changelogs after the snapshot and one batch of rows. Close the reader, or use it in a
    ``with`` statement, if it is not read to its end: it may have a temporary folder.

    Args:
        path: A local path, or any URI that ``open_checkpoint`` opens.
        batch: The id of a committed batch, by default the newest.
        shape: As of ``read_state_arrow``; ``initial-state`` is in memory as a whole.
        partition_id: Keep the state partition of each row.
        storage_options: For the file system of the path.
        part: Which part of the state.

    Raises:
        CkptError: As of ``read_state_arrow``; of the files also while batches are read.

    >>> with ckpt.read_state_batches("sample_checkpoints/aggregation-hdfs-4.2") as reader:
    ...     sum(batch.num_rows for batch in reader)
    7

    """
    wanted = Wanted(**part)
    return _reader(Question(path, wanted, batch=batch), shape, partition_id, storage_options)


def _reader(question: Question, shape: str, partition_id: bool, storage_options: Mapping[str, str] | None) -> Any:
    if shape not in list(Shape):
        raise UsageError(f"`shape={shape!r}`: one of {', '.join(Shape)}")
    if shape == Shape.INITIAL_STATE:
        return _initial(question, partition_id, storage_options)
    chosen = choose(question, storage_options)
    (unit,) = chosen.units
    if shape == Shape.RAW:
        return pa.RecordBatchReader.from_batches(shapes.raw_schema(unit), raw_batches(chosen, unit))
    columns = columns_of(unit, partition_id=partition_id)
    found = (shapes.flat(columns, one) for one in raw_batches(chosen, unit))
    return pa.RecordBatchReader.from_batches(shapes.flat_schema(columns), found)


def _initial(question: Question, partition_id: bool, storage_options: Mapping[str, str] | None) -> Any:
    """One row for each grouping key of the one operator that there is, or that was asked for."""
    check_question(question)
    if partition_id:
        raise UsageError("`partition_id`: a grouping key has no partition once its query keeps its state elsewhere")
    chosen = choose(replace(question, all_units=True), storage_options)
    by_operator = groupby(chosen.units, lambda unit: unit.operator)
    found = [initial_shape(list(units), question.checkpoint) for _, units in by_operator]
    if len(found) > 1:
        raise which_one(question, found)
    return initial_table(chosen, found[0]).to_reader()


def columns_of(unit: StateUnit, *, partition_id: bool = False) -> Columns:
    """The flat columns of a unit."""
    fields = fields_of(unit.schema) or []
    partition: Json = {"name": "partition_id", "type": "integer", "nullable": True, "metadata": {}}
    schema: Json = {"type": "struct", "fields": [*fields, partition]}
    return flat_columns(schema, partition_id=partition_id, only_keys=unit.kind is UnitKind.DEDUPLICATION)


def raw_batches(chosen: Chosen, unit: StateUnit, only: int | None = None) -> Generator[Any, None, None]:
    """All rows of a unit, or of one partition, as Spark's reader gives them."""
    layout = layout_of(chosen, unit)
    for entries in entries_of(chosen, unit, layout, only):
        yield shapes.raw(unit, entries)
