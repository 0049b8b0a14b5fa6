"""An inspection as a page for a tired person: the verdict and the command, then the evidence, then what to do."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ckpt.advice import Code, Hole, Option, join, words
from ckpt.checkpoint.history import Pattern, rate_sources
from ckpt.checkpoint.pipelines import FlowVersion
from ckpt.checkpoint.sources.kind import Advance, Unit
from ckpt.checkpoint.sources.registry import Offset, SourceRange, SourceView, counts_anew, kind_of, source_views
from ckpt.checkpoint.sources.unknown import NumberOffset
from ckpt.inspection.inspection import Inspection
from ckpt.inspection.verdict import outcome_words, spell
from ckpt.model import Kind
from ckpt.restart.findings import Forecast, Outcome, Severity
from ckpt.texts import instant, plural, quote_word, ranges
from ckpt.versions import Progress

from . import blocks
from .findings import show_findings, show_findings_briefly, show_next, show_notes_briefly
from .live import show_live, show_sink
from .reports import Exit, Report
from .state import show_state, show_state_briefly

if TYPE_CHECKING:
    from .document import Document

_SOURCES = 10  # how many sources are named
_LEADS = ("Will not restart", "Restarts", "Starts fresh", "Unknown")
_NOT_ASKED = {
    "sources": words("the sources ({--sources})"),
    "sink": words("the sink ({option})", option=Option("sink", Hole.URI)),
}
_PATTERNS = {
    Pattern.CONTIGUOUS: "no gaps",
    Pattern.ASYNC_PROGRESS: "gaps like those left by asynchronous progress tracking",
    Pattern.GAPPED: "gaps",
    Pattern.EMPTY: "nothing planned yet",
}


@dataclass(frozen=True)
class InspectionReport(Report[Inspection]):
    """Report of ``ckpt inspect``."""

    verbose: bool = False

    @property
    def exit(self) -> Exit:
        if self.record.unreached:
            return Exit.FAILED
        return Exit.OK if self.record.sound else Exit.FOUND

    def document(self) -> "Document":
        """The document of ``ckpt inspect``, whose keys a page does without."""
        from .inspection import InspectionDocument, finding_keys, source_keys
        from .keys import derive

        sources = tuple(source_keys(source, self.record.live) for source in self.record.sources)
        return derive(InspectionDocument, self.record, sources=sources, findings=finding_keys(self.record.findings))

    def html(self) -> str:
        return plot(self.record)

    def page(self) -> blocks.Page:
        in_full = (show_findings, _show_sources, show_sink, _show_batches, show_state)
        in_brief = (show_findings_briefly, _show_facts)
        forecasts = _show_forecasts(self.record, self.record.forecasts if self.verbose else ())
        evidence = (part(self.record) for part in (*(in_full if self.verbose else in_brief), show_next))
        return blocks.page_of(_show_verdict(self.record), show_title(self.record), forecasts, *evidence)


def plot(inspection: Inspection, template: str = "inspection.html") -> str:
    """An inspection with its plots as HTML: a document, or a part of one. Raises HtmlMissing."""
    from ckpt.webpage.parts import show_inspection  # fills templates, which no other form needs

    from .html import describe_blocks

    live = [line for source in inspection.sources for line in show_live(inspection.live, source.index)]
    besides = blocks.page_of(show_not_asked(inspection), show_sink(inspection), live)
    first = describe_blocks(blocks.page_of(_show_verdict(inspection, ())))
    return show_inspection(inspection, template, first, describe_blocks(besides))


def show_title(inspection: Inspection) -> Iterator[blocks.Block]:
    """Name of a checkpoint, and its main facts."""
    checkpoint = inspection.checkpoint
    complete = os.path.abspath(checkpoint.uri) if checkpoint.uri in (".", "..", "./") else checkpoint.uri
    name = complete.rstrip("/").rpartition("/")[2] or checkpoint.uri
    of = []
    if checkpoint.flow is not None:
        name, of = f"{checkpoint.flow.flow.name}/{checkpoint.flow.version}", [_name_flow(checkpoint.flow)]
    if checkpoint.kind is Kind.EMPTY:
        yield blocks.Title(name, (*of, "empty"))
        yield from show_flow(inspection)
        return
    older = max(checkpoint.offsets.records, default=None)  # where the newest offsets cannot be read
    log, until = checkpoint.offsets.readable(older), "" if inspection.sources else f" in batch {older}"
    views = inspection.sources or (source_views(log, rate_sources(checkpoint)) if log else ())
    kinds = [_name_kind(source, inspection) for source in views]
    has = f"{plural(len(kinds), 'source')}{until} ({', '.join(sorted(set(kinds)))})" if kinds else "sources unknown"
    never = "stateless" if inspection.pattern is Pattern.ASYNC_PROGRESS else "no state/ folder"
    keeps = {True: "stateful", False: never, None: "stateful or not: unknown"}[checkpoint.stateful]
    continuous = ["continuous processing"] if checkpoint.kind is Kind.CONTINUOUS else []
    latest = checkpoint.offsets.readable(checkpoint.offsets.latest)
    when = f", {instant(latest.metadata.timestamp_ms)}" if latest and latest.metadata else ""
    ran = checkpoint.commits.ids
    none = "batches unknown" if checkpoint.links_out else "batches without offsets" if ran else "no batch planned"
    batch = f"batch {checkpoint.offsets.latest}{when}" if checkpoint.offsets.ids else none
    query = "query id unknown" if checkpoint.query_id is None else f"query {checkpoint.query_id}"
    writer = [f"written by {versions}"] if (versions := inspection.written_by.versions) else []
    yield blocks.Title(name, (*of, f"{keeps}, {has}", *continuous, batch, *writer, query))
    yield from show_flow(inspection)


def _name_flow(version: FlowVersion) -> str:
    """Name the flow of a declarative pipeline, and say whether runs use this version of it."""
    uses = f", superseded: runs use {version.live}" if version.superseded else ""
    return f"version {version.version} of flow {version.flow.name} of {version.flow.table}{uses}"


def show_flow(inspection: Inspection) -> Iterator[blocks.Block]:
    """Say how the flow of a pipeline is started: whatever says "start the query" means that."""
    version = inspection.checkpoint.flow
    if version is not None:
        starts = words("{code:spark-pipelines run} in its project starts the query")
        if table := version.flow.refreshed:
            only = Code(f"--refresh {quote_word(table)}")
            starts += words(" (only the flows of this table: {only})", only=only)
        yield blocks.Item(starts, 13, "  pipeline   ")


def _name_kind(source: SourceView, inspection: Inspection) -> str:
    """Type of a source, as far as its offsets tell."""
    if source.record is None and source.well_formed:
        return "no offset yet"
    either = source.kind.like_event_hubs and inspection.written_by.may_read_event_hubs
    return "kafka or Event Hubs" if either else _name_type(source)


def _show_verdict(inspection: Inspection, leads: Sequence[str] = _LEADS) -> Iterator[blocks.Block]:
    """The first lines, with the outcome in capitals if it is one of the leads."""
    text = inspection.verdict
    for lead in leads:
        if text.startswith(lead):
            text = lead.upper() + text[len(lead) :]
    worst = max((j.severity for j in inspection.findings), key=lambda s: s.rank, default=Severity.NOTE)
    new = inspection.checkpoint.kind is Kind.EMPTY
    tone = blocks.Tone.WARNING if new else blocks.Tone.GOOD if inspection.sound else blocks.TONES[worst]
    yield from blocks.show_outcome(text, tone, inspection.advice.steps if inspection.troubles else ())


def _show_forecasts(inspection: Inspection, forecasts: Sequence[Forecast] = ()) -> Iterator[blocks.Block]:
    """Forecasts; where none are given, those that count, and others: of a healthy checkpoint those that run."""
    left_out = [Outcome.REFUSED] if not inspection.sound else [o for o in Outcome if not o.runs]
    others = [f for f in inspection.forecasts if f not in inspection.counted and f.outcome not in left_out]
    shown = {id(f) for f in (*inspection.counted, *others) if inspection.sound or f.progress.in_micro_batches}
    yield forecast_cases(forecasts or [f for f in inspection.forecasts if id(f) in shown] or inspection.counted)
    promised = any(forecast.outcome.runs for forecast in inspection.counted)
    if promised and (inspection.checkpoint.state is not None or len(inspection.sources) > 1):
        yield blocks.Line("  for the query unchanged: the same sources, operators, keys and aggregates")


def forecast_cases(forecasts: Sequence[Forecast]) -> blocks.Cases:
    """One line for each distinct forecast, with the modes and versions that it holds for."""
    groups: dict[str, dict[Progress, list[Forecast]]] = {}
    for forecast in forecasts:
        groups.setdefault(outcome_words(forecast), {}).setdefault(forecast.progress, []).append(forecast)
    rows: list[tuple[str, str, str]] = []
    for text, modes in groups.items():
        spelled: dict[str, list[str]] = {}
        for mode, these in modes.items():
            spelled.setdefault(spell([f.spark for f in these]), []).append(mode)
        rows += [(", ".join(these), f"Spark {versions}", text) for versions, these in spelled.items()]
    return blocks.Cases(tuple(rows))


def _show_facts(inspection: Inspection) -> Iterator[blocks.Block]:
    """The sections of the evidence in brief."""
    yield from _show_sources(inspection, running=inspection.sound)
    yield from show_sink(inspection)
    yield from _show_logs(inspection)
    yield from show_state_briefly(inspection)
    yield from show_notes_briefly(inspection)


def _show_sources(inspection: Inspection, *, running: bool = True) -> Iterator[blocks.Block]:
    if not inspection.sources:
        yield from show_not_asked(inspection)
        for outlook in inspection.live[:1]:
            yield blocks.Heading("Sources", f"not asked: {outlook.said}")
        return
    starts = [f for f in inspection.counted if f.sources]
    if running:
        yield blocks.Heading("Sources", f"the query must have exactly {plural(len(inspection.sources), 'source')}")
    for number, source in enumerate(inspection.sources[:_SOURCES]):
        reads = dict.fromkeys(
            _describe_reading(f.sources[source.index]) for f in starts if source.index < len(f.sources)
        )
        margin = "  " if running else " " * 10 if number else "Sources   "
        label = f"{margin}{source.index}  {_name_kind(source, inspection)}" + (f" {source.name}" if source.name else "")
        for text in reads or {offset_text(source.record): None}:
            yield blocks.Item(text, 24, label + "  ")
            label = ""
        yield from show_live(inspection.live, source.index)
    yield from blocks.more(len(inspection.sources) - _SOURCES)
    if running:
        yield from show_not_asked(inspection)


def show_not_asked(inspection: Inspection) -> Iterator[blocks.Block]:
    """Name in one line what was not asked: only that shows some losses."""
    if inspection.not_asked:
        yield blocks.Item(join((_NOT_ASKED[name] for name in inspection.not_asked), ", "), 24, "  not asked  ")


def _describe_reading(reading: SourceRange) -> str:
    start, end = offset_text(reading.start_offset), offset_text(reading.end_offset)
    if reading.end is None:
        return f"continues from {start}"
    if reading.start is None:
        return f"reads again from its beginning to {end}"
    if reading.start == reading.end or counts_anew(reading.end_offset):
        return f"reads nothing new at {start}"
    advance = reading.advance
    total = f": {_count_advance(advance)}" if advance and advance.amount is not None else ""
    return f"reads again from {start} to {end}{total}"


def _show_batches(inspection: Inspection) -> Iterator[blocks.Block]:
    if logs := [*_show_logs(inspection)]:
        yield from logs
        yield _tabulate_batches(inspection)


def _show_logs(inspection: Inspection) -> Iterator[blocks.Block]:
    checkpoint = inspection.checkpoint
    if not checkpoint.offsets.ids and not checkpoint.commits.ids:
        return
    facts = []
    for log in (checkpoint.offsets, checkpoint.commits):
        span = f", {log.ids[0]} to {log.latest}" if log.ids else ""
        facts.append(f"{log.folder} {plural(len(log.ids), 'file')}{span}")
    yield blocks.Heading("Batches", "   ".join([*facts, _PATTERNS[inspection.pattern]]))
    gaps = {log.folder: ranges(log.missing) for log in (checkpoint.offsets, checkpoint.commits)}
    if len(set(gaps.values())) == 1:
        gaps = {"both": gaps["offsets"]}
    yield from (blocks.Item(f"missing from {where}: {spans}") for where, spans in gaps.items() if spans)


def _tabulate_batches(inspection: Inspection) -> blocks.Table:
    """The newest batches, and how far each advanced the sources."""
    sources = max((len(batch.advanced) for batch in inspection.batches), default=0)
    heads = ("batch", "time", "committed", *(f"source {index}" for index in range(sources)))
    rows = []
    for batch in inspection.batches:
        grown = [_describe_advance(advance) for advance in batch.advanced]
        done = "yes" if batch.committed else "NO"
        when = "unreadable" if batch.unreadable else instant(batch.timestamp_ms)
        rows.append((str(batch.batch_id), when, done, *grown, *[""] * (sources - len(grown))))
    return blocks.Table(tuple(rows), heads, blocks.TooWide.DROP)


def _describe_advance(advance: Advance | None) -> str:
    if advance is None:
        return ""
    if advance.replaced or advance.switched:
        return "another table" if advance.replaced else "another topic"
    if advance.went_back:
        return "WENT BACK"
    return "unknown" if advance.amount is None else _count_advance(advance, "+")


def _count_advance(advance: Advance, sign: str = "") -> str:
    """How far a source went; partitions that are new in the batch are named, because their rows are not counted."""
    more = f" and {plural(advance.new_partitions, 'new partition')}" if advance.new_partitions else ""
    return f"{count_units(advance.amount or 0, advance.unit, sign)}{more}"


def count_units(amount: int, unit: str, sign: str = "") -> str:
    """How far a source went: ``1 row``, ``45 offsets``; ``sign`` ``+`` writes one before it."""
    singular = "log entry" if unit == Unit.ENTRIES else unit.removesuffix("s")
    return f"{amount:{sign},} {singular if amount == 1 else unit}"


def offset_text(offset: Offset | None) -> str:
    """Describe an offset: ``orders/0=310 orders/1=295``, ``version 12``, ``row 60``; unknown kinds as they are."""
    return "its beginning" if offset is None else kind_of(offset).to_text(offset)


def range_text(reads: SourceRange) -> str:
    """Describe a range in a line: ``from orders/0=40 to orders/0=51: 11 offsets``."""
    end = "an unknown offset" if reads.end is None else offset_text(reads.end_offset)
    advance = reads.advance
    count = f": {_count_advance(advance)}" if advance and advance.amount is not None else ""
    count = ": a batch cannot read rows backwards" if advance and advance.went_back else count
    count = ": another topic" if advance and advance.switched else count
    return f"from {offset_text(reads.start_offset)} to {end}{count}"


def show_ranges(ranges: Iterable[SourceRange]) -> Iterator[blocks.Item]:
    """The ranges of sources, a paragraph each."""
    return (blocks.Item(range_text(reads), 7, f"    {reads.index}  ") for reads in ranges)


def label_source(view: SourceView) -> str:
    """The label of a source: its number, its type, and its name if it has one."""
    return f"{view.index}  {_name_type(view)}{f' {view.name}' if view.name else ''}  "


def _name_type(view: SourceView) -> str:
    socket = isinstance(view.record, NumberOffset) and not view.record.rate
    return "socket or other" if socket else view.type
