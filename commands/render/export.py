"""What an export read and wrote, as a page and as the JSON document of the contract."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ckpt.export.columns import Columns
from ckpt.export.manifest import describe
from ckpt.export.reading import OLDEST_SPARK, Reading
from ckpt.export.targets import Shape, Target, local_target

from ..exits import Exit
from .blocks import Block, Headline, Item, Line, Page, Table, Tone, TooWide, page_of
from .document import Document, tool
from .state import sql_type
from .text import instant, plural, ranges


@dataclass(frozen=True, slots=True)
class Done:
    """What came of one reading; None and nothing where that was not asked for."""

    reading: Reading
    columns: Columns | None = None
    rows: int | None = None
    place: str | None = None
    shown: Sequence[dict[str, Any]] | None = None

    def told_columns(self, shape: Shape, partition_id: bool) -> Columns | None:
        """The columns that were written, or those that the files promise."""
        if self.columns is not None or shape is Shape.RAW:
            return self.columns
        schema = self.reading.schema
        return None if schema is None else self.reading.columns(schema, partition_id=partition_id)


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What ``ckpt export-state`` plans, counted, shows or wrote."""

    found: tuple[Done, ...]
    action: str
    shape: Shape
    target: Target
    partition_id: bool

    @property
    def exit(self) -> Exit:
        """Reading finds nothing and changes nothing; what cannot be done is an error."""
        return Exit.OK

    def document(self) -> Document:
        """All of it."""
        exports = [
            describe(one.reading, self.shape, one.told_columns(self.shape, self.partition_id))
            | {"readable_batches": [list(span) for span in one.reading.unit.readable_batches]}
            | {"oldest_spark": one.reading.unit.oldest_spark or OLDEST_SPARK}
            | {"to": one.place, "rows": one.rows, "shown": one.shown}
            for one in self.found
        ]
        first = self.found[0].reading
        return {
            "ckpt": tool(),
            "checkpoint": {"path": first.checkpoint, "query_id": first.moment.query_id},
            "action": self.action,
            "to": self.target.name or None,
            "format": self.target.format,
            "exports": exports,
        }

    def page(self) -> Page:
        """What was done, then of what."""
        moment = (Item(text, 12, f"  {name}") for name, text in _moment(self.found[0]))
        return page_of(*(self._part(one) for one in self.found), moment)

    def _part(self, one: Done) -> Iterator[Block]:
        yield Headline(_verdict(one, self.action, self.target), Tone.PLAIN)
        if one.shown is not None:
            yield _rows(one.shown)
        elif self.action != "count":
            needs = _needs(one) if self.action == "plan" else ()
            for name, text in (*_columns(one, self.shape, self.partition_id), *needs):
                yield Item(text, 12, f"  {name}")


def _verdict(one: Done, action: str, target: Target) -> str:
    unit, moment = one.reading.unit, one.reading.moment
    name = f" ({unit.operator_name})" if unit.operator_name else ""
    first = one.reading.changes_from
    what = f"batch {moment.batch}" if first is None else f"changes of batches {first} to {moment.batch}"
    state = f"{unit.label}{name}, {what}"
    match action:
        case "plan":
            return f"Would read {state}" + (f", and write {_place(target.name, target)}" if target.name else "")
        case "export":
            return f"Exported {plural(one.rows or 0, 'row')} of {state}, to {_place(one.place or '', target)}"
        case "count":
            return f"{plural(one.rows or 0, 'row')} in {state}"
    return state


def _place(name: str, target: Target) -> str:
    """Where it goes, a local path as people write it, and in which form."""
    return f"{local_target(name) or name} as {target.format}"


def _moment(one: Done) -> Iterator[tuple[str, str]]:
    """Which moment the state belongs to: the same for every unit."""
    moment = one.reading.moment
    if moment.watermark_ms:
        after = f", {instant(moment.next_watermark_ms)} after it" if moment.next_watermark_ms else ""
        yield "watermark", f"{instant(moment.watermark_ms)} in batch {moment.batch}{after}"
    for end in moment.sources:
        label = f"source {end.index}" + (f" {end.name}" if end.name else "")
        yield "up to", f"{label}: {json.dumps(end.offset)}"


def _columns(one: Done, shape: Shape, partition_id: bool) -> Iterator[tuple[str, str]]:
    columns = one.told_columns(shape, partition_id)
    if columns is not None:
        yield "columns", ", ".join(f"{column.name} {sql_type(column.type)}" for column in columns.kept)
        for dropped in columns.dropped:
            yield "left out", f"{'.'.join(dropped.path)}: {dropped.why}"
    else:
        yield "columns", "as Spark gives them" if shape is Shape.RAW else "known once Spark has read the state"


def _needs(one: Done) -> Iterator[tuple[str, str]]:
    """What can be read of a unit, and what Spark has to be told for it."""
    unit = one.reading.unit
    yield (
        "state",
        f"{unit.provider}, checkpoint format {unit.format_version}, version {one.reading.moment.state_version}",
    )
    if unit.oldest_spark is not None:
        yield "spark", f"{unit.oldest_spark} or later: no earlier one reads such state"
    yield "readable", f"batches {ranges(list(unit.readable_batches))}"
    if unit.change_batches:
        yield "changes", f"batches {ranges(list(unit.change_batches))}"
    for conf in one.reading.confs:
        yield "setting", f"{conf.name}={conf.value}: {conf.why}"
    for reason in one.reading.mount.reasons if one.reading.mount else ():
        yield "mounted", f"read through a mount table, without a copy: {reason}"


def _rows(shown: Sequence[dict[str, Any]]) -> Block:
    """A few rows; what is nested as JSON."""
    if not shown:
        return Line("  no rows")
    return Table(tuple(tuple(map(_cell, row.values())) for row in shown), tuple(shown[0]), TooWide.STACK)


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
