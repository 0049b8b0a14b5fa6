"""Options of commands that write a new checkpoint: where, and how it keeps its state."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from ckpt.migrate.provider import ToProvider

from .run_options import RunOptions, Workers
from .watching import bar

if TYPE_CHECKING:
    from ckpt.copies.copy.placing import Watcher
    from ckpt.spark.executors import Executors


@dataclass(frozen=True, slots=True)
class FormOptions:
    """Options for the place of a new checkpoint, and the form of its state."""

    into: Annotated[
        str,
        typer.Argument(metavar="NEW", help="A new or empty folder, local or remote."),
    ]
    provider: Annotated[
        ToProvider | None, typer.Option("--provider", help="The state store provider. Default: as now.")
    ] = None
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", min=1, metavar="N", help="Shuffle partitions. Default: as now."),
    ] = None
    format_version: Annotated[
        int | None,
        typer.Option(
            "--format-version", min=1, max=2, metavar="1|2", help="State store checkpoint format. Default: as now."
        ),
    ] = None
    new_id: Annotated[bool, typer.Option("--new-id", help="Give NEW a query id of its own.")] = False
    plan: Annotated[bool, typer.Option("--plan", help="Only say what would be written.")] = False


EngineOption = Annotated[Workers, typer.Option("--engine", help="ckpt here, or Spark's executors.")]


@contextmanager
def writing(
    engine: Workers, master: str | None, conf: list[str] | None, *, quiet: bool
) -> Iterator["tuple[Executors | None, Watcher | None]"]:
    """Who writes the state, and what shows progress. Ctrl-C ends it with one line. Raises UsageError."""
    with (
        RunOptions(engine, None, master, conf).executors(quiet=quiet) as by,
        bar(quiet=quiet or by is not None, of="partitions") as watcher,
    ):
        yield by, watcher
