"""The answer of a statement: columns and rows, as records, lines of CSV, or a file of Parquet."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any

import pyarrow as pa

from ckpt.model import Json, Location
from ckpt.state.native.json_values import make_plain
from ckpt.tables.connect import connect, list_problems, read_results, run_sql
from ckpt.texts import mask_json, mask_secrets
from ckpt.values import Value


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """A column of an answer."""

    name: Annotated[str, "unique: of two columns called `count`, the later is `count_2`"]
    type: Annotated[str, "as DuckDB writes types"]


@dataclass(frozen=True, slots=True)
class Answer(Value):
    """All rows of a statement."""

    columns: tuple[AnswerColumn, ...]
    rows: tuple[dict[str, Json], ...]
    problems: tuple[str, ...]  # roots and checkpoints that could not be read


def sql(
    statement: str, *roots: Location, depth: int | None = None, storage_options: Mapping[str, str] | None = None
) -> Answer:
    """Run one SQL statement on the checkpoints below some roots, and return all rows.

    Args:
        statement: SQL in DuckDB's dialect; its tables are those of ``connect``, ``state(...)`` among them.
        roots: Local paths or URIs, of a checkpoint or of any folder above checkpoints.
        depth: How many levels below a root to search; 0 is only the root, None is all.
        storage_options: For the file system of the URIs.

    Raises:
        UsageError: It is not one statement, is wrong, or uses a file, an address or an extension; or there is no root.
        CkptError: DuckDB is not installed, or state cannot be read. Other unreadable parts are listed in ``problems``.

    >>> ckpt.sql("SELECT max(batch) AS newest FROM batches WHERE committed", "sample_checkpoints/kafka-4.2").rows
    ({'newest': 5},)
    """
    connection = connect(*roots, storage_options=storage_options, depth=depth)
    return read_answer(connection, run_sql(connection, statement))


def read_answer(connection: Any, relation: Any) -> Answer:
    """Read all rows of a relation of ``run_sql``. Raises as ``run_sql``."""
    rows = tuple(_read_rows(connection, relation))
    return Answer(_list_columns(relation), rows, list_problems(connection))


def list_json_lines(connection: Any, relation: Any) -> Iterator[str]:
    """The rows of a relation as JSON objects, one a line. Raises as ``run_sql``."""
    yield from (mask_json(json.dumps(row, default=str)) for row in _read_rows(connection, relation))


def list_csv_lines(connection: Any, relation: Any, escape: Callable[[str], str] = str) -> Iterator[str]:
    """The rows of a relation as CSV below their names; NULL is empty, what is nested is JSON. Raises as ``run_sql``."""
    yield _to_csv([escape(column.name) for column in _list_columns(relation)])
    for row in _read_rows(connection, relation):
        yield _to_csv([escape(mask_secrets(_to_text(value))) for value in row.values()])


def write_parquet(connection: Any, relation: Any, path: str) -> None:
    """Write a relation into a file of Parquet. Raises as ``run_sql``, and OSError."""
    import pyarrow.parquet as pq  # a table needs none of it

    names = [column.name for column in _list_columns(relation)]
    batches = (batch.rename_columns(names) for batch in read_results(connection, relation, even_empty=True))
    first = next(batches)
    with pq.ParquetWriter(path, first.schema) as writer:
        for batch in chain((first,), batches):
            writer.write_batch(batch)


def _list_columns(relation: Any) -> tuple[AnswerColumn, ...]:
    columns: list[AnswerColumn] = []
    taken: set[str] = set()
    for name, kind in zip(relation.columns, relation.types, strict=True):
        free, number = str(name), 1
        while free in taken:
            number += 1
            free = f"{name}_{number}"
        taken.add(free)
        columns.append(AnswerColumn(free, str(kind)))
    return tuple(columns)


def _read_rows(connection: Any, relation: Any) -> Iterator[dict[str, Json]]:
    names = [column.name for column in _list_columns(relation)]
    for batch in read_results(connection, relation):
        for row in zip(*map(_make_cells, batch.columns), strict=True):
            yield dict(zip(names, row, strict=True))


def _make_cells(array: Any) -> list[Json]:
    """Values as ``ckpt state show`` has them; sums, which DuckDB gives as decimals without fraction, as numbers."""
    array = array.cast(_in_micros(array.type), safe=False)
    if pa.types.is_decimal(array.type) and array.type.scale == 0:
        return [None if value is None else int(value) for value in array.to_pylist()]
    plain = (bool, int, float, str, list, dict)
    return [value if value is None or isinstance(value, plain) else str(value) for value in make_plain(array)]


def _in_micros(kind: Any) -> Any:
    """A type with all times in microseconds, as ``make_plain`` takes them."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_in_micros(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_in_micros(kind.key_type), _in_micros(kind.item_type))
    return pa.list_(_in_micros(kind.value_type)) if pa.types.is_list(kind) else kind


def _to_text(value: Json) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)


def _to_csv(cells: list[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()
