"""Values of the library as ``print``, notebooks and ``to_dict`` show them: pages and documents of the commands.

``RENDERERS`` is an entry point, by which ``ckpt`` finds who makes pages without importing it.
"""

import json
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from ckpt.advice.spelling import SHELL
from ckpt.advice.words import speaking
from ckpt.changes.apply import ChangeResult, Receipt
from ckpt.changes.plan import ChangePlan
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.inspection.inspection import Inspection, RatedFinding, inspect
from ckpt.model import Json
from ckpt.restart.findings import Forecast
from ckpt.texts import mask_secrets
from ckpt.values import Renderers
from ckpt.webpage.parts import NOTEBOOK, HtmlMissing

from . import render
from .calls import PYTHON
from .render.blocks import Page, change_texts, flatten_page
from .render.document import write_document, write_object
from .render.html import html_part
from .render.inspection import FindingKeys, RestartKeys
from .render.keys import Keys, derive
from .render.layout import PageLayout
from .render.page import plot
from .render.reports import Report, find_report


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
            if isinstance(value, Inspection):
                return plot(value, NOTEBOOK)
            return html_part(_make_page(value))
    except HtmlMissing:
        return None


def document(value: object) -> dict[str, Json]:
    """Return the document of a value's command, in the words of the command line; of a part of one, that part."""
    with speaking(SHELL):
        keys = _PARTS.get(type(value))
        text = write_object(derive(keys, value)) if keys else write_document(_find_report(value))
        made: dict[str, Json] = json.loads(text)
        return made


RENDERERS = Renderers(text, html, document)
_PARTS: dict[type, type[Keys]] = {RatedFinding: FindingKeys, Forecast: RestartKeys}


def _make_page(value: object) -> Page:
    page = _find_report(value).whole_page()
    return tuple(tuple(change_texts(block, mask_secrets) for block in flatten_page((part,))) for part in page)


def _find_report(value: object) -> Report[Any]:
    """Find the report of a value, in whichever module of ``render`` it is."""
    if isinstance(value, Checkpoint):
        value = inspect(value)
    if isinstance(value, ChangePlan):
        value = ChangeResult(value, Receipt())
    for module in iter_modules(render.__path__):
        import_module(f"{render.__name__}.{module.name}")
    report = find_report(type(value.plan if isinstance(value, ChangeResult) else value))
    if report is None:
        raise LookupError(f"{type(value).__name__} is not what a call returns")
    return report.of_value(value)
