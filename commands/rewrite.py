"""ckpt rewrite."""

from dataclasses import asdict
from typing import Annotated

import typer

import ckpt

from . import options
from .form_options import FormOptions
from .render.rewriting import RewriteReport
from .report import Output, emit
from .watching import bar, interruptible


@options.grouped
def rewrite(
    checkpoint: options.CheckpointArg,
    form: FormOptions,
    drop_keys: Annotated[
        str | None,
        typer.Option("--drop-keys", metavar="FILE", help='Leave out these keys: lines such as {"user": "x"}.'),
    ] = None,
    jobs: options.JobsOption = None,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Write a checkpoint NEW with the state of CHECKPOINT in another form, or without some of its keys.

    CHECKPOINT is only read; starts no JVM. Exit status: 0 written or planned, 2 bad usage, 3 could not do it.
    """
    given = options.pairs("--storage-option", storage_option)
    options.check_stays(form.into)
    with interruptible(), bar(quiet=quiet, of="partitions") as watcher:
        found = ckpt.rewrite_checkpoint(
            checkpoint, storage_options=given, drop_keys=drop_keys or (), jobs=jobs, watcher=watcher, **asdict(form)
        )
    emit(RewriteReport(found, checkpoint), output)
