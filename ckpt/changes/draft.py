"""A draft of a fix: the steps and what they cost, not yet checked; and the plan of the first draft that passes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import islice

from ckpt.changes.check_fix import Rule, check_fix
from ckpt.changes.plan import FINISHED_AGAIN, SINK_DROPS, STOP_FIRST, First, NoWay, Planned, Replay
from ckpt.changes.steps import Step
from ckpt.inspection.inspection import Inspection
from ckpt.storage import Storage
from ckpt.versions import Spark

MOST_TRIES = 10  # drafts of one fix: each reads and forecasts the checkpoint anew, and a log has many batches


class Cost(IntEnum):
    """The rows that a fix reads again, or loses."""

    NOTHING = 0  # none is read again
    UNFINISHED_AGAIN = 1  # those of a batch that was not finished are read again
    FINISHED_AGAIN = 2  # those of finished batches are read again
    MAY_LOSE = 3  # a sink that remembers batch ids drops some


@dataclass(frozen=True, slots=True)
class Draft:
    """One way to fix a checkpoint, not yet checked against a forecast."""

    does: str  # one line
    cost: Cost
    steps: tuple[Step, ...]
    batches: int = 0  # how many run again, or are read again
    replay: tuple[Replay, ...] = ()
    warnings: tuple[str, ...] = (STOP_FIRST,)
    first: First = First.NOTHING
    reads_after: int | None = None  # the batch at whose end the next start begins to read, where a gap is repaired


Drafter = Callable[[Storage, Inspection], Iterator[Draft]]
"""Drafts a fix, best draft first; none where it is not for such a checkpoint. Raises NoWay, StorageError."""


def plan_first(
    drafts: Iterable[Draft], blank: Planned, storage: Storage, rule: Rule, versions: Sequence[Spark]
) -> tuple[Draft, Planned] | None:
    """Plan the first draft that passes the check; None if there is no draft. Raises NoWay if none passes."""
    reason = None
    for draft in islice(drafts, MOST_TRIES):
        plan = replace(blank, steps=draft.steps, warnings=draft.warnings)
        plan = check_fix(plan, storage, rule, versions)
        if plan.refused is None:
            return draft, replace(
                plan,
                why=draft.does,
                replay=draft.replay,
                skips=SINK_DROPS if draft.cost is Cost.MAY_LOSE else None,
                repeats=FINISHED_AGAIN if draft.cost >= Cost.FINISHED_AGAIN else None,
                first=First.SINK if draft.cost is Cost.MAY_LOSE else draft.first,
            )
        reason = plan.refused
    if reason is not None:
        raise NoWay(reason)
    return None
