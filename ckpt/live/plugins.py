"""The live side of a plugin's kind of source: how it is asked, and what the next start makes of its answer."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Generic, TypeVar

from ckpt.checkpoint.sources.plugins import PluginKind, PluginOffset
from ckpt.checkpoint.sources.registry import Offset, advance
from ckpt.live.kind import LiveKind, NextRead, SourceRequest
from ckpt.live.outlook import NOT_IN_LOG, SourceOutcome, SourceOutlook
from ckpt.live.records import NotAsked, PluginNow

Record = TypeVar("Record")


class AskableSource(ABC, Generic[Record]):
    """A second base class of a plugin's ``SourceKind``: ckpt can ask its sources what they have now."""

    place: str = "the source"  # in words
    option: str = "path"  # of the reader, that names the place
    example: str = "URI"  # of its value
    unit: str  # of an ``Advance`` of the source

    @abstractmethod
    def ask(self, offset: Record, options: Mapping[str, str]) -> tuple[Record, Record]:
        """Ask a source between which offsets it has rows now.

        Args:
            offset: The end of the latest batch.
            options: Of the reader, as somebody typed them or as a query has them, then in lower case.

        Returns:
            The offset at which the oldest row is read next, and the one after the newest row.

        Raises:
            UsageError: An option cannot be used.
            SourceError: The source cannot be reached.
        """


def find_live_kind(kind: PluginKind) -> LiveKind | None:
    """Return how the sources of a plugin are asked; None where the plugin cannot ask them."""
    plugin = kind.plugin
    if not isinstance(plugin, AskableSource):
        return None

    def ask(request: SourceRequest) -> PluginNow | NotAsked:
        def ask_plugin() -> PluginNow | NotAsked:
            assert isinstance(request.view.record, PluginOffset)
            earliest, latest = plugin.ask(request.view.record.record, request.options)
            return PluginNow(kind.wrap(earliest), kind.wrap(latest), plugin.unit)

        return kind.ask_plugin(ask_plugin, PluginNow, lambda: NotAsked(f"the plugin for {kind.name} sources failed"))

    return LiveKind(plugin.place, plugin.option, plugin.example, ask, asked_for_query=True)


def foresee_plugin(start: NextRead, now: PluginNow) -> SourceOutlook:
    """Foresee that a start continues; what it does where rows are gone that it would read, only the source knows."""
    reading = start.range
    begin = reading.end_offset if start.passed else reading.start_offset
    if not isinstance(begin, PluginOffset):
        return SourceOutlook(start.source, said=NOT_IN_LOG)
    describe = begin.kind.to_text
    sentence = f"it has {describe(now.earliest)} to {describe(now.latest)}"
    ahead, lost = _count(begin, now.latest), _count(begin, now.earliest) or 0
    if ahead is None or _count(reading.end_offset or begin, now.latest) is None:
        return SourceOutlook(start.source, said=f"{sentence}, and the next batch begins at {describe(begin)}")
    waiting = max(0, ahead - lost)
    sentence += f"; {waiting:,} {now.unit} to be read" + (f", and {lost:,} before them are gone" if lost else "")
    outcome = SourceOutcome.UNKNOWN if lost else SourceOutcome.CONTINUES
    return SourceOutlook(start.source, outcome, sentence, waiting=waiting, lost=lost)


def _count(old: Offset, new: PluginOffset) -> int | None:
    """Count from one offset to a later one; None where it is not later, or not known."""
    went = advance(old, new)
    return None if went is None else went.amount
