"""The pictures in ``docs/images``: a page in a browser, and what commands print in a terminal.

``report.png`` needs Chromium and stays as it is without; no test compares it, as another Chromium draws the same page
with other bytes. The terminals are SVG, made of what the commands print, and the same each time.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from .app import run_ckpt
from .places import DOCS, ROOT

IMAGES = DOCS / "images"
PICTURE = IMAGES / "report.png"
SHOWN = "ckpt inspect sample_checkpoints/async-kafka-4.2 -o html"
SIZE = "820,1000"
FLEET = {
    "orders": "async-kafka-4.2",
    "payments": "stateless-4.2",  # its newest offsets are emptied
    "clicks": "aggregation-hdfs-4.2",
    "sessions": "session-window-changelog-4.2",
    "totals": "tws-changelog-4.0",
    "returns": "stateless-killed-3.5",
}
REPAIR = (  # each command, and the lines of its output that are shown
    ("ckpt inspect checkpoints/orders", 9),
    ("ckpt repair-async checkpoints/orders", 19),
    ("ckpt repair-async checkpoints/orders --apply", 19),
    ("ckpt inspect checkpoints/orders", 9),
)
FRAME_S, LINE, WIDE, LEFT, TOP = 6, 19, 8, 16, 42
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_COLORS = (
    (r"^\$ .*", "typed"),
    (r"\bWILL NOT RESTART\b|\bfails at start\b|\berror\b|\d+ WITH ERRORS", "bad"),
    (r"^(?:RESTARTS|REPAIRED)\b|\bresumes with new batch \d+", "good"),
    (r"\bwarning\b|\d+ WITH WARNINGS?", "warn"),
    (r"CKPT\d{3}|^ +ckpt .*|^[A-Z][a-z]+(?= {2,}|$)", "name"),
)
_PAINT = re.compile("|".join(f"(?P<{name}>{pattern})" for pattern, name in _COLORS), re.M)
_STYLE = """text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d6deeb;white-space:pre}
.typed{fill:#fff;font-weight:bold}.bad{fill:#ff7b72}.good{fill:#7ee787}.warn{fill:#e3b341}.name{fill:#79c0ff}"""


def take_pictures() -> None:
    """Write all."""
    for name, text in terminals().items():
        (IMAGES / name).write_text(text, encoding="utf-8")
    take_picture()


def take_picture() -> None:
    """Write the picture of the page, or say why not."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not chromium:
        print(f"{PICTURE.relative_to(ROOT)} stays as it is: Chromium is not installed")  # noqa: T201
        return
    with TemporaryDirectory() as scratch, chdir(ROOT):
        page = Path(scratch, "report.html")
        shown = run_ckpt(SHOWN).replace(f"{ROOT}/sample_checkpoints/", "/checkpoints/")  # not a path of this machine
        page.write_text(shown, encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={scratch}/profile"]
        shot = [f"--window-size={SIZE}", f"--screenshot={PICTURE}", page.as_uri()]
        subprocess.run([chromium, *options, *shot], check=True, capture_output=True, timeout=120)


def terminals() -> Mapping[str, str]:
    """The SVG of each terminal, by its name."""
    with _fleet():
        scan = draw([_screen("ckpt scan checkpoints", 40)])
        return {"scan.svg": scan, "repair.svg": draw([_screen(command, most) for command, most in REPAIR])}


@contextmanager
def _fleet() -> Iterator[None]:
    """A folder with copies of samples, whose files are as old in every run."""
    with TemporaryDirectory() as scratch, chdir(scratch):
        for name, sample in FLEET.items():
            shutil.copytree(ROOT / "sample_checkpoints" / sample, Path("checkpoints", name))
        Path("checkpoints/payments/offsets/5").write_text("")
        for file in Path("checkpoints").rglob("*"):
            os.utime(file, (0, 0))
        yield


def _screen(command: str, most: int) -> list[str]:
    """A command and the first lines of what it prints."""
    printed = run_ckpt(f"{command} --grace 0" if "--apply" in command else command).splitlines()
    if command.startswith("ckpt scan"):
        printed = [_TIME.sub("", line).rstrip() for line in printed]  # when the scan ended
    shown = "\n".join(printed[:most]).rstrip().split("\n")
    return [f"$ {command}", *shown, *(["..."] if len(printed) > most else [])]


def draw(screens: list[list[str]]) -> str:
    """Screens of text as one SVG; several are shown one after the other, the last where nothing moves."""
    height = TOP + LINE * max(map(len, screens))
    width = 2 * LEFT + WIDE * max(80, *(len(line) for screen in screens for line in screen))
    share = 100 / len(screens)
    moves = [
        f"@keyframes s{n}{{0%{{visibility:hidden}}{n * share:g}%{{visibility:visible}}"
        f"{(n + 1) * share:g}%{{visibility:hidden}}}}"
        f"#s{n}{{animation:s{n} {FRAME_S * len(screens)}s step-end infinite}}"
        for n in range(len(screens))
        if len(screens) > 1
    ]
    still = f"@media(prefers-reduced-motion:no-preference){{{''.join(moves)}}}" if moves else ""
    dots = "".join(f'<circle cx="{LEFT + 5 + 18 * n}" cy="16" r="5" fill="#4b5563"/>' for n in range(3))
    groups = "".join(_group(f"s{n}", screen, n == len(screens) - 1) for n, screen in enumerate(screens))
    title = escape(", then ".join(screen[0].removeprefix("$ ") for screen in screens))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">\n'
        f"<title>{title}</title>\n<style>{_STYLE}\n{still}</style>\n"
        f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>{dots}\n{groups}</svg>\n'
    )


def _group(name: str, screen: list[str], shown: bool) -> str:
    lines = "".join(
        f'<text x="{LEFT}" y="{TOP + LINE * n}" xml:space="preserve">{_painted(line)}</text>\n'
        for n, line in enumerate(screen)
        if line
    )
    return f'<g id="{name}"{"" if shown else " visibility=" + chr(34) + "hidden" + chr(34)}>\n{lines}</g>\n'


def _painted(line: str) -> str:
    return _PAINT.sub(lambda found: f'<tspan class="{found.lastgroup}">{found[0]}</tspan>', escape(line, quote=False))
