"""Old query, hand-over, new query on real Spark, Kafka and Delta: the test counts, no row may be lost or doubled."""

from importlib.util import find_spec
from itertools import chain
from typing import Any

import pytest

from tests.migrate.handoff import continuity

pytestmark = [
    pytest.mark.spark,
    pytest.mark.service,
    pytest.mark.skipif(find_spec("delta") is None, reason="delta-spark is not installed"),
]


@pytest.fixture(scope="module")
def found(kafka: str, kafka_jars: str, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the queries of every scenario read."""
    return continuity.found(spark, tmp_path_factory.mktemp("continuity"), kafka)


def ids(*queries: dict[str, list[int]]) -> list[int]:
    """Every row that some queries read, as often as they did."""
    return sorted(chain.from_iterable(rows for batches in queries for rows in batches.values()))


def up_to(batches: dict[str, list[int]], batch: int) -> dict[str, list[int]]:
    return {number: rows for number, rows in batches.items() if int(number) <= batch}


@pytest.mark.parametrize("source", ["kafka", "delta", "files"])
def test_a_new_query_reads_exactly_the_rows_that_the_old_one_had_not(source: str, found: dict[str, Any]) -> None:
    told = found[source]
    assert ids(told["old"], told["new"]) == list(range(told["rows"]))
    assert ids(told["old"])
    assert ids(told["new"])


@pytest.mark.parametrize(("source", "batch"), [("kafka", 1), ("files", 3)])
def test_behind_an_earlier_batch_it_reads_what_later_batches_had_read_too(
    source: str, batch: int, found: dict[str, Any]
) -> None:
    told = found[source]
    assert len(told["old"]) > batch + 1
    assert ids(up_to(told["old"], batch), told["early"]) == list(range(told["rows"]))


def test_a_partition_that_a_topic_has_gained_is_to_be_named_with_its_beginning(found: dict[str, Any]) -> None:
    assert "you must specify all TopicPartitions" in found["kafka"]["refusal"]
    assert ids(found["kafka"]["rest"]) == list(range(130, 140))


@pytest.mark.parametrize("case", ["committed", "uncommitted"])
def test_lost_offsets_are_replaced_by_lower_ones_and_no_row_is_lost(case: str, found: dict[str, Any]) -> None:
    told = found["kafka"]
    latest = max(map(int, told["old"]))
    assert ids(up_to(told["old"], latest - 1), told["lowered"][case]) == list(range(130))
    assert min(map(int, told["lowered"][case])) == latest + (case == "committed")


def test_a_recreated_topic_is_read_from_its_earliest_rows_and_going_on_would_skip_them(found: dict[str, Any]) -> None:
    told = found["recreated"]
    assert "was changed from 55 to 20" in told["failure"]
    assert ids(told["skipped"]) == list(range(150, 160)), "failOnDataLoss=false skips the 40 rows of the new topic"
    assert ids(told["new"]) == list(range(110, 160))

    (back,) = [one for one in told["findings"] if one["code"] == "CKPT401"]
    assert "Do not start the query with failOnDataLoss=false" in back["remedy"]
    (source,) = told["handoff"]["sources"]
    assert source["begin"] == "earliest"
    assert "do not start the old query again" in " ".join(told["handoff"]["doubts"])


def test_a_table_version_that_does_not_exist_yet_fails_and_one_without_rows_helps(found: dict[str, Any]) -> None:
    assert "DELTA_VERSION_NOT_FOUND" in found["delta"]["too_early"]
    assert ids(found["delta"]["nothing"]) == []


def test_inside_a_table_version_it_is_refused_and_the_way_out_leads_out(found: dict[str, Any]) -> None:
    inside, old = found["delta"]["inside"], found["delta"]["old"]
    assert inside["exit"] == 3
    assert inside["code"] == ""
    assert "no new query can continue here: source 0 (delta): the batch ended inside version" in inside["said"]
    assert ids(up_to(old, 1), inside["more"], inside["after"]) == list(range(60))


def test_sinks_do_with_a_new_checkpoint_what_is_said_of_them(found: dict[str, Any]) -> None:
    told = found["sinks"]
    meanings = {one["kind"]: one["meaning"] for one in told["meanings"]}
    assert told["delta"] == list(range(15))
    assert told["parquet"] == told["fixed"] == list(range(10)), "batch 0 of the new query is skipped"
    assert "Use a new output folder" in meanings["file"]
    assert "Choose another txnAppId" in meanings["foreachBatch with txnAppId"]
    old = [version for query, version in told["txn"] if query == told["query_id"]]
    assert old == [0, 1]
    assert f"appId {told['query_id']} and version 2 or higher" in meanings["delta"], (
        "none is: no later batch was written"
    )
