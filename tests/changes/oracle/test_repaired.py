"""``ckpt repair`` on real histories that were damaged at their end: it continues like a query that never broke.

The batches that come later have other ranges than those of the abandoned timeline: with equal ranges every mistake
would pass unseen. All are recorded: `python -m tests.support.spark.recording repaired`.
"""

import pytest

from tests.changes.oracle.repaired import CASES, DAMAGES
from tests.support.spark import recording


@pytest.mark.parametrize("case", CASES)
def test_it_continued_as_a_query_that_never_broke(case: str) -> None:
    answer = recording.read("repaired")[case]
    assert answer["fix"] == DAMAGES[CASES[case][1]][1]
    assert answer["found"]["rows"]
    assert answer["found"] == answer["expected"]
