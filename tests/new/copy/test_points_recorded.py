"""The recorded queries (``record.py``) have each row once in their sink and state, after each of ten ways back."""

import pytest

from tests.new.copy.points_expected import must_be_exact
from tests.new.copy.record import BACK, MORE, SUITE, Case
from tests.new.rewrite.record import MAIN

ANSWERS = SUITE.recorded(MAIN)


@pytest.mark.parametrize("case", SUITE.cases(MAIN), ids=lambda case: case.name)
def test_each_row_is_there_once(case: Case) -> None:
    answers = ANSWERS[case.name]["points"]
    assert len(answers) == BACK
    must_be_exact(case.query, answers, MORE + 1)
