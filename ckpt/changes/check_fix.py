"""The one check of a planned change: the forecast of the checkpoint as the change would leave it, and a rule.

A draft of a fix has the steps and what they cost, not yet checked; the first that passes becomes the plan.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from itertools import islice

from ckpt.advice import RowCost, Words, words
from ckpt.changes.book import BOOK
from ckpt.changes.plan import FINISHED_AGAIN, SINK_DROPS, STOP_FIRST, First, NoWay, Planned, Replay, inspect_changed
from ckpt.changes.steps import FileStep
from ckpt.checkpoint.history import in_real_time
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.inspection.verdict import spell
from ckpt.restart.diagnoses.logs import BATCHES_VANISHED
from ckpt.restart.diagnoses.sinks import FIRST_INTO_NOOP, FIRST_START_UNREADABLE
from ckpt.restart.findings import Asked, Forecast, Outcome, Severity
from ckpt.restart.sinks import AnySink
from ckpt.storage import Storage
from ckpt.versions import Progress, Spark


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that a change must meet, judged by the inspections before and after it."""

    refuse: Callable[[Inspection, Inspection], str | None]  # why the change is no fix; None if it is one
    warn: Callable[[Inspection], Iterable[Words]] = lambda _: ()  # of what it does not fix


def check_fix(
    plan: Planned, storage: Storage, rule: Rule, versions: Iterable[Spark] = (), batches: int = 10
) -> Planned:
    """Inspect the checkpoint as the steps of a plan leave it, and refuse the plan if that breaks a rule."""
    after = inspect_changed(storage, plan.inspection, plan.steps, versions, batches=batches)
    problem = rule.refuse(plan.inspection, after)
    if problem is not None:
        return plan.refusing(problem)
    newer = (BOOK.text("perhaps_newer", sign=sign) for sign in plan.inspection.written_by.newer[:1])
    warnings = dict.fromkeys((*plan.warnings, *newer, *rule.warn(after), *warn_of_real_time(after)))
    return replace(plan, inspection_after=after, warnings=tuple(warnings))


def warn_of_real_time(after: Inspection) -> Iterator[Words]:
    """Say what a start in real-time mode undoes (``RealTimeStreamExecution``), where such a start wrote the checkpoint.

    It deletes what is planned and not committed, and plans it again from the end of the newest commit on.
    """
    checkpoint = after.checkpoint
    latest, committed = checkpoint.offsets.latest, checkpoint.commits.latest
    if in_real_time(checkpoint) and latest is not None and (committed is None or committed < latest):
        begins = "everything from the beginning" if committed is None else f"everything after batch {committed}"
        yield BOOK.text("real_time_start", latest=latest, begins=begins)


def must_run_first(batch: int) -> Rule:
    """One start at least runs ``batch`` first, and loses no batch."""
    return Rule(
        lambda before, after: None if find_running(after, batch) else _explain_failure(after),
        partial(warn_of_failing, batch=batch),
    )


def _refuse_without_gain(before: Inspection, after: Inspection) -> str | None:
    if not find_failing(after) or len(find_running(after)) > len(find_running(before)):
        return find_trouble(after)
    return _explain_failure(after)


def _refuse_lost_batches(before: Inspection, after: Inspection) -> str | None:
    starts = [f for f in find_starts(before, after) if f.progress is Progress.SYNC]
    if any(f.outcome.runs for f in starts) and not any(f.lost for f in starts):
        return None
    failing = next((f for f in starts if f.lost or not f.outcome.runs), None)
    if failing is not None and failing.lost:
        return f"batches from {failing.lost[0]} on would never run ({_name_codes(failing)})"
    return _describe_failure("the start would still fail", failing)


def _refuse_without_start(before: Inspection, after: Inspection) -> str | None:
    starts = find_starts(before, after)
    if any(f.outcome.runs and not f.lost for f in starts):
        return None
    failing = next((f for f in starts if f.error), None) or next(iter(starts), None)
    return _describe_failure("the next start would fail", failing)


def _describe_failure(what: str, failing: Forecast | None) -> str:
    error = f' with "{failing.error}"' if failing and failing.error else ""
    codes = _name_codes(failing) if failing else ""
    return f"{what}{error}{f' ({codes})' if codes else ''}: fix that first"


def find_starts(before: Inspection, after: Inspection) -> tuple[Forecast, ...]:
    """The forecasts after a change for the versions and modes that somebody may try."""
    tried = {(f.spark, f.progress) for f in before.counted}
    return tuple(f for f in after.forecasts if (f.spark, f.progress) in tried and f.outcome is not Outcome.REFUSED)


def find_running(inspection: Inspection, batch: int | None = None) -> tuple[Spark, ...]:
    """The versions that run, started synchronously, and leave no batch out; with ``batch`` first, if one is named."""
    starts = _synchronous_forecasts(inspection)
    return tuple(f.spark for f in starts if f.outcome.runs and not f.lost and batch in (None, f.batch_id))


def find_failing(inspection: Inspection, batch: int | None = None) -> tuple[Spark, ...]:
    """The other versions that somebody may try."""
    running = find_running(inspection, batch)
    return tuple(f.spark for f in _synchronous_forecasts(inspection) if f.spark not in running)


def _synchronous_forecasts(inspection: Inspection) -> list[Forecast]:
    return [f for f in inspection.counted if f.progress is Progress.SYNC]


def find_trouble(after: Inspection) -> str | None:
    """The worst error that the versions that run have to fear after their first batch."""
    for rated in inspect(after.checkpoint, find_running(after), Asked.SYNC).findings:
        finding = rated.finding
        marked = finding.diagnosis in (FIRST_INTO_NOOP, FIRST_START_UNREADABLE, BATCHES_VANISHED)
        if rated.severity is Severity.ERROR and not marked:
            return f"{finding.path}: {finding.detail} ({finding.diagnosis.code})"
    return None


def _explain_failure(after: Inspection) -> str:
    """Why no start would succeed, by the problem of the first that does not."""
    failing = find_failing(after)
    forecast = next((f for f in _synchronous_forecasts(after) if f.spark in failing), None)
    if forecast is None:
        return "no known Spark version starts it"
    if forecast.lost:
        return f"batches from {forecast.lost[0]} on would never run"
    if not forecast.because:
        return f"the next start would not run as planned ({forecast.outcome})"
    finding = forecast.because[0]
    error = f' ("{forecast.error}")' if forecast.error else ""
    does = "has an outcome that ckpt does not know" if forecast.outcome is Outcome.UNKNOWN else f"would fail{error}"
    return f"the next start {does}: {finding.path}: {finding.detail} ({finding.diagnosis.code})"


def warn_of_failing(after: Inspection, batch: int | None = None) -> Iterator[Words]:
    """Name the versions that will not start, where others do, and why."""
    failing = find_failing(after, batch)
    starts = [f for f in _synchronous_forecasts(after) if f.spark in failing]
    for error in dict.fromkeys(f.error for f in starts):
        versions = spell([f.spark for f in starts if f.error == error])
        why = f': "{error}"' if error else ""
        yield words("Spark {versions} still will not start{why}.", versions=versions, why=why)


def _name_codes(forecast: Forecast) -> str:
    return ", ".join(dict.fromkeys(finding.diagnosis.code for finding in forecast.because))


MORE_STARTS = Rule(_refuse_without_gain, warn_of_failing)
"""More versions start than before, or all, and none has an error to fear after its first batch."""
NO_LOST_BATCH = Rule(_refuse_lost_batches, warn_of_failing)
"""One version starts at least, and none loses a batch."""
CLOSED_GAP = Rule(lambda *both: _refuse_lost_batches(*both) or _refuse_without_gain(*both), warn_of_failing)
"""No start loses a batch, and more versions start than before."""
ANY_START = Rule(_refuse_without_start)
"""One version starts at least in one mode, and loses no batch."""


MOST_TRIES = 10  # drafts of one fix: each reads and forecasts the checkpoint again, and a log has many batches


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
    steps: tuple[FileStep, ...]
    batches: int = 0  # how many run again, or are read again
    replay: tuple[Replay, ...] = ()
    warnings: tuple[Words, ...] = (STOP_FIRST,)
    first: First = First.NOTHING
    reads_after: int | None = None  # the batch at whose end the next start begins to read, where a gap is repaired
    any_sink: AnySink | None = None  # what it does to rows where the sink is not known
    proven: bool = False  # that it changes nothing about the rows of the query: real starts, or checksums, show it

    @property
    def rows(self) -> RowCost:
        """The effect on the rows of the query. Only a fix that is proven to have none is applied by a scheduler."""
        if self.cost is Cost.NOTHING:
            return RowCost.NONE if self.proven else RowCost.UNKNOWN  # no start is known to read any again
        return RowCost.LEFT_OUT if self.cost is Cost.MAY_LOSE else RowCost.AGAIN


Drafter = Callable[[Storage, Inspection], Iterator[Draft]]
"""Drafts a fix, best draft first; none where it is not for such a checkpoint. Raises NoWay, StorageError."""


def plan_first(
    drafts: Iterable[Draft], blank: Planned, storage: Storage, rule: Rule, versions: Sequence[Spark]
) -> tuple[Draft, Planned] | None:
    """Plan the first draft that passes the check; None if there is no draft. Raises NoWay if none passes."""
    reason = None
    for draft in islice(drafts, MOST_TRIES):
        plan = replace(blank, steps=draft.steps, warnings=draft.warnings, any_sink=draft.any_sink)
        plan = check_fix(plan, storage, rule, versions)
        if plan.refused is None:
            moved = (source.advance for replay in draft.replay for source in replay.sources)
            if recreated := dict.fromkeys(topic for advance in moved if advance for topic in advance.recreated):
                raise NoWay(BOOK.text("topic_went_back", topics=", ".join(recreated)))
            return draft, replace(
                plan,
                why=draft.does,
                rows=draft.rows,
                replay=draft.replay,
                skips=SINK_DROPS if draft.cost is Cost.MAY_LOSE else None,
                repeats=FINISHED_AGAIN if draft.cost >= Cost.FINISHED_AGAIN else None,
                first=First.SINK if draft.cost is Cost.MAY_LOSE else draft.first,
            )
        reason = plan.refused
    if reason is not None:
        raise NoWay(reason)
    return None
