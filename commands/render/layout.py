"""A page as text: folded, aligned, coloured, and escaped."""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import assert_never

from ckpt.advice import join, words
from ckpt.texts import escape_unprintable

from . import blocks
from .blocks import NEXT, OR, THEN, TONES, Block, Page, TextSegment, Tone, TooWide, lay_out_next, segments, spell

_BOLD = "1"
_COLOURS = {Tone.ERROR: "31;1", Tone.WARNING: "33;1", Tone.GOOD: "32;1", Tone.NOTE: "36", Tone.PLAIN: _BOLD}
_FOUND_INDENT = 11
_KEPT = 3  # columns that a table keeps, however narrow the page is, if it names none
_ROOM, _LEAST_ROOM = 36, 20  # for the column that is folded: others are dropped for it, or it goes below the others


@dataclass(frozen=True, slots=True)
class PageLayout:
    """How wide a page is, and whether it may be coloured; a table may be wider than a text that is easy to read."""

    width: int = 80
    colour: bool = False
    table_width: int | None = None  # None: as a text

    def text(self, page: Page) -> str:
        """The page, without a line end at its end."""
        parts = ("\n".join(text for block in part if (text := self._lay_out(block)) is not None) for part in page)
        return "\n\n".join(part.rstrip() for part in parts)

    def _lay_out(self, block: Block) -> str | None:
        """The lines of a block; None where there is nothing to show."""
        match block:
            case blocks.Title():
                return self._lay_out_title(block)
            case blocks.Headline(text, tone):
                lines = self._wrap(escape_unprintable(text), 0).splitlines()
                return "\n".join(self._paint(line, _COLOURS[tone]) for line in lines)
            case blocks.Heading(name, fact):
                label = f"{name:9} " if len(name) < 10 else f"{name}  "
                folded = self._wrap(escape_unprintable(fact), 10, label) if fact else name
                return self._paint(name, _BOLD) + folded[len(name) :]
            case blocks.Item(text, indent, label):
                shown = self._lay_out_segments([*segments(text)], indent, escape_unprintable(label) or None)
                mark = next((mark for mark in (NEXT, OR, THEN) if label.rstrip() == mark), "")
                return self._paint(mark, _BOLD) + shown[len(mark) :] if mark else shown
            case blocks.Line(text):
                return escape_unprintable(text)
            case blocks.Command(text, indent):
                return " " * indent + self._paint(escape_unprintable(spell(text)), _BOLD)
            case blocks.CodeBlock(text):
                return text
            case blocks.Table():
                return self._lay_out_table(block)
            case blocks.Cases(rows):
                return "\n".join(self._lay_out_cases(rows))
            case blocks.FindingHead():
                return self._lay_out_finding(block)
            case blocks.Next():
                return "\n".join(filter(None, map(self._lay_out, lay_out_next(block)))) or None
            case _:
                assert_never(block)

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text

    def _wrap(self, text: str, indent: int, first: str | None = None) -> str:
        """``text`` folded to the width, every line indented; ``first`` is in front of the first line instead."""
        blank = " " * indent
        start = blank if first is None else first.ljust(indent)
        folded = textwrap.wrap(
            text,
            max(self.width, indent + 30),
            initial_indent=start,
            subsequent_indent=blank,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return "\n".join(folded) or start.rstrip()

    def _lay_out_segments(self, text: Sequence[TextSegment], indent: int, first: str | None) -> str:
        """A text folded; what is to be copied stays on one line, and a whole command has a line of its own."""
        lines: list[str] = []
        sentence = ""
        for segment in (*text, TextSegment("", alone=True)):
            shown = escape_unprintable(segment.text)
            if not segment.alone:
                sentence += shown.replace(" ", "\0") if segment.copied else shown
                continue
            if rest := sentence.lstrip(" .,;:" if lines else None).rstrip():
                lines.append(self._wrap(rest, indent, None if lines else first).replace("\0", " "))
            if shown:
                lines.append(("" if lines else first or "").ljust(indent) + shown)
            sentence = ""
        return "\n".join(lines) or (first or "").rstrip()

    def _lay_out_title(self, title: blocks.Title) -> str:
        lines = [escape_unprintable(title.name)]
        for fact in map(escape_unprintable, title.facts):
            if len(lines[-1]) + 3 + len(fact) > self.width:
                lines.append("  " + fact)
            else:
                lines[-1] += "   " + fact
        name = len(escape_unprintable(title.name))
        return "\n".join([self._paint(lines[0][:name], _BOLD) + lines[0][name:], *lines[1:]])

    def _lay_out_finding(self, head: blocks.FindingHead) -> str:
        severity, path = f"{head.severity:8}", escape_unprintable(head.path)
        after = f" {escape_unprintable(head.name)}"
        label = f"  {self._paint(severity, _COLOURS[TONES[head.severity]])}{after}"
        if not path:
            return label
        fits = 2 + len(severity) + len(after) + 3 + len(path) <= self.width
        return f"{label}   {path}" if fits else f"{label}\n{' ' * _FOUND_INDENT}{path}"

    def _lay_out_cases(self, rows: Sequence[Sequence[str]]) -> Iterator[str]:
        shown = [[escape_unprintable(cell) for cell in row] for row in rows]
        widths = [max(map(len, cells)) for cells in zip(*shown, strict=True)]
        for *cells, text in shown:
            first = "  " + "".join(f"{cell:{width}}   " for cell, width in zip(cells, widths, strict=False))
            yield self._wrap(text, len(first), first)

    def _lay_out_table(self, table: blocks.Table) -> str | None:
        heads = [escape_unprintable(head) for head in table.heads]
        rows = [[escape_unprintable(str(cell)) for cell in row] for row in table.rows]
        if not rows:
            return None
        if table.closed:
            return self._lay_out(blocks.Item(join((table.closed, table.opened_by), ": ")))
        text = _align_columns(rows, heads)
        match table.too_wide:
            case TooWide.DROP if not self._fits(text):
                return self._drop_columns(rows, heads, heads.index(table.kept) if table.kept else _KEPT - 1)
            case TooWide.STACK if not self._fits(text):
                indent = min(max(map(len, heads)), 24) + 4
                stacked = (
                    "\n".join(self._wrap(cell, indent, f"  {head} ") for head, cell in zip(heads, row, strict=True))
                    for row in rows
                )
                return "\n\n".join(stacked)
        return text

    def _drop_columns(self, rows: Sequence[Sequence[str]], heads: Sequence[str], last: int) -> str:
        """The columns up to ``last``, which is folded, and as many of the others as fit beside it."""
        padded = (f"{head}  " for head in heads)  # by tabulate
        widths = [2 + max(map(len, cells)) for cells in zip(padded, *rows, strict=True)]
        wanted = min(widths[last], _ROOM)
        kept, width = len(heads), self.table_width or self.width
        while kept > last + 1 and sum(widths[:kept]) - widths[last] + wanted > width:
            kept -= 1
        room = width - sum(widths[:kept]) + widths[last] - 2
        if room < min(widths[last] - 2, _LEAST_ROOM):
            return "\n".join(f"  {'  '.join(filter(None, row[:last]))}\n{self._wrap(row[last], 4)}" for row in rows)
        fold = partial(textwrap.wrap, width=room, break_long_words=False, break_on_hyphens=False)
        folded = [[*row[:last], "\n".join(fold(row[last])), *row[last + 1 : kept]] for row in rows]
        text = _align_columns(folded, heads[:kept])
        left_out = self._wrap(str(words("not shown: {heads}; see {fields}", heads=", ".join(heads[kept:]))), 2)
        return f"{text}\n{left_out}" if heads[kept:] else text

    def _fits(self, text: str) -> bool:
        return max(map(len, text.splitlines())) <= (self.table_width or self.width)


def _align_columns(rows: Sequence[Sequence[str]], heads: Sequence[str]) -> str:
    """Rows in aligned columns, indented by two."""
    from tabulate import tabulate  # it looks for other packages: not at the start

    return textwrap.indent(tabulate(rows, headers=heads, tablefmt="plain", disable_numparse=True), "  ")


def for_standard_output() -> PageLayout:
    """As wide as ``COLUMNS`` or the terminal, 80 where there is neither; ``NO_COLOR`` is honoured.

    A text is folded at 110 columns at most.
    """
    columns = shutil.get_terminal_size((80, 24)).columns
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return PageLayout(min(columns, 110), colour, columns)
