"""The forecast with what a Delta table had told, and what Spark then did: `record.py`."""

import json
from pathlib import Path

import pytest

from tests.live.delta.cases import CASES, Case
from tests.live.delta.judging import checkpoint_of, disagreements, inspected
from tests.live.delta.record import SUITE, from_json, to_json

ANSWERS = SUITE.answers.read_all()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_said_is_what_happens(case: Case, tmp_path: Path) -> None:
    for version, answers in ANSWERS.items():
        answer = answers["answers"][case.name]
        checkpoint = checkpoint_of(tmp_path / version, answer["offsets"], committed=case.committed)
        now = from_json(answer["now"], case)
        written = json.loads(json.dumps(to_json(now)))
        assert written | answer["now"] == written
        seen = inspected(checkpoint, now, version)
        assert list(disagreements(case, seen, answer["spark"])) == [], version
