"""``ckpt repair`` on real histories that were damaged at their end: it continues like a query that never broke.

The batches that come later have other ranges than those of the abandoned timeline: with equal ranges every mistake
would pass unseen. All are recorded (`python -m tests.support.spark.recording repaired`), and with CKPT_TEST_ALL=1 run.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.changes.oracle import repaired
from tests.changes.oracle.repaired import CASES, DAMAGES
from tests.support.spark import recording


@pytest.fixture(scope="module")
def found(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the batches, rows and state with today's ckpt."""
    return repaired.found(spark, tmp_path_factory.mktemp("repaired"), CASES)


@pytest.mark.parametrize("case", CASES)
def test_it_continued_as_a_query_that_never_broke(case: str) -> None:
    judge(case, recording.read("repaired")[case])


@pytest.mark.spark
@pytest.mark.parametrize("case", CASES)
def test_it_continues_as_a_query_that_never_broke(case: str, found: dict[str, Any]) -> None:
    judge(case, found[case])


def judge(case: str, one: dict[str, Any]) -> None:
    """Compare what was chosen and found with what was to be."""
    assert one["fix"] == DAMAGES[CASES[case][1]][1]
    assert one["found"]["rows"]
    assert one["found"] == one["expected"]
