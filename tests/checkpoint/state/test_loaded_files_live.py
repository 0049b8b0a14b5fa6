"""Spark fails on wrong bytes in the middle of a state file whose end is intact, and a plain look says so."""

from pathlib import Path
from typing import Any

import pytest

import ckpt as library
from tests.checkpoint.state.test_loaded_files import corrupt, newest_zip
from tests.restart.oracle import observe, starts
from tests.restart.oracle.cases.model import Case
from tests.support.spark import mutations, queries

pytestmark = pytest.mark.spark

CASES = [
    Case("zip", "aggregation-rocksdb-4.2", query="aggregation"),
    Case("delta", "aggregation-hdfs-4.2", query="aggregation"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_sixteen_wrong_bytes_stop_spark_and_are_said(case: Case, spark: Any, tmp_path: Path) -> None:
    for wrong in (False, True):
        checkpoint = mutations.copy_of(case.folder, tmp_path / str(wrong))
        damaged = newest_zip(checkpoint) if case.name == "zip" else checkpoint / "state/0/0/10.delta"
        assert damaged.stat().st_size < 6_000
        if wrong:
            corrupt(damaged)
        forecast = library.inspect(str(checkpoint), spark=["4.2"], progress="sync").counted[0]
        answer = observe.observe(
            spark, queries.QUERIES[case.query], checkpoint, "sync", store=case.settings, batches=1, inputs=tmp_path
        )
        starts.forget_state(spark)

        assert forecast.outcome == answer["outcome"], answer
        assert forecast.outcome.runs is not wrong
        assert not wrong or any((forecast.error or "") in error for error in answer["error"])
