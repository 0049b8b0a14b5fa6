"""The forecast with what an Iceberg table had told, and what Spark then did: `iceberg_record.py`."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.live.delta_judging import checkpoint_of
from tests.live.iceberg_cases import CASES, Case
from tests.live.iceberg_judging import disagreements, inspected
from tests.live.iceberg_record import RECORDED, from_json

ANSWERS: dict[str, Any] = json.loads(RECORDED.read_text())


def test_every_case_is_recorded() -> None:
    for version in ("3.5", "4.0", "4.1"):
        assert [case.name for case in CASES if case.name not in ANSWERS[version]["answers"]] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_said_is_what_happens(case: Case, tmp_path: Path) -> None:
    for version, answers in ANSWERS.items():
        answer = answers["answers"][case.name]
        checkpoint = checkpoint_of(tmp_path / version, answer["offsets"], committed=case.committed)
        seen = inspected(checkpoint, from_json(answer["now"], case), version)
        assert list(disagreements(case, seen, answer["spark"])) == [], version
