"""The first lines of the page of every sample, and of every damage of the oracle: what a tired person reads first.

python -m tests.inspection.first_lines

prints them as a table: name, lines at 80 columns, and the lines up to the blank one.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import ckpt
from ckpt.advice.spelling import SHELL
from ckpt.advice.words import speaking
from ckpt.inspection.inspection import Inspection
from commands.render.layout import PageLayout
from commands.render.page import InspectionReport
from tests.restart.oracle.cases import CASES
from tests.support.places import SAMPLE_NAMES, SAMPLES
from tests.support.spark import mutations


@dataclass(frozen=True)
class Shown:
    """A checkpoint and its page."""

    name: str
    inspection: Inspection
    wide: list[str]  # its lines at 80 columns
    narrow: list[str]  # at 40

    @property
    def first(self) -> list[str]:
        """The lines up to the blank one."""
        return self.wide[: self.wide.index("")]

    @property
    def command(self) -> str | None:
        """The command of the first step."""
        steps = self.inspection.advice.steps
        line = steps[0].line if steps else None
        with speaking(SHELL):
            return None if line is None else line.spell(SHELL)


def show(name: str, checkpoint: Path) -> Shown:
    """Inspect a checkpoint, as ``ckpt inspect`` does."""
    inspection = ckpt.inspect(str(checkpoint))
    with speaking(SHELL):
        page = InspectionReport(inspection).page()
        wide, narrow = (PageLayout(width).text(page).splitlines() for width in (80, 40))
    return Shown(name, inspection, wide, narrow)


def damaged(each: int = 1) -> Iterator[tuple[str, Path, list[mutations.Mutation]]]:
    """Each damage of the oracle once, or each one of some: its name, its sample and what is done to that."""
    seen = set()
    for case in CASES:
        key = case.sample, json.dumps(case.mutations, sort_keys=True)
        if key not in seen and case.folder.is_dir():
            seen.add(key)
            if not len(seen) % each:
                yield case.name, case.folder, list(case.mutations)


def show_all(each: int = 1) -> Iterator[Shown]:
    """All samples, or every fourth, and damages of the oracle."""
    for name in SAMPLE_NAMES[:: 1 if each == 1 else 4]:
        yield show(name, SAMPLES / name)
    for name, sample, done in damaged(each):
        with tempfile.TemporaryDirectory() as folder:
            yield show(name, mutations.copy_of(sample, Path(folder) / "cp", done))


if __name__ == "__main__":
    for shown in show_all():
        sys.stdout.write(f"{shown.name}\t{len(shown.wide)}\t" + " | ".join(line.strip() for line in shown.first) + "\n")
