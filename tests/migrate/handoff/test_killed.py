"""A query that is killed in the middle of a batch, and handed over: state and new query account for each row once."""

import sys
from importlib.util import find_spec
from itertools import chain
from typing import Any

import pytest

from tests.migrate.handoff.killed import ALL, KILLED_IN, new
from tests.support.services.process import kill_when_ready

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(find_spec("delta") is None, reason="delta-spark is not installed"),
]


@pytest.fixture(scope="module")
def found(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What was handed over, exported and read, source by source."""
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-m", "tests.migrate.handoff.killed", str(folder)]
    kill_when_ready(command, folder / "errors")
    return new(spark, folder)


@pytest.mark.parametrize("source", ["files", "delta"])
def test_it_died_in_the_middle_of_a_batch(source: str, found: dict[str, Any]) -> None:
    assert found[source]["batches"] == {"offsets": [*range(KILLED_IN + 1)], "commits": [*range(KILLED_IN)]}


@pytest.mark.parametrize("source", ["files", "delta"])
def test_state_and_new_query_account_for_each_row_once(source: str, found: dict[str, Any]) -> None:
    told = found[source]
    ids = sorted(chain.from_iterable(told["new"].values()))
    assert told["handoff"]["batch"] == KILLED_IN - 1
    assert ids == list(range(2 * KILLED_IN, ALL))
    assert told["state"]["rows"] + len(ids) == ALL
    assert told["state"]["sum"] + sum(ids) == sum(range(ALL))


@pytest.mark.parametrize("source", ["files", "delta"])
def test_the_batch_that_may_be_in_the_sink_is_named(source: str, found: dict[str, Any]) -> None:
    told = found[source]["handoff"]
    assert found[source]["exit"] == 1
    assert not told["exact"]
    assert [(one["batch"], one["committed"]) for one in told["later"]] == [(KILLED_IN, False)]
    assert any(f"Batch {KILLED_IN} was planned but not committed" in doubt for doubt in told["doubts"])
