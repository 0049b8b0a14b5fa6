"""``ckpt repair``: every fix that needs no copy of the checkpoint, what each costs, and the plan of one of them.

First goes what costs nothing (``tidy``). If the query then starts, that is the plan. Otherwise each way is
planned on the tidied checkpoint, checked against the forecast of ``ckpt inspect``, and the cheapest is recommended.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Unpack

from ckpt.changes.apply import Receipt
from ckpt.changes.check_fix import fails_on, runs_on, still_failing, trouble_left, why_not
from ckpt.changes.fixes.choices import DRAFTERS, Cost, FixDraft, WayName, tidying
from ckpt.changes.fixes.tidy import Tidied, tidy
from ckpt.changes.plan import FINISHED_AGAIN, NEVER_FINISHED, SINK_DROPS, ChangePlan, First, NoWay, inspect_changed
from ckpt.changes.run import How, perform
from ckpt.changes.sink import add_mark, for_sink
from ckpt.changes.steps import Changed
from ckpt.checkpoint.checkpoint import METADATA, Checkpoint
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.errors import UsageError, argument
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.live.sink.reader import sink_of
from ckpt.live.sink.records import SinkLog
from ckpt.model import QueryMetadata
from ckpt.storage import Storage
from ckpt.versions import Spark

LOST_ID = (
    f"{METADATA}, which holds the query's id, is lost, and no other file of a checkpoint has it: find it, and name it "
    "with `query_id`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One fix: its plan, or why there is none."""

    name: WayName
    does: str = ""  # one line
    cost: Cost | None = None  # None where it is refused
    batches: int = 0  # how many run again, or are read again
    plan: ChangePlan
    recommended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WaysPlan(ChangePlan):
    """The way that was chosen, and all that there are."""

    command: ClassVar[str] = "repair"

    ways: tuple[Way, ...] = ()
    chosen: Way | None = None
    found_id: str | None = None  # the query's id, where ``metadata`` has lost it and the sink has it


def repair_checkpoint(
    uri: str,
    storage_options: Mapping[str, str] | None = None,
    *,
    query_id: str | None = None,
    choose: WayName | None = None,
    remove_leftovers: bool = False,
    versions: Sequence[Spark] = (),
    sink: str | None = None,
    **how: Unpack[How],
) -> tuple[WaysPlan, Receipt]:
    """All that ``ckpt repair`` does: the fixes and the plan of one; without ``apply`` or ``undo`` only a plan.

    Args:
        uri: A local path, or any URI that ``open_checkpoint`` opens.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        query_id: The id of the query, a UUID, where ``metadata`` is lost.
        choose: Which way; by default the recommended one.
        remove_leftovers: Remove temporary files of interrupted writes too.
        versions: The Spark versions that the query may be started with; none named is all.
        sink: The place that the query writes to, as ``read_sink`` takes it: costs are then those in that sink.
        how: ``apply=True`` performs the plan, ``undo`` takes an earlier repair back; see ``How``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, or the backup would be inside the checkpoint.

    >>> plan, receipt = ckpt.repair_checkpoint("sample_checkpoints/async-kafka-4.2")
    >>> plan.chosen.name.value, [way.name.value for way in plan.ways], receipt.applied
    ('fill', ['fill', 'run-again', 'read-again', 'plan-again'], False)

    """

    def plan(storage: Storage) -> WaysPlan:
        log = sink_of(sink, uri, storage_options or {})
        return plan_repairs(storage, query_id, choose, versions, remove_leftovers=remove_leftovers, sink=log)

    return perform(WaysPlan, plan, uri, storage_options, versions, **how)


def plan_repairs(
    storage: Storage,
    query_id: str | None = None,
    choose: WayName | None = None,
    versions: Sequence[Spark] = (),
    *,
    remove_leftovers: bool = False,
    sink: SinkLog | None = None,
) -> WaysPlan:
    """The fixes of what is wrong with a checkpoint; nothing is written.

    Raises:
        UsageError: The query id is no UUID, or there is one already; there is no way of that name.
        NotACheckpoint, NotFound, StorageError: It cannot be read.

    """
    found = inspect(read_checkpoint(storage, batches=0), versions)
    if found.checkpoint.unfinished:
        return WaysPlan(inspection=found, needed=True, refused=NEVER_FINISHED)
    tidied = tidy(found.checkpoint, storage, query_id, temporary=remove_leftovers)
    if query_id is None and _lacks_id(found.checkpoint):
        tidying_alone = _refused(WayName.TIDY, found, LOST_ID)
        only = sink.only_query if sink is not None else None
        found_id = only.app_id if only else None
        return WaysPlan(inspection=found, needed=True, refused=LOST_ID, ways=(tidying_alone,), found_id=found_id)
    ways = tuple(_ways(storage, found, tidied, versions)) if tidied or fails_on(found) else ()
    ways = tuple(replace(way, plan=add_mark(way.plan, storage)) for way in (_in_sink(one, sink) for one in ways))
    possible = [way for way in ways if way.cost is not None]
    if not possible and runs_on(found):
        return WaysPlan(inspection=found, needed=False, why=_nothing(found))
    preferred = min(possible, key=lambda way: (way.cost, way.batches)).name if possible else None
    ways = tuple(replace(way, recommended=way.name is preferred) for way in ways)
    plan = WaysPlan(inspection=found, needed=bool(ways), ways=ways)
    if not ways:
        return replace(plan, why=_nothing(found))
    chosen = next((way for way in ways if way.name is (choose or preferred)), None)
    if chosen is None and choose is not None:
        raise UsageError(f"{argument('choose', choose)}: there is {', '.join(way.name for way in ways)}")
    if chosen is None:
        return replace(plan, refused="; ".join(dict.fromkeys(str(way.plan.refused) for way in ways)))
    as_chosen = {one.name: getattr(chosen.plan, one.name) for one in fields(ChangePlan)}
    return WaysPlan(**as_chosen, ways=ways, chosen=chosen)


def _in_sink(way: Way, sink: SinkLog | None) -> Way:
    """A way with what it costs in a sink that is known."""
    if sink is None or way.cost is None:
        return way
    plan = for_sink(way.plan, sink)
    certain = plan.sink is not None and plan.sink.certain
    cost = Cost.MAY_LOSE if plan.skips else Cost.FINISHED_AGAIN if certain and way.cost is Cost.MAY_LOSE else way.cost
    return replace(way, plan=plan, cost=cost)


def _lacks_id(checkpoint: Checkpoint) -> bool:
    """Whether somebody has to name the query's id before anything else."""
    return not isinstance(checkpoint.metadata, QueryMetadata) and checkpoint.offsets.latest is not None


def _ways(storage: Storage, found: Inspection, tidied: tuple[Tidied, ...], versions: Sequence[Spark]) -> Iterator[Way]:
    """Tidying alone if that will do, or else every other way after it."""
    first = tidying(found.checkpoint, tidied)
    if first is not None:
        way = _checked(storage, found, first, versions)
        if way.cost is not None:
            yield way
            return
    done = first.steps if first else ()
    changed = Changed(storage, found.checkpoint.listing, done)
    left = inspect(read_checkpoint(changed, batches=0), versions)
    for name, drafter in DRAFTERS.items():
        try:
            draft = drafter(changed, left, versions)
        except NoWay as reason:
            yield _refused(name, found, str(reason))
            continue
        if draft is not None:
            cost = max(draft.cost, first.cost) if first else draft.cost
            yield _checked(storage, found, replace(draft, steps=(*done, *draft.steps), cost=cost), versions)


def _checked(storage: Storage, found: Inspection, draft: FixDraft, versions: Sequence[Spark]) -> Way:
    """A way with the forecast of what it leads to; refused unless more starts run than now, and lose no batch."""
    after = inspect_changed(storage, found, draft.steps, versions)
    problem = why_not(after)
    if not fails_on(after) or len(runs_on(after)) > len(runs_on(found)):
        problem = trouble_left(after) or ""
    if problem:
        return _refused(draft.name, found, problem)
    plan = ChangePlan(
        inspection=found,
        needed=True,
        why=draft.does,
        steps=draft.steps,
        inspection_after=after,
        replay=draft.replay,
        warnings=tuple(dict.fromkeys((*draft.warnings, *still_failing(after)))),
        skips=SINK_DROPS if draft.cost is Cost.MAY_LOSE else None,
        repeats=FINISHED_AGAIN if draft.cost >= Cost.FINISHED_AGAIN else None,
        first=First.SINK if draft.cost is Cost.MAY_LOSE else draft.first,
    )
    return Way(name=draft.name, does=draft.does, cost=draft.cost, batches=draft.batches, plan=plan)


def _refused(name: WayName, found: Inspection, reason: str) -> Way:
    return Way(name=name, plan=ChangePlan(inspection=found, needed=True, refused=reason))


def _nothing(found: Inspection) -> str:
    if found.sound:
        return "a start finds everything that it needs"
    return f"no file can be changed so that more starts run than now; ckpt found {found.trouble_names}"
