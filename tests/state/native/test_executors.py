"""Spark's executors answer about state as processes of this machine do."""

from typing import Any

import pytest

import ckpt
from tests.support.places import ROOT

SAMPLES = ROOT / "sample_checkpoints"


@pytest.mark.spark
@pytest.mark.parametrize("name", ["aggregation-hdfs-4.2", "join-rocksdb-4.0"])
def test_executors_answer_as_processes_do(name: str, spark: Any) -> None:
    path = str(SAMPLES / name)
    with ckpt.types.Executors(ckpt.types.Session(spark)) as by:
        assert ckpt.state_count(path, engine=by) == ckpt.state_count(path)
        if "join" not in name:
            assert ckpt.state_keys(path, engine=by) == ckpt.state_keys(path)
        assert ckpt.state_verify(path, engine=by) == ckpt.state_verify(path)
        assert ckpt.state_diff(path, from_batch=1, engine=by) == ckpt.state_diff(path, from_batch=1)
