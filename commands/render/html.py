"""A page as HTML: every block as what ``ckpt.webpage`` fills its template with, which escapes it."""

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from ckpt.advice import Words
from ckpt.texts import escape_unprintable
from ckpt.webpage.parts import fill_template

from . import blocks
from .blocks import NEXT, Cell, Page, Plain, Title, Tone, flatten_page, spell

_TONES = {Tone.GOOD: "good", Tone.NOTE: "note", Tone.WARNING: "warning", Tone.ERROR: "error", Tone.PLAIN: "note"}


def html(page: Page, sections: Mapping[str, str] | None = None) -> str:
    """The page as one document that needs nothing else; ``sections`` are HTML by the id to which a cell leads."""
    names = [block.name for block in flatten_page(page) if isinstance(block, Title)]
    title = names[0] if names else "ckpt"
    return fill_template("document.html", title=title, blocks=describe_blocks(page), sections=sections or {})


def describe_blocks(page: Page) -> list[dict[str, Any]]:
    """The blocks of a page: items with a label are entries of a list, with what a terminal shows below their text.

    What comes next has a heading, which a terminal has in the margin.
    """
    described: list[dict[str, Any]] = []
    indent = None  # of the text of the entry that is open
    for block in flatten_page(page):
        label = block.label.strip() if isinstance(block, blocks.Item) else ""
        if label.startswith(NEXT):
            described.append(_describe_block(blocks.Heading(NEXT)))
            indent = None
            label = label.removeprefix(NEXT).strip()
        if isinstance(block, blocks.Item) and label:
            kind = "bullets" if label == "-" else "labels"
            if indent is None or described[-1]["kind"] != kind:
                described.append({"kind": kind, "entries": []})
            described[-1]["entries"].append({"label": label, "blocks": [_describe_block(block)]})
            indent = block.indent
        elif isinstance(block, blocks.Item | blocks.Command) and block.indent == indent:
            described[-1]["entries"][-1]["blocks"].append(_describe_block(block))
        else:
            described.append(_describe_block(block))
            indent = None
    return described


def _describe_block(block: Plain) -> dict[str, Any]:
    match block:
        case blocks.Title(name, facts):
            return {"kind": "title", "name": name, "facts": facts}
        case blocks.Headline(text, tone):
            return {"kind": "headline", "text": text, "tone": _TONES[tone]}
        case blocks.Heading(name, fact):
            return {"kind": "heading", "name": name, "fact": fact}
        case blocks.Item(text):
            return {"kind": "item", "text": text}
        case blocks.Line(text):
            return {"kind": "line", "text": text}
        case blocks.Command(text):
            return {"kind": "code", "text": escape_unprintable(spell(text))}
        case blocks.CodeBlock(text):
            return {"kind": "code", "text": text}
        case blocks.Table(rows, heads, closed=closed):
            return _describe_table(rows, heads, closed)
        case blocks.Cases(rows):
            return _describe_table(rows)
        case blocks.FindingHead(severity, name, path):
            return {"kind": "found", "severity": severity.value, "name": name, "path": path}
        case _:
            assert_never(block)


def _describe_table(
    rows: Sequence[Sequence[str | Cell]], heads: Sequence[str] = (), closed: str | Words = ""
) -> dict[str, Any]:
    described = [list(map(_describe_cell, row)) for row in rows]
    return {"kind": "table", "rows": described, "heads": heads, "closed": str(closed)}


def _describe_cell(cell: str | Cell) -> dict[str, str]:
    cell = Cell(cell) if isinstance(cell, str) else cell
    text = f"{cell.text} {cell.more}".strip()
    return {"text": text, "tone": "" if cell.tone is Tone.PLAIN else _TONES[cell.tone], "section": cell.section}
