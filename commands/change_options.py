"""Options of the commands that change a checkpoint, each spelled once.

Apart from the options of all commands: a command that only reads loads nothing of ``ckpt.change``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

import typer

from ckpt.change.perform import How
from ckpt.errors import UsageError

ApplyOption = Annotated[bool, typer.Option("--apply", help="Carry out the plan. Default: only print it.")]
BackupOption = Annotated[
    str | None,
    typer.Option(
        "--backup", metavar="DIR", help="Keep the original files in this new folder. Default: next to CHECKPOINT."
    ),
]
GraceOption = Annotated[
    float,
    typer.Option(
        "--grace",
        min=0,
        metavar="SECONDS",
        help="Refuse to change a checkpoint with a file modified in the last SECONDS.",
    ),
]
UndoOption = Annotated[
    str | None, typer.Option("--undo", metavar="BACKUP", help="Put back what an earlier run changed.")
]


def how(
    apply: bool,
    backup: str | None,
    undo: str | None,
    grace: float,
    *,
    quiet: bool,
    of_plan: Mapping[str, object] = MappingProxyType({}),
) -> How:
    """What is to become of a planned change; says on standard error why nothing happens for some seconds.

    ``of_plan`` has the options that only a plan needs. Raises UsageError where one goes with ``--undo``.
    """
    if undo is not None:
        others = {**of_plan, "--apply": apply or None, "--backup": backup}
        if any(value is not None for value in others.values()):
            *names, last = others
            raise UsageError(f"--undo restores everything: leave out {', '.join(names)} and {last}")
    if (apply or undo is not None) and grace and not quiet:
        why = "checking twice, some seconds apart, that nothing is writing here; stopping the query is up to you"
        typer.echo(f"ckpt: {why}", err=True)
    return How(apply=apply, backup=backup, undo=undo, grace_s=grace)
