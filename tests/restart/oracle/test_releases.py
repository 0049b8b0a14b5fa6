"""First and newest releases: a start ends as on the release that was asked everything, or a known bug says why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ckpt.checkpoint.reader import open_checkpoint
from ckpt.inspection.bugs import find_bugs
from ckpt.restart.findings import Outcome
from ckpt.restart.rules import forecast
from ckpt.versions import Progress, Spark
from tests.restart.oracle import answers, cases, releases
from tests.support.spark import mutations

BY_NAME = {case.name: case for case in cases.CASES}
KEYS = ("outcome", "batch", "reexecutes", "sources")


def _differing(release: str) -> dict[str, dict[str, Any]]:
    """The starts that ended otherwise than on the release of its version that was asked everything."""
    known = answers.read(release[:3])["answers"]
    asked = releases.ANSWERS.read(release)["answers"]
    return {name: one for name, one in asked.items() if any(one[key] != known[name][key] for key in KEYS)}


@pytest.mark.parametrize("release", releases.RELEASES)
def test_all_of_the_sample_are_recorded(release: str) -> None:
    document = releases.ANSWERS.read(release)
    assert document["spark"] == release
    assert {name: one["of"] for name, one in document["answers"].items()} == {
        start.name: answers.fingerprint(start.case) for start in releases.SAMPLE.cases(release)
    }


@pytest.mark.parametrize("release", releases.RELEASES)
def test_where_a_release_stops_and_the_forecast_runs_a_known_bug_says_so(release: str, tmp_path: Path) -> None:
    for number, (name, answer) in enumerate(_differing(release).items()):
        case, mode = name.split("/")
        folder = tmp_path / str(number)
        mutations.copy_of(BY_NAME[case].folder, folder, BY_NAME[case].mutations)
        checkpoint = open_checkpoint(str(folder))
        assert not Outcome(answer["outcome"]).runs, name
        if forecast(checkpoint, Spark(release), Progress(mode)).outcome.runs:
            assert [*find_bugs(checkpoint, [release])], f"{name}: {answer['error']}"


def test_only_3_5_0_differs_and_only_where_a_log_has_a_folder() -> None:
    differing = {release: {name.split("/")[0] for name in _differing(release)} for release in releases.RELEASES}
    assert {release for release, names in differing.items() if names} == {"3.5.0"}
    assert len(differing["3.5.0"]) == 9
    assert {name for name in differing["3.5.0"] if "directory-" not in name} == set()
