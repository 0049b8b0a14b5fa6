"""The verdict where versions or modes differ: each version is named once, with what holds for it."""

import itertools
import re

import pytest

from ckpt.inspection.verdict import spell, verdict
from ckpt.restart.findings import Forecast, Outcome
from ckpt.versions import Progress, Spark
from tests.conftest import Ckpt, CopyOf

RUNS, FAILS = Outcome.RESUMES, Outcome.FAILS_AT_START
TWO = (Spark.V4_2, Spark.V4_3)


def forecasts(*outcomes: Outcome) -> list[Forecast]:
    """Synchronous starts, then asynchronous ones, with each of the versions."""
    starts = itertools.product((Progress.SYNC, Progress.ASYNC), TWO)
    return [Forecast(version, mode, outcome, 7) for (mode, version), outcome in zip(starts, outcomes, strict=True)]


@pytest.mark.parametrize("outcomes", list(itertools.product((RUNS, FAILS), repeat=4)))
def test_each_version_is_named_once(outcomes: tuple[Outcome, ...]) -> None:
    said = verdict(forecasts(*outcomes))
    named = re.findall(r"on Spark ([\d., ]+)", said)
    versions = [version for one in named for version in one.strip(", ").split(", ")]
    assert sorted(versions) == (sorted(TWO) if versions else []), said
    if not any(one is RUNS for one in outcomes):
        assert said == "Will not restart"


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ((FAILS, RUNS, FAILS, RUNS), "Will not restart on Spark 4.2; restarts on Spark 4.3"),
        (
            (FAILS, RUNS, RUNS, RUNS),
            "Will not restart on Spark 4.2 without asynchronous progress tracking; restarts on Spark 4.3",
        ),
        (
            (RUNS, RUNS, FAILS, RUNS),
            "Restarts on Spark 4.2 without asynchronous progress tracking only; restarts on Spark 4.3",
        ),
        ((FAILS, FAILS, RUNS, RUNS), "Will not restart without asynchronous progress tracking"),
    ],
)
def test_what_holds_in_one_mode_only_says_so(outcomes: tuple[Outcome, ...], said: str) -> None:
    assert verdict(forecasts(*outcomes)) == said


def test_a_plan_speaks_of_synchronous_starts_as_its_forecasts_do(ckpt: Ckpt, copy_of: CopyOf) -> None:
    top = copy_of("named-sources-4.2")
    page = ckpt("rewind", top, "--to-batch", 0)
    assert "will not restart on Spark 4.2; restarts on Spark 4.3" in " ".join(page.stdout.split())
    ckpt("rewind", top, "--to-batch", 0, "--accept-skip", "--accept-replay", "--apply", "--grace", 0)
    told = ckpt("inspect", top, "-o", "json").json()
    alive = {(one["spark"], one["progress"]) for one in told["restart"] if one["outcome"] == "resumes"}
    assert ("4.2", "async") in alive
    assert ("4.2", "sync") not in alive
    inspected = " ".join(ckpt("inspect", top).stdout.split())
    assert f"WILL NOT RESTART on Spark {spell([Spark.V4_2])} without asynchronous progress tracking" in inspected
