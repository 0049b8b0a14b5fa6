"""The page in a real browser: nothing runs, nothing is wider than the window, and it is dark where that is wanted."""

import html
import json
import re
import shutil
import subprocess
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ckpt import scan
from commands.render.page import plot
from tests.support.cli import invoke
from tests.support.places import HERE
from tests.webpage.shapes import SHAPES

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTHS = (400, 800, 1280)
MEASURE = """<script>onload = () => {
  const said = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument, body = page.body
    return {width: page.documentElement.scrollWidth, paper: getComputedStyle(body).backgroundColor,
      shown: page.querySelector("main").innerText,
      plots: page.querySelectorAll("svg").length, scripts: page.querySelectorAll("script,img").length,
      aside: Math.max(0, ...[...page.querySelectorAll(".wide")].map(e => e.scrollWidth - e.clientWidth)),
      low: Math.min(99, ...[...page.querySelectorAll("p,td,dd,li")].map(e => parseFloat(getComputedStyle(e).fontSize)))}
  })
  document.body.textContent = "MEASURED" + JSON.stringify(said) + "END"
}; window.alert = () => { document.title = "ALERT" }</script>"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here: apt install chromium"),
]


def measured(page: str, folder: Path, *, dark: bool, fragment: str = "") -> list[dict[str, Any]]:
    """What the browser makes of a page in windows of several widths."""
    framed = folder / "page.html"
    framed.write_text(page)
    frames = "".join(
        f'<iframe src="page.html{fragment}" style="border:0;width:{width}px;height:900px"></iframe>' for width in WIDTHS
    )
    return measure_in_browser(f"<!DOCTYPE html><meta charset=utf-8><body>{frames}{MEASURE}", folder, dark=dark)


def measure_in_browser(page: str, folder: Path, *, dark: bool) -> list[dict[str, Any]]:
    """What the script of a page says of it in the browser."""
    wrapper = folder / "frames.html"
    wrapper.write_text(page)
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    assert BROWSER
    words = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", scheme, f"--user-data-dir={folder}/profile"]
    words.append("--allow-file-access-from-files")  # the wrapper looks into its frames
    done = subprocess.run(
        [*words, "--dump-dom", wrapper.as_uri()], capture_output=True, text=True, timeout=400, check=True
    )
    said = re.search("MEASURED(.*)END", done.stdout)
    assert said, done.stderr[-2000:]
    assert "ALERT" not in done.stdout
    found: list[dict[str, Any]] = json.loads(html.unescape(said[1]))
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_a_page_fits_its_window(shape: str, tmp_path: Path) -> None:
    (tmp_path / "ck").mkdir()
    page = plot(SHAPES[shape](tmp_path / "ck"))
    for width, found in zip(WIDTHS, measured(page, tmp_path, dark=shape == "gapped"), strict=True):
        assert found["width"] <= width, f"at {width}"
        assert found["plots"] == page.count("<svg")
        assert found["scripts"] == 0
        assert found["low"] >= 12
        assert (found["paper"] == "rgb(255, 255, 255)") != (shape == "gapped")


@cache
def scan_samples() -> str:
    """The page of a scan of all samples."""
    with chdir(HERE):
        return invoke("scan", "sample_checkpoints", "-o", "html").stdout


def test_the_page_of_a_scan_shows_every_column_on_a_phone(tmp_path: Path) -> None:
    page = scan_samples()
    found = measured(page, tmp_path, dark=False)
    assert all(one["width"] <= width for one, width in zip(found, WIDTHS, strict=True))
    assert [one["aside"] for one in found] == [0, 0, 0]
    assert 'data-head="verdict"' in page
    for one in found:
        assert "WITH ERRORS, " in one["shown"]
        assert "Will not restart" in one["shown"]
        assert "The next start" not in one["shown"]


def test_a_link_of_a_scan_shows_the_page_of_its_checkpoint_alone(tmp_path: Path) -> None:
    page = scan_samples()
    (link,) = re.findall('<a href="(#[^"]+)">async-kafka-4.2</a>', page)
    for width, found in zip(WIDTHS, measured(page, tmp_path, dark=True, fragment=link), strict=True):
        assert found["width"] <= width
        assert found["shown"].startswith("All checkpoints\n")
        assert "Will not restart without asynchronous progress tracking" in found["shown"]
        assert "WITH ERRORS, " not in found["shown"]
        assert found["shown"].count("The next start") == 1


LIGHT, DARK = "rgb(255, 255, 255)", "rgb(18, 22, 28)"
NOTEBOOKS = {
    'data-jp-theme-light="true"': LIGHT,
    'data-jp-theme-light="false"': DARK,
    'class="vscode-light"': LIGHT,
    'class="vscode-dark"': DARK,
    'class="vscode-high-contrast"': DARK,
    'class="vscode-high-contrast vscode-high-contrast-light"': LIGHT,
    'theme="dark"': DARK,
}
LOOK = """<script>onload = () => {
  const said = [...document.querySelectorAll("body > div")].map(cell => ({
    paper: getComputedStyle(cell.querySelector(".ckpt")).backgroundColor, wide: cell.scrollWidth - cell.clientWidth,
    aside: Math.max(0, ...[...cell.querySelectorAll(".wide")].map(e => e.scrollWidth - e.clientWidth))}))
  document.body.textContent = "MEASURED" + JSON.stringify(said) + "END"
}</script>"""


@pytest.mark.parametrize("dark", [False, True])
def test_in_a_notebook_it_has_the_theme_and_fits_the_cell(dark: bool, tmp_path: Path) -> None:
    part = scan("sample_checkpoints")._repr_html_()
    cells = "".join(
        f'<div {theme} style="width:{width}px">{part}</div>' for theme in (*NOTEBOOKS, "") for width in (350, 700, 950)
    )
    found = measure_in_browser(f"<!DOCTYPE html><meta charset=utf-8><body>{cells}{LOOK}", tmp_path, dark=dark)
    assert [one["paper"] for one in found[::3]] == [*NOTEBOOKS.values(), DARK if dark else LIGHT]
    assert {(one["wide"], one["aside"]) for one in found} == {(0, 0)}
