"""What ``ckpt preflight`` says: start or hold, why, and what it cannot see."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ckpt.inspection.preflight import Readiness
from ckpt.restart.recorded_settings import SettingOutlook, SettingUse

from ..arguments import as_options
from ..exits import Exit
from .blocks import Block, Heading, Headline, Item, Line, Page, Tone, page_of
from .document import Document, ToolKeys, checkpoint_keys, finding_keys, restart_keys, source_keys
from .findings import findings_section, next_advice
from .page import forecast_cases, title
from .sink import sink_keys, sink_section
from .text import plural

_ASK = {
    "sources": "what the sources have now: --sources",
    "sink": "which batches the sink has: --sink URI",
    "query": "whether the query fits the state: --expect query.json",
}


@dataclass(frozen=True, slots=True)
class PreflightReport:
    """Whether a start can be tried."""

    found: Readiness

    @property
    def exit(self) -> Exit:
        """0 where the query can be started."""
        return Exit.OK if self.found.go else Exit.FOUND

    def document(self) -> Document:
        """All of it."""
        found, seen = self.found, self.found.inspection
        return {
            "ckpt": ToolKeys(),
            "go": found.go,
            "verdict": found.verdict,
            "checkpoint": checkpoint_keys(seen),
            "holds": [finding_keys(one) for one in found.holds],
            "warnings": [finding_keys(one) for one in found.warnings],
            "settings": [_setting_entry(one) for one in found.settings],
            "restart": [restart_keys(one) for one in seen.counted],
            "sources": [source_keys(one, seen.live) for one in seen.sources],
            "sink": sink_keys(seen.sink),
            "query": _query_entry(found),
            "unknown": list(found.unknown),
            "not_asked": list(found.not_asked),
        }

    def page(self) -> Page:
        """The verdict, then why, then what nobody can see."""
        seen = self.found.inspection
        return page_of(
            title(seen),
            self._headline(),
            self._forecasts(),
            sink_section(seen),
            self._settings(),
            findings_section(seen),
            self._unseen(),
            next_advice(seen),
        )

    def _headline(self) -> Iterator[Block]:
        found = self.found
        tone = Tone.ERROR if not found.go else Tone.WARNING if found.warnings else Tone.GOOD
        yield Headline(f"{'START' if found.go else 'HOLD'}: {found.verdict}", tone)

    def _forecasts(self) -> Iterator[Block]:
        seen = self.found.inspection
        yield forecast_cases(seen.counted)
        if self.found.holds and any(one.outcome.runs for one in seen.counted):
            yield Line("  for the query that wrote the checkpoint, in a session with the same settings")

    def _settings(self) -> Iterator[Block]:
        if self.found.settings:
            yield Heading("Settings", "what a restart makes of those that were given")
            yield from (Line(f"  {_said(one)}") for one in self.found.settings)

    def _unseen(self) -> Iterator[Block]:
        found = self.found
        if not (found.unknown or found.not_asked):
            return
        yield Heading("Not seen", plural(len(found.unknown) + len(found.not_asked), "thing"))
        yield from (
            Item(one, 4, "  - ") for one in (*map(as_options, found.unknown), *(_ASK[name] for name in found.not_asked))
        )


def _said(one: SettingOutlook) -> str:
    value = f"{one.name}={one.given}" if one.given is not None else one.name
    match one.use:
        case SettingUse.SESSION:
            return f"{value}: takes effect"
        case SettingUse.SAME:
            return f"{value}: as recorded"
        case SettingUse.RECORDED:
            return f"{value}: IGNORED, Spark silently keeps the recorded {one.used}"
        case SettingUse.OLD_DEFAULT:
            return f"{value}: IGNORED, the checkpoint is older than the setting, and Spark uses {one.used}"


def _setting_entry(one: SettingOutlook) -> dict[str, Any]:
    return {"name": one.name, "given": one.given, "used": one.used, "use": one.use}


def _query_entry(found: Readiness) -> dict[str, Any] | None:
    query = found.query
    if query is None:
        return None
    return {
        "spark": query.spark,
        "output_mode": query.output_mode,
        "sources": [one.kind for one in query.sources],
        "operators": None if query.operators is None else [one.name for one in query.operators],
    }
