"""Who asks ckpt about a damage gets no false all-clear, and comes to an end without circles and refusals.

What Spark does is recorded: ``python -m tests.laws.field.recorder``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.laws.field.damages import CASES, CHOSEN, HARMS, SEED, make_cases
from tests.laws.field.recorder import read
from tests.laws.next_obeyed import End, announced_rows, found_rows, obey
from tests.restart.oracle import answers
from tests.restart.oracle.cases import Case
from tests.support.cli import invoke
from tests.support.spark import mutations
from tests.support.spark.live import EVERY_CASE

_MOST_STEPS = 4
_ANSWERS = read()
_NO_TRACE = "newest batch deleted:"
"""Whoever deletes both files of a batch with their checksums leaves nothing that shows that there was one."""
_UNLESS, _USUAL_UNLESS = "if the query is stateless", "start the query as usual, if it keeps no state"


def is_harmed(answer: dict[str, Any]) -> bool:
    """A start of the checkpoint as it is failed, left rows out, or had wrong totals."""
    found = answer["as it is"]
    return bool(found["outcome"] == "fails" or found.get("lost") or not found.get("right", True))


def costs_more(after: dict[str, Any]) -> bool:
    """A start after the page was obeyed failed, or cost more than was announced."""
    left_out, doubled = after["announced"] == "left-out", after.get("doubled") and after["announced"] == "none"
    lost = (after.get("lost") or not after.get("right", True)) and not left_out
    return bool(after.get("outcome", "runs") != "runs" or doubled or lost)


def judge(case: Case, folder: Path) -> Iterator[str]:
    """What is wrong with what ckpt says of a damage."""
    checkpoint = mutations.copy_of(case.folder, folder / "checkpoint", case.mutations)
    before = {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()}
    answer = _ANSWERS.get(case.name)
    yield from _judge_clear(checkpoint, harmed=answer is not None and is_harmed(answer))
    if before != {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()}:
        yield "reading wrote"
    yield from _judge_commands(json.loads(invoke("inspect", checkpoint, "-o", "json").stdout)["next"])
    obeyed = obey(checkpoint)
    yield from obeyed.faults
    changes = sum("--apply" in command for command in obeyed.commands)
    if len(obeyed.commands) - 1 > _MOST_STEPS * max(changes, 1):
        yield f"it took {len(obeyed.commands) - 1} steps"
    if obeyed.end is End.STOP and json.loads(invoke("repair", checkpoint, "-o", "json").stdout).get("steps"):
        yield "only a copy helps, and repair has a plan"
    if obeyed.applied and announced_rows(obeyed) != found_rows(obeyed):
        yield f"{announced_rows(obeyed)} rows were announced, and {found_rows(obeyed)} found"


def _judge_commands(steps: list[dict[str, Any]]) -> Iterator[str]:
    """Each command of a page that needs no word of its reader says what it was named for, and does not refuse."""
    for step in steps:
        command = step["command"]
        if command is None or any(word.isupper() for word in command) or "--apply" in command:
            continue
        plan = ["--plan"] if command[1] in ("rewrite", "copy") else []
        run = invoke(*command[1:], *plan)
        if run.exit_code not in (0, 1):
            yield f"it names a command that refuses: {' '.join(command[1:])}: {run.stdout[:200]}{run.stderr[:200]}"


def _judge_clear(checkpoint: Path, *, harmed: bool) -> Iterator[str]:
    """All four commands come to the same: nothing is well that is not; or only for a query without state, they say."""
    runs = {command: invoke(command, checkpoint) for command in ("inspect", "preflight", "repair")}
    found = invoke("scan", checkpoint, "-o", "json")
    (row,) = json.loads(found.stdout)["checkpoints"]
    pages = {command: " ".join(run.stdout.split()) for command, run in runs.items()}
    if harmed and not (_UNLESS in row["verdict"] and all(_USUAL_UNLESS in page for page in pages.values())):
        for command, run in runs.items():
            if run.exit_code == 0 or "start the query as usual" in pages[command]:
                yield f"{command}: an all-clear"
        if found.exit_code == 0 or row["worst"] is None:
            yield "scan: an all-clear"
    for command, run in (*runs.items(), ("scan", found)):
        if run.exit_code not in (0, 1) and command != "repair":
            yield f"{command}: exit {run.exit_code}"


def test_the_generator_makes_the_same_again() -> None:
    assert tuple(make_cases(SEED)) == CASES
    assert [case.mutations for case in make_cases(SEED + 1)] != [case.mutations for case in CASES]
    assert len(HARMS) >= 36
    assert len(CASES) >= 120
    assert {case.sample for case in CASES} == {*CHOSEN}
    assert len({case.name for case in CASES}) == len(CASES)


def test_what_is_recorded_is_what_the_generator_makes() -> None:
    assert {name: answer["of"] for name, answer in _ANSWERS.items()} == {
        case.name: answers.fingerprint(case) for case in CASES
    }


@pytest.mark.slow
@pytest.mark.parametrize("sample", CHOSEN)
def test_every_page_tells_the_truth_and_leads_on(sample: str, tmp_path: Path) -> None:
    of_sample = [case for case in CASES if case.sample == sample]
    some = of_sample if EVERY_CASE else of_sample[::12]
    wrong = {case.name: [*judge(case, tmp_path / str(number))] for number, case in enumerate(some)}
    assert {name: faults for name, faults in wrong.items() if faults} == {}


def test_rows_are_lost_or_doubled_only_where_it_was_announced() -> None:
    dearer = {name: answer["obeyed"] for name, answer in _ANSWERS.items() if costs_more(answer["obeyed"])}
    assert [name for name in dearer if not name.startswith(_NO_TRACE)] == []
    assert all(after["doubled"] and not after["lost"] for after in dearer.values())


def test_many_are_obeyed_to_the_end() -> None:
    ends = Counter("outcome" in answer["obeyed"] for answer in _ANSWERS.values())
    assert ends[True] >= 120
    assert sum(map(is_harmed, _ANSWERS.values())) >= 100
