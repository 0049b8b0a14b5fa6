"""The error with which a query ends that hit a known bug: ``ckpt explain`` names the bug."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import ckpt
from ckpt.inspection.bugs import known_bugs
from tests.inspection.bugs.connectors import FILE as CONNECTORS_FILE
from tests.inspection.bugs.record import read_answers

COMMON = {"SPARK-48481": "a lost file of state has the same text"}
NAMED_TUPLE = "    return type(v)(normalize_value(e) for e in v)\n"  # the line above the recorded one


def list_errors(answer: Any) -> Iterator[str]:
    """The recorded errors of runs of a query on a release that has its bug."""
    if isinstance(answer, dict):
        if answer.get("error") and "no transformWithState" not in answer["error"]:
            yield "\n\tat ".join((answer["error"], *(answer["frames"] or ())))
        for part in answer.values():
            yield from list_errors(part)


ANSWERS = {**read_answers(), **json.loads(CONNECTORS_FILE.read_text())}
ERRORS = {bug.id: errors for bug in known_bugs() if (errors := {*list_errors(ANSWERS[bug.id])})}


def test_errors_were_recorded() -> None:
    assert len(ERRORS) >= 10


@pytest.mark.parametrize("bug", [bug for bug in ERRORS if bug not in COMMON])
def test_the_error_of_a_bug_is_explained_by_its_name(bug: str) -> None:
    for error in ERRORS[bug] - {"None.get"}:  # which has no frame here
        text = NAMED_TUPLE + error if error.startswith("TypeError") else error
        assert bug in str(ckpt.explain(text).to_dict()), error


@pytest.mark.parametrize("bug", ["SPARK-46676", "SPARK-50492"])
def test_on_3_5_0_two_bugs_have_the_same_frame(bug: str) -> None:
    """Measured: the constructor looks for the column."""
    frame = "org.apache.spark.sql.execution.streaming.StreamingDeduplicateWithinWatermarkExec.<init>"
    text = f"java.util.NoSuchElementException: None.get\n\tat {frame}(statefulOperators.scala:1041)"
    assert bug in str(ckpt.explain(text).to_dict())
