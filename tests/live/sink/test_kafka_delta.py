"""Incidents of queries from Kafka into a Delta table: in the end each number is there as often as the plan had said.

All are recorded (`python -m tests.support.spark.recording kafka-delta`), and some are run.
"""

from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import pytest

if find_spec("pyspark") is None or find_spec("delta") is None:
    pytest.skip("delta-spark is not installed", allow_module_level=True)

from tests.live.sink import kafka_delta
from tests.live.sink.kafka_delta import ALL, BUCKETS, LIVE, OLD, Query, case
from tests.support.spark import recording
from tests.support.spark.live import EVERY_CASE

CASES = kafka_delta.cases()
ASKED = CASES if EVERY_CASE else LIVE


def named(cases: Sequence[tuple[str, Query]]) -> list[Any]:
    return [pytest.param(*one, id=case(*one)) for one in cases]


@pytest.fixture(scope="module")
def found(kafka: str, kafka_jars: str, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of those that are asked now."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CKPT_KAFKA", kafka)
        return kafka_delta.found(spark, kafka, tmp_path_factory.mktemp("incidents"), ASKED)


def table(query: Query, left_out: list[int], again: list[int]) -> dict[int, int]:
    """What a table holds: every number once but for some, and some once more where they are appended."""
    numbers = Counter(set(range(ALL)) - set(left_out))
    if not query.stateful and not query.merges:
        numbers += Counter(again)
    if not query.counts:
        return dict(sorted(numbers.items())) if not query.merges else dict.fromkeys(sorted(numbers), 1)
    return {bucket: sum(number % BUCKETS == bucket for number in numbers) for bucket in range(BUCKETS)}


@pytest.mark.parametrize(("name", "query"), named(CASES))
def test_the_table_held_what_the_plan_had_said(name: str, query: Query) -> None:
    judge(query, recording.read("kafka-delta")[case(name, query)])


@pytest.mark.spark
@pytest.mark.service
@pytest.mark.parametrize(("name", "query"), named(ASKED))
def test_the_table_holds_what_the_plan_had_said(name: str, query: Query, found: dict[str, Any]) -> None:
    judge(query, found[case(name, query)])


def judge(query: Query, told: dict[str, Any]) -> None:
    """Compare what is in a table with what was said."""
    assert told["error"] == ""
    assert rows(told["rows"]) == table(query, told.get("skipped", []), told.get("again", []))
    if told.get("again") and not query.stateful:
        assert told["repeats"] is not None
    if "skipped" in told:
        assert "poison" in told["failed"]
        assert len(told["skipped"]) == 10
        assert min(told["skipped"]) >= OLD
    if "without the cure" in told:
        assert "CANNOT_READ_DELTA_FILE_NOT_EXISTS" in told["without the cure"]
    if "by hand" in told:
        assert rows(told["by hand"]) == dict.fromkeys(range(ALL), 1)


def rows(told: dict[str, int]) -> dict[int, int]:
    """Of each number, or bucket, what is in the table."""
    return {int(number): count for number, count in told.items()}
