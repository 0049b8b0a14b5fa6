"""The forecast with what the broker had told, and what each Spark version then did: recorded by `record.py`."""

from pathlib import Path

import pytest

from tests.live.kafka.cases import CASES, Case, written
from tests.live.kafka.judging import disagreements, inspected
from tests.live.kafka.record import SUITE, from_json

ANSWERS = SUITE.answers.read_all()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_said_is_what_happens(case: Case, tmp_path: Path) -> None:
    checkpoint = written(tmp_path / "checkpoint", "t", committed=case.committed)
    for version, found in ANSWERS.items():
        answer = found["answers"][case.name]
        now = from_json(answer["now"], fail_on_data_loss=case.fail_on_data_loss)
        assert list(disagreements(case, inspected(checkpoint, now, version), answer["spark"])) == [], version
