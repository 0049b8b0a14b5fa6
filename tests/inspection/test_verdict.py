"""The verdict where versions or modes differ, and where nobody asked the sources or the sink."""

import itertools
import re
from pathlib import Path

import pytest

from ckpt.inspection.verdict import spell, verdict
from ckpt.restart.findings import Forecast, Outcome
from ckpt.versions import Progress, Spark
from tests.conftest import Ckpt, CopyOf
from tests.live.sink.test_plans import files
from tests.support.places import SAMPLES

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
    said = " ".join(page.stdout.split())
    assert re.search(r"will not restart on Spark 4\.2: [^;]+; restarts on Spark 4\.3", said), said
    ckpt("rewind", top, "--to-batch", 0, "--accept-skip", "--accept-replay", "--apply", "--grace", 0)
    told = ckpt("inspect", top, "-o", "json").json()
    alive = {(one["spark"], one["progress"]) for one in told["restart"] if one["outcome"] == "resumes"}
    assert ("4.2", "async") in alive
    assert ("4.2", "sync") not in alive
    inspected = " ".join(ckpt("inspect", top).stdout.split())
    assert f"WILL NOT RESTART on Spark {spell([Spark.V4_2])} without asynchronous progress tracking" in inspected


SOUND = SAMPLES / "kafka-4.2"
BOTH = "  not asked             the sources (--sources), the sink (--sink URI)"


def not_asked(page: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith("  not asked")]


@pytest.mark.parametrize("command", ["inspect", "repair"])
def test_a_page_without_trouble_has_one_line(command: str, ckpt: Ckpt) -> None:
    run = ckpt(command, SOUND)
    assert run.exit_code == 0
    assert not_asked(run.stdout) == [BOTH]


def test_the_document_has_a_key_and_still_nothing_to_do(ckpt: Ckpt, tmp_path: Path) -> None:
    document = ckpt("inspect", SOUND, "-o", "json").json()
    assert (document["not_asked"], document["next"]) == (["sources", "sink"], [])
    place = files(tmp_path / "sink", "", 5)
    assert ckpt("inspect", SOUND, "--sink", place, "-o", "json").json()["not_asked"] == ["sources"]
    assert not_asked(ckpt("inspect", SOUND, "--sink", place).stdout) == [
        "  not asked             the sources (--sources)"
    ]


def test_a_new_checkpoint_has_no_source_and_may_have_an_old_sink(ckpt: Ckpt, tmp_path: Path) -> None:
    run = ckpt("inspect", tmp_path)
    assert (run.exit_code, not_asked(run.stdout)) == (0, ["  not asked             the sink (--sink URI)"])


def test_a_browser_is_told_too(ckpt: Ckpt) -> None:
    pytest.importorskip("jinja2", reason="the extra html is not installed")
    assert "the sink (--sink URI)" in ckpt("inspect", SOUND, "-o", "html").stdout


def test_a_scan_without_trouble_has_one_line(ckpt: Ckpt, tmp_path: Path) -> None:
    (tmp_path / "kafka").symlink_to(SOUND)
    run = ckpt("scan", tmp_path)
    assert (run.exit_code, len(not_asked(run.stdout))) == (0, 1), run.stdout
