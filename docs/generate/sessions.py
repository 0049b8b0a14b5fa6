"""Pages that show what commands print."""

import os
import re
import shutil
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.inspection.explain.coverage import coverage_table

from .app import run_ckpt
from .places import DOCS, README, ROOT

RUNBOOK = DOCS / "runbooks" / "async-gap.md"
AT_ROOT = (
    README,
    *(DOCS / f"{name}.md" for name in ("quickstart", "explain", "export", "state", "rewind", "skip", "offsets")),
    *(DOCS / "runbooks" / f"{name}.md" for name in ("handoff", "changelog", "provider")),
)
SAMPLE = ROOT / "sample_checkpoints" / "async-kafka-4.2"
WRITTEN = RUNBOOK.with_suffix("")  # the batches that the query wrote when it was started, as Spark left them
STARTED = "checkpoints/orders"  # the checkpoint that the runbook starts the query on
_COVERAGE = re.compile(r"^\| family \|.*?^Not known: [^\n]*", re.M | re.S)
_BLOCK = re.compile(r"```console\n\$ (?P<words>(?:ckpt|spark-submit) [^\n]*)\n.*?```", re.S)


def at_root(page: Path) -> str:
    """README.md, or a page on bundled checkpoints, with the output of its commands as it is now.

    Output that ends in a line of "..." keeps its number of lines.
    """
    text = _COVERAGE.sub(lambda _: coverage_table(), page.read_text(encoding="utf-8"))
    with chdir(ROOT):
        return _BLOCK.sub(lambda block: _shown(block, run_ckpt(block["words"])), text)


def _shown(block: re.Match[str], output: str) -> str:
    shown, lines = block[0].splitlines()[2:-1], output.rstrip().splitlines()
    if shown[-1:] == ["..."]:
        lines = [*lines[: len(shown) - 1], "..."]
    return "\n".join(["```console", f"$ {block['words']}", *lines, "```"])


def runbook(start: Callable[[Path], str] | None = None) -> str:
    """The runbook with the current output of its commands.

    Args:
        start: Starts the query on a checkpoint and returns what to show of it. Without it that part of the page stays
            as it is, and the checkpoint gets the files that the query wrote when the page was last generated with it.

    """

    def filled(block: re.Match[str]) -> str:
        if not block["words"].startswith("spark-submit"):
            return _shown(block, run_ckpt(block["words"]))
        if start:
            return _shown(block, start(Path(STARTED).absolute()))
        if "Exception" not in block[0]:
            shutil.copytree(WRITTEN, STARTED, dirs_exist_ok=True)
        return block[0]

    page = RUNBOOK.read_text(encoding="utf-8")
    with TemporaryDirectory() as scratch, chdir(scratch):
        for name in ("orders", "clicks", "payments"):
            shutil.copytree(SAMPLE, Path("checkpoints", name))
        for commit in (".31.crc", "31"):
            Path("checkpoints/clicks/commits", commit).unlink()
        for file in Path("checkpoints").rglob("*"):
            os.utime(file, (0, 0))
        return _BLOCK.sub(filled, page)
