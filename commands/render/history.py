"""Report of ``ckpt state history``: the events of a key, and what their batches read."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from ckpt.advice import call, words
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.model import Json
from ckpt.texts import instant, plural, ranges

from .blocks import Block, Heading, Headline, Item, Line, Page, Table, Tone, TooWide, page_of, show_call
from .keys import Keys, of
from .page import range_text
from .reports import Report
from .rows import ColumnKeys, UnitDocument, describe_fields, name_unit, tabulate_rows

if TYPE_CHECKING:
    from ckpt.state.native.history import KeyEvent, StateHistory

_SHOWN = 3  # events whose sources are on the page


class _Read(Keys):
    index: Annotated[int, of("view.index")]
    name: Annotated[str | None, "offset log v2 names sources", of("view.name")]
    type: Annotated[SourceType, "a plugin of `ckpt.sources` may name others", of("view.type")]
    from_: Annotated[
        Json, "the offset at which the batches begin; null for the beginning of the source", of("range.start")
    ]
    to: Annotated[Json, "the offset at which they end", of("range.end")]
    amount: Annotated[int | None, "how far that is", lambda read: getattr(read.range.advance, "amount", None)]
    unit: Annotated[str | None, "what the amount counts", lambda read: getattr(read.range.advance, "unit", None)]


_EVENT = "batch after_batch change cause key before after planned_ms watermark_ms sources"
_HISTORY = "columns partition known_after first_rows rows events more unknown"


class _Event(Keys, record="ckpt.state.native.history:KeyEvent", keys=_EVENT):
    sources: Annotated[tuple[_Read, ...], "what the batches after `after_batch` up to `batch` read"]


class HistoryDocument(UnitDocument, record="ckpt.state.native.history:StateHistory", keys=_HISTORY):
    """The document of ``ckpt state history``."""

    columns: Annotated[tuple[ColumnKeys, ...], "those of the flat shape of `ckpt export-state`"]
    events: Annotated[tuple[_Event, ...], "oldest first"]


class HistoryReport(Report["StateHistory"]):
    """Report of ``ckpt state history``."""

    keys = HistoryDocument

    def page(self) -> Page:
        history = self.record
        return page_of(_show_events(history), _show_limits(history), _show_sources(history), _show_next(history))


def _show_events(history: "StateHistory") -> Iterator[Block]:
    where = "" if history.partition is None else f", in partition {history.partition}"
    there = plural(len(history.rows), "row") if history.rows else "not there"
    yield Headline(f"{name_unit(history.unit)}, as of batch {history.moment.batch}{where}: {there}", Tone.PLAIN)
    if not history.events:
        text = "  never there" if history.known_after is None and not history.unknown else "  no event is known"
        yield Line(text)
        return
    several_keys = len({describe_fields(event.key) for event in history.events}) > 1
    rows = []
    for event in history.events:
        row = [str(event.batch) if event.certain_batch else f"{_first_batch(event)} to {event.batch}"]
        row += [instant(event.planned_ms), _CHANGES.get(event.cause or "", str(event.change))]
        row += [describe_fields(event.key)] if several_keys else []
        row += [describe_fields(event.before if event.after is None else event.after)]
        rows.append(tuple(row))
    heads = ("batch", "planned", "", *(["key"] if several_keys else []), "value")
    if all(row[-1] == "-" for row in rows):
        rows, heads = [row[:-1] for row in rows], heads[:-1]
    yield Table(tuple(rows), heads, TooWide.STACK)
    if history.more:
        yield Item(words("there are older ones: see {--limit}"))


_CHANGES = {
    "watermark": "removed by the watermark",
    "ttl": "removed, its time to live had ended",
    "query": "removed by the query",
}


def _first_batch(event: "KeyEvent") -> int:
    return 0 if event.after_batch is None else event.after_batch + 1


def _show_limits(history: "StateHistory") -> Iterator[Block]:
    if history.known_after is not None:
        text = f"The state of batches before {history.known_after} is not there any more: events are known after batch "
        had = (
            "the key was not there" if not history.first_rows else f"there was {plural(len(history.first_rows), 'row')}"
        )
        yield Item(f"{text}{history.known_after}, when {had}.")
        if history.first_rows:
            yield tabulate_rows(history.first_rows)
    if history.unknown:
        unknown = ranges(history.unknown)
        yield Item(f"The state after these batches cannot be read, so an event in them is known only later: {unknown}.")


def _show_sources(history: "StateHistory") -> Iterator[Block]:
    events = {event.batch: event for event in history.events}
    shown = list(events.values())[-_SHOWN:]
    if any(event.sources for event in shown):
        yield Heading("Sources", "read by the batches of the newest events")
        for event in shown:
            for read in event.sources:
                name = f" {read.view.name}" if read.view.name else ""
                yield Item(
                    range_text(read.range), 24, f"  batch {event.batch}  {read.view.index}  {read.view.type}{name}  "
                )


def _show_next(history: "StateHistory") -> Iterator[Block]:
    written = [event for event in history.events if event.after is not None]
    if written and written[-1].sources:
        event, show = written[-1], call("offsets_show", history.checkpoint)
        if event.after_batch is None:
            read = words("See what batch {batch} read.", batch=event.batch)
            yield from show_call(show.but(batch=event.batch), read)
        else:
            first = _first_batch(event)
            again = words("Get the reader options that read the input of batch {first} again.", first=first)
            yield from show_call(show.but(batch=event.after_batch), again)
