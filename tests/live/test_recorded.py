"""The forecast with what the broker had told, and what five versions of Spark then did: recorded by `record.py`."""

import json
from pathlib import Path

import pytest

from ckpt import Spark
from tests.live.cases import CASES, Case, written
from tests.live.judging import disagreements, inspected
from tests.live.record import RECORDED, from_json

ANSWERS = json.loads(RECORDED.read_text())


def test_every_version_was_asked_about_every_case() -> None:
    names = {case.name for case in CASES}
    assert {version: set(found["answers"]) for version, found in ANSWERS.items()} == dict.fromkeys(Spark, names)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_said_is_what_happens(case: Case, tmp_path: Path) -> None:
    checkpoint = written(tmp_path / "checkpoint", "t", committed=case.committed)
    for version, found in ANSWERS.items():
        answer = found["answers"][case.name]
        now = from_json(answer["now"], fail_on_data_loss=case.fail_on_data_loss)
        assert list(disagreements(case, inspected(checkpoint, now, version), answer["spark"])) == [], version
