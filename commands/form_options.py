"""Options of commands that write a new checkpoint: where, and how it keeps its state."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ckpt.migrate import ToProvider


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
