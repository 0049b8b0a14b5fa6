"""The first lines of a page have the outcome, the cause with its file and the command; and a page is short."""

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import ckpt as library
from ckpt.advice.spelling import SHELL
from ckpt.advice.words import speaking
from ckpt.inspection.inspection import Inspection
from commands.render.layout import PageLayout
from commands.render.page import InspectionReport
from tests.conftest import Ckpt
from tests.restart.oracle.cases import CASES
from tests.restart.oracle.cases.model import delete
from tests.support.places import SAMPLE_NAMES, SAMPLES
from tests.support.spark import mutations
from tests.support.spark.live import EVERY_CASE

LONG = 40
"""A path so long has a line of its own, beside the three: a state file with a unique id."""

_EACH = 1 if EVERY_CASE else 24
"""Of the damages of the oracle those that are tried: 1,647 pages take minutes."""

OUTCOMES = ("WILL NOT RESTART", "RESTARTS", "STARTS FRESH", "UNKNOWN")


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
    inspection = library.inspect(str(checkpoint))
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


def _names_outcome_cause_and_command(shown: Shown) -> bool:
    cause, first = shown.inspection.cause, shown.first
    assert cause is not None
    text = " ".join(line.strip() for line in first)
    lines = 3 if len(cause.file) <= LONG else 5
    command = shown.command
    todo = f"  {command}" in first if command else len(first) > 1
    in_verdict = cause.words in shown.inspection.verdict and cause.file in text
    return text.startswith(OUTCOMES) and in_verdict and todo and len(first) <= lines


LAWS: dict[str, Callable[[Shown], bool]] = {
    "outcome, cause and command": lambda shown: shown.inspection.sound or _names_outcome_cause_and_command(shown),
    "at most 40 lines": lambda shown: len(shown.wide) <= 40,
    "healthy, at most 24": lambda shown: not shown.inspection.sound or len(shown.wide) <= 24,
    "nothing is lost at 40 columns": lambda shown: (
        "".join(shown.narrow[: shown.narrow.index("")]).replace(" ", "") == "".join(shown.first).replace(" ", "")
    ),
    "nothing is too long at 40 columns": lambda shown: all(
        len(line) <= 40 or len(line.split()) == 1 or line.strip() == shown.command
        for line in shown.narrow[: shown.narrow.index("")]
    ),
}


def _broken() -> list[tuple[str, str]]:
    return [(law, shown.name) for shown in show_all(_EACH) for law, holds in LAWS.items() if not holds(shown)]


@pytest.mark.slow
def test_many_damages_keep_the_laws_of_a_page() -> None:
    assert sum(1 for _ in damaged()) > 1_000
    assert _broken() == []


def test_a_law_can_be_broken() -> None:
    shown = show("damaged-missing-sst", SAMPLES / "damaged-missing-sst")
    buried = Shown(shown.name, shown.inspection, ["RESTARTS", "", *shown.wide, *shown.wide], ["x" * 41 + " y", ""])
    assert [law for law, holds in LAWS.items() if not holds(buried)] == [
        "outcome, cause and command",
        "at most 40 lines",
        "nothing is lost at 40 columns",
        "nothing is too long at 40 columns",
    ]


def test_more_is_shown_where_it_is_asked_for(ckpt: Ckpt) -> None:
    brief, full = (ckpt("inspect", "sample_checkpoints/aggregation-hdfs-4.2", *more).stdout for more in ((), ("-v",)))
    assert len(full.splitlines()) > len(brief.splitlines())
    for text in ("committed    source 0", "      value   ", "refused: asynchronous tracking"):
        assert (text in brief, text in full) == (False, True), text
    assert "CKPT208" not in full, "every stateful checkpoint has it"


def test_the_cause_is_data_too(ckpt: Ckpt, copy_of: Callable[..., object]) -> None:
    told = ckpt("inspect", copy_of("stateless-4.2", *delete("offsets/4")), "-o", "json").json()
    assert told["cause"] == {"code": "CKPT202", "file": "offsets/4", "words": "offsets/4 was lost or removed"}
    assert told["cause"]["words"] in told["verdict"]
    assert ckpt("inspect", "sample_checkpoints/stateless-4.2", "-o", "json").json()["cause"] is None


def test_a_stateless_crash_says_nothing_of_state_that_is_lost(ckpt: Ckpt) -> None:
    page = ckpt("inspect", "sample_checkpoints/stateless-killed-3.5").stdout
    assert "fails every time and the query is stateless" in " ".join(page.split())
    assert "state is lost" not in page


@pytest.mark.parametrize("command", [["preflight"], ["repair"]])
def test_other_pages_begin_with_them_too(command: list[str], ckpt: Ckpt) -> None:
    first = ckpt(*command, "sample_checkpoints/damaged-missing-sst").stdout.split("\n\n")[0]
    assert first.startswith(("HOLD: ", "A PLAN, nothing is changed yet: "))
    assert "missing or damaged SST file" in first
    assert "\n  ckpt repair sample_checkpoints/damaged-missing-sst" in first
    if command == ["repair"]:
        assert "Rows are read again: first read" in first
