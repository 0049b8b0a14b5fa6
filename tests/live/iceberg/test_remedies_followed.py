"""The remedies for Iceberg tables as they were followed: rows that were read, and the words."""

import json
from pathlib import Path

import pytest

from tests.live.delta.judging import checkpoint_of
from tests.live.iceberg.cases import Case
from tests.live.iceberg.judging import inspected
from tests.live.iceberg.record import from_json
from tests.live.iceberg.remedies_followed import OBEYED, SUITE, advice_on_a_table, of, takes

((MINOR, RECORD),) = SUITE.answers.read_all().items()
ANSWERS = RECORD["answers"]


@pytest.mark.parametrize("case", OBEYED, ids=lambda case: case.name)
def test_no_row_is_left_out_or_read_twice_that_the_remedy_does_not_name(case: Case) -> None:
    answer, wanted = ANSWERS[case.name], OBEYED[case]
    assert (answer["read"]["error"], answer["read"]["ids"]) == (None, wanted.ids)
    assert answer["then 50"]["ids"] == sorted([*wanted.ids, *of(50)])
    assert (answer["then 51"]["error"], answer["then 51"]["ids"]) == (None, sorted([*wanted.ids, *of(50), *of(51)]))


@pytest.mark.parametrize("case", OBEYED, ids=lambda case: case.name)
def test_the_remedy_of_today_is_the_one_that_was_obeyed(case: Case, tmp_path: Path) -> None:
    answer = ANSWERS[case.name]
    checkpoint = checkpoint_of(tmp_path / "checkpoint", answer["offsets"], committed=case.committed)
    found = inspected(checkpoint, from_json(answer["now"], case), MINOR)
    today = json.dumps([takes(advice) for advice in advice_on_a_table(found)])
    assert json.loads(today.replace(str(checkpoint), "CHECKPOINT")) == answer["remedies"]
