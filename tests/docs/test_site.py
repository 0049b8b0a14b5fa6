"""The site as it is built: no raw Markdown, no dead link; every page in a real browser."""

import html
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from docs.generate.places import DOCS
from docs.generate.site import break_names, link_names, site_html
from tests.support.places import ROOT
from tests.webpage.test_browser import BROWSER, measure_in_browser

WIDTHS = (390, 1280)
MEASURE = """<script>onload = () => {
  const said = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument, broken = []
    for (const code of page.querySelectorAll("td code"))
      for (const texts = page.createTreeWalker(code, NodeFilter.SHOW_TEXT); texts.nextNode();)
        for (const word of texts.currentNode.nodeValue.matchAll(/[^\\s-]+/g)) {
          const node = texts.currentNode, range = page.createRange()
          range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length)
          if (new Set([...range.getClientRects()].map(r => r.top)).size > 1) broken.push(word[0])
      }
    return {width: page.documentElement.scrollWidth, broken, codes: page.querySelectorAll("td code").length}
  })
  document.body.textContent = "MEASURED" + JSON.stringify(said) + "END"
}</script>"""


def test_codes_and_commands_are_links_and_long_names_in_tables_can_break() -> None:
    assert break_names("--accept-skip in 1.2.3") == "--accept-skip in 1.2.3"
    assert site_html("<p><code>ckpt nothing --to-batch 5</code></p>", "scan.md") == (
        '<p><code>ckpt nothing <span style="white-space: nowrap">--to-batch</span> 5</code></p>'
    )
    outside = "<p><code>CANNOT_LOAD_STATE_STORE</code></p>"
    assert site_html(outside, "scan.md") == outside
    assert re.sub("<[^>]+>", "|", break_names('{"a":1,"b":2}')) == '|{"a":|||1,|||"b":|||2}|'
    assert "CANNOT_<wbr>LOAD_<wbr>STATE_<wbr>STORE" in site_html(
        f"<table><tr><td>{outside}</td></tr></table>", "scan.md"
    )
    linked = '<a href="../findings.html#ckpt304-state-folder-missing">CKPT304</a>'
    assert site_html("<p>CKPT304</p>", "runbooks/move.md") == f"<p>{linked}</p>"
    assert (
        link_names("<code>CKPT999</code>, <code>ckpt nothing</code>")
        == "<code>CKPT999</code>, <code>ckpt nothing</code>"
    )
    for kept in ("<pre><code>ckpt inspect CP</code></pre>", linked, '<h2 id="x">CKPT304</h2>'):
        assert site_html(kept, "scan.md") == kept


def test_what_is_in_a_list_is_indented_by_four_spaces() -> None:
    """With less, GitHub keeps it in the list, and the site ends the list there and numbers the rest from 1."""
    flat = [
        f"{page.name}: {line}"
        for page in DOCS.rglob("*.md")
        for line in re.findall(
            r"^ {1,3}(?:```|[-*] |\d+\. ).*", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.M
        )
    ]
    assert flat == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built: a folder of pages."""
    project = tmp_path_factory.mktemp("project")
    shutil.copytree(DOCS, project / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "zensical.toml", project)
    build = [sys.executable, "-m", "zensical", "build", "--strict"]
    subprocess.run(build, cwd=project, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True, timeout=300)
    return project / "site"


class Read(HTMLParser):
    """A page as a browser reads it: its text outside of code, its anchors, its links."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.code, self.text, self.anchors, self.links = 0, list[str](), set[str](), set[str]()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.code += tag in ("code", "pre", "script", "style")
        self.anchors |= {known.get("id") or ""}
        self.links |= {known[key] for key in ("href", "src") if known.get(key)}  # type: ignore[misc]

    def handle_endtag(self, tag: str) -> None:
        self.code -= tag in ("code", "pre", "script", "style")

    def handle_data(self, data: str) -> None:
        if not self.code:
            self.text.append(data)


@pytest.mark.slow
def test_no_page_shows_raw_markdown_and_each_link_leads_somewhere(site: Path) -> None:
    pages = {page: Read(page) for page in site.rglob("*.html") if page.name != "404.html"}
    assert len(pages) > 40
    raw = [
        (str(page.relative_to(site)), text.strip())
        for page, read in pages.items()
        for text in read.text
        if re.search(r"\]\(|\*\*\w|```|^\s*\|[-| ]+\||^#+ |<div", text)
    ]
    assert raw == []
    lost = []
    for page, read in pages.items():
        for link in read.links:
            address, _, anchor = link.partition("#")
            target = (page.parent / address).resolve() if address else page
            if ":" in address:
                continue
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors):
                lost.append((str(page.relative_to(site)), link))
    assert lost == []


@pytest.mark.slow
def test_a_newcomer_is_two_clicks_from_an_answer(site: Path) -> None:
    """The questions, clicks and answers of docs/evidence/ckpt.md, from the text of the front page."""
    asked = re.findall(
        r"^\| ([^|]+\?) \| ([12]) \| \[[^]]+\]\(\.\./([\w/.-]+)\.md(#[\w-]+)?\) \| `([^`]+)`",
        (DOCS / "evidence" / "ckpt.md").read_text(),
        re.MULTILINE,
    )
    assert len(asked) == 12
    article = re.search("<article.*?</article>", (site / "index.html").read_text(), re.S)
    assert article
    front = {*re.findall('href="([^"]+)"', article[0])}
    for question, clicks, page, anchor, command in asked:
        answer = (site / f"{page}.html").read_text()
        if clicks == "1":
            assert f"{page}.html{anchor}" in front, question
        else:
            assert f"{page}.html" in front, question
            assert f'href="{anchor}"' in answer, question  # of "On this page"
        assert command in html.unescape(re.sub("<[^>]+>", "", answer)), question


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here: apt install chromium")
def test_no_page_is_too_wide_and_code_in_tables_is_not_broken(site: Path, tmp_path: Path) -> None:
    shutil.copytree(site, tmp_path / "site")
    pages = sorted(str(page.relative_to(site)) for page in site.rglob("*.html") if page.name != "404.html")
    measure(tmp_path, pages)


def measure(folder: Path, pages: list[str]) -> None:
    """Show all pages at once, in one browser, as frames whose scripts do not run."""
    shown = [(page, width) for page in pages for width in WIDTHS]
    frames = "".join(
        f'<iframe src="site/{page}" sandbox="allow-same-origin" style="border:0;width:{width}px;height:900px"></iframe>'
        for page, width in shown
    )
    page = f"<!DOCTYPE html><meta charset=utf-8><body>{frames}{MEASURE}"
    measured = measure_in_browser(page, folder, dark=False)
    assert sum(one["codes"] for one in measured) > 1000
    ugly = [
        (page, width, one["width"], one["broken"])
        for (page, width), one in zip(shown, measured, strict=True)
        if one["width"] > width or one["broken"]
    ]
    assert ugly == []
