"""HTML that a notebook shows of ckpt's values."""

from functools import singledispatch

from ckpt.changes.plan import ChangePlan
from ckpt.changes.steps import FileContent
from ckpt.formats.sqltypes import type_name
from ckpt.inspection.inspection import Inspection
from ckpt.state.reading.units import StateUnit
from ckpt.texts import batch_ranges, size
from ckpt.webpage.parts import forecast_table, inspection_part, name_of
from ckpt.webpage.templates import HtmlMissing, fill_template


def make_part(value: object) -> str | None:
    """A value as a part of a page, with its style; None if Jinja2 is not installed."""
    try:
        return _make_part(value)
    except HtmlMissing:
        return None


@singledispatch
def _make_part(value: object) -> str:
    raise TypeError(f"no HTML for {type(value).__name__}")


@_make_part.register
def _(value: Inspection) -> str:
    return inspection_part(value)


@_make_part.register
def _(value: ChangePlan) -> str:
    steps = [(step.action, step.path, _show_bytes(step.before), _show_bytes(step.after)) for step in value.steps]
    before, after = forecast_table(value.before), forecast_table(value.after)
    title = f"{value.command} {name_of(value.inspection)}"
    return fill_template("notebook.html", part="plan", title=title, plan=value, steps=steps, before=before, after=after)


@_make_part.register
def _(value: StateUnit) -> str:
    schema = value.schema
    fields = schema.get("fields") if isinstance(schema, dict) else None
    columns = [
        (field.get("name", ""), type_name({"type": "struct", "fields": [field]}))
        for field in (fields if isinstance(fields, list) else [])
        if isinstance(field, dict)
    ]
    ranges = batch_ranges(value.readable_batches) if value.readable_batches else "no batch"
    return fill_template("notebook.html", part="unit", title=value.label, unit=value, columns=columns, ranges=ranges)


def _show_bytes(content: bytes | FileContent | None) -> str:
    match content:
        case None:
            return ""
        case FileContent(count):
            return size(count)
        case bytes():
            return size(len(content))
