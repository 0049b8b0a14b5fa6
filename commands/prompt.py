"""Values of the library as ``print``, notebooks and ``to_dict`` show them: pages and documents of the commands.

``RENDERERS`` is an entry point, by which ``ckpt`` finds who makes pages without importing it.
"""

import json
from importlib import import_module
from inspect import signature
from pkgutil import iter_modules
from typing import Any, get_args

import ckpt
from ckpt.advice import Call
from ckpt.advice.calls import Speech
from ckpt.advice.spelling import SHELL, name_argument, quote_line, spell_value
from ckpt.advice.words import speaking
from ckpt.changes.apply import ChangeResult, Receipt
from ckpt.changes.plan import ChangePlan
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.inspection.inspection import Inspection, RatedFinding, inspect
from ckpt.model import Json
from ckpt.restart.findings import Forecast
from ckpt.texts import mask_secrets
from ckpt.values import Renderers
from ckpt.webpage.parts import NOTEBOOK, HtmlMissing, fill_template

from . import render
from .render.blocks import Page, change_texts, flatten_page
from .render.document import write_document, write_object
from .render.html import describe_blocks
from .render.inspection import FindingKeys, RestartKeys
from .render.keys import Keys, derive
from .render.layout import PageLayout
from .render.page import plot
from .render.reports import Report, find_report


def as_call(call: Call) -> str:
    """Write a call in Python; as a line of a shell, with ``!``, where the library has no call with these arguments.

    >>> from ckpt.advice import call
    >>> as_call(call("rewind", "/data/cp", to_batch=5, accept_replay=True, apply=True))
    'ckpt.rewind("/data/cp", to_batch=5, accept_replay=True, apply=True)'
    """
    if call.name not in ckpt.__all__:
        return f"!{quote_line(call)}" if call.arguments else quote_line(call)
    if not call.arguments:
        return f"ckpt.{call.name}"
    if not _fits(call):
        return f"!{quote_line(call)}"
    options = (name_argument(name, value) for name, value in call.options)
    return f"ckpt.{call.name}({', '.join((*map(spell_value, call.arguments), *options))})"


def _fits(call: Call) -> bool:
    """Tell whether the library has a call with these arguments; ``**how`` takes those of ``ApplyOptions``."""
    form = signature(getattr(ckpt, call.name))
    try:
        bound = form.bind(*call.arguments, **dict(call.options))
    except TypeError:
        return False
    others = {name: form.parameters[name] for name in bound.arguments}
    kinds = ((name, get_args(each.annotation)[0]) for name, each in others.items() if each.kind is each.VAR_KEYWORD)
    return all(bound.arguments[name].keys() <= kind.__annotations__.keys() for name, kind in kinds)


PYTHON = Speech(as_call, name_argument, "its fields", "its fields")


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
            return fill_template(NOTEBOOK, part="page", title="", blocks=describe_blocks(_make_page(value)))
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
