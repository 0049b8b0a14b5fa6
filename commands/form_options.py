"""Options of commands that write a new checkpoint: where, and how it keeps its state."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ckpt.model import ToProvider


@dataclass(frozen=True, slots=True)
class StateForm:
    """Options for the place of a new checkpoint with an id of its own, and the form of its state."""

    new: Annotated[str, typer.Argument(metavar="NEW", help="A new or empty folder, local or remote.")]
    provider: Annotated[ToProvider | None, typer.Option(help="The state store provider. Default: as now.")] = None
    partitions: Annotated[int | None, typer.Option(min=1, metavar="N", help="Shuffle partitions. Default: as now.")] = (
        None
    )
    format_version: Annotated[
        int | None, typer.Option(min=1, max=2, metavar="1|2", help="State store checkpoint format. Default: as now.")
    ] = None
    plan: Annotated[bool, typer.Option("--plan", help="Only say what would be written.")] = False


@dataclass(frozen=True, slots=True)
class FormOptions(StateForm):
    """Options for a new checkpoint that keeps the query id, or gets one of its own."""

    new_id: Annotated[bool, typer.Option("--new-id", help="Give NEW a query id of its own.")] = False
