"""``ckpt repair``: every fix that needs no copy of the checkpoint, what each costs, and the plan of one of them.

First comes what costs nothing (``tidy``). If the query then starts, that is the plan. Otherwise each fix is planned on
the tidied checkpoint, checked against the forecast of ``ckpt inspect``, and the cheapest is recommended.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from os import fspath
from typing import ClassVar, Unpack

from ckpt.advice import Advice, Words, join, plain
from ckpt.changes import check_fix
from ckpt.changes.apply import ApplyOptions, ChangeResult, run_change
from ckpt.changes.book import BOOK
from ckpt.changes.check_fix import Cost
from ckpt.changes.fixes import newest_records
from ckpt.changes.fixes.gaps import draft_fill
from ckpt.changes.fixes.read_again import draft_plan_again, draft_read_again, draft_run_again
from ckpt.changes.fixes.tidy import draft_tidying, move_up, put_back_renamed, refuse_disproved_id, tidy
from ckpt.changes.fixes.write_logs import draft_commit, draft_offsets
from ckpt.changes.plan import NEVER_FINISHED, ChangePlan, NoWay, adapt_to_sink, add_mark
from ckpt.changes.steps import view_changed
from ckpt.checkpoint.checkpoint import METADATA
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.errors import UsageError, parse_choice, parse_choices
from ckpt.formats.metadata import is_query_id
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.inspection.verdict import AS_FAR_AS_NAMES
from ckpt.live.sink.reader import ask_sink
from ckpt.live.sink.records import SinkLog
from ckpt.model import Location
from ckpt.restart.diagnoses.modes import ONLY_DATABRICKS
from ckpt.restart.remedies import is_of_spark_2_0
from ckpt.storage import Storage
from ckpt.versions import Spark


class FixName(StrEnum):
    """The fixes, in the order of the list; of several that cost least, the first is recommended."""

    TIDY = "tidy"  # remove or write again what blocks a start; no batch runs again
    FILL = "fill"  # write the offsets that asynchronous progress tracking left out, as `repair-async` does
    WRITE_COMMIT = "write-commit"  # write the newest commit as it was, where its checksums prove that
    WRITE_OFFSETS = "write-offsets"  # write the newest offsets as they were, where the log of a file source tells them
    RUN_AGAIN = "run-again"  # go back, and run the next batch again over its range
    READ_AGAIN = "read-again"  # a stateless query reads the rows of its newest batches again, in a new batch
    TO_MICRO_BATCH = "to-micro-batch"  # let micro-batches continue after continuous processing, where Kafka is read
    NAME_PROVIDER = "name-provider"  # only if chosen: record the provider of Spark whose layout the state files have
    TO_REAL_TIME = "to-real-time"  # only if chosen: let real-time mode of Spark 4.3 continue a query without state
    PLAN_AGAIN = "plan-again"  # go back, and let Spark plan a new range for the next batch


_FIXES: Mapping[FixName, check_fix.Drafter] = {
    FixName.FILL: draft_fill,
    FixName.WRITE_COMMIT: draft_commit,
    FixName.WRITE_OFFSETS: draft_offsets,
    FixName.RUN_AGAIN: draft_run_again,
    FixName.READ_AGAIN: draft_read_again,
    FixName.TO_MICRO_BATCH: newest_records.draft_micro_batches,
    FixName.NAME_PROVIDER: newest_records.draft_provider,
    FixName.TO_REAL_TIME: newest_records.draft_real_time,
    FixName.PLAN_AGAIN: draft_plan_again,
}
"""Every fix but to tidy up, which comes before them."""
ONLY_IF_CHOSEN = (FixName.NAME_PROVIDER, FixName.TO_REAL_TIME)
"""Fixes that change what the user wants, not what is wrong."""
_RULES = {FixName.FILL: check_fix.CLOSED_GAP, FixName.TO_REAL_TIME: newest_records.STARTS_IN_REAL_TIME}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """One fix: its plan, or the reason why there is none."""

    name: FixName
    does: str = ""  # one line
    cost: Cost | None = None  # None where it is refused
    batches: int = 0  # how many run again, or are read again
    plan: ChangePlan
    recommended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPlan(ChangePlan):
    """The plan of the fix that was chosen, and all fixes."""

    command: ClassVar[str] = "repair"

    ways: tuple[Fix, ...] = ()
    chosen: Fix | None = None
    lacks_id: bool = False  # ``metadata`` is lost, and nobody has named the query's id
    found_id: str | None = None  # that id, where the sink has it
    query_id: str | None = None  # as named in the call
    leftovers: bool = False


def repair(
    checkpoint: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    query_id: str | None = None,
    choose: FixName | str | None = None,
    leftovers: bool = False,
    spark: Sequence[Spark | str] = (),
    sink: str | None = None,
    **how: Unpack[ApplyOptions],
) -> ChangeResult[RepairPlan]:
    """Do what ``ckpt repair`` does; return the plan, with all fixes, and its receipt. By default it only plans.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        query_id: The query's id, a UUID, if ``metadata`` is lost.
        choose: The fix to use; by default the recommended one.
        leftovers: Also remove what harms no start: temporary files, checksums that match no file, added white space.
        spark: The Spark versions that the query may be started with; none named is all.
        sink: The query's sink, as for ``inspect``: costs are then those in that sink.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier repair; see ``ApplyOptions``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, or the backup would be inside the checkpoint.

    >>> plan, receipt = ckpt.repair("sample_checkpoints/async-kafka-4.2")
    >>> plan.chosen.name.value, [way.name.value for way in plan.ways], receipt.applied
    ('fill', ['fill', 'read-again', 'plan-again'], False)
    """
    uri, way = fspath(checkpoint), None if choose is None else parse_choice(FixName, choose, "choose")
    sparks = parse_choices(Spark, spark, "spark")

    def plan(storage: Storage) -> RepairPlan:
        log = ask_sink(sink, uri, storage_options or {})
        planned = plan_repairs(storage, query_id, way, sparks, leftovers=leftovers, sink=log)
        if query_id is not None:
            refuse_disproved_id(planned.inspection.checkpoint, query_id)
        return replace(planned, query_id=query_id, leftovers=leftovers)

    return run_change(RepairPlan, plan, uri, storage_options, sparks, **how)


def plan_repairs(
    storage: Storage,
    query_id: str | None = None,
    choose: FixName | None = None,
    versions: Sequence[Spark] = (),
    *,
    leftovers: bool = False,
    sink: SinkLog | None = None,
) -> RepairPlan:
    """Plan the fixes of a checkpoint, as ``repair`` does.

    Raises NotACheckpoint, NotFound, StorageError, or UsageError where the query id is no UUID, or there is one already,
    or there is no way of that name.
    """
    inspection = inspect(read_checkpoint(storage, batches=0), versions, sink=sink)
    checkpoint, blank = inspection.checkpoint, RepairPlan(inspection=inspection, needed=True)
    if checkpoint.unfinished:
        return replace(blank, refused=NEVER_FINISHED)
    try:
        put_back = (*put_back_renamed(checkpoint, storage), *move_up(checkpoint, storage))
    except NoWay as error:
        return replace(blank, refused=str(error))
    whole, storage_then = checkpoint, storage
    if put_back:  # the rest is planned on what is then there
        steps = [step for files in put_back for step in files.steps]
        storage_then = view_changed(storage, checkpoint.listing, steps)
        whole = read_checkpoint(storage_then, batches=0)
    tidied = (*put_back, *tidy(whole, storage_then, query_id, temporary=leftovers))
    has_id = whole.offsets.latest is None or is_query_id(whole.query_id or "") or METADATA in whole.respaced
    has_id = has_id or is_of_spark_2_0(whole)  # which wrote none, and no version reads its offsets with one
    if query_id is None and not has_id:
        only, lost = sink.find_query(checkpoint) if sink is not None else None, BOOK.text("lost_id")
        refused = (_refuse(FixName.TIDY, inspection, lost),)
        return replace(blank, refused=lost, lacks_id=True, ways=refused, found_id=only.app_id if only else None)
    ways: tuple[Fix, ...] = ()
    elsewhere = all(f.because and f.because[0].diagnosis is ONLY_DATABRICKS for f in inspection.counted)
    failing = check_fix.find_trouble(inspection) or (check_fix.find_failing(inspection) and not elsewhere)
    advised = inspection.to_repair or choose in ONLY_IF_CHOSEN or (tidied and (leftovers or query_id is not None))
    if advised or failing:
        planned = _plan_ways(storage, inspection, draft_tidying(whole, tidied), versions, choose)
        ways = tuple(_adapt_to_sink(way, sink, storage) for way in planned if advised or way.cost is None)
    possible = [way for way in ways if way.cost is not None]
    if not possible and choose not in ONLY_IF_CHOSEN and (not ways or check_fix.find_running(inspection)):
        why = f"a repair does not help with these findings: {inspection.trouble_names}"
        if inspection.sound:
            why = "a start finds everything it needs" + (AS_FAR_AS_NAMES if inspection.not_read else "")
        return replace(blank, needed=False, why=why)
    preferred = min(possible, key=lambda way: (way.cost, way.batches)).name if possible else None
    ways = tuple(replace(way, recommended=way.name is preferred and way.name not in ONLY_IF_CHOSEN) for way in ways)
    chosen = next((way for way in ways if way.name is (choose or preferred)), None)
    if chosen is None and choose is not None:
        raise UsageError.of("{--choose=}: choose {names}", choose=choose, names=", ".join(way.name for way in ways))
    if chosen is None:
        refusals = join(dict.fromkeys(plain(way.plan.refused or "") for way in ways), "; ")
        instead = next((way.plan.instead for way in ways if way.plan.instead), None)
        return replace(blank, ways=ways, refused=refusals, instead=instead)
    as_chosen = {field.name: getattr(chosen.plan, field.name) for field in fields(ChangePlan)}
    return RepairPlan(**as_chosen, ways=ways, chosen=chosen)


def _adapt_to_sink(way: Fix, sink: SinkLog | None, storage: Storage) -> Fix:
    """Give a way its cost in a sink that is known, and the mark of a start into ``noop`` if it needs one."""
    if sink is not None and way.cost is not None:
        plan = adapt_to_sink(way.plan, sink)
        certain = plan.sink is not None and plan.sink.certain
        lowered = Cost.FINISHED_AGAIN if certain and way.cost is Cost.MAY_LOSE else way.cost
        way = replace(way, plan=plan, cost=Cost.MAY_LOSE if plan.skips else lowered)
    return replace(way, plan=add_mark(way.plan, storage))


def _plan_ways(
    storage: Storage,
    inspection: Inspection,
    first: check_fix.Draft | None,
    versions: Sequence[Spark],
    choose: FixName | None,
) -> Iterator[Fix]:
    """Plan to tidy up, ``first``, if that alone will do, or else every other fix after it."""

    def plan_way(name: FixName, drafts: Iterator[check_fix.Draft], rule: check_fix.Rule) -> Fix | None:
        try:
            planned = check_fix.plan_first(
                drafts, ChangePlan(inspection=inspection, needed=True), storage, rule, versions
            )
        except NoWay as error:
            return _refuse(name, inspection, str(error), error.advice)
        if planned is None:
            return None
        draft, plan = planned
        return Fix(name=name, does=draft.does, cost=draft.cost, batches=draft.batches, plan=plan)

    way = plan_way(FixName.TIDY, iter([first] if first else []), check_fix.MORE_STARTS)
    if way is not None and way.cost is not None:
        yield way
        return
    steps, cost, proven = (first.steps, first.cost, first.proven) if first else ((), Cost.NOTHING, True)
    changed = view_changed(storage, inspection.checkpoint.listing, steps)
    left = inspect(read_checkpoint(changed, batches=0), versions)
    for name, draft_fix in _FIXES.items():
        if (name in ONLY_IF_CHOSEN or choose in ONLY_IF_CHOSEN) and name is not choose:
            continue
        drafts = (
            replace(draft, steps=(*steps, *draft.steps), cost=max(draft.cost, cost), proven=draft.proven and proven)
            for draft in draft_fix(changed, left)
        )
        way = plan_way(name, drafts, _RULES.get(name, check_fix.MORE_STARTS))
        if way is not None:
            yield way


def _refuse(name: FixName, inspection: Inspection, reason: str | Words, instead: Advice | None = None) -> Fix:
    return Fix(name=name, plan=ChangePlan(inspection=inspection, needed=True, refused=reason, instead=instead))
