"""Where an export goes, what may be replaced there, and which types each format stores; checked without a JVM."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ckpt.advice import Option, join
from ckpt.errors import CkptError, NotFound, UsageError
from ckpt.formats.types import repeated_field
from ckpt.state.book import BOOK
from ckpt.state.reading.columns import Column, Shape, holds_void, type_names
from ckpt.storage import open_storage
from ckpt.storage.locations import READ_ONLY, is_inside, is_read_only, spark_uri
from ckpt.texts import mask_secrets

MANIFEST = "_ckpt_export.json"
"""The file next to the data that says what it is; readers of Spark ignore names that begin with ``_``."""

_MARKS = (MANIFEST, "_SUCCESS", "_delta_log")  # one of them is in every folder that Spark or ckpt has written


class Format(StrEnum):
    """The data source that writes; the value is Spark's word for it."""

    PARQUET = "parquet"
    DELTA = "delta"
    JSON = "json"
    CSV = "csv"


class Mode(StrEnum):
    """The ways to deal with something that is there already."""

    ERROR = "error"
    OVERWRITE = "overwrite"


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """Where an export is to go: a folder, or a table of the session's catalog."""

    path: str | None  # as Spark is given it
    table: str | None
    format: Format = Format.PARQUET
    mode: Mode = Mode.ERROR
    given: str | None = None  # the path as it was given

    @property
    def name(self) -> str:
        """The path or table, for showing."""
        return self.path or self.table or ""

    @property
    def shown(self) -> str:
        """The target as it was given."""
        return self.given or self.name


def choose_target(to: str | None, table: str | None, kind: Format, mode: Mode, checkpoint: str) -> ExportTarget:
    """Choose the target that was asked for. Raises UsageError for two, or one that would touch the checkpoint."""
    if to is not None and table is not None:
        raise UsageError.of("give {--to} or {--table}, not both")
    if to is None:
        return ExportTarget(None, table, kind, mode)
    path = spark_uri(to)
    if mask_secrets(path) != path:
        raise UsageError(BOOK.text("export_target_hides", to=to))
    folder_and_name(path)
    if is_inside(to, checkpoint) or is_inside(checkpoint, to):
        raise UsageError(BOOK.text("export_in_checkpoint", to=to))
    return ExportTarget(path, None, kind, mode, to)


def local_target(uri: str) -> str | None:
    """The local path of a place as Spark is given it, or None where it is remote."""
    return uri.removeprefix("file:") if uri.startswith("file:") else None


def folder_and_name(path: str) -> tuple[str, str]:
    """The folder of a place, and its name there. Raises UsageError for the top of a file system or bucket."""
    match = re.fullmatch(r"([\w+.-]+:(?://[^/]*)?+(?:/+[^/]+)*)/+([^/]+)", path.rstrip("/"))
    if match is None:
        raise UsageError(BOOK.text("export_below_folder", to=path))
    return match[1], match[2]


def check_target(target: ExportTarget, names: Collection[str] | None) -> None:
    """Raise UsageError if a target exists and must not be replaced.

    ``names`` are the names in the folder there; None if it is a file.
    """
    shown = target.shown
    if names is None or (names and not any(mark in names for mark in _MARKS)):
        raise UsageError(f"{shown} exists and is not an export, so it is not overwritten; name another target")
    if target.mode is Mode.ERROR:
        raise UsageError.of("{shown} already exists: {--mode=overwrite} replaces it", shown=shown)
    if "_delta_log" in names and target.format is not Format.DELTA:
        raise UsageError(BOOK.text("export_over_delta", shown=shown))


def check_place(target: ExportTarget, checkpoint: str, storage_options: Mapping[str, str]) -> str | None:
    """Refuse a target that is taken or cannot be written, as far as that is visible without a JVM.

    ``storage_options`` are those of the checkpoint, and hold for a target of the same scheme. Returns None, or why a
    remote target could not be checked: then only Spark can. Raises UsageError.
    """
    if target.path is None:
        return None
    path = local_target(target.path)
    if path is not None:
        _check_local(Path(path), target)
        return None
    same = spark_uri(checkpoint).partition(":")[0] == target.path.partition(":")[0]
    try:
        level = open_storage(target.shown, storage_options if same else {}).list_level()
    except NotFound:
        return None
    except CkptError as error:
        return str(error)
    check_target(target, {*level.files, *level.folders})
    return None


def check_free(target: ExportTarget) -> None:
    """Raise UsageError if a new local folder exists and is not empty; Spark checks remote ones."""
    path = local_target(target.name)
    if path is not None and os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path)):
        raise UsageError(BOOK.text("export_exists", shown=target.shown))


def _check_local(path: Path, target: ExportTarget) -> None:
    """Look at a local target, and whether its folder can be written to."""
    try:
        if path.is_dir():
            check_target(target, [entry.name for entry in path.iterdir()])
        elif path.exists():
            check_target(target, None)
        above = next(folder for folder in path.parents if folder.exists())
    except OSError as error:
        raise UsageError(BOOK.text("export_unchecked", given=target.given, why=error.strerror)) from error
    if not above.is_dir():
        raise UsageError(BOOK.text("export_below_file", given=target.given, above=above))
    if is_read_only(str(above)):
        raise UsageError.of("{--to} {given}: {above}: {why}", given=target.given, above=above, why=READ_ONLY)
    if not os.access(above, os.W_OK | os.X_OK):
        raise UsageError.of("{--to} {given}: no permission to write in {above}", given=target.given, above=above)


_NESTED = frozenset({"array", "map", "struct"})
_INTERVALS = ("interval", "calendarinterval")
_OTHERS = {
    Format.CSV: (Format.PARQUET, Format.DELTA, Format.JSON),
    Format.DELTA: (Format.PARQUET,),
    Format.PARQUET: (Format.JSON,),
    Format.JSON: (Format.PARQUET,),
}


def check_types(columns: Iterable[Column], kind: Format, shape: Shape = Shape.FLAT) -> None:
    """Raise UsageError for a column whose type a format does not store, naming it and the arguments that help."""
    for column in columns:
        repeated = repeated_field(column.type)
        if repeated is not None:
            again = {"column": column.name, "repeated": repeated}
            raise UsageError(BOOK.text("export_repeated", shape=Shape.FLAT, **again))
        refused = _find_refused_type(column, kind)
        if refused is None:
            continue
        flat_helps = refused == _VOID or (shape is Shape.RAW and refused == "struct")
        cures = [Option("shape", Shape.FLAT)] if flat_helps else []
        if refused != _VOID:
            cures += (Option("format", other) for other in _OTHERS[kind])
        parts = {"column": column.name, "refused": refused, "cures": join(cures, " or ")}
        raise UsageError(BOOK.text("export_type", format=kind, **parts))


_VOID = "void"


def _find_refused_type(column: Column, kind: Format) -> str | None:
    if holds_void(column.type):
        return _VOID
    refuses: dict[Format, Callable[[str], bool]] = {
        Format.CSV: lambda name: name in _NESTED or name == "binary" or name.startswith("variant"),
        Format.DELTA: lambda name: name.startswith(_INTERVALS),
        Format.PARQUET: lambda name: name in _INTERVALS,  # of months, days and microseconds at once
        Format.JSON: lambda _: False,
    }
    return next(filter(refuses[kind], type_names(column.type)), None)
