"""What each Spark did on a rewritten checkpoint, and on a copy of the old one: the same (``record.py``)."""

import pytest

from tests.new.rewrite import record

ANSWERS = record.SUITE.answers.read_all()
RECORDED = [(minor, case) for minor in ANSWERS for case in record.cases(minor)]


@pytest.mark.parametrize(("minor", "case"), [pytest.param(*one, id=f"{one[0]}-{one[1].name}") for one in RECORDED])
def test_a_query_continued_as_on_the_old_checkpoint(minor: str, case: record.Case) -> None:
    """The same rows in each batch, through a SIGKILL and a restart, and equal state when it was killed again."""
    told = ANSWERS[minor]["cases"][case.name]
    assert told["new"] == told["old"]
    first, second = told["old"]["rows"].values()
    killed = max(map(int, first))
    assert killed in map(int, second), "the batch in which it was killed ran again"
    first_kill, last_kill = record.killed(minor, case)
    assert max(map(int, second)) >= killed + last_kill - first_kill
    assert any(rows for rows, _ in told["old"]["state"].values())
