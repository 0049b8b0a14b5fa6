"""An export, as a page and as the JSON document of the contract."""

import json
from collections.abc import Iterator

from ckpt.formats.text import quoted
from ckpt.formats.types import sql_type
from ckpt.state.export.manifest import describe
from ckpt.state.export.request import Engine, ExportPart, ExportPlan, ExportRequest, StateExport
from ckpt.state.export.targets import ExportTarget, local_target
from ckpt.state.reading.columns import Shape
from ckpt.state.reading.reading import OLDEST_SPARK
from ckpt.texts import batch_ranges, instant, plural, span

from .blocks import Block, Headline, Item, Page, Tone, page_of
from .document import Document, ToolKeys
from .keys import derive
from .reports import Report


class ExportReport(Report[StateExport]):
    """Report of ``ckpt export-state``."""

    def document(self) -> Document:
        request, parts = self.record.plan.request, self.record.parts
        exports = [
            describe(part.reading, request.shape, part.columns)
            | {"readable_batches": [list(span) for span in part.reading.unit.readable_batches]}
            | {"oldest_spark": part.reading.unit.oldest_spark or OLDEST_SPARK}
            | {"to": part.place, "rows": part.rows, "shown": None}
            for part in parts
        ]
        first, salvage = parts[0].reading, self.record.plan.salvage
        return {
            "ckpt": derive(ToolKeys, None),
            "checkpoint": {"path": first.checkpoint, "query_id": first.moment.query_id},
            "action": request.action,
            "engine": self.record.engine,
            "to": self.record.plan.target.name or None,
            "format": request.format,
            "lost": salvage.lost if salvage else (),
            "exports": exports,
        }

    def page(self) -> Page:
        moment = [Item(text, 12, f"  {name}") for name, text in _describe_moment(self.record.parts[0])]
        if salvage := self.record.plan.salvage:
            moment.append(Item(salvage.costs or "nothing is lost", 12, "  salvage"))
            moment += (
                Item(f"operator {lost.operator}, partition {lost.partition}: {lost.why}", 12, "  lost")
                for lost in salvage.lost
            )
        if self.record.engine is Engine.NATIVE:
            moment.append(Item("native: without Spark", 12, "  engine"))
        return page_of(*(_show_part(part, self.record.plan) for part in self.record.parts), moment)


def _show_part(part: ExportPart, plan: ExportPlan) -> Iterator[Block]:
    yield Headline(_describe_headline(part, plan), Tone.PLAIN)
    needs = _describe_needs(part) if plan.request.plan else ()
    for name, text in (*_describe_columns(part, plan.request), *needs):
        yield Item(text, 12, f"  {name}")


def _describe_headline(part: ExportPart, plan: ExportPlan) -> str:
    unit, moment = part.reading.unit, part.reading.moment
    name = f" ({unit.operator_name})" if unit.operator_name else ""
    first = part.reading.changes_from
    which = span("batch", moment.batch if first is None else first, moment.batch)
    what = which if first is None else f"changes of {which}"
    state = f"{unit.label}{name}, {what}"
    target = plan.target
    if plan.request.plan:
        return f"Would read {state}" + (f", and write {_name_target(target.name, target)}" if target.name else "")
    return f"Exported {plural(part.rows or 0, 'row')} of {state}, to {_name_target(part.place or '', target)}"


def _name_target(name: str, target: ExportTarget) -> str:
    """Target of an export, a local path as people write it, and its format."""
    return f"{local_target(name) or name} as {target.format}"


def _describe_moment(part: ExportPart) -> Iterator[tuple[str, str]]:
    """Watermark and offsets of the state's batch, equal for every unit."""
    moment = part.reading.moment
    if moment.watermark_ms:
        after = f", {instant(moment.next_watermark_ms)} after it" if moment.next_watermark_ms else ""
        yield "watermark", f"{instant(moment.watermark_ms)} in batch {moment.batch}{after}"
    for end in moment.sources:
        label = f"source {end.index}" + (f" {end.name}" if end.name else "")
        yield "up to", f"{label}: {json.dumps(end.offset)}"


def _describe_columns(part: ExportPart, request: ExportRequest) -> Iterator[tuple[str, str]]:
    if (columns := part.columns) is not None:
        yield "columns", ", ".join(f"{column.name} {sql_type(column.type)}" for column in columns.kept)
        for dropped in columns.dropped:
            yield "left out", f"{'.'.join(dropped.path)}: {dropped.why}"
    else:
        yield (
            "columns",
            "as Spark gives them" if request.shape is Shape.RAW else ("known after Spark has read the state"),
        )


def _describe_needs(part: ExportPart) -> Iterator[tuple[str, str]]:
    """Readable batches of a unit, and Spark's needs for them."""
    unit = part.reading.unit
    yield (
        "state",
        f"{unit.provider}, checkpoint format {unit.format_version}, version {part.reading.moment.state_version}",
    )
    if part.reading.other_provider is not None:
        other = f"the offsets record {quoted(part.reading.other_provider, 80)}, a third-party provider"
        yield "provider", f"{other}: the state is read by its file layout, which was tested with files written by Spark"
    if unit.oldest_spark is not None:
        yield "spark", f"{unit.oldest_spark} or later: no earlier version can read such state"
    yield "readable", batch_ranges(unit.readable_batches)
    if unit.change_batches:
        yield "changes", batch_ranges(unit.change_batches)
    for conf in part.reading.confs:
        yield "setting", f"{conf.name}={conf.value}: {conf.why}"
    for reason in part.reading.mount.reasons if part.reading.mount else ():
        yield "mounted", f"read through a mount table, without a copy: {reason}"
