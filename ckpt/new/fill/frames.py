"""Rows of a unit, of frames or an export, as the columns of Spark's reader: the inverse of ``state.native.entries``."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from ckpt.errors import CkptError, UsageError, one_line
from ckpt.formats.operators import AGGREGATIONS, OperatorName
from ckpt.formats.rows.types import arrow_type
from ckpt.formats.types import fields_of, named_fields, type_at
from ckpt.model import Json
from ckpt.new.book import BOOK
from ckpt.new.evolve.origins import is_nullable
from ckpt.new.fitting import Misfit, check_not_null, fit_array, make_struct
from ckpt.state.reading.columns import BLURRED, PARTITION, Column, all_may_be_null, columns_of, find_blurred, holds_void
from ckpt.state.reading.units import StateUnit

MATCHED = "matched"
"""Of a join side: whether a row was joined already. Not in an export; it may be given for rows."""

_IGNORED = re.compile(rf"{PARTITION}|__index_level_\d+__")
"""Columns that are not state: Spark's own, and the index that pandas writes."""


_VALUES = frozenset({"value", "list_element", "user_map_value"})
"""Parts of a row whose columns may have grown since; keys may not."""

_AGGREGATING = AGGREGATIONS | {OperatorName.SESSIONS}
_NO_ROW_YET = frozenset({"max", "min", "bit_and", "bit_or", "bit_xor"})
"""Buffers in which NULL says that no row was seen; to others, as those of an average, it is NULL forever."""


def read_columns(unit: StateUnit, table: pa.Table, exported: Collection[str] | None = None) -> list[pa.Array]:
    """The columns of the unit's schema, of their Arrow types. Raises Misfit.

    ``exported`` are the columns that an export had: others of the flat shape that may be NULL came with another query,
    and are NULL. A column that it had is never missing by intention.
    """
    rows = np.arange(table.num_rows)
    names = [name for name, _ in named_fields(unit.schema)]
    headers = [name for name in table.column_names if not (_IGNORED.fullmatch(name) or (unit.side and name == MATCHED))]
    if len(set(headers)) < len(headers):
        raise Misfit(None, f"the column {next(name for name in headers if headers.count(name) > 1)} occurs twice")
    raw = any(name in names and pa.types.is_struct(table.schema.field(name).type) for name in headers)
    if raw:
        return _read_raw(unit, table, headers, rows)
    for column in [*_find_new_columns(unit, headers, exported)]:
        table = table.append_column(column.name, pa.nulls(len(rows), arrow_type(column.type)))
        headers.append(column.name)
    return _read_flat(unit, table, headers, rows)


def _find_new_columns(unit: StateUnit, headers: list[str], exported: Collection[str] | None) -> Iterator[Column]:
    """Columns of values that came with another query. Raises Misfit for one that cannot be NULL, or be told."""
    kept = columns_of(unit).kept
    for column in kept if exported is not None else ():
        if column.name in headers or column.name in (exported or ()) or column.path[0] not in _VALUES:
            continue
        if sum(other.path == column.path for other in kept) > 1:
            raise Misfit(
                None, f"{column.name} is new, and several columns are called {column.path[-1]}: add the column"
            )
        if not is_nullable((fields_of(type_at(unit.schema, column.places[:-1])) or [])[column.places[-1]]):
            raise Misfit(None, f"{column.name} is new, and must not be NULL: add the column")
        if unit.operator_name in _AGGREGATING and column.path[-1] not in _NO_ROW_YET:
            raise Misfit(
                None, f"{column.name} is new, and its value for a group without rows is unknown: add the column"
            )
        yield column


def _read_raw(unit: StateUnit, table: pa.Table, headers: list[str], rows: np.ndarray) -> list[pa.Array]:
    kinds = dict(named_fields(unit.schema))
    _check_columns(headers, [name for name, kind in kinds.items() if not holds_void(kind)], list(kinds))
    columns = []
    for name, kind in kinds.items():
        if name not in headers:
            voids = [pa.nulls(len(rows), arrow_type(own)) for _, own in named_fields(kind)]
            columns.append(make_struct(kind, voids, np.ones(len(rows), bool)))  # of void, or of nothing: no file has it
            continue
        array = fit_array(kind, table.column(name), rows, name)
        check_not_null({"nullable": False}, array, rows, name)
        columns.append(array)
    return columns


def _check_columns(headers: list[str], needed: list[str], known: list[str]) -> None:
    """Raise Misfit for a column that is missing, or is not one."""
    missing = [name for name in needed if name not in headers]
    strange = [name for name in headers if name not in known]
    if missing:
        raise Misfit(None, f"the column {missing[0]} is missing; the columns should be {', '.join(needed)}")
    if strange:
        raise Misfit(None, (f"the column {strange[0]} is not in the state; the columns should be {', '.join(needed)}"))


def _read_flat(unit: StateUnit, table: pa.Table, headers: list[str], rows: np.ndarray) -> list[pa.Array]:
    kept = columns_of(unit).kept
    names = [column.name for column in kept]
    _check_columns(headers, names, names)
    leaves = {
        column.places: (column, fit_array(column.type, table.column(column.name), rows, column.name)) for column in kept
    }
    tree = _Tree(rows, leaves, {places: ".".join(path) for path, places in find_blurred(unit.schema)})
    everywhere: np.ndarray = np.ones(len(rows), bool)
    return [
        tree.build_leaf((ordinal,), {"nullable": False}, everywhere)
        if (ordinal,) in leaves
        else tree.build_struct((ordinal,), kind, everywhere)
        for ordinal, (_, kind) in enumerate(named_fields(unit.schema))
    ]


@dataclass(frozen=True, slots=True)
class _Tree:
    """Leaves that are put back into structs."""

    rows: np.ndarray
    leaves: Mapping[tuple[int, ...], tuple[Column, pa.Array]]
    blurred: Mapping[tuple[int, ...], str]  # structs of which the flat shape does not tell NULL from one of NULLs

    def build_leaf(self, places: tuple[int, ...], own: Json, there: np.ndarray) -> pa.Array:
        column, array = self.leaves[places]
        check_not_null(own, array, self.rows, column.name, there)
        return array

    def build_struct(self, places: tuple[int, ...], kind: Json, there: np.ndarray) -> pa.Array:
        """The struct at a position, which is NULL where it is not ``there``."""
        columns = []
        for ordinal, own in enumerate(fields_of(kind) or ()):
            at = (*places, ordinal)
            inner = own.get("type") if isinstance(own, dict) else None
            if at in self.leaves:
                columns.append(self.build_leaf(at, own, there))
            elif fields_of(inner):
                columns.append(self.build_struct(at, inner, there & self._find_present(at, own)))
            else:
                columns.append(pa.nulls(len(self.rows), arrow_type(inner)))
        return make_struct(kind, columns, there)

    def _find_present(self, places: tuple[int, ...], own: Json) -> np.ndarray:
        """Where a struct below key or value is not NULL."""
        inside = [array for at, (_, array) in self.leaves.items() if at[: len(places)] == places]
        empty: np.ndarray = np.ones(len(self.rows), bool)
        for array in inside:
            empty &= np.asarray(array.is_null())
        if places in self.blurred:
            if empty.any():
                name = self.blurred[places]
                row = int(self.rows[np.argmax(empty)])
                raise Misfit(row, f"the flat shape does not show of {name} {BLURRED}: export it with the shape raw")
            return ~empty
        if all_may_be_null(own) or not isinstance(own, dict) or own.get("nullable") is False:
            return np.ones(len(self.rows), bool)
        return ~empty


@dataclass(frozen=True, slots=True)
class UnitRows:
    """The rows of a unit, checked against its schema."""

    unit: StateUnit
    columns: Sequence[pa.Array]  # of the unit's schema
    matched: pa.BooleanArray | None  # of a join side: what the column of that name says, or NULL
    place: str
    parts: Sequence[tuple[str | None, Sequence[int]]]  # each file that rows come from, if any, and their places in it

    def __len__(self) -> int:
        return len(self.columns[0])

    def make_error(self, misfit: Misfit) -> CkptError:
        """The error that names a row as its owner counts: from 1 on, in its file."""
        name, row = (None, None) if misfit.row is None else self._locate_row(misfit.row)
        if misfit.other is None:
            return _make_error(self.place, self.unit, name, row, misfit.why)
        other_name, other = self._locate_row(misfit.other)
        which = f"row {other + 1}" + (f", {other_name}" if other_name != name else "")
        return _make_error(self.place, self.unit, name, row, f"{misfit.why} {which}")

    def _locate_row(self, row: int) -> tuple[str | None, int]:
        """The name of the file that a row was in, if any, and its place there, from 0 on."""
        rows = ((name, number) for name, places in self.parts for number in places)
        name, number = next(islice(rows, row, None))
        return name, int(number)


def check_table(
    source_name: str, unit: StateUnit, exported: Collection[str] | None, name: str | None, table: pa.Table
) -> UnitRows:
    """Read rows of a unit, of a file of that name. Raises CkptError where they are not as its schema says."""
    try:
        columns, matched = read_columns(unit, table, exported), _take_matched(table)
    except Misfit as misfit:
        raise _make_error(source_name, unit, name, misfit.row, misfit.why) from None
    return UnitRows(unit, columns, matched, source_name, [(name, range(table.num_rows))])


def _take_matched(table: pa.Table) -> pa.BooleanArray:
    """The column ``matched``, or NULL. Raises Misfit."""
    if MATCHED not in table.column_names:
        return pa.nulls(table.num_rows, pa.bool_())
    column = table.column(MATCHED).combine_chunks()
    if not pa.types.is_boolean(column.type):
        raise Misfit(None, f"{MATCHED} has the Arrow type {column.type}, but must be boolean")
    return column


def _make_error(source_name: str, unit: StateUnit, name: str | None, row: int | None, why: str) -> CkptError:
    where = [unit.label, *([f"row {row + 1}"] if row is not None else []), *([name] if name else [])]
    return CkptError(one_line(f"{source_name}: {', '.join(where)}: {why}"))


@dataclass(frozen=True, slots=True)
class Frames:
    """Tables in memory, by the label of their unit."""

    units: Mapping[str, Any]
    place: str = "frames"


def table_of(frame: Any) -> pa.Table:
    """A frame as an Arrow table: of Arrow, of pandas, or of Spark. Raises UsageError for anything else."""
    if isinstance(frame, pa.RecordBatchReader):
        return frame.read_all()  # what fails in it is raised as it is, which ``pa.table`` hides in an error of Arrow
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return pa.table(frame)
    if hasattr(frame, "toArrow"):  # of Spark 4
        return frame.toArrow()
    if hasattr(frame, "toPandas"):
        frame = frame.toPandas()
    if type(frame).__module__.partition(".")[0] == "pandas":
        try:
            return pa.Table.from_pandas(frame, preserve_index=False)
        except pa.ArrowException as error:
            raise UsageError(BOOK.text("frames_no_table", error=one_line(str(error)))) from None
    raise UsageError(BOOK.text("frames_of_what", kind=type(frame).__name__))
