"""Where an export goes, and which types each format stores."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ckpt.errors import UsageError
from ckpt.export.columns import Column, holds_void, type_names
from ckpt.export.mount import spark_uri

MANIFEST = "_ckpt_export.json"
"""The file beside the data that says what it is; readers of Spark ignore names that begin with ``_``."""


class Shape(StrEnum):
    """What the rows of an export look like."""

    RAW = "raw"  # as Spark's reader gives them
    FLAT = "flat"  # one column for each leaf
    INITIAL_STATE = "initial-state"  # one row for each grouping key


class Format(StrEnum):
    """The data source that writes; the value is Spark's word for it."""

    PARQUET = "parquet"
    DELTA = "delta"
    JSON = "json"
    CSV = "csv"


class Mode(StrEnum):
    """What becomes of something that is there already."""

    ERROR = "error"
    OVERWRITE = "overwrite"


@dataclass(frozen=True, slots=True)
class Target:
    """Where an export is to go: a folder, or a table of the session's catalog."""

    path: str | None  # as Spark is given it
    table: str | None
    format: Format = Format.PARQUET
    mode: Mode = Mode.ERROR

    @property
    def name(self) -> str:
        """The path or table, for showing."""
        return self.path or self.table or ""


_COMPLEX = frozenset({"array", "map", "struct"})
_INTERVALS = ("interval", "calendarinterval")
_CURES = {
    Format.CSV: "use --format parquet, delta or json, or leave the column out",
    Format.DELTA: "use --format parquet",
    Format.PARQUET: "use --format json",
    Format.JSON: "use --format parquet",
}


def target(to: str | None, table: str | None, kind: Format, mode: Mode, checkpoint: str) -> Target:
    """What was asked for. Raises UsageError for two targets, or one that would touch the checkpoint."""
    if to is not None and table is not None:
        raise UsageError("--to and --table: one of them")
    if to is None:
        return Target(None, table, kind, mode)
    path, home = spark_uri(to), spark_uri(checkpoint)
    if f"{path}/".startswith(f"{home}/") or f"{home}/".startswith(f"{path}/"):
        raise UsageError(f"--to {to} lies in the checkpoint, or the checkpoint in it: a checkpoint is never written to")
    return Target(path, None, kind, mode)


def check_types(columns: Iterable[Column], kind: Format) -> None:
    """Raise UsageError for a column whose type a format does not store, naming it."""
    for column in columns:
        refused = _refused(column, kind)
        if refused is not None:
            raise UsageError(f"--format {kind} cannot hold column {column.name} ({refused}): {_CURES[kind]}")


def _refused(column: Column, kind: Format) -> str | None:
    """The type inside a column that a format does not store."""
    names = list(type_names(column.type))
    if holds_void(column.type):
        return "void"
    for name in names:
        interval = name.startswith(_INTERVALS)
        if kind is Format.CSV and (name in _COMPLEX or name == "binary" or name.startswith("variant")):
            return name
        if kind is Format.DELTA and interval:
            return name
        if kind is Format.PARQUET and name in _INTERVALS:  # of months, days and microseconds at once
            return name
    return None
