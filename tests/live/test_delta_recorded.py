"""The forecast with what a Delta table had told, and what Spark then did: `delta_record.py`."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.live.delta_cases import CASES, Case
from tests.live.delta_judging import checkpoint_of, disagreements, inspected
from tests.live.delta_record import RECORDED, from_json

ANSWERS: dict[str, Any] = json.loads(RECORDED.read_text())


VERSIONS = {case: [one for one in ANSWERS if case.name in ANSWERS[one]["answers"]] for case in CASES}


def test_every_case_is_recorded() -> None:
    assert [case.name for case, versions in VERSIONS.items() if {*versions} != {"3.5", "4.0", "4.1", "4.2"}] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_said_is_what_happens(case: Case, tmp_path: Path) -> None:
    for version in VERSIONS[case]:
        answer = ANSWERS[version]["answers"][case.name]
        checkpoint = checkpoint_of(tmp_path / version, answer["offsets"], committed=case.committed)
        seen = inspected(checkpoint, from_json(answer["now"], case), version)
        assert list(disagreements(case, seen, answer["spark"])) == [], version
