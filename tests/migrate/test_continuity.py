"""Old query, stop, migration, generated query on real Spark, Kafka and Delta, against a query that nobody stopped.

Every answer of the two queries together is held against the answers of the control: none missing, none twice.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.migrate.continuity import split
from tests.migrate.continuity_cases import EVERY, SOME, Outcome, expected, run
from tests.migrate.continuity_input import STOP
from tests.support.spark.recording import read

real = [  # marks of the tests that start something
    pytest.mark.spark,
    pytest.mark.service,
    pytest.mark.skipif(find_spec("delta") is None, reason="delta-spark is not installed"),
]


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest, kafka: str, kafka_jars: str, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Outcome]:
    """What came of each case that was asked for; one JVM, which is killed, runs the old queries."""
    folder: Path = tmp_path_factory.mktemp("continuity")
    asked = {item.name for item in request.session.items if item.path == request.path}
    cases = [case for case in SOME if any(f"[{case}]" in name for name in asked)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CKPT_KAFKA", kafka)
        patch.setenv("CKPT_SPARK_JARS", kafka_jars)
        return {one.case: one for one in run(spark, folder, cases)}


@pytest.mark.parametrize("case", [pytest.param(case, marks=real) for case in SOME])
def test_the_new_query_goes_on_as_if_nothing_had_happened(case: str, outcomes: dict[str, Outcome]) -> None:
    one = outcomes[case]
    kind, _, stop = split(case)
    assert (one.lost, one.surplus) == ([], [])
    assert one.rows() == expected(kind)
    assert one.old
    assert one.new
    offsets, commits = one.batches["old"]["offsets"], one.batches["old"]["commits"]
    assert commits[:STOP] == list(range(STOP))
    assert offsets == (list(range(STOP + 1)) if stop == "killed" else commits)
    assert commits[STOP:] == [] or stop == "clean"
    assert one.state_version == max(offsets) + 1, "state of the batch that was killed is there, and is not to be taken"
    assert one.batches["new"]["offsets"] == one.batches["new"]["commits"]
    sys.stdout.write(f"{case}: {one.old.total()} answers before, {one.new.total()} after, {one.rows()} rows\n")


def test_the_recorded_run_of_every_case_lost_nothing_and_doubled_nothing() -> None:
    recorded = read("continuity")
    assert sorted(recorded) == sorted(EVERY)
    for case, one in recorded.items():
        assert (one["lost"], one["surplus"], one["rows"]) == ([], [], expected(split(case)[0])), case
