"""The forecast against what Spark did: every recorded answer of every version, on outcome, batch, ranges and words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ckpt.checkpoint import Checkpoint
from ckpt.reader import open_checkpoint
from ckpt.restart.forecast import Forecast, Outcome
from ckpt.restart.rules import forecast
from ckpt.restart.versions import Progress, Spark
from tests.oracle import answers, cases
from tests.spark import mutations

RECORDED = {minor: answers.read(minor)["answers"] for minor in answers.VERSIONS}


@pytest.fixture(scope="module")
def checkpoint_of(tmp_path_factory: pytest.TempPathFactory):
    """A case's damaged checkpoint, made and read once for all versions and modes."""
    made: dict[str, Checkpoint] = {}

    def make(case: cases.Case) -> Checkpoint:
        if case.name not in made:
            folder = tmp_path_factory.mktemp("case") / "checkpoint"
            mutations.copy_of(cases.SAMPLES / case.sample, folder, case.mutations)
            made[case.name] = open_checkpoint(str(folder))
        return made[case.name]

    return make


def _questions() -> Iterator[Any]:
    for case in cases.CASES:
        for minor in answers.VERSIONS:
            for mode in case.modes(minor):
                yield pytest.param(case, minor, mode, id=f"{case.name}-{minor}-{mode}")


@pytest.mark.parametrize(("case", "minor", "mode"), _questions())
def test_the_forecast_is_what_spark_did(case: cases.Case, minor: str, mode: str, checkpoint_of) -> None:
    answer = RECORDED[minor].get(f"{case.name}/{mode}")
    assert answer is not None, "not recorded: run python -m tests.oracle.record"
    assert answer["of"] == answers.fingerprint(case), "recorded of another case: record it again"

    told = forecast(checkpoint_of(case), Spark(minor), Progress(mode))

    assert disagreements(told, answer) == []


def disagreements(told: Forecast, answer: dict[str, Any]) -> list[str]:
    """In what a forecast differs from what happened; what it leaves open (a new batch's end) is not compared."""
    outcome, batch, reexecutes = answer["outcome"], answer["batch"], answer["reexecutes"]
    errors = answer["error"] or []
    found = []
    if told.outcome != outcome:
        found.append(f"outcome: told {told.outcome}, was {outcome}")
    if told.batch_id != batch or (batch is not None and told.reexecutes != reexecutes):
        found.append(f"batch: told {told.batch_id} ({told.reexecutes}), was {batch} ({reexecutes})")
    if told.error is not None and not any(told.error in error for error in errors):
        found.append(f"words: told {told.error!r}, was {errors}")
    if answer["error"] and told.outcome.runs:
        found.append(f"told that it runs, and Spark said {answer['error']}")
    if answer["sources"] is not None and told.outcome in (Outcome.RESUMES, Outcome.FAILS_AT_COMMIT):
        found += _ranges(told, answer["sources"])
    return found


def _ranges(told: Forecast, seen: list[dict[str, Any]]) -> Iterator[str]:
    if told.sources and len(told.sources) != len(seen):
        yield f"sources: told {len(told.sources)}, were {len(seen)}"
    for source in told.sources:
        was = seen[source.index]
        if source.start is not None and source.start != was["from"]:
            yield f"from: told {source.start}, was {was['from']}"
        if source.end is not None and source.end != was["to"]:
            yield f"to: told {source.end}, was {was['to']}"


def test_enough_is_recorded() -> None:
    random = [case for case in cases.CASES if case.name.startswith("random-")]
    assert len(cases.CASES) >= 150
    assert len(random) >= 100
