"""Man pages, one for each command and group: ``man ckpt-inspect`` says what ``ckpt inspect --help`` says."""

import re

import ckpt

from .commands import Manual, read_manual


def man_pages() -> dict[str, str]:
    """The text of each man page by its file name."""
    return {f"{_page_name(manual.name)}.1": _man_page(manual) for manual in read_manual().below()}


def _page_name(command: str) -> str:
    return command.replace(" ", "-")


def _man_page(manual: Manual) -> str:
    name = _page_name(manual.name)
    inner = [one.name for ones in manual.inner.values() for one in ones]
    related = ", ".join(f"{_page_name(one)}(1)" for one in [manual.name.rpartition(" ")[0], *inner] if one)
    return "\n".join(
        [
            r".\" Written by make docs from the help of the command.",
            f'.TH "{name.upper()}" "1" "" "ckpt {ckpt.__version__}" "ckpt"',
            ".nh",  # words are not hyphenated: a name that is copied stays one
            ".ad l",
            ".SH NAME",
            f"{_text(name)} \\- {_text(manual.summary.rstrip('.'))}",
            ".SH SYNOPSIS",
            _bold(manual.name) + _text(manual.synopsis.removeprefix(manual.name)),
            ".SH DESCRIPTION",
            "\n.PP\n".join(map(_text, manual.description or [manual.summary])),
            *_list("Examples", [(example, "") for example in manual.examples]),
            *(line for heading, rows in manual.lists.items() for line in _list(heading, rows)),
            *([".SH SEE ALSO", _text(related)] if related else []),
            "",
        ]
    )


def _list(heading: str, rows: list[tuple[str, str]]) -> list[str]:
    items = [f".TP\n{_bold(name)}\n{_text(meaning)}".rstrip() for name, meaning in rows]
    return [f".SH {heading.upper()}", *items] if items else []


def _bold(text: str) -> str:
    return rf"\fB{_text(text)}\fR"


def _text(text: str) -> str:
    """Text as troff takes it: nothing in it is a request, and a hyphen can be searched for and copied."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("`", "")
    return re.sub(r"(?m)^(?=[.'])", r"\\&", text)
