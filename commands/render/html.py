"""A page as HTML: every block as what ``ckpt.webpage`` fills its template with, which escapes it."""

from typing import Any, assert_never

from ckpt.inspection.inspection import Inspection
from ckpt.texts import escape_unprintable
from ckpt.webpage.parts import fill_template, inspection_page

from . import blocks
from .blocks import Page, Plain, Title, Tone, flatten_page

_TONES = {Tone.GOOD: "good", Tone.NOTE: "note", Tone.WARNING: "warning", Tone.ERROR: "error", Tone.PLAIN: "note"}


def html(page: Page) -> str:
    """The page as one document that needs nothing else."""
    described = list(flatten_page(page))
    names = [block.name for block in described if isinstance(block, Title)]
    return fill_template("document.html", title=names[0] if names else "ckpt", blocks=map(_describe_block, described))


def html_part(page: Page) -> str:
    """The page as a part of a notebook, with its style. Raises HtmlMissing."""
    described = [_describe_block(block) for block in flatten_page(page)]
    return fill_template("notebook.html", part="page", title="", blocks=described)


def plot_inspection(inspection: Inspection, besides: Page) -> str:
    """An inspection with its plots, and what else is to be shown."""
    return inspection_page(inspection, [_describe_block(block) for block in flatten_page(besides)])


def _describe_block(block: Plain) -> dict[str, Any]:
    match block:
        case blocks.Title(name, facts):
            return {"kind": "title", "name": name, "facts": facts}
        case blocks.Headline(text, tone):
            return {"kind": "headline", "text": text, "tone": _TONES[tone]}
        case blocks.Heading(name, fact):
            return {"kind": "heading", "name": name, "fact": fact}
        case blocks.Item(text, _, label, advice):
            return {"kind": "item", "text": text, "label": label.strip(), "advice": advice}
        case blocks.Line(text):
            return {"kind": "line", "text": text}
        case blocks.Command(text):
            return {"kind": "code", "text": escape_unprintable(text)}
        case blocks.Code(text):
            return {"kind": "code", "text": text}
        case blocks.Table(rows, heads):
            return {"kind": "table", "rows": rows, "heads": heads}
        case blocks.Cases(rows):
            return {"kind": "table", "rows": rows, "heads": ()}
        case blocks.FindingHead(severity, name, path):
            return {"kind": "found", "severity": severity.value, "name": name, "path": path}
        case _:
            assert_never(block)
