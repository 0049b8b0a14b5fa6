"""Obstacles to an export, as far as they are visible without a JVM: refused before one is started."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from ckpt.errors import CkptError, NotFound, UsageError
from ckpt.state.export.targets import ExportTarget, check_target, check_types, local_target
from ckpt.state.reading.columns import Column, Shape, top_columns
from ckpt.state.reading.reading import Reading
from ckpt.storage import open_storage
from ckpt.storage.locations import spark_uri


def check_export(
    checkpoint: str,
    promised: Iterable[tuple[Column, ...]],
    shape: Shape,
    target: ExportTarget,
    storage_options: Mapping[str, str],
) -> str | None:
    """Refuse an export that cannot be: the format lacks a type, or the target is taken or cannot be written.

    ``promised`` are the columns of each part, as far as they are known; ``storage_options`` are those of the
    checkpoint, and hold for a target of the same scheme. Returns None, or why a remote target could not be checked:
    then only Spark can. Raises UsageError.
    """
    for columns in promised:
        check_types(columns, target.format, shape)
    if target.path is None:
        return None
    path = local_target(target.path)
    if path is not None:
        _check_local(Path(path), target)
        return None
    same = spark_uri(checkpoint).partition(":")[0] == target.path.partition(":")[0]
    return _check_remote(target, storage_options if same else {})


def list_promised_columns(reading: Reading, shape: Shape, *, partition_id: bool = False) -> tuple[Column, ...]:
    """The columns that will be written, as far as the files say; none if they do not."""
    schema = reading.schema
    match shape:
        case Shape.FLAT if schema is not None:
            return reading.columns(schema, partition_id=partition_id).kept
        case Shape.RAW if schema is not None:
            return top_columns(schema)
    return ()


def check_free(target: ExportTarget) -> None:
    """Raise UsageError if a new local folder exists and is not empty; Spark checks remote ones."""
    path = local_target(target.name)
    if path is not None and os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path)):
        raise UsageError(f"`to` {target.shown}: it exists already and is not changed: name a new folder")


def _check_local(path: Path, target: ExportTarget) -> None:
    """Look at a local target, and whether its folder can be written to."""
    try:
        if path.is_dir():
            check_target(target, [entry.name for entry in path.iterdir()])
        elif path.exists():
            check_target(target, None)
        above = next(folder for folder in path.parents if folder.exists())
    except OSError as error:
        raise UsageError(f"`to` {target.given}: it cannot be checked: {error.strerror}") from error
    if not above.is_dir():
        raise UsageError(f"`to` {target.given}: {above} is a file, so nothing can be written below it")
    if not os.access(above, os.W_OK | os.X_OK):
        raise UsageError(f"`to` {target.given}: no permission to write in {above}")


def _check_remote(target: ExportTarget, options: Mapping[str, str]) -> str | None:
    """Check a remote target through ckpt's own storage interface; why not, if that cannot open it."""
    try:
        level = open_storage(target.shown, options).list_level()
    except NotFound:
        return None
    except CkptError as error:
        return str(error)
    check_target(target, {*level.files, *level.folders})
    return None
