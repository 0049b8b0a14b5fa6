"""A hook of MkDocs (``mkdocs.yml``): long names in the tables of the site get places where a line may end."""

import re
from typing import Any

_CELL = re.compile(r"<td\b[^>]*>.*?</td>", re.S)
_CODE = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
_NAME = re.compile(r"[\w.&;/-]{16,}")  # what is longer than a column of a narrow table
_LISTS = re.compile(r"\w+(?:\[\]){2,}")  # a browser would end a line between "[]" and "[]"


def on_page_content(html: str, **_: Any) -> str:
    """Return a page with such places in its tables."""
    return _CELL.sub(lambda cell: _CODE.sub(lambda code: break_names(code[0]), cell[0]), html)


def break_names(text: str) -> str:
    """Let a line end after each ``_``, ``.`` and ``/`` of a long name.

    >>> break_names("MISSING_FILE.OF_STATE in 1.2.3")
    'MISSING_<wbr>FILE.<wbr>OF_<wbr>STATE in 1.2.3'
    >>> break_names("batches[][]")
    '<span style="white-space: nowrap">batches[][]</span>'
    """
    places = _NAME.sub(lambda name: re.sub(r"([_./])(?=\w)", r"\1<wbr>", name[0]), text)
    return _LISTS.sub(r'<span style="white-space: nowrap">\g<0></span>', places)
