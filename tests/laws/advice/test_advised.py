"""Each command that a page advises is run on the checkpoint that it is advised for: it plans, and leads on."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ckpt import inspect, preflight
from ckpt.advice import Call, Hole, Known, Step
from ckpt.advice.spelling import list_words
from ckpt.inspection.inspection import Inspection
from ckpt.inspection.preflight import Readiness
from tests.laws.next_obeyed import deep_cases, oracle_cases
from tests.restart.oracle.cases import Case
from tests.support.cli import invoke
from tests.support.places import SAMPLE_NAMES, SAMPLES
from tests.support.spark import mutations
from tests.support.spark.live import EVERY_CASE

_CASES = oracle_cases()
_QUERY_ID = "11111111-2222-3333-4444-555555555555"
_WRONG = (2, 3)  # bad usage, and could not do it
_OF_WHAT_IS_NOT_HERE = (Hole.COPY, Hole.QUERY, Hole.OLD_QUERY, Hole.URI, Hole.OUTPUT, Hole.VERSION, Hole.FILE)


def run(call: Call, *more: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the document of a call."""
    result = invoke(*list_words(call)[1:], *more, "-o", "json")
    return result.exit_code, json.loads(result.stdout) if result.stdout else {"next": [], "refused": result.stderr}


def advised(inspection: Inspection, readiness: Readiness, new: Path) -> Iterator[tuple[str, Call]]:
    """The calls that the pages of inspect and preflight advise, with what a person would put for their holes."""
    for rated in (*inspection.troubles, *readiness.holds, *readiness.warnings):
        for step in rated.advice.all_steps() if rated.advice else ():
            if (call := _complete(step, inspection, new)) is not None:
                yield rated.finding.diagnosis.code, call


def _complete(step: Step, inspection: Inspection, new: Path) -> Call | None:
    if step.call is None or any(hole in _values(step.call) for hole in _OF_WHAT_IS_NOT_HERE):
        return None
    latest = inspection.checkpoint.commits.latest or 0
    holes = {Hole.NEW: str(new), Hole.ID: _QUERY_ID, Hole.N: str(max(latest - 1, 0))}
    call = step.call.fill(Known(files=holes))
    return call if call.complete else None


def _values(call: Call) -> tuple[Any, ...]:
    return (*call.arguments, *(value for _, value in call.options))


def faults(checkpoint: Path, *, deep: bool = False) -> Iterator[str]:
    """What is wrong with the commands that the page of a checkpoint advises."""
    inspection = inspect(str(checkpoint), deep=deep)
    new = checkpoint.parent / "new"
    ran: set[Call] = set()
    readiness = preflight(str(checkpoint), deep=deep)
    for code, call in advised(inspection, readiness, new):
        if call in ran or call.name == "inspect":
            continue
        ran.add(call)
        exit_code, document = run(call)
        if "this is not the query's id" in str(document.get("refused")):
            continue  # the checksum of metadata shows it, and only a person has the right one
        if exit_code in _WRONG:
            yield f"{code} advises {call}, which answers {exit_code}: {document.get('refused')}"
            continue
        first = document["next"][0]["command"] if document["next"] else None
        if first is not None and tuple(first[:2]) == ("ckpt", "inspect") and call.name != "inspect":
            yield f"{code} advises {call}, which leads back to {' '.join(first)}"


def _damaged(case: Case, folder: Path) -> Path:
    return mutations.copy_of(case.folder, folder / "checkpoint", case.mutations)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in _CASES[::200]])
def test_what_a_page_advises_can_be_planned(case: Case, tmp_path: Path) -> None:
    assert [*faults(_damaged(case, tmp_path))] == []


@pytest.mark.slow
def test_what_any_page_advises_can_be_planned(tmp_path: Path) -> None:
    samples = {name: [*faults(SAMPLES / name)] for name in SAMPLE_NAMES[:: 1 if EVERY_CASE else 3]}
    assert {name: wrong for name, wrong in samples.items() if wrong} == {}
    cases = _CASES if EVERY_CASE else _CASES[::120]
    damaged = {case.name: [*faults(_damaged(case, tmp_path / str(number)))] for number, case in enumerate(cases)}
    assert {name: wrong for name, wrong in damaged.items() if wrong} == {}
    deep = {
        case.name: [*faults(_damaged(case, tmp_path / case.name), deep=True)]
        for case in deep_cases()[:: 1 if EVERY_CASE else 48]
    }
    assert {name: wrong for name, wrong in deep.items() if wrong} == {}
