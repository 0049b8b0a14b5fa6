"""Report of ``ckpt scan``: a line for each checkpoint."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from ckpt.advice import call, run, words
from ckpt.inspection.scan.rows import ScannedCheckpoint
from ckpt.inspection.scan.scan import Scan
from ckpt.inspection.verdict import AS_FAR_AS_NAMES
from ckpt.restart.findings import Outcome, Severity
from ckpt.texts import instant, mask_secrets, plural, size

from . import blocks
from .book import BOOK
from .document import Document, DocumentKeys
from .keys import Keys, as_json, derive, of
from .reports import Exit, Report

_SHOWN = 10  # checkpoints that could not be inspected, and findings, that are explained on a page
_LEFT = "  left out   "
_KINDS = 3  # findings for which Next has a command
_AGES = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


class _Counts(Keys):
    note: int
    warning: int
    error: int


_ROW = """path name verdict outcome kind query_id stateful latest_batch latest_ms age_ms uncommitted files bytes
state_bytes state_growth snapshot_lag replay_files deletable_bytes not_read lag lost sources_error severity findings
codes worst error pipeline points"""


class CheckpointRow(Keys, record=ScannedCheckpoint, keys=_ROW):
    """One checkpoint: an element of the document, and a line of ``-o jsonl``."""

    age_ms: int | None
    bytes: Annotated[int | None, of("size")]
    deletable_bytes: Annotated[int | None, of("deletable")]
    findings: Annotated[_Counts | None, lambda row: dict(row.findings) if row.error is None else None]


class ScanDocument(DocumentKeys, record=Scan, keys="began_ms ended_ms resumed started_over roots checkpoints"):
    """The document of ``ckpt scan``."""

    checkpoints: tuple[CheckpointRow, ...]


@dataclass(frozen=True)
class ScanReport(Report[Scan]):
    """Checkpoints below all roots."""

    fail_on: Severity = Severity.WARNING
    show_all: bool | None = None  # rows without a finding too; None: nobody can ask for them
    sections: Mapping[str, str] = field(default_factory=dict)  # HTML of checkpoints by path

    @property
    def exit(self) -> Exit:
        if self.record.problems:
            return Exit.FAILED
        return Exit.FOUND if self.record.fails(self.fail_on) else Exit.OK

    def document(self) -> Document:
        return derive(ScanDocument, self.record, checkpoints=list(self._rows))

    def lines(self) -> Iterator[str]:
        """Each checkpoint as a line of JSON."""
        return (json.dumps(row, default=as_json) for row in self._rows)

    @property
    def _rows(self) -> Iterator[Document]:
        return (derive(CheckpointRow, row, age_ms=self.record.age_ms(row)) for row in self.record.checkpoints)

    def page(self) -> blocks.Page:
        return blocks.page_of(
            self._show_title(),
            self._show_headline(),
            self._show_table(),
            self._show_pipelines(),
            self._show_resumed(),
            self._show_not_asked(),
            self._show_unseen(),
            self._show_next(),
        )

    def html(self) -> str:
        from .html import html  # fills templates, which no other form needs

        sections = {self._ids[path]: section for path, section in self.sections.items()}
        return html(blocks.change_texts(self.page(), mask_secrets), sections)

    @property
    def _ids(self) -> dict[str, str]:
        """An id for the section of each checkpoint that has one."""
        return {path: f"checkpoint-{number}" for number, path in enumerate(self.sections, 1)}

    def _show_title(self) -> Iterator[blocks.Block]:
        roots = self.record.roots
        name = roots[0].uri if len(roots) == 1 else plural(len(roots), "root")
        yield blocks.Title(name, (plural(len(self.record.checkpoints), "checkpoint"), instant(self.record.ended_ms)))

    def _show_headline(self) -> Iterator[blocks.Block]:
        everything = self.record.checkpoints
        unseen = sum(checkpoint.error is not None for checkpoint in everything)
        counts = {level: sum(checkpoint.severity is level for checkpoint in everything) for level in Severity}
        in_error = counts[Severity.ERROR] - unseen
        parts = [f"{in_error:,} with errors"] if in_error else []
        parts += [f"{counts[Severity.WARNING]:,} with warnings"] if counts[Severity.WARNING] else []
        parts += [f"{unseen:,} could not be inspected"] if unseen else []
        parts += [f"{plural(len(self.record.problems), 'root')} without a checkpoint"] if self.record.problems else []
        tone = blocks.Tone.ERROR if counts[Severity.ERROR] else blocks.Tone.WARNING if parts else blocks.Tone.GOOD
        far = AS_FAR_AS_NAMES if any(row.not_read for row in everything) else ""
        yield blocks.Headline((", ".join(parts) if parts else f"nothing wrong{far}").upper(), tone)

    def _show_table(self) -> Iterator[blocks.Block]:
        shown = [row for row in self.record.checkpoints if row.error is None]
        healthy = [] if self.show_all else [row for row in shown if _is_healthy(row)]
        if rows := [row for row in shown if row not in healthy]:
            yield self._tabulate(rows)
        if healthy:
            noted = sum(row.severity is not None for row in healthy)
            parts = [f"{len(healthy) - noted:,} without findings"] if len(healthy) > noted else []
            parts += [f"{noted:,} with notes only"] if noted else []
            unread = sum(bool(row.not_read) for row in healthy)
            parts += [f"{unread:,} of them judged by names and sizes only"] if unread else []
            opened_by = words("see {fields}") if self.show_all is None else BOOK.text("shown_by_all")
            yield replace(self._tabulate(healthy), closed=", ".join(parts), opened_by=opened_by)
        if 0 < len(self.sections) < len(shown):
            yield blocks.Item(BOOK.text("other_names", count=f"{len(self.sections):,}"))

    def _tabulate(self, checkpoints: Sequence[ScannedCheckpoint]) -> blocks.Table:
        ids = self._ids
        rows = [self._tabulate_row(row, ids.get(row.path, "")) for row in checkpoints]
        heads = tuple(head for head in rows[0] if any(str(row[head]) for row in rows))  # of columns with something
        return blocks.Table(
            tuple(tuple(row[head] for head in heads) for row in rows), heads, blocks.TooWide.DROP, "verdict"
        )

    def _show_pipelines(self) -> Iterator[blocks.Block]:
        """Versions of flows that were left out, and tables with several flows, which may lose rows."""
        if superseded := sum(root.superseded for root in self.record.roots):
            yield blocks.Item(BOOK.text("superseded", many=plural(superseded, "superseded version")), 13, _LEFT)
        versions = [(row, row.pipeline) for row in self.record.checkpoints if row.pipeline is not None]
        sharing = [(row, version) for row, version in versions if version.siblings]
        by_table = {(version.flow.pipeline, version.flow.table): (row, version) for row, version in sharing}
        for row, version in [*by_table.values()][:_SHOWN]:
            several = plural(len(version.siblings) + 1, "flow")
            text = BOOK.text("several_flows", flows=several, table=version.flow.table, uri=row.path)
            yield blocks.Item(text, 13, "  two flows  ")

    def _tabulate_row(self, checkpoint: ScannedCheckpoint, section: str) -> dict[str, str | blocks.Cell]:
        """The cells by the head of their column."""
        severity, worst, outcome = checkpoint.severity, checkpoint.worst, checkpoint.outcome
        codes = checkpoint.codes
        shown = f"{codes[0]} +{len(codes) - 1}" if len(codes) > 1 else "".join(codes)
        return {
            "": "" if severity in (None, Severity.NOTE) else blocks.Cell(str(severity), tone=blocks.TONES[severity]),
            "checkpoint": blocks.Cell(self._name_row(checkpoint), section=section),
            "verdict": checkpoint.verdict or "",
            "finding": blocks.Cell(shown, worst.name.replace("-", " ") if worst else ""),
            "next start": blocks.Cell(str(outcome or "").replace("-", " "), tone=_rate_outcome(outcome)),
            "batch": _describe_count(checkpoint.latest_batch),
            "age": _describe_age(self.record.age_ms(checkpoint)),
            "uncommitted": _describe_count(checkpoint.uncommitted or None),
            "state": "" if checkpoint.state_bytes is None else size(checkpoint.state_bytes),
            "per batch": _describe_growth(checkpoint.state_growth),
            "replay": _describe_count(checkpoint.snapshot_lag),
            "waiting": _describe_count(checkpoint.lag),
        }

    def _name_row(self, checkpoint: ScannedCheckpoint) -> str:
        """Table, flow and version of a checkpoint of a pipeline, where one pipeline was scanned; else its path."""
        version = checkpoint.pipeline
        pipelines = {row.pipeline and row.pipeline.flow.pipeline for row in self.record.checkpoints}
        superseded = " (superseded)" if version is not None and version.superseded else ""
        if kept := checkpoint.points:
            days = " to ".join(dict.fromkeys((kept[0][:10], kept[-1][:10])))
            folder = self._shorten_path(checkpoint.path.partition(f"/{kept[-1]}")[0])
            return f"{folder}: {plural(len(kept), 'point')}, {days}"
        if len(pipelines) > 1 or version is None:
            return f"{self._shorten_path(checkpoint.path)}{superseded}"
        flow = "" if version.flow.name == version.flow.table.rpartition(".")[2] else f"  flow {version.flow.name}"
        return f"{version.flow.table}{flow}  version {version.version}{superseded}"

    def _shorten_path(self, path: str) -> str:
        """A path without the root, where there is one root only."""
        roots = self.record.roots
        return path.removeprefix(f"{roots[0].uri.rstrip('/')}/") if len(roots) == 1 else path

    def _show_resumed(self) -> Iterator[blocks.Block]:
        """Say of how many rows the time is not that of the others, or why none of before counts."""
        if why := self.record.started_over:
            yield blocks.Item(BOOK.text("started_over", why=why), 13, "  note       ")
        if count := self.record.resumed:
            before = f"{plural(count, 'checkpoint')} of the interrupted scan, which began"
            yield blocks.Item(f"{before} {instant(self.record.began_ms)}", 13, "  resumed    ")

    def _show_not_asked(self) -> Iterator[blocks.Block]:
        """Name in one line what no row is about, where nothing else is to be said."""
        if self.record.checkpoints and self.exit is Exit.OK:
            yield blocks.Item(BOOK.text("sinks_not_asked"), 13, "  not asked  ")

    def _show_unseen(self) -> Iterator[blocks.Block]:
        problems = list(self.record.problems)
        problems += [f"{row.path}: {row.sources_error}" for row in self.record.checkpoints if row.sources_error]
        problems += [row.error for row in self.record.checkpoints if row.error is not None]
        if problems:
            yield blocks.Heading("Not inspected")
            yield from blocks.bullets(problems, _SHOWN)

    def _show_next(self) -> Iterator[blocks.Block]:
        """One command for each kind of worst finding: what it means is the same in all checkpoints that have it."""
        kinds: dict[str, list[ScannedCheckpoint]] = {}
        for checkpoint in self.record.checkpoints:
            if checkpoint.worst is not None:
                kinds.setdefault(f"{checkpoint.worst.code} {checkpoint.worst.name}", []).append(checkpoint)
        steps = []
        for name, checkpoints in list(kinds.items())[:_KINDS]:
            where = f" in {plural(len(checkpoints), 'checkpoint')}" if len(checkpoints) > 1 else ""
            what = words("See what {name}{where} means and what to do.", name=name, where=where)
            steps.append(run(call("inspect", checkpoints[0].path), what))
        yield blocks.Next(tuple(steps))
        if len(kinds) > _KINDS:
            yield blocks.Item(f"and {plural(len(kinds) - _KINDS, 'other finding')}", 10)


def _is_healthy(row: ScannedCheckpoint) -> bool:
    """Tell whether nothing is to be said of a checkpoint that was not asked for: its lag, or a superseded version."""
    superseded = row.pipeline is not None and row.pipeline.superseded
    return not row.fails(Severity.WARNING) and row.lag is None and row.sources_error is None and not superseded


def _rate_outcome(outcome: Outcome | None) -> blocks.Tone:
    if outcome in (None, Outcome.REFUSED, Outcome.UNKNOWN):
        return blocks.Tone.NOTE
    return blocks.Tone.GOOD if outcome.runs else blocks.Tone.ERROR


def _describe_growth(bytes_: float | None) -> str:
    if bytes_ is None:
        return ""
    return ("-" if bytes_ < 0 else "+") + size(round(abs(bytes_)))


def _describe_count(count: int | None) -> str:
    return "" if count is None else str(count)


def _describe_age(ms: int | None) -> str:
    if ms is None:
        return ""
    for unit, name in _AGES:
        if ms >= unit:
            return f"{ms // unit} {name}"
    return "0 s"
