"""How text is laid out on a page: folded, aligned, coloured."""

import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from tabulate import tabulate

from .text import coloured

_COMMAND = re.compile(r"`((?:ckpt |mkdir |[.])[^`]*)`")


@dataclass(frozen=True, slots=True)
class Page:
    """How wide a page is, and whether it may be coloured."""

    width: int = 80
    colour: bool = False

    def paint(self, text: str, code: str) -> str:
        """``text`` in a colour, where colours are wanted."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text

    def wrap(self, text: str, indent: int, first: str | None = None) -> str:
        """``text`` folded to the width, every line indented; ``first`` stands before the first line instead."""
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

    def advise(self, text: str, indent: int, first: str | None = None) -> str:
        """The same; a command, or code, in backquotes loses these, and stays on one line so that it can be copied."""
        whole = _COMMAND.sub(lambda command: command[1].replace(" ", "\0"), text)
        return self.wrap(whole, indent, first).replace("\0", " ")

    def columns(self, rows: Sequence[Sequence[str]], headers: Sequence[str] = ()) -> str:
        """Rows in aligned columns, indented by two."""
        text = tabulate(rows, headers=headers, tablefmt="plain", disable_numparse=True)
        return textwrap.indent(text, "  ")

    def heading(self, name: str, fact: str = "") -> str:
        """The first line of a section: its name, and what is said of all of it."""
        folded = self.wrap(fact, 10, f"{name:9} ") if fact else name
        return self.paint(name, "1") + folded[len(name) :]


def for_standard_output() -> Page:
    """As wide as the terminal, up to 110 columns, and 80 where there is none."""
    width = min(shutil.get_terminal_size((80, 24)).columns, 110) if sys.stdout.isatty() else 80
    return Page(width, coloured())
