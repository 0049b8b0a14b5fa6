"""The beginning of a new query in each source, so that it reads on exactly after a batch of the old one."""

from dataclasses import dataclass, field

from ckpt.checkpoint.sources.registry import SourceView
from ckpt.checkpoint.sources.starts import ReaderStart, StartFacts


@dataclass(frozen=True, slots=True)
class SourceStart(ReaderStart):
    """One source of the new query."""

    view: SourceView = field(kw_only=True)  # at the end of the batch after which it continues


def start_source(view: SourceView, facts: StartFacts) -> SourceStart:
    """Say how a new query begins with a source."""
    start = view.start_after(facts)
    return SourceStart(
        start.begin, start.options, start.without, start.seen, start.conditions, start.refused, view=view
    )
