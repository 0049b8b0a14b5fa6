"""A planned change of one checkpoint, as a value: what a planner returns, and what is done, shown and undone."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from ckpt.change.steps import Changed, Step
from ckpt.inspection import Inspection, inspect
from ckpt.reader import read_checkpoint
from ckpt.restart.forecast import Forecast, SourceRange
from ckpt.storage import Storage
from ckpt.versions import Spark

STOP_FIRST = "Stop the query first: ckpt cannot see whether it is running (an idle query writes nothing)."


@dataclass(frozen=True, slots=True)
class Replay:
    """Rows that the next start reads though they may be in the sink already."""

    batch: int  # that reads them, first
    sources: tuple[SourceRange, ...]  # the end of a range without one is unknown
    finished: bool  # rows of other batches in the log, which are finished or may be, are among them


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePlan:
    """What a command would change, and what that leads to; each command has a plan of its own with what it adds.

    A planner is a pure function from what was read to such a plan: it writes nothing.
    """

    command: ClassVar[str]  # that plans it, as it is typed after ``ckpt``

    inspection: Inspection  # as it is
    needed: bool  # something is there that this command is for
    why: str = ""  # one line: why these steps, or why nothing is to be done
    steps: tuple[Step, ...] = ()  # empty where nothing is to be done, or can be
    inspection_after: Inspection | None = None  # with the steps
    opened_as: str | None = None  # the URI under which Spark opens it afterwards, where that was asked for
    replay: tuple[Replay, ...] | None = None  # None: this change has nothing to do with what is read again
    warnings: tuple[str, ...] = ()  # the first is to stop the query
    refused: str | None = None  # why there is no plan, though one is needed
    must_accept: str | None = None  # why it is not applied unless somebody accepts what it costs

    @property
    def before(self) -> tuple[Forecast, ...]:
        """The forecasts as it is."""
        return self.inspection.forecasts

    @property
    def after(self) -> tuple[Forecast, ...]:
        """The forecasts with the steps, of the same versions and modes; none where nothing changes."""
        return self.inspection_after.forecasts if self.inspection_after else ()

    @property
    def sound(self) -> bool:
        """Whether nothing but notes was found."""
        return self.inspection.sound


def inspect_changed(
    storage: Storage, found: Inspection, steps: Iterable[Step], versions: Iterable[Spark] = (), uri: str | None = None
) -> Inspection:
    """What ``ckpt inspect`` would say once steps are done, seen from ``uri`` where it will be opened elsewhere."""
    return inspect(read_checkpoint(Changed(storage, found.checkpoint.listing, steps, uri)), tuple(versions))
