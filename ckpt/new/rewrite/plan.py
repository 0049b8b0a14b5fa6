"""Plan a rewrite: the form of the state, checked against what ckpt can write, and the files around it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Annotated, NamedTuple
from uuid import uuid4

from ckpt import settings
from ckpt.advice import Words
from ckpt.changes.backup import choose_options
from ckpt.changes.plan import NoWay
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.state.chains import WantedVersion
from ckpt.checkpoint.state.folders import find_store_partitions
from ckpt.checkpoint.state.load import is_serious, load_stores
from ckpt.checkpoint.state.read_steps import run
from ckpt.checkpoint.state.rewritable import Form, refuse_rewrite
from ckpt.errors import CkptError, UsageError
from ckpt.formats.statefiles import LZ4
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.model import Provider
from ckpt.new.book import BOOK
from ckpt.new.copy.selection import Selection, select_files
from ckpt.new.placing import check_apart
from ckpt.new.request import Key, NewCheckpoint
from ckpt.new.rewrite.filtering import Dropping, Leaving, SplitFilter, choose_leaving, join_names
from ckpt.query.description import QueryDescription
from ckpt.restart.remedies import commit_planned
from ckpt.state.native.salvage import Salvage, find_salvage
from ckpt.state.native.store_files import context_of, layout_of
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.reading import ChosenState, StateRequest, choose
from ckpt.state.reading.units import StateUnit
from ckpt.values import Value
from ckpt.versions import Spark

if TYPE_CHECKING:
    from ckpt.new.rewrite.union import Union, UnitedSource


class CannotRewrite(CkptError):
    """Files of a checkpoint that ckpt cannot rewrite; the text says why."""


CLASSES = {Provider.HDFS: settings.HDFS_PROVIDER, Provider.ROCKSDB: settings.ROCKSDB_PROVIDER}


@dataclass(frozen=True, slots=True)
class RewrittenUnit:
    """A part of the state, and how much there is of it."""

    unit: StateUnit
    rows: int | None  # that were written; None where it is only planned
    partitions: int
    dropped: Annotated[
        int | None,
        "rows that were left out; null if nothing was written, or if no key or condition applies to this unit",
    ] = None
    exported: Annotated[int | None, "rows of the export when it was written; null if its manifest does not say"] = None


class PlannedState(StrEnum):
    """The state of a batch that is planned and not committed."""

    WRITTEN = "written"  # every partition of the old checkpoint has it, and so the new one
    NONE = "none"  # some partition of the old checkpoint lacks it, or in format 2 no commit names it: a start has none
    LEFT_OUT = "left-out"  # the old one has it; the new one cannot, so that the batch has to be computed again


@dataclass(frozen=True, slots=True)
class Rewrite(Value):
    """A new checkpoint, planned or written."""

    inspection: Inspection  # of the old one
    into: Annotated[str, "as given"]
    batch: int
    old: Form
    new: Form
    query_id: Annotated[str | None, "of the new one"]
    new_id: bool
    units: tuple[RewrittenUnit, ...] = ()
    refused: str | Words | None = None  # why nothing was written
    written: bool = False
    files: Annotated[int, "written"] = 0
    bytes: int = 0
    keys: tuple[Key, ...] = ()  # that are left out
    where: Annotated[str | None, "its condition"] = None
    leaving: Mapping[int, Leaving] = field(default_factory=dict)  # by operator
    planned: int | None = None  # the batch that is planned and not committed: a start runs it first, over its range
    planned_state: Annotated[
        PlannedState | None,
        "of the state of that batch: `written`; `none` if a start on the old one would find none either; `left-out` if "
        "the old one has it and the new one cannot: if a sink that skips known batch ids has the batch, first start "
        "once into `noop`",
    ] = None
    exported_id: str | None = None  # the query id of the export that is imported, where it says so
    imported: bool = False  # its state is an export
    salvage: Salvage | None = None  # where what is damaged is left out
    starts_with: tuple[Spark, ...] = ()  # versions that can start the new one
    stopped: tuple[Spark, ...] = ()  # versions that can start the old one, and not the new one
    merged: tuple["Rewrite", ...] = ()  # of several old ones: how each would be written alone, in the order given
    union: "Union | None" = None  # likewise: the logs of the new one
    parts: tuple["Rewrite", ...] = ()  # of several new ones: each of them, this one first
    among: tuple[str, ...] = ()  # likewise, of the first of them: the conditions of all

    @property
    def of_another_query(self) -> bool:
        """True if the state is an export that is not known to be of the same query."""
        return self.imported and (self.exported_id is None or self.exported_id != self.inspection.checkpoint.query_id)

    @property
    def new_sources(self) -> "tuple[UnitedSource, ...]":
        """The sources of the new query, of several old checkpoints."""
        return self.union.sources if self.union else ()

    @property
    def late_from_ms(self) -> tuple[int, int] | None:
        """The lowest and the highest watermark of several old checkpoints, where they differ.

        Of the newest batches or of the next ones: a start judges by the former which rows are late.
        """
        both = (self.union.watermarks_ms, self.union.evicted_ms) if self.union else ()
        differing = [ms for watermarks in both if len(set(watermarks)) > 1 for ms in watermarks]
        return (min(differing), max(differing)) if differing else None

    @property
    def unseen(self) -> tuple[Key, ...]:
        """Keys to be left out that no row had."""
        numbers_seen = set[int]().union(
            *(dropping.seen for dropping in self.leaving.values() if isinstance(dropping, Dropping))
        )
        return tuple(key for number, key in enumerate(self.keys) if self.written and number not in numbers_seen)

    @property
    def changed(self) -> Mapping[str, str]:
        """The settings that the new checkpoint has, where they differ: of the session for the format, else recorded."""
        old, new = list_settings(self.old), list_settings(self.new)
        return {name: value for name, value in new.items() if value != old[name]}


class PlannedRewrite(NamedTuple):
    """A rewrite that is planned: what is read, which small files are taken along, and what comes of it."""

    chosen: ChosenState
    selection: Selection
    rewrite: Rewrite


def list_settings(form: Form) -> dict[str, str]:
    """The settings that say how state is kept."""
    return {
        settings.PROVIDER_CLASS: CLASSES.get(form.provider, ""),
        settings.SHUFFLE_PARTITIONS: str(form.partitions),
        settings.CHECKPOINT_FORMAT: str(form.version),
    }


def plan_rewrite(
    checkpoint: str, new: NewCheckpoint, *, of_values: bool = False, salvage: bool = False, schema: str | None = None
) -> PlannedRewrite:
    """Open a checkpoint, select its small files, and plan a rewrite; ``refused`` says why it cannot be made.

    ``of_values``: rows are made of values, and not bytes that are there moved. ``salvage``: of damaged state
    what can be read. ``schema``: a file with the schemas of state that keeps none.

    Raises NotACheckpoint, NotFound, StorageError, StateDamaged; CannotRewrite, Undecodable where the old form is
    unknown; UsageError where there are no such form, keys or columns, or one place is inside the other.
    """
    _check_new(checkpoint, new)
    own = choose_options(checkpoint, new.options)
    salvaged = find_salvage(checkpoint, own) if salvage else None
    question = StateRequest(checkpoint, RequestedPart(schema=schema), all_units=True)
    chosen = choose(salvaged.question if salvaged else question, own)
    return _plan(chosen, new, of_values=of_values, salvaged=salvaged)


def _plan(
    chosen: ChosenState, new: NewCheckpoint, *, of_values: bool = False, salvaged: Salvage | None = None
) -> PlannedRewrite:
    """Plan a rewrite of a checkpoint that is open. Raises as ``plan_rewrite``."""
    stated = bool(chosen.stated)
    selection = select_files(chosen.storage, new.uri, chosen.moment.batch, damaged=salvaged is not None, stated=stated)
    context = context_of(chosen)
    if not context.shuffle_partitions or context.provider not in CLASSES:
        what = "a number of shuffle partitions, and one of Spark's state store providers"
        raise CannotRewrite(f"{chosen.checkpoint.uri}: its offsets do not record {what}")
    old = Form(context.provider, context.shuffle_partitions, 2 if context.unique_ids else 1)
    to = Provider(new.provider) if new.provider else old.provider
    version = new.format_version or (old.version if to is Provider.ROCKSDB else 1)
    form = Form(to, new.partitions or old.partitions, version)
    units = [RewrittenUnit(unit, None, form.partitions) for unit in chosen.units if not unit.shown_elsewhere]
    if not of_values:
        for unit in units:
            layout_of(chosen, unit.unit)  # which counts its rows
    refusals = refuse_rewrite(chosen.checkpoint.state, chosen.recorded, old, form, of_values=of_values)
    offsets = chosen.checkpoint.offsets.latest
    planned = offsets if offsets != selection.batch and not (salvaged and salvaged.again) else None
    inspection = inspect(read_checkpoint(chosen.storage) if stated else chosen.checkpoint)  # Spark knows no such schema
    starting = list_starting(inspection)
    stopped = tuple(spark for spark in starting if not _reads(spark, form))
    planned_state = None if planned is None else _judge_planned_state(chosen, old, form, of_values=of_values)
    return PlannedRewrite(
        chosen,
        selection,
        Rewrite(
            inspection=inspection,
            into=new.uri,
            batch=selection.batch,
            old=old,
            new=form,
            query_id=str(uuid4()) if new.new_id else chosen.checkpoint.query_id,
            new_id=new.new_id,
            units=tuple(units),
            keys=new.keys,
            where=new.where,
            leaving=choose_leaving(chosen, new.keys, new.where),
            planned=planned,
            planned_state=planned_state,
            salvage=salvaged,
            starts_with=tuple(spark for spark in starting if spark not in stopped),
            stopped=stopped,
            refused=next(chain[str | Words](_refuse_planned(chosen) if planned is not None else (), refusals), None),
        ),
    )


def plan_merge(
    checkpoints: Sequence[str], new: NewCheckpoint, query: QueryDescription | None, *, combine: bool
) -> PlannedRewrite:
    """Plan one new checkpoint of several old ones, in the form of the first one where ``new`` does not say it.

    Raises as ``plan_rewrite``.
    """
    from ckpt.new.rewrite.union import unite

    plans = [plan_rewrite(checkpoints[0], new)]
    chosen, selection, rewrite = plans[0]
    provider, partitions, version = rewrite.new
    new = replace(new, provider=provider, partitions=partitions, format_version=version)
    plans += (plan_rewrite(other, new) for other in checkpoints[1:])
    each = tuple(plan for *_, plan in plans)
    starting = frozenset.intersection(*(frozenset((*plan.starts_with, *plan.stopped)) for plan in each))
    stopped = tuple(spark for spark in Spark if spark in starting and any(spark in plan.stopped for plan in each))
    starts_with = tuple(spark for spark in Spark if spark in starting and spark not in stopped)
    rewrite = replace(rewrite, merged=each, planned=None, planned_state=None, starts_with=starts_with, stopped=stopped)
    if (refused := next((plan.refused for plan in each if plan.refused), None)) is not None:
        return PlannedRewrite(chosen, selection, replace(rewrite, refused=refused))
    try:
        union = unite([own for own, *_ in plans], query, combine=combine)
    except NoWay as error:
        return PlannedRewrite(chosen, selection, replace(rewrite, refused=error.words))
    return PlannedRewrite(chosen, selection, replace(rewrite, union=union, batch=union.batch))


def plan_split(checkpoint: str, into: Sequence[NewCheckpoint]) -> Iterator[PlannedRewrite]:
    """Plan several new checkpoints of one old one, each with the rows of its condition. Raises as ``plan_rewrite``."""
    for new in into:
        _check_new(checkpoint, new)
    chosen = choose(StateRequest(checkpoint, all_units=True), choose_options(checkpoint, into[0].options))
    where = tuple(new.where for new in into if new.where is not None)
    for number, new in enumerate(into):
        plan = _plan(chosen, new)
        refused, among = plan.rewrite.refused, () if number else where
        if plan.rewrite.planned is not None:
            commit = commit_planned(chosen.checkpoint)
            refused = BOOK.text("split_planned", planned=plan.rewrite.planned, commit=commit)
        if among:
            refused = refused or next(_refuse_conditions(choose_leaving(chosen, (), among)), None)
        yield plan._replace(rewrite=replace(plan.rewrite, refused=refused, among=among))


def _refuse_conditions(leaving: Mapping[int, Leaving]) -> Iterator[str]:
    """Why conditions do not divide rows among queries that each have a filter."""
    for operator, part in leaving.items():
        if not part.applies:
            yield f"operator {operator} lacks columns of a condition: every new checkpoint would have its rows"
        elif isinstance(part, SplitFilter) and part.beyond_sources:
            yield (
                f"operator {operator}: rows of a source lack {join_names(part.beyond_sources)}, so no filter can "
                "assign each of them to one new query: divide by other columns of the key"
            )
        elif isinstance(part, SplitFilter) and part.floats:
            yield (
                f"operator {operator}: Spark and DuckDB compare {join_names(part.floats)} of type FLOAT differently: "
                "divide by other columns of the key"
            )


def list_starting(inspection: Inspection) -> tuple[Spark, ...]:
    """The versions that can start the query, of those that may be in use."""
    return tuple(spark for spark in Spark if any(f.spark is spark and f.outcome.runs for f in inspection.counted))


def _reads(spark: Spark, form: Form) -> bool:
    """Tell whether a version reads the commits and snapshots that are written in this form."""
    rules = spark.rules
    return form.version == 1 or (rules.newest_commit_log > 1 and not rules.version_2_snapshots)


def _check_new(checkpoint: str, new: NewCheckpoint) -> None:
    """Raise UsageError for a form that is none, or a place inside the checkpoint; StorageError where files are."""
    check_apart(checkpoint, new.uri)
    new.open().check_empty()
    if new.partitions is not None and new.partitions < 1:
        raise UsageError.of("{--partitions} must be at least 1")
    if new.format_version not in (None, 1, 2):
        raise UsageError.of("{--format-version} must be 1 or 2")
    if new.provider not in (None, *CLASSES):
        raise UsageError.of("{--provider=}: {known}", provider=new.provider, known=" or ".join(CLASSES))


def _judge_planned_state(chosen: ChosenState, old: Form, new: Form, *, of_values: bool) -> PlannedState:
    """Judge the state of the batch after, which is planned, by the names and ends of its files. Raises StorageError."""
    context, listing = context_of(chosen), chosen.checkpoint.listing
    stores = find_store_partitions(listing, context.provider)
    version = WantedVersion(chosen.moment.state_version + 1)
    targets = {store: version for store in stores if context.target(store) is not None}
    loads, _ = run(load_stores(listing, targets, context.codec or LZ4, len(targets)), chosen.storage.read_many)
    damages = (damage for load in loads for damage in load.damages)
    broken = any(is_serious(damage.kind, checksummed=damage.checksummed) for damage in damages)
    if old.version > 1 or chosen.question.lost or broken or not all(load.chain.complete for load in loads):
        return PlannedState.NONE
    return PlannedState.LEFT_OUT if of_values or new.version > 1 else PlannedState.WRITTEN


def _refuse_planned(chosen: ChosenState) -> Iterator[Words]:
    """Why no new checkpoint would start as this one, where a batch is planned."""
    checkpoint, done = chosen.checkpoint, chosen.moment.batch
    planned = checkpoint.offsets.latest
    if planned is None or planned == done:
        return
    parts = {"uri": checkpoint.uri, "planned": planned}
    if planned > done + 1:
        yield BOOK.text("rewrite_several_planned", first=done + 1, done=done, **parts)
    elif checkpoint.offsets.readable(planned) is None:
        yield BOOK.text("rewrite_planned_unreadable", **parts)
