"""The rows that are to be state, unit by unit, and where they come from: frames in memory, or an export."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ckpt.copies.fill.fitting import Misfit
from ckpt.copies.fill.frames import MATCHED, read_columns
from ckpt.errors import CkptError, UsageError
from ckpt.state.reading.units import StateUnit
from ckpt.storage.base import one_line


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a unit, and the file that they are in."""

    name: str | None
    table: Any


@dataclass(frozen=True, slots=True)
class Origin:
    """Where rows were before they were put together, part by part: the file, if any, and each row's place in it."""

    parts: Sequence[tuple[str | None, Sequence[int]]]

    def locate_row(self, row: int) -> tuple[str | None, int]:
        """The name of the file that a row was in, if any, and its place there, from 0 on."""
        part = 0
        while row >= len(self.parts[part][1]):
            row -= len(self.parts[part][1])
            part += 1
        name, places = self.parts[part]
        return name, int(places[row])


@dataclass(frozen=True, slots=True)
class Taken:
    """The rows of a unit, checked against its schema."""

    unit: StateUnit
    columns: Sequence[Any]  # of the unit's schema
    matched: Any  # of a join side: what the column of that name says, or NULL
    place: str
    origin: Origin

    def __len__(self) -> int:
        return len(self.columns[0])

    def make_error(self, misfit: Misfit) -> CkptError:
        """The error that names a row as its owner counts: from 1 on, in its file."""
        name, row = (None, None) if misfit.row is None else self.origin.locate_row(misfit.row)
        if misfit.other is None:
            return _make_error(self.place, self.unit, name, row, misfit.why)
        other_name, other = self.origin.locate_row(misfit.other)
        which = f"row {other + 1}" + (f", {other_name}" if other_name != name else "")
        return _make_error(self.place, self.unit, name, row, f"{misfit.why} {which}")


def take_piece(source_name: str, unit: StateUnit, exported: Collection[str] | None, piece: Piece) -> Taken:
    """Read rows of a unit. Raises CkptError where they are not as its schema says."""
    try:
        columns, matched = read_columns(unit, piece.table, exported), _take_matched(piece.table)
    except Misfit as misfit:
        raise _make_error(source_name, unit, piece.name, misfit.row, misfit.why) from None
    return Taken(unit, columns, matched, source_name, Origin([(piece.name, range(piece.table.num_rows))]))


def _take_matched(table: Any) -> Any:
    """The column ``matched``, or NULL. Raises Misfit."""
    if MATCHED not in table.column_names:
        return pa.nulls(table.num_rows, pa.bool_())
    column = table.column(MATCHED).combine_chunks()
    if not pa.types.is_boolean(column.type):
        raise Misfit(None, f"{MATCHED} has the Arrow type {column.type}, and must be true or false")
    return column


def _make_error(source_name: str, unit: StateUnit, name: str | None, row: int | None, why: str) -> CkptError:
    where = [unit.label, *([f"row {row + 1}"] if row is not None else []), *([name] if name else [])]
    return CkptError(one_line(f"{source_name}: {', '.join(where)}: {why}"))


@dataclass(frozen=True, slots=True)
class Frames:
    """Tables in memory, by the label of their unit."""

    tables: Mapping[str, Any]
    place: str = "frames"

    @property
    def labels(self) -> Collection[str]:
        """The units of which there are rows."""
        return self.tables.keys()


def table_of(frame: Any) -> Any:
    """A frame as an Arrow table: of Arrow, of pandas, or of Spark. Raises UsageError for anything else."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatchReader):
        return frame.read_all()
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if hasattr(frame, "toArrow"):  # of Spark 4
        return frame.toArrow()
    if hasattr(frame, "toPandas"):
        frame = frame.toPandas()
    if type(frame).__module__.partition(".")[0] == "pandas":
        try:
            return pa.Table.from_pandas(frame, preserve_index=False)
        except pa.ArrowException as error:
            raise UsageError(f"`frames`: Arrow cannot make a table of it: {one_line(str(error))}") from None
    raise UsageError(f"`frames`: {type(frame).__name__} is neither an Arrow table nor a DataFrame of pandas or Spark")
