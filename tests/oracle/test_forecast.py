"""The forecast against what Spark did: every recorded answer of every version, on outcome, batch, ranges and words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ckpt.checkpoint import Checkpoint
from ckpt.reader import open_checkpoint
from ckpt.restart.forecast import Forecast, Outcome
from ckpt.restart.rules import forecast
from ckpt.versions import Progress, Spark
from tests.oracle import answers, cases
from tests.spark import mutations

NOT_IN_THE_FILES = {
    "other-query-": "started with another query than the one that wrote the checkpoint",
    "default-session": "started with other settings than the checkpoint was written with",
    "made-named-sink": "started with a sink that has no name, unlike the one it was written with",
    "state-gone": "without its whole state/ a checkpoint looks like that of a stateless query",
    "operator-1-gone": "the last of several operators is gone without a trace",
    "one-source-short": "both offset files agree in the number of sources, and the query has another",
    "one-line-too-few": "the offset files that are read agree in the number of sources, and the query has another",
}
"""Parts of the names of cases whose outcome depends on what the checkpoint does not hold, and on what."""

DOUBTFUL = {
    "offset-latest-source-line-dash": "a source that lost its offset may refuse to go on, or begin anew",
    "offset-latest-source-line-of-another-source": "only the source can say what it makes of such an offset",
    "offset-predecessor-source-line-of-another-source": "the same, in the batch before",
    "offset-latest-v2-header-v1-lines": "sources under names that the query may or may not have",
    "offset-predecessor-v2-header-v1-lines": "the same, in the batch before",
    "second-source-new": "a source that lost its offset",
    "backwards": "whether a source reads backwards is its own affair",
}
"""Parts of the names of the only cases to which the forecast may answer "unknown", and why it does."""

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
        if any(part in case.name for part in NOT_IN_THE_FILES):
            continue
        for minor in answers.VERSIONS:
            for mode in case.modes(minor):
                yield pytest.param(case, minor, mode, id=f"{case.name}-{minor}-{mode}")


@pytest.mark.parametrize(("case", "minor", "mode"), list(_questions()))
def test_the_forecast_is_what_spark_did(case: cases.Case, minor: str, mode: str, checkpoint_of) -> None:
    answer = RECORDED[minor].get(f"{case.name}/{mode}")
    assert answer is not None, "not recorded: run python -m tests.oracle.record"
    assert answer["of"] == answers.fingerprint(case), "recorded of another case: record it again"

    told = forecast(checkpoint_of(case), Spark(minor), Progress(mode))

    if told.outcome is Outcome.UNKNOWN:
        assert any(part in case.name for part in DOUBTFUL), f"unknown, and it was {answer['outcome']}"
    else:
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
        return
    for source, was in zip(told.sources, _in_the_order_told(told, seen), strict=True) if told.sources else ():
        if source.start is not None and source.start != was["from"]:
            yield f"from: told {source.start}, was {was['from']}"
        if source.end is not None and source.end != was["to"]:
            yield f"to: told {source.end}, was {was['to']}"


def _in_the_order_told(told: Forecast, seen: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Offset log v2 names its sources in an order of its own, which may not be that of the query."""
    starts = [source.start for source in told.sources]
    same = [[one for one in seen if one["from"] == start] for start in starts]
    return [one[0] for one in same] if all(len(one) == 1 for one in same) else seen


def test_every_exception_is_about_a_case() -> None:
    for part in (*NOT_IN_THE_FILES, *DOUBTFUL):
        assert any(part in case.name for case in cases.CASES), part


def test_enough_is_recorded() -> None:
    random = [case for case in cases.CASES if case.name.startswith("random-")]
    assert len(cases.CASES) >= 150
    assert len(random) >= 100
