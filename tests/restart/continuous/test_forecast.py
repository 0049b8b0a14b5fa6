"""Every recorded start with a continuous trigger is compared with the forecast, and its rows counted one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ckpt.checkpoint.reader import open_checkpoint
from ckpt.restart.findings import Outcome
from ckpt.restart.rules import forecast
from ckpt.versions import Progress, Spark
from tests.restart.continuous.cases import CASES
from tests.restart.continuous.record import ANSWERS, SUITE
from tests.restart.oracle.cases import Case
from tests.support.spark import mutations

RECORDED: dict[str, Any] = {minor.value: ANSWERS.read(minor)["answers"] for minor in Spark}
TOTAL = 100  # offsets of each partition
UNDECIDED = {
    "planned-empty": "Spark waits, and writes no epoch",
}


@pytest.mark.parametrize("case", [case for case in CASES if case.name != "new-counts"], ids=lambda case: case.name)
def test_the_forecast_is_what_spark_did(case: Case, tmp_path: Path) -> None:
    folder = mutations.copy_of(case.folder, tmp_path / "checkpoint", case.mutations)
    checkpoint = open_checkpoint(str(folder))
    wrong = {}
    for minor, recorded in RECORDED.items():
        answer = recorded[case.name]
        assert answer["of"] == SUITE.fingerprint(case)
        told = forecast(checkpoint, Spark(minor), Progress.CONTINUOUS)
        if answer["outcome"] == "timeout":
            assert any(part in case.name for part in UNDECIDED)
            assert told.outcome is Outcome.UNKNOWN
        elif told.outcome.runs:
            begins: Any = told.sources[0].start if told.sources else None
            expected = {"outcome": "resumes", "epoch": told.batch_id, "rows": _expect_rows(case, begins)}
            if expected != {key: answer[key] for key in expected}:
                wrong[minor] = str((expected, answer))
        elif answer["outcome"] != "fails-at-start" or not _is_in(told.error, answer["error"]):
            wrong[minor] = str((told.outcome, told.error, answer))
    assert wrong == {}


def _expect_rows(case: Case, begins: Any) -> dict[str, list[int]] | None:
    """From the first offset to the last, each once."""
    if case.query != "kafka-orders":
        return None
    firsts = begins["orders"] if begins else {"0": 0, "1": 0}
    return {part: [first, TOTAL - first, TOTAL - first] for part, first in firsts.items()}


def _is_in(words: str | None, lines: list[str]) -> bool:
    return words is None or any(words in line for line in lines)


def test_a_query_with_state_is_refused() -> None:
    assert {answers["new-counts"]["outcome"] for answers in RECORDED.values()} == {"fails-at-start"}


def test_enough_is_recorded() -> None:
    assert len(CASES) >= 24
    assert Outcome.RESUMES.value in {answer["outcome"] for answer in RECORDED["4.3"].values()}
