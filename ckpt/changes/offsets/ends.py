"""Another end of the latest batch L, source by source; the rules stand with each kind, as measured on Spark 4.2.0.

A source of Spark's second kind (V2: Kafka, Iceberg, rate-micro-batch) is asked at a start for the range after the
latest committed batch only. One of the first kind (V1: files, Delta) is asked for the range of that batch once more,
though its rows are thrown away, so that the end of L must not be before its start.
"""

from dataclasses import dataclass

from ckpt.advice import Words
from ckpt.changes.book import BOOK
from ckpt.changes.plan import NoWay
from ckpt.checkpoint.sources.ends import CannotEndThere, LatestEnd, RequestedEnd
from ckpt.checkpoint.sources.registry import SourceRange, SourceView, kind_of, settable_kinds
from ckpt.checkpoint.sources.starts import NOT_READ
from ckpt.formats.names import CompactibleLog


@dataclass(frozen=True, slots=True)
class BatchSource:
    """A source in the latest batch."""

    batch: int  # the latest, L
    committed: bool
    view: SourceView  # at its end, as it is
    range: SourceRange  # that the batch reads
    start_known: bool
    log: CompactibleLog | None = None  # of a file source

    @property
    def index(self) -> int:
        """The number of the source in the query."""
        return self.view.index


@dataclass(frozen=True, slots=True)
class Moved:
    """One source with a new end."""

    source: BatchSource
    new: RequestedEnd
    ahead: tuple[SourceRange, ...] = ()  # from the old end to the new one, where that is later
    back: tuple[SourceRange, ...] = ()  # from the new end to the old one, where that is earlier
    warnings: tuple[Words, ...] = ()

    @property
    def range(self) -> SourceRange:
        """From the old end to the new one."""
        return SourceRange(self.source.index, self.source.view.offset, self.new.value)


def move_source(source: BatchSource, new: RequestedEnd) -> Moved:
    """Say what the new end of a source leads to. Raises NoWay."""
    view, start = source.view, source.range.start_offset
    if not source.committed and not source.start_known:
        raise NoWay(
            f"the log does not say where batch {source.batch} begins, so ckpt cannot say what another end would do"
        )
    check_settable(view)
    latest = LatestEnd(
        source.batch,
        source.committed,
        view.index,
        view.offset,
        view.record,
        start if kind_of(start) is view.kind else None,
        source.start_known,
        source.log.latest if source.log is not None else None,
    )
    try:
        moved = view.kind.move_end(latest, new)
    except CannotEndThere as error:
        raise NoWay(str(error)) from error
    ahead, back = (tuple(SourceRange(view.index, *span) for span in spans) for spans in (moved.ahead, moved.back))
    return Moved(source, new, ahead, back, moved.warnings)


def check_settable(view: SourceView) -> None:
    """Raise NoWay where ckpt cannot set the end of a source."""
    if view.kind.settable:
        return
    if not view.well_formed:
        raise NoWay(f"source {view.index}: {NOT_READ}")
    if view.offset is None:
        raise NoWay(f"source {view.index} has no offset yet: the query has read nothing from it")
    *kinds, last = settable_kinds()
    raise NoWay(BOOK.text("not_set", index=view.index, type=view.type, kinds=", ".join(kinds), last=last))
