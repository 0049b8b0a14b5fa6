"""What an export read and wrote, as a page and as the JSON document of the contract."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ckpt.formats.sqltypes import sql_type
from ckpt.state.export.manifest import describe
from ckpt.state.export.request import Action, Engine, ExportPart, ExportPlan, ExportRequest, StateExport
from ckpt.state.export.targets import ExportTarget, local_target
from ckpt.state.reading.columns import Shape
from ckpt.state.reading.reading import OLDEST_SPARK
from ckpt.texts import instant

from ..exits import Exit
from .blocks import Block, Headline, Item, Line, Page, Table, Tone, TooWide, page_of
from .document import Document, ToolKeys
from .text import batch_ranges, plural, span


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What ``ckpt export-state`` plans, counted, shows or wrote."""

    found: StateExport

    @property
    def exit(self) -> Exit:
        """Reading finds nothing and changes nothing; what cannot be done is an error."""
        return Exit.OK

    def document(self) -> Document:
        """All of it."""
        request, parts = self.found.plan.request, self.found.parts
        exports = [
            describe(one.reading, request.shape, one.columns_of(request))
            | {"readable_batches": [list(span) for span in one.reading.unit.readable_batches]}
            | {"oldest_spark": one.reading.unit.oldest_spark or OLDEST_SPARK}
            | {"to": one.place, "rows": one.rows, "shown": one.shown}
            for one in parts
        ]
        first = parts[0].reading
        return {
            "ckpt": ToolKeys(),
            "checkpoint": {"path": first.checkpoint, "query_id": first.moment.query_id},
            "action": request.action,
            "engine": self.found.engine,
            "to": self.found.plan.target.name or None,
            "format": request.format,
            "exports": exports,
        }

    def page(self) -> Page:
        """What was done, then of what."""
        moment = [Item(text, 12, f"  {name}") for name, text in _moment(self.found.parts[0])]
        if self.found.engine is Engine.NATIVE:
            moment.append(Item("native: without Spark", 12, "  engine"))
        return page_of(*(_part(one, self.found.plan) for one in self.found.parts), moment)


def _part(one: ExportPart, plan: ExportPlan) -> Iterator[Block]:
    action = plan.request.action
    yield Headline(_verdict(one, plan), Tone.PLAIN)
    if one.shown is not None:
        yield _rows(one.shown)
    elif action is not Action.COUNT:
        needs = _needs(one) if action is Action.PLAN else ()
        for name, text in (*_columns(one, plan.request), *needs):
            yield Item(text, 12, f"  {name}")


def _verdict(one: ExportPart, plan: ExportPlan) -> str:
    unit, moment = one.reading.unit, one.reading.moment
    name = f" ({unit.operator_name})" if unit.operator_name else ""
    first = one.reading.changes_from
    which = span("batch", moment.batch if first is None else first, moment.batch)
    what = which if first is None else f"changes of {which}"
    state = f"{unit.label}{name}, {what}"
    target = plan.target
    match plan.request.action:
        case Action.PLAN:
            return f"Would read {state}" + (f", and write {_place(target.name, target)}" if target.name else "")
        case Action.EXPORT:
            return f"Exported {plural(one.rows or 0, 'row')} of {state}, to {_place(one.place or '', target)}"
        case Action.COUNT:
            return f"{plural(one.rows or 0, 'row')} in {state}"
    return state


def _place(name: str, target: ExportTarget) -> str:
    """Where it goes, a local path as people write it, and in which form."""
    return f"{local_target(name) or name} as {target.format}"


def _moment(one: ExportPart) -> Iterator[tuple[str, str]]:
    """Which moment the state belongs to: the same for every unit."""
    moment = one.reading.moment
    if moment.watermark_ms:
        after = f", {instant(moment.next_watermark_ms)} after it" if moment.next_watermark_ms else ""
        yield "watermark", f"{instant(moment.watermark_ms)} in batch {moment.batch}{after}"
    for end in moment.sources:
        label = f"source {end.index}" + (f" {end.name}" if end.name else "")
        yield "up to", f"{label}: {json.dumps(end.offset)}"


def _columns(one: ExportPart, request: ExportRequest) -> Iterator[tuple[str, str]]:
    columns = one.columns_of(request)
    if columns is not None:
        yield "columns", ", ".join(f"{column.name} {sql_type(column.type)}" for column in columns.kept)
        for dropped in columns.dropped:
            yield "left out", f"{'.'.join(dropped.path)}: {dropped.why}"
    else:
        yield (
            "columns",
            "as Spark gives them" if request.shape is Shape.RAW else ("known when Spark has read the state"),
        )


def _needs(one: ExportPart) -> Iterator[tuple[str, str]]:
    """What can be read of a unit, and what Spark needs for it."""
    unit = one.reading.unit
    yield (
        "state",
        f"{unit.provider}, checkpoint format {unit.format_version}, version {one.reading.moment.state_version}",
    )
    if unit.oldest_spark is not None:
        yield "spark", f"{unit.oldest_spark} or later: no earlier version reads such state"
    yield "readable", batch_ranges(unit.readable_batches)
    if unit.change_batches:
        yield "changes", batch_ranges(unit.change_batches)
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
