"""Values of the library as ``print`` and notebooks show them: the pages of the commands, in the words of the library.

``RENDERERS`` is an entry point, by which ``ckpt`` finds who makes pages without importing it.
"""

from dataclasses import fields
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from ckpt.advice import words
from ckpt.advice.words import speaking
from ckpt.changes.apply import ChangeResult, Receipt
from ckpt.changes.plan import ChangePlan
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.formats.types import type_name
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.texts import batch_ranges, mask_secrets
from ckpt.values import Renderers
from ckpt.webpage.parts import HtmlMissing, inspection_part

if TYPE_CHECKING:
    from ckpt import types

from . import render
from .calls import PYTHON
from .render.blocks import Headline, Item, Page, Table, Title, Tone, change_texts, flatten_page, page_of
from .render.copying import CopyReport
from .render.html import html_part
from .render.layout import PageLayout
from .render.rehearsing import show_rehearsal
from .render.reports import find_report
from .render.rewriting import ImportReport, RewriteReport


def text(value: object) -> str:
    """Lay a value's page out as text: 80 columns, no colour."""
    with speaking(PYTHON):
        return PageLayout().text(_make_page(value))


def html(value: object) -> str | None:
    """Return a value's page as a part of a notebook; None if Jinja2 is not installed."""
    try:
        if isinstance(value, Checkpoint):
            value = inspect(value)
        with speaking(PYTHON):
            return inspection_part(value) if isinstance(value, Inspection) else html_part(_make_page(value))
    except HtmlMissing:
        return None


RENDERERS = Renderers(text, html)


def _make_page(value: object) -> Page:
    page = _page_of(value)
    return tuple(tuple(change_texts(block, mask_secrets) for block in flatten_page((part,))) for part in page)


def _page_of(value: object) -> Page:
    if isinstance(value, ChangePlan):
        value = ChangeResult(value, Receipt())
    if isinstance(value, ChangeResult):
        return _show_change(value)
    show = _PAGES.get(type(value).__name__, lambda value: _find_report(type(value))(value).page())
    page: Page = show(value)
    return page


def _find_report(kind: type) -> Any:
    """Find the report of a class, in whichever module of ``render`` it is."""
    for module in iter_modules(render.__path__):
        import_module(f"{render.__name__}.{module.name}")
    return find_report(kind)


def _show_change(value: ChangeResult[ChangePlan]) -> Page:
    page: Page = _find_report(type(value.plan))(*value).page()
    return page


def _show_checkpoint_copy(value: "types.CheckpointCopy") -> Page:
    return CopyReport(value, value.inspection.checkpoint.uri).page()


def _show_rewrite(value: "types.Rewrite") -> Page:
    source = value.inspection.checkpoint.uri
    imported = any(unit.exported is not None for unit in value.units)
    return (ImportReport(value, source, "the rows given") if imported else RewriteReport(value, source)).page()


def _show_state_unit(value: "types.StateUnit") -> Page:
    schema = value.schema
    columns = schema.get("fields") if isinstance(schema, dict) else None
    rows = tuple(
        (str(column.get("name", "")), type_name({"type": "struct", "fields": [column]}))
        for column in (columns if isinstance(columns, list) else [])
        if isinstance(column, dict)
    )
    ranges = batch_ranges(value.readable_batches) if value.readable_batches else "no batch"
    facts = (value.operator_name or "operator name not recorded", str(value.provider), f"complete for {ranges}")
    return page_of([Title(value.label, facts)], [Table(rows, ("column", "type"))])


def _show_receipt(value: Receipt) -> Page:
    if value.problem:
        restored = ", and everything is restored" if value.undone else ""
        head = Headline(f"NOT DONE{restored}: {value.problem}", Tone.ERROR)
    elif value.applied:
        head = Headline("DONE", Tone.GOOD)
    else:
        head = Headline("UNDONE" if value.undone else "NOTHING WAS CHANGED", Tone.NOTE)
    kept = [Item(words("the backup, which {--undo} takes: {backup}", backup=value.backup))] if value.backup else []
    return page_of([head, *kept])


def _show_query_description(value: "types.QueryDescription") -> Page:
    rows = [(field.name, str(getattr(value, field.name))) for field in fields(value)]
    return page_of([Title("query", (f"planned by Spark {value.spark}",))], [Table(tuple(rows), ("field", "value"))])


_PAGES: dict[str, Any] = {
    "Checkpoint": lambda value: _page_of(inspect(value)),
    "CheckpointCopy": _show_checkpoint_copy,
    "Rehearsal": show_rehearsal,
    "Rewrite": _show_rewrite,
    "StateUnit": _show_state_unit,
    "Receipt": _show_receipt,
    "QueryDescription": _show_query_description,
}
