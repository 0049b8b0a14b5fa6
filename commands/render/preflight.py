"""Report of ``ckpt preflight``: start or hold, the reasons, and what it cannot see."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from ckpt.advice import Hole, Option, Words, call, words
from ckpt.inspection.preflight import Readiness
from ckpt.model import NotRead
from ckpt.query.description import QueryDescription
from ckpt.restart.recorded_settings import SettingOutlook, SettingUse
from ckpt.texts import plural

from .blocks import Block, Command, Heading, Item, Line, Page, Table, Title, Tone, bullets, page_of, show_outcome
from .change_keys import StepKeys
from .document import Document, DocumentKeys
from .findings import show_findings, show_next
from .inspection import CheckpointKeys, FindingKeys, RestartKeys, SourceKeys, finding_keys, source_keys
from .keys import Keys, derive, of
from .live import SinkKeys, show_sink
from .page import forecast_cases, show_title
from .reports import Exit, Report

if TYPE_CHECKING:
    from ckpt.changes.fixes.unattended import FixOutcome

_SOURCES, _SINK = Option("sources"), Option("sink", Hole.URI)
_ASK = {
    "sources": words("current offsets of the sources: {sources}", sources=_SOURCES),
    "sink": words("batches in the sink: {sink}", sink=_SINK),
    "query": words("whether the query fits the state: {query}", query=Option("expect", Hole.QUERY)),
}


class _Query(Keys):
    spark: str
    output_mode: str
    sources: Annotated[tuple[str, ...], lambda query: [source.kind for source in query.sources]]
    operators: Annotated[
        tuple[str, ...] | None,
        lambda query: None if query.operators is None else [operator.name for operator in query.operators],
    ]


class _Fixed(Keys, record="ckpt.changes.fixes.unattended:AppliedFix", keys="fix does backup steps"):
    steps: tuple[StepKeys, ...]


class PreflightDocument(DocumentKeys):
    """The document of ``ckpt preflight``."""

    go: bool
    verdict: str
    checkpoint: Annotated[CheckpointKeys, of("inspection")]
    holds: tuple[FindingKeys, ...]
    warnings: tuple[FindingKeys, ...]
    settings: tuple[SettingOutlook, ...]
    restart: Annotated[tuple[RestartKeys, ...], of("inspection.counted")]
    sources: tuple[SourceKeys, ...]
    sink: Annotated[SinkKeys | None, of("inspection.sink")]
    not_read: Annotated[NotRead, of("inspection.not_read")]
    query: _Query | None
    unknown: tuple[str, ...]
    not_asked: tuple[Literal["sources", "sink", "query"], ...]
    fixed: tuple[_Fixed, ...]
    not_fixed: str | None


class QueryReport(Report[QueryDescription]):
    """A described query, whose document is that of its file."""

    def page(self) -> Page:
        query = self.record
        rows = tuple((field.name, str(getattr(query, field.name))) for field in fields(query))
        return page_of([Title("query", (f"planned by Spark {query.spark}",))], [Table(rows, ("field", "value"))])

    def document(self) -> Document:
        made: Document = json.loads(self.record.to_json())
        return made


@dataclass(frozen=True)
class PreflightReport(Report[Readiness]):
    """Report of ``ckpt preflight``."""

    outcome: "FixOutcome | None" = None  # of ``--fix``
    how_to_ask: ClassVar[Mapping[str, Words]] = _ASK

    @property
    def exit(self) -> Exit:
        return Exit.OK if self.record.go else Exit.FOUND

    def document(self) -> Document:
        inspection = self.record.inspection
        sources = [source_keys(source, inspection.live) for source in inspection.sources]
        fixed = [derive(_Fixed, fix) for fix in self.outcome.fixed] if self.outcome else []
        not_fixed = self.outcome.not_fixed if self.outcome else None
        findings = {"holds": finding_keys(self.record.holds), "warnings": finding_keys(self.record.warnings)}
        return derive(PreflightDocument, self.record, sources=sources, fixed=fixed, not_fixed=not_fixed, **findings)

    def page(self) -> Page:
        inspection = self.record.inspection
        return page_of(
            self._show_headline(),
            show_title(inspection),
            self._show_fixes(),
            self._show_forecasts(),
            show_sink(inspection),
            self._show_settings(),
            show_findings(inspection),
            self._show_unseen(),
            show_next(inspection),
        )

    def _show_headline(self) -> Iterator[Block]:
        readiness = self.record
        tone = Tone.ERROR if not readiness.go else Tone.WARNING if readiness.warnings else Tone.GOOD
        inspection = readiness.inspection
        steps = inspection.advice.steps if inspection.troubles else ()
        yield from show_outcome(f"{'START' if readiness.go else 'HOLD'}: {readiness.verdict}", tone, steps)

    def _show_fixes(self) -> Iterator[Block]:
        outcome = self.outcome
        if outcome is None or not (outcome.fixed or outcome.not_fixed):
            return
        if outcome.not_fixed:
            yield Item(f"Nothing was changed: {outcome.not_fixed}")
            return
        yield Heading("Fixed", "by fixes that touch no row")
        for fix in outcome.fixed:
            yield Item(f"{fix.does} ({plural(len(fix.steps), 'file')})", 4, f"  {fix.fix}: ")
        yield Item("until the query has run, this command restores every byte:", 4, "  ")
        yield Command(call("repair", self.record.inspection.checkpoint.uri, undo=outcome.backup or ""))

    def _show_forecasts(self) -> Iterator[Block]:
        inspection = self.record.inspection
        yield forecast_cases(inspection.counted)
        if self.record.holds and any(forecast.outcome.runs for forecast in inspection.counted):
            yield Line("  for the query that wrote the checkpoint, in a session with the same settings")

    def _show_settings(self) -> Iterator[Block]:
        if self.record.settings:
            yield Heading("Settings", "how a restart treats the given settings")
            yield from (Line(f"  {_describe_setting(setting)}") for setting in self.record.settings)

    def _show_unseen(self) -> Iterator[Block]:
        readiness = self.record
        if not (readiness.unknown or readiness.not_asked):
            return
        yield Heading("Not checked", plural(len(readiness.unknown) + len(readiness.not_asked), "thing"))
        yield from bullets([*readiness.unknown, *(self.how_to_ask[name] for name in readiness.not_asked)])


@dataclass(frozen=True, kw_only=True)
class RecordedPreflightReport(PreflightReport):
    """Report of ``ckpt preflight`` on a document of ``ckpt inspect``, which has the checkpoint as it was there."""

    checkpoint: CheckpointKeys
    how_to_ask: ClassVar[Mapping[str, Words]] = {
        **_ASK,
        "sources": words(
            "current offsets of the sources: use {sources} where the checkpoint is stored", sources=_SOURCES
        ),
        "sink": words("batches in the sink: use {sink} where the checkpoint is stored", sink=_SINK),
    }

    def document(self) -> Document:
        return {**super().document(), "checkpoint": self.checkpoint}


def _describe_setting(setting: SettingOutlook) -> str:
    value = f"{setting.name}={setting.given}" if setting.given is not None else setting.name
    match setting.use:
        case SettingUse.SESSION:
            return f"{value}: takes effect"
        case SettingUse.SAME:
            return f"{value}: same as recorded"
        case SettingUse.RECORDED:
            return f"{value}: IGNORED, Spark silently keeps the recorded {setting.used}"
        case SettingUse.OLD_DEFAULT:
            return f"{value}: IGNORED: the checkpoint is older than the setting, and Spark uses {setting.used}"
