"""Options of commands that write a new checkpoint: where, and how it keeps its state."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

import ckpt
from ckpt.errors import UsageError
from ckpt.migrate.provider import ToProvider

from .progress import session
from .watching import bar, interruptible

if TYPE_CHECKING:
    from ckpt.copies.rewrite.writing import Watcher
    from ckpt.spark.executors import Executors


@dataclass(frozen=True, slots=True)
class FormOptions:
    """Where to, and in which form."""

    into: Annotated[
        str,
        typer.Option("--into", metavar="NEW", help="A folder that does not exist yet or is empty, local or remote."),
    ]
    provider: Annotated[
        ToProvider | None, typer.Option("--provider", help="The state store provider. Default: as it is.")
    ] = None
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", min=1, metavar="N", help="Shuffle partitions. Default: as many as now."),
    ] = None
    format_version: Annotated[
        int | None,
        typer.Option(
            "--format-version", min=1, max=2, metavar="1|2", help="State store checkpoint format. Default: as it is."
        ),
    ] = None
    new_id: Annotated[bool, typer.Option("--new-id", help="Give NEW a query id of its own.")] = False
    plan: Annotated[bool, typer.Option("--plan", help="Only say what would be written.")] = False


class WritingEngine(StrEnum):
    """Who writes the new state."""

    NATIVE = "native"
    SPARK = "spark"


EngineOption = Annotated[
    WritingEngine, typer.Option("--engine", help="Who writes the state: ckpt on this machine, or Spark's executors.")
]


@contextmanager
def writing(
    engine: WritingEngine, master: str | None, conf: list[str] | None, *, quiet: bool
) -> Iterator["tuple[Executors | None, Watcher | None]"]:
    """Who writes the state, and what shows progress. Ctrl-C ends it with one line. Raises UsageError."""
    if engine is WritingEngine.NATIVE and (master or conf):
        raise UsageError("--master and --conf are for --engine spark")
    with ExitStack() as stack:
        stack.enter_context(interruptible())
        if engine is WritingEngine.SPARK:
            yield ckpt.on_spark(stack.enter_context(session(master, conf, quiet=quiet))), None
        else:
            yield None, stack.enter_context(bar(quiet=quiet, of="partitions"))
