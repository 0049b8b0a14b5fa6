"""Reports of commands that read rows: those of ``ckpt state``, and ``ckpt sql``."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ckpt.advice import call, words
from ckpt.formats.types import sql_type, type_name
from ckpt.model import Json
from ckpt.state.reading.units import StateUnit, UnitKind
from ckpt.texts import batch_ranges, instant, plural, ranges

from .blocks import Block, Heading, Headline, Item, Line, Page, Table, Title, Tone, TooWide, more, page_of, show_call
from .book import BOOK
from .document import Document, DocumentKeys
from .inspection import SourceReadKeys
from .keys import Keys, derive, itself, of
from .page import label_source, range_text
from .reports import Exit, Report

if TYPE_CHECKING:
    from ckpt.state.native.diff import StateDiff, UnitDiff  # noqa: F401  (named by bases)
    from ckpt.state.native.history import KeyEvent, StateHistory
    from ckpt.state.native.show import StateCounts, StateRows, StateSizes  # noqa: F401
    from ckpt.tables.answers import Answer  # noqa: F401


class StateOwnerKeys(Keys):
    """The checkpoint whose state was read."""

    path: Annotated[str, of("checkpoint")]
    query_id: Annotated[str | None, of("moment.query_id")]


class UnitKeys(Keys):
    """A unit of state."""

    operator: int
    store: Annotated[str | None, lambda unit: unit.stores[0] if unit.kind is UnitKind.STORE else None]
    side: Literal["left", "right"] | None
    variable: str | None
    timers: Annotated[bool, lambda unit: unit.kind is UnitKind.TIMERS]


class ColumnKeys(Keys):
    """A column of the flat shape."""

    name: str
    type: Annotated[str, lambda column: sql_type(column.type)]


class StateDocument(DocumentKeys):
    """The first keys of a document about the state of one batch."""

    checkpoint: Annotated[StateOwnerKeys, itself]


class UnitDocument(StateDocument):
    """The first keys of a document about one unit of state."""

    unit: UnitKeys
    batch: Annotated[int, of("moment.batch")]


_KEYS = "columns rows more partition foreign_snapshots"


class RowsDocument(UnitDocument, record="ckpt.state.native.show:StateRows", keys=_KEYS):
    """The document of ``ckpt state show``."""

    columns: tuple[ColumnKeys, ...]
    rows: tuple[Json, ...]


class _Count(Keys):
    unit: UnitKeys
    rows: int


class CountsDocument(StateDocument):
    """The document of ``ckpt state count``."""

    batch: Annotated[int, of("moment.batch")]
    units: tuple[_Count, ...]


class _UnitDiff(Keys, record="ckpt.state.native.diff:UnitDiff", keys="unit added removed changed rows"):
    unit: UnitKeys


class DiffDocument(StateDocument):
    """The document of ``ckpt state diff``."""

    other: StateOwnerKeys
    from_batch: Annotated[int, of("before.batch")]
    to_batch: Annotated[int, of("after.batch")]
    units: tuple[_UnitDiff, ...]


class SizesDocument(UnitDocument, record="ckpt.state.native.show:StateSizes", keys="columns keys partitions"):
    """The document of ``ckpt state keys``."""

    columns: tuple[ColumnKeys, ...]


class AnswerDocument(DocumentKeys, record="ckpt.tables.answers:Answer", keys="columns rows problems"):
    """The document of ``ckpt sql``."""

    rows: tuple[Json, ...]


class AnswerReport(Report["Answer"]):
    """Report of ``ckpt sql``: the rows of an answer."""

    keys = AnswerDocument

    def page(self) -> Page:
        rows = self.record.rows
        return page_of([Headline(plural(len(rows), "row"), Tone.PLAIN), *([tabulate_rows(rows)] if rows else [])])


class RowsReport(Report["StateRows"]):
    """Report of ``ckpt state show``."""

    keys = RowsDocument

    def page(self) -> Page:
        return page_of(self._show_rows())

    def _show_rows(self) -> Iterator[Block]:
        rows = self.record
        where = "" if rows.partition is None else f", in partition {rows.partition}"
        yield Headline(f"{name_unit(rows.unit)}, batch {rows.moment.batch}{where}", Tone.PLAIN)
        yield tabulate_rows(rows.rows)
        if rows.more:
            yield Item(words("there are more: see {--limit}"))
        for path in rows.foreign_snapshots[:1]:
            text = BOOK.text("other_rows", path=path)
            yield Item(text)


class CountsReport(Report["StateCounts"]):
    """Report of ``ckpt state count``."""

    keys = CountsDocument

    def page(self) -> Page:
        counts = self.record
        total = sum(unit.rows for unit in counts.units)
        rows = tuple((name_unit(unit.unit), f"{unit.rows:,}") for unit in counts.units)
        return page_of((Headline(f"{plural(total, 'row')} as of batch {counts.moment.batch}", Tone.PLAIN), Table(rows)))


class DiffReport(Report["StateDiff"]):
    """Report of ``ckpt state diff``."""

    @property
    def exit(self) -> Exit:
        return Exit.FOUND if any(unit.added or unit.removed or unit.changed for unit in self.record.units) else Exit.OK

    def document(self) -> Document:
        before = {"path": self.record.checkpoint, "query_id": self.record.before.query_id}
        after = {"path": self.record.other, "query_id": self.record.after.query_id}
        return derive(DiffDocument, self.record, checkpoint=before, other=after)

    def page(self) -> Page:
        span = f"batch {self.record.before.batch} to {self.record.after.batch}"
        return page_of(*(show_changes(unit, span) for unit in self.record.units))


class UnitReport(Report[StateUnit]):
    """A unit of state: its columns, and the batches whose state can be read."""

    keys = UnitKeys

    def page(self) -> Page:
        unit, schema = self.record, self.record.schema
        columns = schema.get("fields") if isinstance(schema, dict) else None
        rows = tuple(
            (str(column.get("name", "")), type_name({"type": "struct", "fields": [column]}))
            for column in (columns if isinstance(columns, list) else [])
            if isinstance(column, dict)
        )
        ranges = batch_ranges(unit.readable_batches) if unit.readable_batches else "no batch"
        facts = (unit.operator_name or "operator name not recorded", str(unit.provider), f"complete for {ranges}")
        return page_of([Title(unit.label, facts)], [Table(rows, ("column", "type"))])


class SizesReport(Report["StateSizes"]):
    """Report of ``ckpt state keys``: heavy keys, and the spread of rows."""

    keys = SizesDocument

    def page(self) -> Page:
        sizes = self.record
        rows, size = sum(part.rows for part in sizes.partitions), sum(part.bytes for part in sizes.partitions)
        head = f"{name_unit(sizes.unit)}, batch {sizes.moment.batch}: {plural(rows, 'row')}, values of {size:,} bytes"
        keys = []
        for key in sizes.keys:
            heavy, share = _describe_bytes(key.bytes, size)
            keys.append((heavy, f"{key.rows:,}", share, str(key.partition), describe_fields(key.key)))
        if not keys:
            return page_of((Headline(head, Tone.PLAIN), Line("  no rows")))
        fullest = sorted(sizes.partitions, key=lambda part: (-part.bytes, part.partition))
        spread = [
            (str(part.partition), f"{part.keys:,}", f"{part.rows:,}", *_describe_bytes(part.bytes, size))
            for part in fullest[:_FULLEST]
        ]
        return page_of(
            (
                Headline(head, Tone.PLAIN),
                Table(tuple(keys), ("bytes", "rows", "share", "partition", "key"), TooWide.STACK),
            ),
            (
                Table(tuple(spread), ("partition", "keys", "rows", "bytes", "share")),
                *more(len(fullest) - _FULLEST),
            ),
        )


_FULLEST = 20
"""How many partitions are shown."""


def show_changes(unit: "UnitDiff", span: str) -> Iterator[Block]:
    """Lay out what has changed in a unit of state; ``span`` says between which batches."""
    counts = f"{unit.added:,} added, {unit.removed:,} removed, {unit.changed:,} changed"
    yield Headline(f"{name_unit(unit.unit)}, {span}: {counts}", Tone.PLAIN)
    if unit.rows:
        rows = tuple(
            (str(row.change), *(describe_fields(fields) for fields in (row.key, row.before, row.after)))
            for row in unit.rows
        )
        yield Table(rows, ("", "key", "before", "after"), TooWide.STACK)
    if unit.added + unit.removed + unit.changed > len(unit.rows):
        yield Item(words("there are more: see {--limit}"))


def tabulate_rows(rows: Sequence[dict[str, Any]]) -> Block:
    """A few rows; what is nested as JSON."""
    if not rows:
        return Line("  no rows")
    return Table(tuple(tuple(map(_fill_cell, row.values())) for row in rows), tuple(rows[0]), TooWide.STACK)


def _describe_bytes(part: int, size: int) -> tuple[str, str]:
    """A number of bytes, and its share of all."""
    return f"{part:,}", f"{100 * part / size:.1f} %" if size else "-"


def describe_fields(row: dict[str, Any] | None) -> str:
    """Values by column in a line; a dash for none."""
    return "-" if not row else " ".join(f"{name}={_fill_cell(value)}" for name, value in row.items())


def name_unit(unit: StateUnit) -> str:
    """Name a unit of state with its operator's name, as a page does."""
    return unit.label + (f" ({unit.operator_name})" if unit.operator_name else "")


def _fill_cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


_EVENTS = 3  # whose sources are on the page


_EVENT = "batch after_batch change cause key before after planned_ms watermark_ms sources"
_HISTORY = "columns partition known_after first_rows rows events more unknown"


class _Event(Keys, record="ckpt.state.native.history:KeyEvent", keys=_EVENT):
    sources: tuple[SourceReadKeys, ...]


class HistoryDocument(UnitDocument, record="ckpt.state.native.history:StateHistory", keys=_HISTORY):
    """The document of ``ckpt state history``."""

    columns: tuple[ColumnKeys, ...]
    events: tuple[_Event, ...]


class HistoryReport(Report["StateHistory"]):
    """Report of ``ckpt state history``."""

    keys = HistoryDocument

    def page(self) -> Page:
        history = self.record
        return page_of(_show_events(history), _show_limits(history), _show_sources(history), _show_last_read(history))


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
        row += [instant(event.planned_ms), str(BOOK.text(f"gone_by_{event.cause}") if event.cause else event.change)]
        row += [describe_fields(event.key)] if several_keys else []
        row += [describe_fields(event.before if event.after is None else event.after)]
        rows.append(tuple(row))
    heads = ("batch", "planned", "", *(["key"] if several_keys else []), "value")
    if all(row[-1] == "-" for row in rows):
        rows, heads = [row[:-1] for row in rows], heads[:-1]
    yield Table(tuple(rows), heads, TooWide.STACK)
    if history.more:
        yield Item(words("there are older ones: see {--limit}"))


def _first_batch(event: "KeyEvent") -> int:
    return 0 if event.after_batch is None else event.after_batch + 1


def _show_limits(history: "StateHistory") -> Iterator[Block]:
    if history.known_after is not None:
        text = f"The state of batches before {history.known_after} no longer exists: events are known after batch "
        had = (
            "the key was not there" if not history.first_rows else f"there was {plural(len(history.first_rows), 'row')}"
        )
        yield Item(f"{text}{history.known_after}, when {had}.")
        if history.first_rows:
            yield tabulate_rows(history.first_rows)
    if history.unknown:
        unknown = ranges(history.unknown)
        yield Item(f"The state after these batches cannot be read, so their events show up only later: {unknown}.")


def _show_sources(history: "StateHistory") -> Iterator[Block]:
    events = {event.batch: event for event in history.events}
    shown = list(events.values())[-_EVENTS:]
    if any(event.sources for event in shown):
        yield Heading("Sources", "read by the batches of the newest events")
        for event in shown:
            for read in event.sources:
                yield Item(range_text(read.range), 24, f"  batch {event.batch}  {label_source(read.view)}")


def _show_last_read(history: "StateHistory") -> Iterator[Block]:
    written = [event for event in history.events if event.after is not None]
    if written and written[-1].sources:
        event, show = written[-1], call("offsets_show", history.checkpoint)
        if event.after_batch is None:
            read = words("See what batch {batch} read.", batch=event.batch)
            yield from show_call(show.but(batch=event.batch), read)
        else:
            first = _first_batch(event)
            again = words("Get the reader options to read the input of batch {first} again.", first=first)
            yield from show_call(show.but(batch=event.after_batch), again)
