"""What was promised of set offsets and copies against what each Spark version did: every recorded answer.

Where the first batch begins and ends is compared with what was asked for, not only with what ckpt said of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ckpt.checkpoint.reader import read_checkpoint
from ckpt.inspection.inspection import inspect
from ckpt.restart.findings import Forecast
from ckpt.storage import open_storage
from ckpt.versions import Progress, Spark
from tests.changes.offsets.oracle import record
from tests.changes.offsets.oracle.cases import COPY, Question, logged, questions
from tests.restart.oracle import answers as oracle
from tests.restart.oracle.cases.model import latest
from tests.restart.oracle.starts import continue_on
from tests.restart.oracle.test_forecast import disagreements
from tests.restart.oracle.test_live import essence
from tests.support.spark.live import Here

RECORDED = {minor: record.SUITE.recorded(minor) for minor in oracle.VERSIONS}
LIVE = (
    "stateless-3.5/back",
    "aggregation-hdfs-3.5/uncommitted-ahead",
    "aggregation-changelog-4.0/uncommitted-back",
    "join-hdfs-3.5/ahead",
    "tws-changelog-4.0/copy",
    "aggregation-format2-4.2/copy",
)


def _recorded() -> Iterator[Any]:
    for minor, answers in RECORDED.items():
        for question in record.SUITE.cases(minor):
            yield pytest.param(question, minor, answers[question.name], id=f"{question.name}-{minor}")


def promised(question: Question, minor: str, folder: Path) -> Forecast:
    """What ckpt says of a synchronous start."""
    question.made(folder)
    forecasts = inspect(read_checkpoint(open_storage(str(folder / "ck")))).forecasts
    return next(f for f in forecasts if (f.spark, f.progress) == (Spark(minor), Progress.SYNC))


def begins_wrong(question: Question, answer: dict[str, Any]) -> list[str]:
    """In what the first batch is not the one that was asked for; it is one of those that run."""
    first, last = answer["first"], latest(question.sample)
    seen = [one["from"] for one in first["sources"]], [one["to"] for one in first["sources"]]
    again = question.what.startswith("uncommitted")
    batch, place = (last, 1) if again else (last + 1, 0)
    wanted = logged(question.sample, last) if question.what == COPY else question.to
    found = [f"batch {first['batch']}"] if first["batch"] != batch else []
    return found + [f"{seen[place]} without {wanted}"] * (wanted not in seen[place])


@pytest.mark.slow
@pytest.mark.parametrize(("question", "minor", "answer"), list(_recorded()))
def test_the_first_batch_is_the_one_that_was_set(
    question: Question, minor: str, answer: dict[str, Any], tmp_path: Path
) -> None:
    assert disagreements(promised(question, minor, tmp_path / "made"), answer["first"]) == []
    if answer["first"]["outcome"] == "resumes":
        assert begins_wrong(question, answer) == []
        assert answer["then"]["outcome"] == "resumes", "and it does no harm later"


def test_most_answers_are_of_queries_that_run() -> None:
    outcomes = [one["first"]["outcome"] for answers in RECORDED.values() for one in answers.values()]
    assert outcomes.count("resumes") > len(outcomes) * 3 // 4


@pytest.mark.spark
@pytest.mark.parametrize("name", LIVE)
def test_some_are_asked_again(name: str, spark: Any, tmp_path: Path) -> None:
    here = Here(spark, continue_on)
    minor = ".".join(here.spark.split(".")[:2])
    if minor not in oracle.VERSIONS:
        pytest.skip(f"no answers are recorded for Spark {minor}")
    (question,) = (one for one in questions() if one.name == name)
    answer = record.SUITE.ask(here, question, tmp_path / "made")
    assert essence(answer["first"]) == essence(RECORDED[minor][name]["first"])
    assert answer["then"]["outcome"] == "resumes"
