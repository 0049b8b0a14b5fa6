"""An inspection as a page for a tired person: the verdict, then the evidence, then what to do."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tabulate import tabulate

from ckpt.findings import Severity
from ckpt.history import Pattern
from ckpt.inspection import Inspection, Judged
from ckpt.model import Kind, QueryMetadata, Store
from ckpt.restart.forecast import Forecast, Outcome, SourceRange
from ckpt.restart.versions import Progress
from ckpt.sources import Advance
from ckpt.verdict import spell

from .offsets import offset
from .text import instant, plural, printable, ranges, size

_PATTERNS = {
    Pattern.CONTIGUOUS: "no gaps",
    Pattern.ASYNC_PROGRESS: "gaps as asynchronous progress tracking leaves them",
    Pattern.GAPPED: "gaps",
    Pattern.EMPTY: "nothing planned yet",
}
_COLOURS = {Severity.ERROR: "31;1", Severity.WARNING: "33;1", Severity.NOTE: "36"}
_PLACES = 3  # how many places of one finding are named


@dataclass(frozen=True, slots=True)
class Page:
    """How wide a page is, and whether it may be coloured."""

    width: int = 80
    colour: bool = False

    def paint(self, text: str, code: str) -> str:
        """``text`` in a colour, where colours are wanted."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text

    def wrap(self, text: str, indent: int, first: str | None = None) -> str:
        """``text`` folded to the width, every line indented; ``first`` stands before the first line instead."""
        blank = " " * indent
        start = blank if first is None else first.ljust(indent)
        folded = textwrap.wrap(
            text,
            max(self.width, indent + 30),
            initial_indent=start,
            subsequent_indent=blank,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return "\n".join(folded) or start.rstrip()

    def columns(self, rows: Sequence[Sequence[str]], headers: Sequence[str] = ()) -> str:
        """Rows in aligned columns, indented by two."""
        text = tabulate(rows, headers=headers, tablefmt="plain", disable_numparse=True)
        return textwrap.indent(text, "  ")


def page(inspection: Inspection, layout: Page) -> str:
    """The whole report."""
    parts = (_title, _verdict, _forecasts, _sources, _batches, _state, _findings)
    return "\n\n".join(text for part in parts if (text := part(inspection, layout)))


def _title(inspection: Inspection, layout: Page) -> str:
    checkpoint = inspection.checkpoint
    name = printable(checkpoint.uri.rstrip("/").rpartition("/")[2] or checkpoint.uri)
    if checkpoint.kind is Kind.EMPTY:
        return layout.paint(name, "1") + "   empty"
    kinds = [source.type for source in inspection.sources]
    has = plural(len(kinds), "source") + (f" ({', '.join(sorted(set(kinds)))})" if kinds else "")
    keeps = {True: "stateful", False: "stateless", None: "stateful or not: unknown"}[checkpoint.stateful]
    continuous = ["continuous processing"] if checkpoint.kind is Kind.CONTINUOUS else []
    latest = checkpoint.offsets.readable(checkpoint.offsets.latest)
    when = f", {instant(latest.metadata.timestamp_ms)}" if latest and latest.metadata else ""
    batch = f"batch {checkpoint.offsets.latest}{when}" if checkpoint.offsets.ids else "no batch planned"
    query = (
        f"query {printable(checkpoint.metadata.query_id)}"
        if isinstance(checkpoint.metadata, QueryMetadata)
        else "query id unknown"
    )
    facts = [f"{keeps}, {has}", *continuous, batch, query]
    lines = [layout.paint(name, "1")]
    for fact in facts:
        if len(lines[-1]) + 3 + len(fact) > layout.width:
            lines.append("  " + fact)
        else:
            lines[-1] += "   " + fact
    return "\n".join(lines)


def _verdict(inspection: Inspection, layout: Page) -> str:
    text = inspection.verdict
    for lead in ("Will not restart", "Restarts", "Starts fresh", "Unknown"):
        if text.startswith(lead):
            text = lead.upper() + text[len(lead) :]
    worst = max((j.severity for j in inspection.findings), key=lambda s: s.rank, default=Severity.NOTE)
    colour = "32;1" if inspection.sound else _COLOURS[worst]
    return "\n".join(layout.paint(line, colour) for line in layout.wrap(text, 0).splitlines())


def _forecasts(inspection: Inspection, layout: Page) -> str:
    groups: dict[str, dict[Progress, list[Forecast]]] = {}
    for one in inspection.forecasts:
        groups.setdefault(_said(one), {}).setdefault(one.progress, []).append(one)
    rows: list[tuple[str, str, str]] = []
    for said, modes in groups.items():
        spelled: dict[str, list[str]] = {}
        for mode, these in modes.items():
            spelled.setdefault(spell([f.spark for f in these]), []).append(mode)
        rows += [(", ".join(these), f"Spark {versions}", said) for versions, these in spelled.items()]
    widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
    lines = []
    for modes_told, versions, said in rows:
        first = f"  {modes_told:{widths[0]}}   {versions:{widths[1]}}   "
        lines.append(layout.wrap(printable(said), len(first), first))
    return "\n".join(lines)


def _said(forecast: Forecast) -> str:
    error = f": {forecast.error}" if forecast.error else ""
    batch = forecast.batch_id
    match forecast.outcome:
        case Outcome.STARTS_FRESH:
            said = "starts fresh at batch 0"
        case Outcome.RESUMES if forecast.reexecutes:
            said = f"runs batch {batch} again, then goes on"
        case Outcome.RESUMES:
            said = f"resumes with new batch {batch}"
        case Outcome.FAILS_AT_START:
            said = f"fails at start{error}"
        case Outcome.FAILS_IN_BATCH:
            said = f"fails while batch {batch} runs{error}"
        case Outcome.FAILS_AT_COMMIT:
            said = f"runs batch {batch}, writes its rows, then fails at the commit{error}"
        case Outcome.REFUSED:
            said = "refused: asynchronous tracking is for stateless queries"
        case Outcome.UNKNOWN:
            said = "unknown"
    return said


def _sources(inspection: Inspection, layout: Page) -> str:
    if not inspection.sources:
        return ""
    running = [f for f in inspection.counted if f.sources]
    lines = [_heading("Sources", f"the query must have exactly {plural(len(inspection.sources), 'source')}", layout)]
    for source in inspection.sources:
        reads = dict.fromkeys(_reads(f.sources[source.index]) for f in running if source.index < len(f.sources))
        label = f"  {source.index}  {source.type}" + (f" {printable(source.name)}" if source.name else "")
        for text in reads or {offset(source.offset): None}:
            lines.append(layout.wrap(printable(text), 24, label + "  "))
            label = ""
    return "\n".join(lines)


def _reads(reading: SourceRange) -> str:
    start = offset(reading.start)
    if reading.end is None:
        return f"reads on from {start}"
    if reading.start is None:
        return f"reads again from its beginning to {offset(reading.end)}"
    if reading.start == reading.end:
        return f"reads nothing new at {start}"
    return f"reads again from {start} to {offset(reading.end)}"


def _batches(inspection: Inspection, layout: Page) -> str:
    checkpoint = inspection.checkpoint
    if not checkpoint.offsets.ids and not checkpoint.commits.ids:
        return ""
    facts = []
    for log in (checkpoint.offsets, checkpoint.commits):
        span = f", {log.ids[0]} to {log.latest}" if log.ids else ""
        facts.append(f"{log.folder} {plural(len(log.ids), 'file')}{span}")
    lines = [_heading("Batches", "   ".join([*facts, _PATTERNS[inspection.pattern]]), layout)]
    for log in (checkpoint.offsets, checkpoint.commits):
        if log.missing:
            lines.append(layout.wrap(f"missing from {log.folder}: {ranges(list(log.missing))}", 2))
    heads = ["batch", "time", "committed", *(f"source {s.index}" for s in inspection.sources)]
    rows = []
    for batch in inspection.batches:
        grown = [_grown(advance) for advance in batch.advanced]
        done = "yes" if batch.committed else "NO"
        when = "unreadable" if batch.unreadable else instant(batch.timestamp_ms)
        rows.append([str(batch.batch_id), when, done, *grown])
    return "\n".join([*lines, layout.columns(rows, heads)])


def _grown(advance: Advance | None) -> str:
    if advance is None:
        return "unknown"
    amount = advance.unit.value if advance.amount is None else f"{advance.amount:+,} {advance.unit}"
    return "another table" if advance.replaced else "WENT BACK" if advance.went_back else amount


def _state(inspection: Inspection, layout: Page) -> str:
    state = inspection.checkpoint.state
    if state is None:
        return ""
    loads = "" if state.needed_version is None else f"   the next start loads version {state.needed_version}"
    lines = [
        _heading("State", f"{state.provider}, state store checkpoint format {state.format_version}{loads}", layout)
    ]
    for operator in state.operators:
        lines.append(f"  operator {operator.id}   {printable(operator.name) if operator.name else 'name not recorded'}")
        for variable in operator.variables:
            lines.append(f"    {variable.kind} {printable(variable.name)}{' with TTL' if variable.ttl else ''}")
        lines += [layout.wrap(_store(store), 6, f"    {printable(store.name)}: ") for store in operator.stores]
    return "\n".join(lines)


def _store(store: Store) -> str:
    replay = [p.replay_versions for p in store.partitions if p.replay_versions is not None]
    readable = ranges(list(store.readable_batches))
    facts = [
        plural(len(store.partitions), "partition"),
        "keys not recorded" if store.num_keys is None else plural(store.num_keys, "key"),
        size(store.bytes),
        *(["changelog"] if store.changelog else []),
        "no snapshot in every partition yet"
        if store.newest_snapshot_version is None
        else f"newest snapshot {store.newest_snapshot_version}",
        *([f"a load replays {plural(max(replay), 'version')}"] if replay else []),
        f"readable batches {readable}" if readable else "no batch is readable",
    ]
    return ", ".join(facts)


def _findings(inspection: Inspection, layout: Page) -> str:
    if not inspection.findings:
        return layout.wrap("nothing found; start the query as usual", 10, "Findings")
    lines = [_heading("Findings", "", layout)]
    for _, same in groupby(inspection.findings, key=lambda j: (j.severity, j.finding.diagnosis.code)):
        lines += _one_finding(list(same), layout)
    if inspection.sound:
        lines += ["", layout.wrap("nothing has to be repaired; start the query as usual", 10, "Next")]
    elif len({j.finding.diagnosis.code for j in inspection.findings}) > 1 and inspection.findings[0].remedy:
        lines += ["", layout.wrap(inspection.findings[0].remedy, 10, "Next")]
    return "\n".join(lines)


def _one_finding(same: list[Judged], layout: Page) -> Iterator[str]:
    first = same[0]
    diagnosis = first.finding.diagnosis
    paths = _some(printable(j.finding.path) for j in same if j.finding.path)
    label = layout.paint(f"{first.severity:8}", _COLOURS[first.severity])
    yield f"  {label} {diagnosis.code} {diagnosis.name}" + (f"   {paths[0]}" if len(paths) == 1 else "")
    indent = 11
    yield layout.wrap(diagnosis.meaning, indent)
    if len(same) == 1:
        yield layout.wrap(f"Here: {printable(first.finding.detail)}.", indent)
    else:
        for judged in same[:_PLACES]:
            yield layout.wrap(
                printable(f"{judged.finding.path}: {judged.finding.detail}"), indent + 2, " " * indent + "- "
            )
        if len(same) > _PLACES:
            yield " " * indent + f"- and {len(same) - _PLACES} more (ckpt inspect -o json names all)"
    if first.remedy:
        yield layout.wrap(printable(first.remedy), indent + 2, " " * indent + "→ ")


def _some(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _heading(name: str, fact: str, layout: Page) -> str:
    folded = layout.wrap(fact, 10, f"{name:9} ") if fact else name
    return layout.paint(name, "1") + folded[len(name) :]
