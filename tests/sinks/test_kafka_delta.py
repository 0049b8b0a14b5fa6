"""Incidents of queries from Kafka into a Delta table: in the end each number is there as often as the plan had said."""

from collections import Counter
from importlib.util import find_spec
from typing import Any

import pytest

if find_spec("pyspark") is None or find_spec("delta") is None:
    pytest.skip("delta-spark is not installed", allow_module_level=True)

from tests.sinks import kafka_delta
from tests.sinks.kafka_delta import ALL, BUCKETS, OLD, Query

pytestmark = [pytest.mark.spark, pytest.mark.service]

CASES = [pytest.param(name, query, id=f"{name}: {query.name}") for name, query in kafka_delta.cases()]
Found = dict[tuple[str, Query], dict[str, Any]]


@pytest.fixture(scope="module")
def found(kafka: str, kafka_jars: str, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What became of every query in every incident."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CKPT_KAFKA", kafka)
        return kafka_delta.found(spark, kafka, tmp_path_factory.mktemp("incidents"))


def table(query: Query, left_out: list[int], again: list[int]) -> dict[int, int]:
    """What a table holds: every number once but for some, and some once more where they are appended."""
    numbers = Counter(set(range(ALL)) - set(left_out))
    if not query.stateful and not query.merges:
        numbers += Counter(again)
    if not query.counts:
        return dict(sorted(numbers.items())) if not query.merges else dict.fromkeys(sorted(numbers), 1)
    return {bucket: sum(number % BUCKETS == bucket for number in numbers) for bucket in range(BUCKETS)}


@pytest.mark.parametrize(("name", "query"), CASES)
def test_the_table_holds_what_the_plan_had_said(name: str, query: Query, found: Found) -> None:
    told = found[name, query]
    assert told["error"] == ""
    assert told["rows"] == table(query, told.get("skipped", []), told.get("again", []))
    if told.get("again") and not query.stateful:
        assert told["repeats"] is not None
    if "skipped" in told:
        assert "poison" in told["failed"]
        assert len(told["skipped"]) == 10
        assert min(told["skipped"]) >= OLD
    if "without the cure" in told:
        assert "CANNOT_READ_DELTA_FILE_NOT_EXISTS" in told["without the cure"]
    if "by hand" in told:
        assert told["by hand"] == dict.fromkeys(range(ALL), 1)
