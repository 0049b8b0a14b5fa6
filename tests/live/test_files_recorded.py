"""The forecast with what a folder had, and what Spark then read of it: `files_record.py`."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ckpt import LiveSource, Spark, inspect, open_checkpoint
from ckpt.live.records import FilesNow
from tests.live.delta_cases import remove
from tests.live.files import INCIDENTS, ROWS
from tests.live.files_record import RECORDED
from tests.places import SAMPLES

ANSWERS: dict[str, Any] = json.loads(RECORDED.read_text())
NAMES = [f"{name}, {last}" for name in INCIDENTS for last in ("committed", "planned")]


@pytest.mark.parametrize("version", sorted(ANSWERS))
@pytest.mark.parametrize("name", NAMES)
def test_what_is_said_is_what_is_read(name: str, version: str, tmp_path: Path) -> None:
    answer = ANSWERS[version]["answers"][name]
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(SAMPLES / "file-source-4.2", checkpoint)
    latest = max(int(file.name) for file in (checkpoint / "offsets").glob("[0-9]*"))
    if name.endswith("planned"):
        remove(checkpoint / "commits" / str(latest))
    else:
        shutil.copyfile(checkpoint / "commits" / "0", checkpoint / "commits" / str(latest))

    now = FilesNow(**answer["now"] | {"gone": tuple(answer["now"]["gone"])})
    (seen,) = inspect(open_checkpoint(str(checkpoint)), [Spark(version)], live=[LiveSource(0, files=now)]).live

    assert answer["spark"] == {"error": None, "rows": ROWS * (seen.waiting or 0)}
