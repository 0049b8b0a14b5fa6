"""A page for GitHub Actions: annotations of a run, and its summary in Markdown."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import assert_never

from ckpt.advice import Words, join
from ckpt.restart.findings import Severity
from ckpt.texts import escape_unprintable

from . import blocks
from .blocks import NEXT, OR, THEN, Item, Page, Plain, Tone, flatten_page, segments, spell

_LEVELS = {Tone.ERROR: "error", Tone.WARNING: "warning"}
_ALERTS = {Tone.ERROR: "CAUTION", Tone.WARNING: "WARNING", Tone.GOOD: "TIP"}
_IN_MESSAGE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def annotate(page: Page) -> str:
    """Workflow commands, a line each: the headline, and every finding that is more than a note."""
    plain = [*flatten_page(page)]
    name = next((block.name for block in plain if isinstance(block, blocks.Title)), "ckpt")
    lines = []
    for number, block in enumerate(plain):
        if isinstance(block, blocks.Headline):
            lines.append(_command(_LEVELS.get(block.tone, "notice"), name, [block.text]))
        elif isinstance(block, blocks.FindingHead) and block.severity is not Severity.NOTE:
            texts = [block.path, *takewhile(bool, map(_read_prose, plain[number + 1 :]))]
            lines.append(_command(block.severity.value, block.name, [*filter(None, texts)]))
    return "\n".join(lines)


def _read_prose(block: Plain) -> str:
    """The text of a paragraph or command of a finding; empty where something else begins."""
    if isinstance(block, blocks.Command):
        return spell(block.text)
    return str(block.text) if isinstance(block, Item) and not _begins_next(block) else ""


def _command(level: str, title: str, texts: Sequence[str]) -> str:
    message = "\n".join(map(escape_unprintable, texts)).translate(_IN_MESSAGE)
    return f"::{level} title={escape_unprintable(title).translate(_IN_PROPERTY)}::{message}"


def _begins_next(block: Plain) -> bool:
    return isinstance(block, Item) and block.label.strip().startswith(NEXT)


def markdown(page: Page) -> str:
    """The page in GitHub's Markdown, in which no text of it is markup."""
    return "\n\n".join(text for block in flatten_page(page) for text in _lay_out(block) if text)


def _lay_out(block: Plain) -> Iterator[str]:
    match block:
        case blocks.Title(name, facts):
            yield f"## {_escape(name)}"
            yield " · ".join(map(_escape, facts))
        case blocks.Headline(text, tone):
            yield f"> [!{_ALERTS.get(tone, 'NOTE')}]\n> {_escape(text)}"
        case blocks.Heading(name, fact):
            yield f"### {_escape(name)}"
            yield _escape(fact)
        case blocks.Item(text, _, label):
            if _begins_next(block):
                yield f"### {NEXT}"
                yield from _lay_out(replace(block, label=label.strip().removeprefix(NEXT)))
                return
            mark = _escape(label.strip("-→ "))
            bullet, mark = ("", f"**{mark}**") if mark in (OR, THEN) else ("- " if label.strip() else "", mark)
            yield bullet + f"{mark} {_lay_out_pieces(text)}".strip()
        case blocks.Line(text):
            yield _escape(text)
        case blocks.Command(text):
            yield _fence(escape_unprintable(spell(text)))
        case blocks.CodeBlock(text):
            yield _fence("\n".join(map(escape_unprintable, text.splitlines())))
        case blocks.Table():
            yield _lay_out_table(block)
        case blocks.Cases(rows):
            yield _tabulate(rows, ())
        case blocks.FindingHead(severity, name, path):
            yield f"**{severity}** {_escape(name)}  {_escape(path)}".strip()
        case _:
            assert_never(block)


def _escape(text: str) -> str:
    """Text that is no markup, wherever it stands in a line."""
    return _escape_inside(text).strip()


def _escape_inside(text: str) -> str:
    return _PUNCTUATION.sub(r"\\\1", escape_unprintable(text))


def _lay_out_pieces(text: str | Words) -> str:
    """Text in which what is to be copied is code."""
    return "".join(
        _quote(escape_unprintable(part.text)) if part.copied else _escape_inside(part.text) for part in segments(text)
    ).strip()


def _fence(code: str) -> str:
    """Code between more backquotes than it has in a row."""
    fence = max("```", _find_marks(code))
    return f"{fence}\n{code}\n{fence}"


def _quote(code: str) -> str:
    """Code in a line."""
    marks = _find_marks(code)
    return f"{marks}{code}{marks}" if marks == "`" else f"{marks} {code} {marks}"


def _find_marks(code: str) -> str:
    """More backquotes than code has in a row."""
    return "`" * max((len(run) + 1 for run in re.findall("`+", code)), default=1)


def _lay_out_table(table: blocks.Table) -> str:
    if table.closed:
        return _lay_out_pieces(join((table.closed, table.opened_by), ": "))
    return _tabulate([[str(cell) for cell in row] for row in table.rows], table.heads)


def _tabulate(rows: Sequence[Sequence[str]], heads: Sequence[str]) -> str:
    if not rows:
        return ""
    width = max(map(len, rows))
    lines = [heads or [""] * width, ["---"] * width, *rows]
    return "\n".join(f"| {' | '.join(cell if cell == '---' else _escape(cell) for cell in line)} |" for line in lines)
