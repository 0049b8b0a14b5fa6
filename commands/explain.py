"""ckpt explain."""

import sys
from pathlib import Path
from typing import Annotated

import typer

import ckpt
from ckpt.advice import call
from ckpt.calls.tried_advice import leave_out_impossible
from ckpt.checkpoint.reader import open_to_look
from ckpt.errors import StorageError, UsageError, one_line
from ckpt.inspection.explain.explain import Explanation
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.storage.local import ends

from . import options
from .render.explain import ExplanationReport
from .report import Output, emit

_BATCHES = 10


def explain(
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="[TEXT | FILE | -]", help="A message, a log (.gz too), or - for standard input.", show_default=False
        ),
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="CHECKPOINT", help="Check whether this checkpoint shows the error.")
    ] = None,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
) -> None:
    """Explain an error message or a driver log, and how to fix it.

    Looks it up in a local catalog: nothing is sent anywhere, and nothing is guessed.

    Examples:
    ckpt explain "batch 308 doesn't exist"
    ckpt explain driver.log --checkpoint /cp/orders

    Exit status: 0 found, 1 not in the catalog, 2 bad usage, 3 could not do it.
    """
    storage_options = options.pairs("storage_options", storage_option)
    if storage_option and checkpoint is None:
        raise UsageError.of("{--storage-options} is for {--checkpoint}")
    inspection = None
    if checkpoint is not None:
        inspection = inspect(open_to_look(checkpoint, storage_options, batches=_BATCHES))
        inspection = leave_out_impossible(inspection, checkpoint, storage_options)
    emit(ExplanationReport(_explain_text(text, inspection)), output)


def _explain_text(text: str | None, inspection: Inspection | None) -> Explanation:
    if text is None or text in ("-", "/dev/stdin"):
        if sys.stdin.isatty():
            raise UsageError("give the text of the error or a file that contains it, or pipe the text in")
        return _read("standard input", None, inspection)
    if not text.strip():
        raise UsageError("the text is empty")
    if (readable := _is_readable(text)) is not None:
        if not readable:
            raise UsageError.of(
                "{text} is not a file: name a file, or pipe the text into {explain}",
                text=one_line(text),
                explain=call("explain"),
            )
        return _read(text, Path(text), inspection)
    if " " not in text.strip() and ("/" in text or Path(text).suffix in (".log", ".txt", ".gz", ".out", ".err")):
        raise UsageError(f"there is no file {one_line(text)}")
    return ckpt.explain(text, checkpoint=inspection)


def _is_readable(text: str) -> bool | None:
    """True for a file that ends; False for a folder, or a file that may never end; None if nothing has this name."""
    try:
        return ends(text)
    except (OSError, ValueError):  # too long for a name, or not one
        return None


def _read(name: str, path: Path | None, inspection: Inspection | None) -> Explanation:
    try:
        if path is None:
            return ckpt.explain(sys.stdin.buffer, checkpoint=inspection)
        with path.open("rb") as file:
            return ckpt.explain(file, checkpoint=inspection)
    except OSError as error:
        raise StorageError(f"{one_line(name)} cannot be read: {getattr(error, 'strerror', None) or error}") from error
