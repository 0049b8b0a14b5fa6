"""Plans ``ckpt evolve``: what changes in a checkpoint so that a changed query continues from it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Self

from ckpt.advice import Option, Setting, Words, join, plain
from ckpt.advice.calls import Value
from ckpt.changes.check_fix import ANY_START
from ckpt.changes.plan import NEVER_FINISHED, OF_EPOCHS, STOP_FIRST, ChangePlan, NoWay
from ckpt.changes.steps import FileContent, FileStep, plan_writing, read_files, sidecar, view_changed
from ckpt.checkpoint.checkpoint import OFFSETS, STATE, Checkpoint
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.errors import UsageError
from ckpt.formats.offsets import CHANGING, NAMING
from ckpt.inspection.inspection import inspect
from ckpt.model import Kind, Unreadable
from ckpt.new.evolve.book import BOOK
from ckpt.new.evolve.columns import OtherOld
from ckpt.new.evolve.logs import has_names, plan_logs
from ckpt.new.evolve.operators import OperatorChange, OperatorsRefused, judge_operators, match_operators, name_operators
from ckpt.new.evolve.origins import ColumnChoices, parse_mapping
from ckpt.new.evolve.sources import PartChange, QueryChange, SourceChange, match_sources, pair_kept, resume_sources
from ckpt.new.evolve.state import StatePlan, plan_state, replace_files
from ckpt.query.compare_checkpoint import compare_query, encodes_as_avro, find_misfit, next_watermark_of, watermark_of
from ckpt.query.compare_queries import Knowledge, compare_signatures, find_worst
from ckpt.query.description import QueryDescription
from ckpt.restart.findings import Finding, Severity
from ckpt.restart.remedies import commit_planned
from ckpt.storage import Storage
from ckpt.texts import instant


@dataclass(frozen=True, slots=True)
class EvolveOptions:
    """Decisions of a person about the change."""

    map_source: Sequence[str] = ()  # OLD=NEW
    map_operator: Sequence[str] = ()  # OLD=NEW
    map_column: Sequence[str] = ()  # OLD=NEW
    default: Mapping[str, str] = field(default_factory=dict)  # of a new column, by its name
    start: Mapping[str, str] = field(default_factory=dict)  # JSON of an offset, by source of the query
    from_query: QueryDescription | None = None  # that wrote the checkpoint
    accept_from_now_on: bool = False


@dataclass(frozen=True, slots=True)
class EvolveAnswer:
    """Options that take one refusal."""

    options: Mapping[str, Value]
    why: Words  # what it costs


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolvePlan(ChangePlan):
    """The files that differ, in the checkpoint itself or in a new one, and what the query then knows."""

    command: ClassVar[str] = "evolve"

    sources: tuple[SourceChange, ...] = ()
    operators: tuple[OperatorChange, ...] = ()
    findings: tuple[Finding, ...] = ()  # of ``ckpt.preflight``, if the query is started on the checkpoint as it is
    state: StatePlan = field(default_factory=StatePlan)  # of a new checkpoint
    into: Annotated[str | None, "NEW, as given; null with `--in-place`"] = None
    written: Annotated[bool, "NEW is complete"] = False
    batch: Annotated[int | None, "the committed batch after which NEW continues"] = None
    query_id: Annotated[str | None, "of NEW"] = None
    new_id: bool = False
    query_file: str | None = None  # that describes the query, where it was given as one
    answers: tuple[EvolveAnswer, ...] = ()  # that a guided change adds to the request
    guided: EvolveOptions | None = None  # with these
    in_place: bool = False  # a guided change can be made there too
    unusable: bool = False  # refused for what the checkpoint is, with any query
    other_old: bool = False  # refused because another query than the old one was named
    needs_acceptance: bool = False  # refused only until somebody accepts that what is new knows rows from now on
    refused_operator: int | None = None  # of the query, the first whose state cannot be kept
    begins_empty: EvolveOptions | None = None  # with which all of those begin without
    files: Annotated[int, "of NEW"] = 0
    bytes: Annotated[int, "of NEW"] = 0
    sinks: Mapping[str, str] = field(default_factory=dict)  # kind: what it does if the original writes there too

    @property
    def verdict(self) -> Knowledge:
        """Return the worst verdict of its parts; nothing is full that was refused, or not judged."""
        worst = find_worst(part.verdict for part in self.parts)
        return Knowledge.UNKNOWN if self.refused is not None and worst is Knowledge.FULL else worst

    @property
    def knows_less(self) -> tuple[Words, ...]:
        """List the verdict and reason of each part that is not as if the query had run from the beginning."""
        kinds: Mapping[str, Sequence[QueryChange]] = {"source": self.sources, "operator": self.operators}
        return tuple(
            plain(f"{kind} {part.old if part.new is None else part.new} ({part.verdict}): ") + part.why
            for kind, parts in kinds.items()
            for part in parts
            if part.verdict is not Knowledge.FULL
        )

    @property
    def parts(self) -> tuple[QueryChange, ...]:
        """List all sources and operators."""
        return (*self.sources, *self.operators)

    @property
    def has_changes(self) -> bool:
        """Return True if files change, or have to be made."""
        return bool(self.steps) or self.state.makes_files

    def add_made(self, sizes: Mapping[str, int]) -> Self:
        """Return this plan with steps for the files that were made, so many bytes by path."""
        made = (FileStep(path, None, FileContent(size, None)) for path, size in sizes.items())
        steps = {step.path: step for step in (*self.steps, *replace_files(self.inspection.checkpoint, made))}
        return replace(self, steps=tuple(steps.values()))


def plan_evolution(
    storage: Storage, query: QueryDescription, options: EvolveOptions, into: str | None = None
) -> EvolvePlan:
    """Plan what changes so that a query continues from a checkpoint: in a new one, or without ``into`` in place.

    In place it is judged already; a new one has to be, once it has the files that the plan asks for
    (``judge_evolution``). Raises NotACheckpoint, NotFound, StorageError, or UsageError where an option names no source.
    """
    inspection = inspect(read_checkpoint(storage, batches=0))
    plan = EvolvePlan(inspection=inspection, needed=True, into=into)
    checkpoint = inspection.checkpoint
    try:
        _check_logs(checkpoint)
    except NoWay as error:
        return replace(plan.refusing(error.words, error.advice), unusable=True)
    try:
        findings = compare_query(query, checkpoint, query.spark, options.from_query).findings
        plan = replace(plan, findings=tuple(sorted(findings, key=lambda finding: -finding.diagnosis.severity.rank)))
        if options.from_query is not None and (problem := _explain_misfit(options.from_query, checkpoint)) is not None:
            raise OtherOld(problem)
        changes = match_sources(checkpoint, query, options.map_source or _pair_same(query, options), options.start)
        changes = tuple(resume_sources(storage, checkpoint, query, changes))
        plan = replace(plan, sources=changes)
        operators = _match_operators(checkpoint, query, changes, options)
        plan = replace(plan, operators=operators)
        _check_changes(checkpoint, query, plan, options)
        changed = [each for each in operators if each.old != each.new or each.stores or each.restated]
        if changed:
            if into is None:
                moved = [part.why for each in changed for part in each.parts if part.old != part.new]
                errors = (error for error in plan.findings if error.diagnosis.severity is Severity.ERROR)
                stops = [error.detail for error in errors if error.path.startswith(STATE)]
                whys = moved or stops or [each.why for each in changed]
                raise NoWay(BOOK.text("evolve_only_sources", why=join(whys, "; ")))
            plan = replace(plan, state=plan_state(storage, checkpoint, query, operators))
    except NoWay as error:
        refused = replace(plan.refusing(error.words, error.advice), other_old=isinstance(error, OtherOld))
        if not isinstance(error, OperatorsRefused):
            return refused
        empty = _let_begin_empty(storage, query, options, into, error.operators)
        if empty is None and not any(isinstance(part, Option) for part in error.words.parts):  # nobody has a choice
            refused = replace(refused, instead=BOOK.advise("evolve_hand_over", uri=checkpoint.uri))
        return replace(refused, refused_operator=error.operators[0], begins_empty=empty)
    if not options.accept_from_now_on and (reasons := [*_list_losses(plan)]):
        asks = plan.refusing(BOOK.text("evolve_accept_all", reasons=join(reasons, "; ")))
        return replace(asks, needs_acceptance=True)
    steps = (*plan.state.steps, *plan_logs(storage, checkpoint, query, changes))
    if into is not None:
        return replace(plan, steps=steps)
    plan = replace(plan, steps=_mark_meanwhile(storage, checkpoint, steps) if steps else ())
    return judge_evolution(view_changed(storage, checkpoint.listing, plan.steps), plan, query)


def _let_begin_empty(
    storage: Storage, query: QueryDescription, options: EvolveOptions, into: str | None, operators: Sequence[int]
) -> EvolveOptions | None:
    """Find options with which these operators begin empty, and nothing else is refused; None: there are none."""
    kept = [word for word in options.map_operator if word.partition("=")[2] not in map(str, operators)]
    mapped = (*kept, *(f"-={operator}" for operator in operators))
    empty = replace(options, map_operator=mapped, accept_from_now_on=True)
    for tried in (empty, replace(empty, map_column=(), default={})):
        try:
            if plan_evolution(storage, query, tried, into or f"{storage.uri}-2").refused is None:
                return tried
        except UsageError:  # a column of an operator that begins empty is named
            continue
    return None


def _pair_same(query: QueryDescription, options: EvolveOptions) -> list[str]:
    """Pair sources by place, as ``map_source`` does, where the old query read the same: two may read one folder."""
    old, new = (
        [(source.kind, source.path, source.topics) for source in each.sources if source.name is None]
        for each in (options.from_query or query, query)
    )
    known = options.from_query is not None and all(path or topics for _, path, topics in old)
    return [f"{number}={number}" for number in range(len(old))] if known and old == new else []


def judge_evolution(changed: Storage, plan: EvolvePlan, query: QueryDescription) -> EvolvePlan:
    """Judge the checkpoint as the plan leaves it; refused if the query would not start on it. Raises StorageError."""
    before, hand_over = plan.inspection, BOOK.advise("evolve_hand_over", uri=plan.inspection.checkpoint.uri)
    if not plan.steps:
        plan = replace(plan, needed=False, why="the query continues from it unchanged")
        problem = _explain_misfit(query, before.checkpoint)
        return plan if problem is None else plan.refusing(problem, hand_over)
    after = inspect(read_checkpoint(changed))
    stops = ANY_START.refuse(before, after)
    problem = stops or _explain_misfit(query, after.checkpoint)
    if problem is not None:
        return plan.refusing(problem, None if stops else hand_over)
    first = (STOP_FIRST,) if plan.into is None else ()
    return replace(plan, inspection_after=after, warnings=(*first, *_warn(before.checkpoint, query, plan)))


def _match_operators(
    checkpoint: Checkpoint, query: QueryDescription, sources: Sequence[SourceChange], options: EvolveOptions
) -> tuple[OperatorChange, ...]:
    """Match the operators, and judge them where the old query is known. Raises NoWay, UsageError."""
    old = options.from_query
    if query.unsupported is not None:
        why = f"Spark refuses the query with any checkpoint: {query.unsupported}"
        raise NoWay(why, BOOK.advise("evolve_change_mode"))
    if query.operators is not None:
        there = name_operators(checkpoint.operators, old)
        changes = match_operators(there, query.operators, options.map_operator)
        pairs = pair_kept(sources), pair_kept(changes)
        compared = compare_signatures(old, query, *pairs, watermark_of(checkpoint)) if old else ()
        columns = ColumnChoices(parse_mapping(options.map_column), options.default)
        avro = {each.id for each in checkpoint.operators if encodes_as_avro(checkpoint, each, query.spark)}
        expires_ms = _find_expiry(checkpoint, old or query, query)
        judged = tuple(judge_operators(changes, there, query, old, compared, columns, avro, expires_ms))
        columns.check_used()
        return judged
    if checkpoint.stateful is False:
        return ()
    why = f"Spark could not plan the query where it was described: {query.unplanned}"
    return tuple(
        OperatorChange(PartChange.SAME, operator.id, operator.id, Knowledge.UNKNOWN, why, operator.name or "")
        for operator in checkpoint.operators
    )


def _find_expiry(checkpoint: Checkpoint, old: QueryDescription, new: QueryDescription) -> int | None:
    """Find when a key of the newest row of all would expire that is known only within the watermark.

    ``StreamingDeduplicateWithinWatermarkExec``: the time of its row and the delay. None: no one watermark says it.
    """
    watermark_ms = next_watermark_of(checkpoint)
    delays = [each.delay_ms for query in (old, new) for each in query.watermarks or ()]
    known = watermark_ms > 0 and len(old.watermarks or ()) == len(new.watermarks or ()) == 1
    return watermark_ms + sum(delays) + 1 if known else None  # a watermark has no microseconds


def _check_logs(checkpoint: Checkpoint) -> None:
    """Raise NoWay where the newest batch does not say where the sources are."""
    latest = checkpoint.offsets.latest
    if checkpoint.unfinished:
        raise NoWay(NEVER_FINISHED)
    if checkpoint.kind is Kind.CONTINUOUS:
        raise NoWay(OF_EPOCHS, BOOK.advise("evolve_hand_over", uri=checkpoint.uri))
    if latest is None:
        raise NoWay("no batch was ever planned: any query starts here as a new one", BOOK.advise("evolve_begin"))
    for batch in (latest, checkpoint.offsets.before(latest)):
        entry = None if batch is None else checkpoint.offsets.entries.get(batch)
        if isinstance(entry, Unreadable):
            parts = {"file": f"{OFFSETS}/{batch}", "reason": entry.reason, "uri": checkpoint.uri}
            raise NoWay(BOOK.text("evolve_unreadable", **parts), BOOK.advise("evolve_repair", **parts))


def _check_changes(checkpoint: Checkpoint, query: QueryDescription, plan: EvolvePlan, options: EvolveOptions) -> None:
    """Raise NoWay for a change that would lose rows, or mix state, without an error of Spark."""
    names = [source.name for source in query.sources]
    if any(names) and not all(names):
        raise NoWay("some sources of the query have names and others do not: Spark does not start such a query")
    planned = checkpoint.offsets.latest != checkpoint.commits.latest
    gone = ", ".join(str(change.old) for change in plan.sources if change.is_gone and not change.unread)
    if gone and planned:
        raise _refuse_while_planned(checkpoint, BOOK.text("evolve_unread_rows", numbers=gone))
    joined = any(operator.name == "symmetricHashJoin" for operator in checkpoint.operators)
    order = [change.old for change in plan.sources if change.old is not None and not change.is_gone]
    if joined and order != sorted(order) and options.from_query is None:
        raise NoWay(BOOK.text("evolve_order_of_sides"))
    changed = [part for part in plan.operators if part.stores]
    if changed and planned:
        raise _refuse_while_planned(checkpoint, BOOK.text("evolve_columns_change", new=changed[0].new))


def _list_losses(plan: EvolvePlan) -> Iterator[Words]:
    """List all that knows rows from now on only, which somebody has to accept."""
    for part in plan.parts:
        kind = "source" if isinstance(part, SourceChange) else "operator"
        columns = part.parts if isinstance(part, OperatorChange) else ()
        new = [column.why for column in columns if column.verdict is Knowledge.FROM_NOW_ON]
        if new:
            yield BOOK.text("evolve_knows_columns_less", new=part.new, reasons=join(new, "; "))
        elif part.verdict is Knowledge.FROM_NOW_ON:
            yield BOOK.text("evolve_knows_less", kind=kind, new=part.new, why=part.why)


def _refuse_while_planned(checkpoint: Checkpoint, why: Words) -> NoWay:
    """Refuse what must not change while a batch is planned, and advise how it is planned again."""
    latest = checkpoint.offsets.latest
    assert latest is not None
    parts = {"latest": latest, "before": latest - 1, "uri": checkpoint.uri}
    reason = BOOK.text("evolve_planned", why=why, commit=commit_planned(checkpoint, "the old query"), **parts)
    return NoWay(reason, BOOK.advise("evolve_plan_again", **parts))


def _explain_misfit(query: QueryDescription, checkpoint: Checkpoint) -> str | None:
    """Explain why the query would not start on a checkpoint, as ``ckpt preflight`` sees it; None if it would."""
    misfit = find_misfit(query, checkpoint)
    return None if misfit is None else f"{misfit.diagnosis.code} {misfit.diagnosis.name}: {misfit.detail}"


def _mark_meanwhile(storage: Storage, checkpoint: Checkpoint, steps: Sequence[FileStep]) -> tuple[FileStep, ...]:
    """Replace the newest offsets by a mark during the steps: no query starts meanwhile. Raises StorageError."""
    path = f"{OFFSETS}/{checkpoint.offsets.latest}"
    checksums = sidecar(path)
    own = [step for step in steps if step.path == path]
    others = [step for step in steps if step.path not in (path, checksums)]
    names = [name for name in (path, checksums) if checkpoint.listing.info(name) is not None]
    was = read_files(storage, names)
    after = own[-1].after if own else was[path]
    assert isinstance(after, bytes)
    first = [FileStep(checksums, was[checksums], None)] if checksums in was else []
    mark = FileStep(path, was[path], CHANGING, like=path)
    written = [
        replace(step, before=CHANGING) if step.path == path else step
        for step in plan_writing(storage, checkpoint.listing, path, after)
        if step.path == path or step.before is None
    ]
    return (*first, mark, *others, *written)


def _warn(checkpoint: Checkpoint, query: QueryDescription, plan: EvolvePlan) -> Iterator[Words]:
    newest = checkpoint.offsets.newest
    assert newest is not None
    named = any(source.name is not None for source in query.sources)
    if named and not has_names(newest):
        both = join((Words((Setting(f"{name}={value}"),)) for name, value in NAMING.items()), " and ")
        yield BOOK.text("evolve_with_names", both=both)
    elif has_names(newest) and not named:
        yield BOOK.text("evolve_without_names", names=" and ".join(NAMING))
    if checkpoint.state is None and plan.operators:
        yield BOOK.text("evolve_format_1")
    metadata = newest.metadata
    if metadata is not None and metadata.watermark_ms > 0 and any(change.is_new for change in plan.sources):
        yield BOOK.text("evolve_watermark", watermark=instant(metadata.watermark_ms))
    if checkpoint.stateful is not False and any(change.is_gone for change in plan.sources):
        yield BOOK.text("evolve_gone_rows")
