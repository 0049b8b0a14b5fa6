"""What ``ckpt preflight`` says of changed queries, against what each Spark version did at the start (`record.py`)."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.inspection.preflight import PlannedStart, Readiness, judge_start
from ckpt.query.description import parse_query
from tests.inspection.preflight import changes, record

UNKNOWABLE = {
    *("aggregation: aggregate type", "aggregation: aggregates swapped", "aggregation: dropped aggregate"),
    *("aggregation: key added", "aggregation: key dropped", "aggregation: key type"),
    *("aggregation: keys swapped", "aggregation: new aggregate", "dedup: column added"),
    *("dedup: column of another type", "dedup: within watermark", "groups: no timeout"),
    *("groups: state field added", "groups: state field type", "join: column added", "join: equality added"),
    *("join: full outer", "window: sliding window"),
}
"""Starts of Spark 3.5 that fail over state: it does not say what state a query keeps before it runs."""
SILENT = "CKPT445"
"""What Spark starts although it reads the wrong state: operators, in checkpoints that do not say what they are."""


def groups() -> list[tuple[str, str]]:
    """Versions, and the bases of which each has started changes."""
    return [(minor, base.name) for minor in record.SUITE.answers.minors for base in changes.bases(minor)]


@cache
def answers(minor: str) -> dict[str, Any]:
    recorded: dict[str, Any] = record.SUITE.answers.read(minor)["answers"]
    return recorded


def judged(minor: str, name: str, made: Any) -> tuple[Readiness, dict[str, Any]]:
    """What ckpt says with the description that this version wrote, and what was recorded."""
    told = answers(minor)[name]
    change = next(one for one in changes.CHANGES if one.id == name.partition(", made by ")[0])
    base = changes.BY_NAME[change.base]
    settings = {**base.settings, **change.conf}
    start = PlannedStart(ckpt.Spark(minor), settings, all_settings=True, query=parse_query(told["query"]))
    return judge_start(made(name.partition(", made by ")[2] or minor, base.name), start), told


def unseen(found: Readiness) -> bool:
    """Whether it says that the state could not be compared."""
    reasons = ("described with", "does not show", "has no schema")
    return any(reason in str(one) for one in found.unknown for reason in reasons)


@pytest.mark.parametrize(("minor", "base"), groups())
def test_the_command_says_what_the_start_did(minor: str, base: str, made: Any) -> None:
    for name in (one for one in answers(minor) if one.startswith(f"{base}: ")):
        found, told = judged(minor, name, made)
        started = told["spark"]["error"] is None
        silent = [one.finding.diagnosis.code for one in found.holds] == [SILENT]
        unknown = found.go and unseen(found)
        assert found.go == started or silent or unknown, (name, found.verdict, told["spark"])


@pytest.mark.parametrize("minor", record.SUITE.answers.minors)
def test_the_call_in_python_said_what_the_start_did(minor: str) -> None:
    for name, told in answers(minor).items():
        started = told["spark"]["error"] is None
        said = told["python"]
        unknown = said["go"] and any("does not say" in one for one in said["unknown"])
        assert not said["touched"], name
        assert said["go"] == started or unknown or said["codes"] == [SILENT], (name, told)


def test_what_nobody_could_know(made: Any) -> None:
    """Starts that failed, where ckpt could only say that it cannot compare."""
    failed = {
        (minor, name)
        for minor in record.SUITE.answers.minors
        for name, told in answers(minor).items()
        if told["spark"]["error"] is not None and judged(minor, name, made)[0].go
    }
    assert failed == {("3.5", name) for name in UNKNOWABLE}


def test_what_cannot_be_seen_was_started(made: Any) -> None:
    """Changes of which a checkpoint shows nothing: Spark starts, and ckpt says that it does not look at them."""
    for change in (one for one in changes.CHANGES if one.unseen):
        found, told = judged("4.2", change.id, made)
        assert any("changes to these are not seen" in str(one) for one in found.unknown), change.id
        assert found.go == (told["spark"]["error"] is None), change.id


def test_a_description_is_read_as_it_was_written(tmp_path: Path) -> None:
    for told in answers("4.2").values():
        query = parse_query(told["query"])
        query.write(str(tmp_path / "query.json"))
        assert ckpt.types.QueryDescription.read(str(tmp_path / "query.json")) == query
