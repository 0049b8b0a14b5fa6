"""Options of the commands that change a checkpoint, each spelled once.

Apart from the options of all commands: a command that only reads loads nothing of ``ckpt.changes``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

import typer

from ckpt.changes.apply import How
from ckpt.errors import UsageError
from ckpt.inspection.activity import must_be_seconds

from . import options
from .report import Output

ApplyOption = Annotated[bool, typer.Option("--apply", help="Carry out the plan. Default: print it.")]
BackupOption = Annotated[
    str | None,
    typer.Option(
        "--backup",
        metavar="DIR",
        help="Back up to this new folder. Default: a sibling.",
    ),
]
GraceOption = Annotated[
    float,
    typer.Option(
        "--grace",
        min=0,
        metavar="SECONDS",
        help="Refuse if written to in the last SECONDS.",
    ),
]
UndoOption = Annotated[
    str | None,
    typer.Option("--undo", metavar="BACKUP", help="Restore what an earlier run changed."),
]

AcceptSkipOption = Annotated[
    bool,
    typer.Option("--accept-skip", help="Accept that rows are left out."),
]
AcceptReplayOption = Annotated[
    bool,
    typer.Option("--accept-replay", help="Accept that rows are read again."),
]


@dataclass(frozen=True, slots=True)
class AcceptOptions:
    """Consequences of a plan that the user accepts."""

    accept_skip: AcceptSkipOption = False
    accept_replay: AcceptReplayOption = False


_NOTHING = AcceptOptions()
_NO_OPTIONS: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """Options of every command that changes a checkpoint."""

    apply: ApplyOption = False
    backup: BackupOption = None
    undo: UndoOption = None
    grace: GraceOption = 30.0
    storage_option: options.StorageOption = None
    output: options.OutputOption = Output.TABLE
    quiet: options.QuietOption = False

    @property
    def storage_options(self) -> dict[str, str]:
        """For the file system. Raises UsageError."""
        return options.pairs("--storage-option", self.storage_option)

    def how(self, of_plan: Mapping[str, object] = _NO_OPTIONS, accepted: AcceptOptions = _NOTHING) -> How:
        """How a plan is carried out; standard error says why nothing happens for some seconds.

        ``of_plan`` has what only a plan needs, as typed. Raises UsageError where any of it goes with ``--undo``.
        """
        must_be_seconds(self.grace)
        if self.undo is not None:
            self._must_be_alone(of_plan)
        if (self.apply or self.undo is not None) and self.grace and not self.quiet:
            why = "checking twice, some seconds apart, that nothing is writing here; stopping the query is up to you"
            typer.echo(f"ckpt: {why}", err=True)
        return How(
            apply=self.apply,
            backup=self.backup,
            undo=self.undo,
            grace_s=self.grace,
            accept_skip=accepted.accept_skip,
            accept_replay=accepted.accept_replay,
        )

    def _must_be_alone(self, of_plan: Mapping[str, object]) -> None:
        others = {**of_plan, "--apply": self.apply or None, "--backup": self.backup}
        if any(value is not None for value in others.values()):
            *names, last = others
            raise UsageError(f"--undo restores everything: leave out {', '.join(names)} and {last}")
