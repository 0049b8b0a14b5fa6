"""Report of ``ckpt evolve``: the changes of the query, and what it then knows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from ckpt.advice import NO_ROWS, Advice, Call, Do, Hole, Option, Step, advise, call, do, join, run, words
from ckpt.advice.calls import Value
from ckpt.advice.spelling import name_option
from ckpt.changes.steps import FileContent
from ckpt.migrate.handoff.plan import SinkMeaning
from ckpt.new.evolve.operators import OperatorChange
from ckpt.new.evolve.plan import EvolvePlan
from ckpt.new.evolve.sources import PartChange, QueryChange, SourceChange
from ckpt.query.compare_queries import Knowledge, PartComparison
from ckpt.query.description import NOT_DESCRIBED
from ckpt.restart.findings import Severity
from ckpt.texts import plural
from ckpt.versions import Progress

from . import blocks
from .book import BOOK
from .change import ChangeReport
from .change_keys import ChangeDocument, StepKeys
from .keys import ForPeople, Keys, of
from .page import forecast_cases
from .reports import Exit


class _Change(Keys):
    from_: Annotated[int | None, of("old")]
    to: Annotated[int | None, of("new")]
    why: ForPeople


class _SourceChange(_Change, record=QueryChange, keys="change from_ to verdict why"): ...


class _Part(_Change, record=PartComparison, keys="kind from_ to verdict why"): ...


class _OperatorChange(_Change, record=OperatorChange, keys="change name from_ to verdict why columns"):
    columns: Annotated[tuple[_Part, ...], of("parts")]


class _Finding(Keys):
    code: Annotated[str, of("diagnosis.code")]
    name: Annotated[str, of("diagnosis.name")]
    severity: Annotated[Severity, of("diagnosis.severity")]
    path: str
    detail: str


class _Answer(Keys):
    options: Annotated[
        tuple[str, ...], lambda answer: [name_option(name, value) for name, value in answer.options.items()]
    ]
    why: ForPeople


class _WrittenFile(Keys):
    bytes: Annotated[int, of("size")]
    sha256: str | None


class _Step(StepKeys):
    after: Annotated[  # type: ignore[assignment]
        _WrittenFile | None, "the file after the step; null if removed", lambda step: FileContent.of(step.after)
    ]


_RESULT = "verdict findings answers sources operators not_compared written batch query_id new_id files bytes sinks"


class EvolveDocument(ChangeDocument, record=EvolvePlan, request="needed into", result=_RESULT):
    """The document of ``ckpt evolve``."""

    steps: tuple[_Step, ...]
    replay: tuple[()]
    findings: tuple[_Finding, ...]
    answers: tuple[_Answer, ...]
    sources: tuple[_SourceChange, ...]
    operators: tuple[_OperatorChange, ...]
    not_compared: Annotated[tuple[str, ...], lambda plan: [NOT_DESCRIBED] if plan.operators else []]
    sinks: Annotated[tuple[SinkMeaning, ...], lambda plan: [SinkMeaning(*sink) for sink in plan.sinks.items()]]


@dataclass(frozen=True, slots=True)
class EvolveReport(ChangeReport[EvolvePlan]):
    """A changed query and its checkpoint."""

    asked: Mapping[str, Value | None] = field(default_factory=dict)  # other options of the request

    keys = EvolveDocument
    verb = "CHANGE"
    done = "CHANGED for the query: it {report.afterwards}"
    planned = "afterwards the query {report.afterwards}"

    @property
    def exit(self) -> Exit:
        if self.plan.into is None or self.plan.refused or self.receipt.problem:
            return ChangeReport.exit.fget(self)  # type: ignore[attr-defined, no-any-return]
        return Exit.OK

    @property
    def _is_for_checkpoint(self) -> bool:
        """True if no NEW is written, or was, by this request."""
        plan = self.plan
        nothing = not (plan.needed or plan.new_id or plan.written)
        return plan.into is None or self._refusal is not None or (plan.guided is None and nothing)

    def _show_headline(self, steps: Iterable[Step]) -> Iterator[blocks.Block]:
        plan = self.plan
        if self._is_for_checkpoint:
            yield from ChangeReport._show_headline(self, () if plan.into and not self._refusal else steps)
            return
        what = f"{plural(plan.files, 'file')}, {plural(plan.bytes, 'byte')}"
        where = f"{plan.into} as of batch {plan.batch}"
        text = f"WRITTEN to {where}, and checked: {what}" if plan.written else f"PLANNED: {where}: {what}"
        if plan.guided is None:
            yield blocks.Headline(text, blocks.Tone.GOOD)
            return
        forgets = any("map_operator" in answer.options for answer in plan.answers)
        text = f"ONE COMMAND does it{', and drops old state' * forgets}. The query then knows: {_SAID[plan.verdict]}"
        if not plan.has_changes:
            text = f"NOTHING TO CHANGE: {plan.why}, and the query knows: {_SAID[plan.verdict]}"
        tone = blocks.Tone.GOOD if plan.verdict is Knowledge.FULL else blocks.Tone.WARNING
        yield from blocks.show_outcome(text, tone, steps if plan.has_changes else ())

    def comment(self) -> blocks.Page:
        """A guided change in about ten lines: the outcome, each change with its cost, the command."""
        if self.plan.guided is None:
            return self.page()
        same = PartChange.SAME, Knowledge.FULL
        parts = [part for part in self.plan.parts if (part.change, part.verdict) != same]
        rows = [_tabulate_part(part, f"{part.change} {_name_part(part)}", planned=True)[1:] for part in parts]
        shown = rows if len(rows) <= _BRIEF else [*rows[: _BRIEF - 1], (f"and {len(rows) - _BRIEF + 1} more", "", "")]
        steps = [step for block in self._show_next() if isinstance(block, blocks.Next) for step in block.steps]
        return blocks.page_of(self._show_headline(steps), [blocks.Cases(tuple(shown))] if shown else [])

    def forecasts(self) -> Iterator[blocks.Block]:
        if self.plan.into is None:
            yield from ChangeReport.forecasts(self)
        else:
            yield forecast_cases([f for f in self.plan.after or self.plan.before if f.progress is Progress.SYNC])

    def steps(self) -> Iterator[blocks.Block]:
        return ChangeReport.steps(self) if self.plan.into is None else iter(())

    def own_part(self) -> Iterator[blocks.Block]:
        if self.plan.findings:
            yield blocks.Heading("Preflight", "the result of starting the query on the unchanged CHECKPOINT")
        for finding in self.plan.findings:
            diagnosis = finding.diagnosis
            yield blocks.FindingHead(diagnosis.severity, f"{diagnosis.code} {diagnosis.name}", finding.path)
            yield blocks.Item(finding.detail, 11)
        if self.plan.answers and self.plan.has_changes:
            yield blocks.Heading("Options", "for this change, and what each costs")
        for answer in self.plan.answers if self.plan.has_changes else ():
            yield blocks.Item(join((Option(name, value) for name, value in answer.options.items()), " "))
            yield blocks.Item(answer.why, 6)
        if not self.plan.sources:
            return
        planned = self._refusal is None
        yield blocks.Heading("Sources", f"what the query then knows: {_SAID[self.plan.verdict]}" if planned else "")
        yield blocks.Cases(
            tuple(_tabulate_part(source, source.change, planned=planned) for source in self.plan.sources)
        )
        if self.plan.operators:
            yield blocks.Heading("Operators", "stateful, by their ids")
            parts = ((part, f"{part.change} {part.name}") for part in self.plan.operators)
            yield blocks.Cases(tuple(_tabulate_part(part, change, planned=planned) for part, change in parts))
        for operator in self.plan.operators:
            if operator.stores:
                yield blocks.Heading(
                    "Columns", f"of operator {operator.new}, {operator.name}: old position, new position"
                )
                yield blocks.Cases(tuple(_tabulate_column(part) for part in operator.parts))
        if self.plan.operators:
            yield blocks.Heading("Not checked", f"{NOT_DESCRIBED}: changes to these are not seen")
        if self.plan.guided is not None and self.plan.operators and self.asked.get("from_query") is None:
            yield blocks.Item(words("Name the old query ({--from-query}) to see which rows each column includes"), 2)
        made = not self._is_for_checkpoint and (self.plan.guided is None or self.plan.has_changes)
        if made and not self.plan.new_id:
            yield blocks.Item(
                "NEW has the same query id as CHECKPOINT: their queries must never write to the same sink", 2
            )

    @property
    def request(self) -> Call:
        into = () if self.plan.into is None else (self.plan.into,)
        to: Value = self.plan.query_file or Hole.QUERY
        request = Call("evolve", (self.plan.root, *into)).but(in_place=self.plan.into is None or None, to=to)
        request = request.but(**self.asked, new_id=self.plan.new_id or None)
        options = self.plan.guided
        if options is None:
            return request
        taken = {name for answer in self.plan.answers for name in answer.options}
        return request.but(**{name: getattr(options, name) for name in sorted(taken)})

    def next_if_nothing(self) -> Iterator[blocks.Block]:
        here = words("Start the changed query on CHECKPOINT: NEW is not needed.")
        yield blocks.Next((do(Do.START, here if self.plan.into else words("Start the changed query."), rows=NO_ROWS),))

    def next_if_refused(self) -> Iterator[blocks.Block]:
        guide = call("evolve", self.plan.root, to=self.plan.query_file or Hole.QUERY)
        if self.plan.other_old and not self.receipt.problem:
            yield from blocks.show_call(guide.but(from_query=Hole.OLD_QUERY), BOOK.text("name_old_query"))
        elif self.plan.needs_acceptance:
            accept = self.request.but(accept_from_now_on=True)
            yield from blocks.show_call(accept, words("Accept that new parts see only rows from now on."), writes=True)
        elif (empty := self.plan.begins_empty) is not None and self.plan.into is not None:
            begin = self.request.but(map_operator=tuple(empty.map_operator), accept_from_now_on=True)
            begin = begin.but(map_column=tuple(empty.map_column), default=dict(empty.default))
            ids = ", ".join(word[2:] for word in empty.map_operator if word.startswith("-="))
            what = words("Start operator {ids} with empty state: it forgets all earlier rows.", ids=ids)
            yield from blocks.show_call(begin, what, writes=True)
        elif self.plan.instead and not self.receipt.problem:
            yield blocks.Next(self.plan.instead.steps)
        elif self.receipt.problem or self.plan.unusable or not self.plan.sound:
            yield from ChangeReport.next_if_refused(self)
        elif self.plan.guided is not None:
            what = words("See how a new query with empty state can continue where this query stopped.")
            yield from blocks.show_call(call("handoff", self.plan.root), what, writes=False)
        else:
            options = words("See the options for this change, and what each costs.")
            yield from blocks.show_call(guide.but(from_query=self.asked.get("from_query")), options)

    def start(self) -> Advice:
        return advise(do(Do.START, words("Start the changed query."), rows=self.rows))

    def _show_next(self) -> Iterator[blocks.Block]:
        plan = self.plan
        if self._is_for_checkpoint or plan.into is None:
            yield from ChangeReport._show_next(self)
            return
        if plan.guided is not None and not plan.has_changes:
            yield from self.next_if_nothing()
            return
        if not plan.written:
            write = run(self.request, words("Write it."), writes=True, before=[words("Stop the old query.")])
            here = self.request.but(in_place=True, apply=True, new_id=None)
            what = words("Change CHECKPOINT itself, with a backup.")
            instead = run(replace(here, arguments=here.arguments[:1]), what, writes=True)
            yield blocks.Next((write.or_(instead) if plan.in_place else write,))
            return
        see = words("Check whether the changed query can be started on NEW.")
        look = run(call("preflight", plan.into, expect=self.plan.query_file or Hole.QUERY), see)
        start = BOOK.text("start_changed", batch=plan.batch)
        yield blocks.Next((look, do(Do.START, start, rows=NO_ROWS)))


_BRIEF = 2  # rows of a comment


def _name_part(part: QueryChange) -> str:
    kind = "source" if isinstance(part, SourceChange) else "operator"
    return f"{kind} {part.old if part.new is None else part.new}"


_SAID = {
    Knowledge.FULL: "everything, as in a run from the beginning",
    Knowledge.FROM_NOW_ON: "only rows from now on in the new parts",
    Knowledge.IMPOSSIBLE: "not the same as in a run from the beginning",
    Knowledge.UNKNOWN: "as far as a checkpoint shows",
}


def _tabulate_column(part: PartComparison) -> tuple[str, ...]:
    places = ("-" if ordinal is None else str(ordinal + 1) for ordinal in (part.old, part.new))
    return " -> ".join(places), part.kind, part.verdict, str(part.why)


def _tabulate_part(part: QueryChange, change: str, *, planned: bool) -> tuple[str, ...]:
    """Show a part; of what is left out, or not planned, nothing is full."""
    places = ("-" if number is None else str(number) for number in (part.old, part.new))
    full = part.verdict is Knowledge.FULL and (part.new is None or not planned)
    return " -> ".join(places), change, "-" if full else part.verdict, str(part.why)
