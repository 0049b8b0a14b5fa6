"""The forecast with what a folder had, and what Spark then read of it: `record.py`."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from ckpt import Inspection
from ckpt.live.outlook import SourceOutcome
from ckpt.live.records import FilesNow
from ckpt.restart.findings import Outcome
from ckpt.versions import Progress
from tests.live.delta.cases import remove
from tests.live.files.cases import INCIDENTS, LAST, MOVES, ROWS
from tests.live.files.record import SUITE
from tests.live.judging import inspected
from tests.support.places import SAMPLES

ANSWERS: dict[str, Any] = SUITE.answers.read_all()
NAMES = [f"{name}, {last}" for name in INCIDENTS for last in LAST[:2]]
MOVED = [f"{name}, {last}" for name in MOVES for last in LAST]
UNSEEN = {
    "another folder, recursive, planned",
    "a folder whose name begins the old one's, planned",
    "the folder above, planned",
}


@pytest.mark.parametrize("version", sorted(ANSWERS))
@pytest.mark.parametrize("name", NAMES)
def test_what_is_said_is_what_is_read(name: str, version: str, tmp_path: Path) -> None:
    answer, seen = ANSWERS[version]["answers"][name], judged(version, name, tmp_path)
    assert answer["spark"] == {"error": None, "rows": ROWS * (seen.live[0].waiting or 0)}


@pytest.mark.parametrize("version", sorted(ANSWERS))
@pytest.mark.parametrize("name", MOVED)
def test_what_is_said_of_another_folder(name: str, version: str, tmp_path: Path) -> None:
    answer = ANSWERS[version]["answers"][name]
    if answer["now"] is None:
        assert answer["spark"]["error"] is None
        return
    seen = judged(version, name, tmp_path)
    (source,) = seen.live
    forecast = next(one for one in seen.counted if one.progress is Progress.SYNC)
    if answer["spark"]["error"] is None:
        assert (forecast.outcome, forecast.error) == (Outcome.RESUMES, None)
    else:
        assert (forecast.error or "nothing") in answer["spark"]["error"]
    assert (source.outcome is SourceOutcome.UNKNOWN) == (name in UNSEEN)
    assert source.waiting is None or answer["spark"]["rows"] == ROWS * source.waiting


def judged(version: str, name: str, tmp_path: Path) -> Inspection:
    """What ckpt says with what it saw when that was recorded."""
    answer = ANSWERS[version]["answers"][name]
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(SAMPLES / "file-source-4.2", checkpoint)
    latest = max(int(file.name) for file in (checkpoint / "offsets").glob("[0-9]*"))
    if name.endswith("planned"):
        remove(checkpoint / "commits" / str(latest))
    else:
        shutil.copyfile(checkpoint / "commits" / "0", checkpoint / "commits" / str(latest))

    now = FilesNow(**answer["now"] | {"gone": tuple(answer["now"]["gone"])})
    return inspected(checkpoint, now, version)
