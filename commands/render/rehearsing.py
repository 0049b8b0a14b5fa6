"""The page of ``ckpt.rehearse``, which has no command: a query is built in Python."""

from collections.abc import Iterator
from itertools import zip_longest

from ckpt.advice import Call, Hole, Known, words
from ckpt.new.rehearsal import Rehearsal, RehearsalEnd, RehearsedBatch, RehearsedQuery
from ckpt.texts import plural

from .blocks import Block, Heading, Headline, Item, Page, Table, Tone, page_of, show_advice, show_call
from .book import BOOK
from .reports import Report
from .rows import show_changes

_WIDTH = 10
_ENDS = {
    RehearsalEnd.ENOUGH: "",
    RehearsalEnd.NO_MORE_ROWS: "; its sources had no more rows",
    RehearsalEnd.FAILED: "",
    RehearsalEnd.TIMEOUT: "; stopped because it took too long",
}


class RehearsalReport(Report[Rehearsal]):
    """A rehearsal: its batches beside those of the old query, and its state."""

    def page(self) -> Page:
        rehearsal = self.record
        states = (_show_state(name, query) for name, query in _list_queries(rehearsal))
        parts = (_show_result(rehearsal), _show_less(rehearsal.new), _show_batches(rehearsal), *states)
        return page_of(*parts, _show_next(rehearsal))


def _list_queries(rehearsal: Rehearsal) -> list[tuple[str, RehearsedQuery]]:
    """The queries of a rehearsal with their names."""
    return [("new query", rehearsal.new), *([("old query", rehearsal.old)] if rehearsal.old is not None else [])]


def _name_outcome(new: RehearsedQuery, ran: str) -> tuple[str, Tone]:
    held = None if new.preflight is None or new.preflight.go else new.preflight.verdict
    if new.fails and new.again is not None and held is None:
        why = f"its sources have no new rows, and it failed on the rows of batch {new.again}, which it read again"
        return f"NOT KNOWN TO START: {why}", Tone.WARNING
    if new.fails:
        return f"THE QUERY FAILS after {ran}", Tone.ERROR
    if not new.batches and new.end is RehearsalEnd.TIMEOUT:
        return "NOT TRIED: its first batch took too long and was stopped", Tone.WARNING
    if not new.batches:
        why = "its sources have no new rows, and ckpt cannot read earlier rows again"
        return f"NOT TRIED: {why}", Tone.WARNING
    if held is not None:
        return f"THE QUERY STARTS, BUT DO NOT START IT: {held}", Tone.ERROR
    if new.refused is not None:
        return "THE QUERY STARTS, BUT MAY BE WRONG: its state cannot be carried over", Tone.WARNING
    return f"THE QUERY STARTS: it ran {ran}{_ENDS[new.end]}", Tone.GOOD


def _show_result(rehearsal: Rehearsal) -> Iterator[Block]:
    new = rehearsal.new
    rows = "" if new.again is None else f"; it reread batch {new.again} because its sources have no new rows"
    ran = f"{plural(len(new.batches), 'batch')} on a temporary copy, Spark {rehearsal.spark}{rows}"
    text, tone = _name_outcome(new, ran)
    yield Headline(text, tone)
    if new.batches and ran not in text:
        yield Item(f"It ran {ran}{_ENDS[new.end]}")
    if new.preflight is not None and not new.batches:
        yield Item(words("{call:preflight}: {verdict}", verdict=new.preflight.verdict))
    if new.evolved:
        yield Item(BOOK.text("on_a_copy"))
    if new.refused is not None:
        yield Item(words("On a plain copy: {call:evolve} refuses, {why}", why=new.refused))
    for name, query in _list_queries(rehearsal):
        if query.error is not None:
            yield Item(f"{name}: {query.error}")
        for match in query.explanation.matches[:1] if query.explanation else ():
            known = Known(checkpoint=rehearsal.checkpoint)
            yield Item(match.error.title, _WIDTH, "Cause")
            yield from show_advice(match.cure.fill(known), _WIDTH, "Cure")


def _show_next(rehearsal: Rehearsal) -> Iterator[Block]:
    if rehearsal.new.refused is not None:
        guide = Call("evolve", (rehearsal.checkpoint,)).but(from_query=Hole.OLD_QUERY, to=Hole.QUERY, plan=True)
        yield from show_call(
            guide, words("See which options exist for this change and what each costs, and try the change with them.")
        )


def _show_less(query: RehearsedQuery) -> Iterator[Block]:
    if query.knows_less:
        yield Heading("Incomplete", "parts with less history than if the query had run from the beginning")
        for part in query.knows_less:
            yield Item(part)


def _show_batches(rehearsal: Rehearsal) -> Iterator[Block]:
    if not any(query.batches for _, query in _list_queries(rehearsal)):
        return
    yield Heading("Batches", "rows that each batch read and wrote, and how long it took")
    heads: tuple[str, ...] = ("batch", "rows in", "rows out", "ms")
    old = rehearsal.old.batches if rehearsal.old is not None else ()
    if rehearsal.old is not None:
        heads += ("old: batch", "rows in", "rows out", "ms")
    rows = [
        _fill_cells(batch) + (_fill_cells(before) if rehearsal.old is not None else ())
        for batch, before in zip_longest(rehearsal.new.batches, old)
    ]
    yield Table(tuple(rows), heads)


def _fill_cells(batch: RehearsedBatch | None) -> tuple[str, ...]:
    if batch is None:
        return ("",) * 4
    rows_out = "not counted" if batch.rows_out is None else f"{batch.rows_out:,}"
    return str(batch.batch), f"{batch.rows_in:,}", rows_out, f"{batch.ms:,}"


def _show_state(name: str, query: RehearsedQuery) -> Iterator[Block]:
    if query.state_unknown is not None:
        yield Heading(f"State of the {name}", "not compared")
        yield Item(query.state_unknown)
    elif query.state:
        yield Heading(f"State of the {name}", "before the first of these batches and after the last one")
        for unit in query.state:
            yield from show_changes(unit, f"batch {query.batches[0].batch - 1} to {query.batches[-1].batch}")
