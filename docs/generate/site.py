"""A Markdown extension of the site (``zensical.toml``): codes and commands are links, long names in tables can break.

The links are not in the Markdown, which is read in the repository and by ``ckpt``'s own tests too.
"""

import re
from functools import cache
from pathlib import Path

from markdown import Markdown
from markdown.extensions import Extension
from markdown.postprocessors import Postprocessor
from pymdownx.slugs import slugify

DOCS = Path(__file__).parent.parent
_UNTOUCHED = re.compile(r"<(a|pre|h[1-6])\b.*?</\1>", re.S)
_CELL = re.compile(r"<td\b[^>]*>.*?</td>", re.S)
_CODE = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
_BLOCK_OR_CODE = re.compile(r"(<pre\b.*?</pre>)|<code>.*?</code>", re.S)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")  # a browser would end a line after each "-"
_NAMED = re.compile(r"<code>(?:(CKPT\d{3})\b|(ckpt [a-z-]+(?: [a-z-]+)?))[^<]*</code>|\b(CKPT\d{3})\b")
_NAME = re.compile(r"[\w.&;/-]{16,}")  # what is longer than a column of a narrow table
_JSON = re.compile(r'[{\[](?:"|&quot;)|:\[|&lt;')  # also a name with a placeholder, such as ".<file>.crc"
_UNBROKEN = '<span style="white-space: nowrap">{}</span>'
_LISTS = re.compile(r"\w+(?:\[\]){2,}")  # a browser would end a line between "[]" and "[]"


class SiteExtension(Extension):
    """Links and places for line ends, put into the HTML of a page."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register it after all that makes HTML."""
        md.postprocessors.register(_Site(md), "site", 0)


class _Site(Postprocessor):
    def run(self, text: str) -> str:
        assert self.md
        pages = (processor.page for processor in self.md.preprocessors if hasattr(processor, "page"))  # Zensical's
        return site_html(text, next((page.path for page in pages), "index.md"))


def site_html(html: str, page: str) -> str:
    """Return the HTML of ``page``, its path below ``docs/``, with links and places for line ends."""
    up = "../" * page.count("/")
    linked, end = [], 0
    for untouched in _UNTOUCHED.finditer(html):
        linked += [link_names(html[end : untouched.start()], up), untouched[0]]
        end = untouched.end()
    html = "".join([*linked, link_names(html[end:], up)])
    html = _CELL.sub(lambda cell: _CODE.sub(lambda code: break_names(code[0]), cell[0]), html)
    return _BLOCK_OR_CODE.sub(lambda found: found[1] or _OPTION.sub(_UNBROKEN.format(r"\g<0>"), found[0]), html)


def link_names(html: str, up: str = "") -> str:
    """Make each code of a finding, and each command, a link.

    >>> link_names("see <code>ckpt scan</code>")
    'see <a href="commands.html#ckpt-scan"><code>ckpt scan</code></a>'
    """
    return _NAMED.sub(lambda named: _linked(named, up), html)


def _linked(named: re.Match[str], up: str) -> str:
    code, command = named[1] or named[3], named[2]
    words = [code] if code else [command, command.rsplit(" ", 1)[0]]
    page = "findings" if code else "commands"
    target = next((_headings(page)[word] for word in words if word in _headings(page)), None)
    return f'<a href="{up}{page}.html#{target}">{named[0]}</a>' if target else named[0]


@cache
def _headings(page: str) -> dict[str, str]:
    """The anchors of a page: by the code or the command that a heading begins with."""
    titles = re.findall(r"^###? (.+)$", (DOCS / f"{page}.md").read_text(), re.M)
    anchor = slugify(case="lower")
    return {(title.split()[0] if title.startswith("CKPT") else title): anchor(title, "-") for title in titles}


def break_names(text: str) -> str:
    """Let a line end after each ``_``, ``.`` and ``/`` of a long name, and in JSON after each comma and colon.

    >>> break_names("MISSING_FILE.OF_STATE in 1.2.3")
    'MISSING_<wbr>FILE.<wbr>OF_<wbr>STATE in 1.2.3'
    >>> break_names("batches[][]")
    '<span style="white-space: nowrap">batches[][]</span>'
    """
    return re.sub(r"\S+", lambda word: _break_word(word[0]), text)


def _break_word(word: str) -> str:
    if _JSON.search(word):
        return "<wbr>".join(_UNBROKEN.format(part) for part in re.split(r"(?<=[,:/])(?!$)", word))
    places = _NAME.sub(lambda name: re.sub(r"([_./])(?=\w)", r"\1<wbr>", name[0]), word)
    return _LISTS.sub(lambda name: _UNBROKEN.format(name[0]), places)


def makeExtension(**_: object) -> SiteExtension:
    """Return the extension for Markdown."""
    return SiteExtension()
