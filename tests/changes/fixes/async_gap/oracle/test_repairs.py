"""What ckpt promised of a repair against what Spark did after it: every recorded answer of every version.

The law that no row is skipped is held against the sample as Spark wrote it, not against what ckpt read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ckpt.changes.fixes.repair_async import AsyncRepairPlan, Strategy
from ckpt.restart.findings import Forecast
from ckpt.versions import Progress, Spark
from tests.changes.fixes.async_gap.oracle import cases, record, repairing
from tests.restart.oracle import answers as oracle
from tests.restart.oracle.cases import SAMPLES, Case
from tests.restart.oracle.test_forecast import disagreements
from tests.support.places import some_quick

RECORDED = {minor: record.SUITE.recorded(minor) for minor in oracle.VERSIONS}


def plan_of(question: record.Question, tmp_path: Path) -> AsyncRepairPlan:
    return repairing.planned(repairing.damaged(question.case, tmp_path), question.strategy)


@cache
def named() -> dict[str, record.Question]:
    return {one.name: one for one in record.questions()}


def promised(plan: AsyncRepairPlan, minor: str, progress: Progress) -> Forecast:
    return next(one for one in plan.after if one.spark is Spark(minor) and one.progress is progress)


@pytest.mark.parametrize("name", some_quick(sorted({name for answers in RECORDED.values() for name in answers}), 3))
def test_what_ran_first_is_what_the_plan_promised(name: str, tmp_path: Path) -> None:
    """On every version that was asked."""
    question = record.find_question(name)
    plan = plan_of(question, tmp_path)
    given = {minor: answers[name] for minor, answers in RECORDED.items() if name in answers}
    assert {answer["of"] for answer in given.values()} == {question.of}, "run python -m tests.record"

    found = {minor: broken_promises(question, minor, plan, answer) for minor, answer in given.items()}
    assert {minor: broken for minor, broken in found.items() if broken} == {}


def broken_promises(question: record.Question, minor: str, plan: AsyncRepairPlan, answer: dict[str, Any]) -> list[str]:
    """Everything in which Spark did otherwise than the plan said."""
    told = promised(plan, minor, Progress.SYNC)
    found = disagreements(told, answer["first"])
    if "async" in answer:
        found += [f"async {one}" for one in disagreements(promised(plan, minor, Progress.ASYNC), answer["async"])]
    if told.outcome.runs:
        found += [*_replay_not_as_announced(plan, answer["first"]), *_skipped(question, plan, answer["first"])]
        found += _trouble_later(answer)
    return found


def _replay_not_as_announced(plan: AsyncRepairPlan, first: dict[str, Any]) -> Iterator[str]:
    """The first batch begins where the plan says that rows are read again, or else where the log ends."""
    if first["sources"] is None:
        yield "nothing is known of what ran"
        return
    began = [one["from"] for one in first["sources"]]
    if plan.replay:
        if plan.replay[0].batch != first["batch"]:
            yield f"replay: told to begin in batch {plan.replay[0].batch}, was {first['batch']}"
        announced = [one.start for one in plan.replay[0].sources]
    else:
        checkpoint = plan.inspection.checkpoint
        log = checkpoint.offsets.readable(checkpoint.offsets.latest)
        announced = [one.value for one in log.sources] if log else []
    if not _same_offsets(announced, began):
        yield f"read again: told {announced}, was {began}"


def _same_offsets(told: list[Any], seen: list[Any]) -> bool:
    """The same, in any order: offset log v2 names its sources in an order of its own."""
    return sorted(map(json.dumps, told)) == sorted(map(json.dumps, seen))


def _skipped(question: record.Question, plan: AsyncRepairPlan, first: dict[str, Any]) -> Iterator[str]:
    """No row after the last committed batch may be left out, and what is read again before that was to be accepted."""
    checkpoint = plan.inspection.checkpoint
    committed = [i for i in checkpoint.commits.ids if (SAMPLES / question.case.sample / "offsets" / str(i)).is_file()]
    offsets = SAMPLES / question.case.sample / "offsets"
    done = _rows(_lines(offsets / str(max(committed)))) if committed else 0
    began = _rows([one["from"] for one in first["sources"]])
    if began > done:
        yield f"rows {done} to {began} are skipped"
    if began < done and plan.repeats is None:
        yield f"rows {began} to {done} of finished batches are read again without being asked"


def _lines(path: Path) -> list[Any]:
    """The sources' offsets in a log file, read without ckpt."""
    lines = path.read_text().splitlines()[2:]
    return [json.loads(line.partition(":")[2] if line[0] != "{" else line) for line in lines]


def _rows(offsets: list[Any]) -> int:
    """How far a rate or file source got; all sources together."""
    return sum(one.get("offset", one.get("logOffset", -1)) if one else 0 for one in offsets)


def _trouble_later(answer: dict[str, Any]) -> Iterator[str]:
    """The next start goes on behind the first, without an error, and leaves consecutive batches."""
    then = answer["then"]
    if then["outcome"] != "resumes" or then["error"] or "then" not in then or then["then"]["outcome"] != "resumes":
        yield f"the second start: {then}"
    elif then["batch"] != answer["first"]["batch"] + 1 or then["reexecutes"]:
        yield f"the second start ran batch {then['batch']}"
    elif then["sources"] and [one["from"] for one in then["sources"]] != [
        one["to"] for one in answer["first"]["sources"]
    ]:
        yield f"the second start read from {then['sources']}"


@pytest.mark.parametrize(
    "change",
    [
        {"first": {"batch": 45}},
        {"first": {"outcome": "fails-at-commit", "error": ["..."]}},
        {"first": {"sources": [{"from": {"offset": 470, "timestamp": 0}, "to": None}]}},
        {"first": {"sources": [{"from": {"offset": 390, "timestamp": 1700000039000}, "to": None}]}},
        {"then": {"batch": 46, "reexecutes": True}},
        {"then": {"outcome": "fails-at-start"}},
        {"async": {"batch": 47}},
    ],
    ids=str,
)
def test_a_broken_promise_is_noticed(change: dict[str, Any], tmp_path: Path) -> None:
    question = record.find_question("async-3.5-uncommitted/fill")
    answer = RECORDED["4.2"][question.name]
    doctored = {key: value | change.get(key, {}) for key, value in answer.items() if key != "of"}

    plan = plan_of(question, tmp_path)

    assert broken_promises(question, "4.2", plan, answer) == []
    assert broken_promises(question, "4.2", plan, doctored) != []


def test_enough_is_asked() -> None:
    """By what is recorded, which `tests/record/test_suites.py` compares with all questions."""
    names = {name for answers in RECORDED.values() for name in answers}
    asked = Counter(name.rpartition("/")[2] for name in names)
    assert len({case.name for case in cases.CASES}) == len(cases.CASES) >= 120
    assert asked[Strategy.FILL] >= 100
    assert asked[Strategy.REWIND] >= 90


@pytest.mark.slow
@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.name)
def test_auto_is_the_way_that_reads_least_again(case: Case, tmp_path: Path) -> None:
    checkpoint = repairing.damaged(case, tmp_path)
    auto = repairing.planned(checkpoint, Strategy.AUTO)
    ways = [plan for way in repairing.STRATEGIES if (plan := repairing.planned(checkpoint, way)).steps]

    assert auto.steps in [plan.steps for plan in ways] or (not ways and not auto.steps and auto.refused)
    assert all((auto.reads_after or 0) >= (plan.reads_after or 0) for plan in ways)
