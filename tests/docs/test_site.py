"""The site in a real browser: code in tables ends a line only where a word or a part of a name does."""

import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from docs.generate.site import break_names, on_page_content
from tests.support.places import ROOT
from tests.webpage.test_browser import BROWSER

WIDTHS = (390, 800, 1280)
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


def test_only_long_names_in_tables_get_places_where_a_line_may_end() -> None:
    assert break_names("CANNOT_LOAD_STATE_STORE.UNCATEGORIZED") == (
        "CANNOT_<wbr>LOAD_<wbr>STATE_<wbr>STORE.<wbr>UNCATEGORIZED"
    )
    assert break_names("--accept-skip in 1.2.3") == "--accept-skip in 1.2.3"
    outside = "<p><code>CANNOT_LOAD_STATE_STORE</code></p>"
    assert on_page_content(outside) == outside
    assert "<wbr>" in on_page_content(f"<table><tr><td>{outside}</td></tr></table>")


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here: apt install chromium")
def test_code_in_tables_is_not_broken_and_no_page_is_too_wide(tmp_path: Path) -> None:
    assert BROWSER
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    subprocess.run(build, cwd=ROOT, env=quiet, check=True, timeout=300)
    for page in ("incidents", "contract", "preflight"):
        assert measured(tmp_path, page, BROWSER), page


def measured(folder: Path, page: str, browser: str) -> bool:
    frames = "".join(
        f'<iframe src="site/{page}.html" style="border:0;width:{width}px;height:900px"></iframe>' for width in WIDTHS
    )
    wrapper = folder / "frames.html"
    wrapper.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{frames}{MEASURE}")
    words = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
    words += ["--allow-file-access-from-files", "--dump-dom", wrapper.as_uri()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=180, check=True)
    said = re.search("MEASURED(.*)END", done.stdout, re.S)
    assert said, done.stderr[-2000:]
    found: list[dict[str, Any]] = json.loads(html.unescape(said[1]))
    for width, one in zip(WIDTHS, found, strict=True):
        assert one["width"] <= width, f"{page} at {width}"
        assert one["codes"] > 5
        assert one["broken"] == [], f"{page} at {width}"
    return True
