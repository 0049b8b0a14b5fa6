"""The recorded queries (``record.py``) have each row once in their sink and state, after each of ten ways back."""

import pytest

from tests.new.copy.points_expected import must_be_exact
from tests.new.copy.record import BACK, MORE, STORES, SUITE, Case
from tests.new.rewrite.record import MAIN

ANSWERS = SUITE.recorded(MAIN)
RECORDED = [case for case in SUITE.cases(MAIN) if case.name in ANSWERS]


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case.name)
def test_each_row_is_there_once(case: Case) -> None:
    answers = ANSWERS[case.name]["points"]
    assert len(answers) == BACK
    must_be_exact(case.query, answers, MORE + 1)


def test_every_store_is_recorded() -> None:
    assert {case.store for case in RECORDED} == {*STORES}
