"""What an export read and wrote, as a page and as the JSON document of the contract."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ckpt.export.columns import Columns
from ckpt.export.manifest import describe
from ckpt.export.reading import OLDEST_SPARK, Reading
from ckpt.export.targets import Shape, Target, local_target

from .document import tool
from .layout import Page
from .state import sql_type
from .text import instant, plural, printable, ranges


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


def document(found: Sequence[Done], action: str, shape: Shape, target: Target, partition_id: bool) -> str:
    """The whole report, indented, keys in the order of the contract."""
    exports = [
        describe(one.reading, shape, one.told_columns(shape, partition_id))
        | {"readable_batches": [list(span) for span in one.reading.unit.readable_batches]}
        | {"oldest_spark": one.reading.unit.oldest_spark or OLDEST_SPARK}
        | {"to": one.place, "rows": one.rows, "shown": one.shown}
        for one in found
    ]
    report = {
        "ckpt": tool(),
        "checkpoint": {"path": found[0].reading.checkpoint, "query_id": found[0].reading.moment.query_id},
        "action": action,
        "to": target.name or None,
        "format": target.format,
        "exports": exports,
    }
    return json.dumps(report, indent=2)


def page(
    found: Sequence[Done],
    action: str,
    shape: Shape,
    target: Target,
    partition_id: bool,
    layout: Page,
) -> str:
    """The whole report for people: what was done, then of what."""
    parts = []
    for one in found:
        lines = [layout.paint(layout.wrap(printable(_verdict(one, action, target)), 0), "1")]
        if one.shown is not None:
            lines.append(_rows(one.shown, layout))
        elif action != "count":
            facts = [*_columns(one, shape, partition_id), *(_needs(one) if action == "plan" else ())]
            lines += [layout.wrap(printable(text), 12, f"  {name}") for name, text in facts]
        parts.append("\n".join(lines))
    parts.append("\n".join(layout.wrap(printable(text), 12, f"  {name}") for name, text in _moment(found[0])))
    return "\n\n".join(parts)


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


def _rows(shown: Sequence[dict[str, Any]], layout: Page) -> str:
    """A few rows in columns, or below one another where that is too wide; the JSON of what is nested."""
    if not shown:
        return "  no rows"
    heads = [printable(name) for name in shown[0]]
    cells = [[printable(_cell(value)) for value in row.values()] for row in shown]
    table = layout.columns(cells, heads)
    if max(map(len, table.splitlines())) <= layout.width:
        return table
    indent = min(max(map(len, heads)), 24) + 4
    rows = ([layout.wrap(cell, indent, f"  {head} ") for head, cell in zip(heads, row, strict=True)] for row in cells)
    return "\n\n".join("\n".join(row) for row in rows)


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
