"""Options of the commands that change a checkpoint, each spelled once.

Apart from the options of all commands: a command that only reads loads nothing of ``ckpt.changes``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

import typer

from ckpt.advice import Option, join
from ckpt.changes.apply import ApplyOptions, ChangeResult
from ckpt.errors import UsageError
from ckpt.inspection.activity import must_be_seconds

from . import options
from .render.change import ChangeReport
from .report import emit
from .watching import watch_bytes


@dataclass(frozen=True, slots=True)
class AcceptOptions:
    """Consequences of a plan that the user accepts."""

    accept_skip: Annotated[bool, typer.Option("--accept-skip", help="Accept that rows are skipped.")] = False
    accept_replay: Annotated[bool, typer.Option("--accept-replay", help="Accept that rows are read again.")] = False


@dataclass(frozen=True, slots=True)
class ChangeOptions(options.CommonOptions):
    """Options of every command that changes a checkpoint."""

    apply: Annotated[bool, typer.Option("--apply", help="Carry out the plan. Default: only print it.")] = False
    backup: Annotated[
        str | None, typer.Option(metavar="DIR", help="Back up to this new folder. Default: a sibling.")
    ] = None
    undo: Annotated[str | None, typer.Option(metavar="BACKUP", help="Undo an earlier run, using this backup.")] = None
    deep: options.DeepOption = False
    names_only: options.NamesOnlyOption = False
    grace: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Refuse if a file changed in the last SECONDS.")
    ] = 30.0

    def run(
        self,
        planner: Callable[..., ChangeResult[Any]],
        report: Callable[..., ChangeReport[Any]],
        *places: object,
        of_plan: Sequence[str],
        accepted: AcceptOptions | None = None,
        **arguments: object,
    ) -> NoReturn:
        """Plan a change, carry it out if that is asked for, and report it.

        ``of_plan`` names the arguments that do not go with ``--undo``. Raises UsageError.
        """
        how = self.how({name: arguments[name] for name in of_plan}, accepted)
        plan, receipt = planner(*places, storage_options=self.storage_options, **arguments, **how)
        emit(report(plan, receipt, backup=self.backup), self.output)

    def how(self, of_plan: Mapping[str, object] | None = None, accepted: AcceptOptions | None = None) -> ApplyOptions:
        """How a plan is carried out; standard error says why nothing happens for some seconds.

        ``of_plan`` has what only a plan needs. Raises UsageError where any of it goes with ``--undo``.
        """
        must_be_seconds(self.grace)
        own = {"deep": self.deep, "names_only": self.names_only, "apply": self.apply, "backup": self.backup}
        others = {**(of_plan or {}), **own}
        if self.undo is not None and any(map(_was_typed, others.values())):
            *names, last = (name if name.isupper() else Option(name) for name in others)
            raise UsageError.of(
                "{--undo} restores everything: omit {names} and {last}", names=join(names, ", "), last=last
            )
        if (self.apply or self.undo is not None) and self.grace and not self.quiet:
            why = "checking twice, a few seconds apart, that nothing is writing; you must stop the query yourself"
            typer.echo(f"ckpt: {why}", err=True)
        accepted = accepted or AcceptOptions()
        return ApplyOptions(
            apply=self.apply,
            backup=self.backup,
            undo=self.undo,
            grace=self.grace,
            deep=self.deep,
            names_only=self.names_only,
            watcher=watch_bytes(quiet=self.quiet),
            accept_skip=accepted.accept_skip,
            accept_replay=accepted.accept_replay,
        )


def _was_typed(value: object) -> bool:
    return value is not False and value not in (None, (), {})
