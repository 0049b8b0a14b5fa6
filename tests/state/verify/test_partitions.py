"""Files in the folder of another partition: no byte is wrong, and Spark does not find the keys."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import ckpt as library
from tests.conftest import Ckpt, CopyOf
from tests.restart.oracle import observe
from tests.support.spark import queries
from tests.support.spark.samples import SAMPLES as MADE

STORES = {sample.name: sample.store for sample in MADE}
QUERIES = {sample.name: sample.query for sample in MADE}
SWAPPED = ("aggregation-hdfs-4.2", "aggregation-changelog-4.2", "aggregation-rocksdb-4.2", "dedup-hdfs-4.0")


def swap(checkpoint: Path) -> None:
    """Exchange what two partitions hold, but for the schema, which is in the first."""
    one, other, between = (checkpoint / "state/0" / name for name in ("0", "1", "between"))
    shutil.move(one / "_metadata", checkpoint / "state/0/kept")
    one.rename(between)
    other.rename(one)
    between.rename(other)
    shutil.move(checkpoint / "state/0/kept", one / "_metadata")


@pytest.mark.parametrize("sample", SWAPPED)
def test_swapped_partitions_are_seen(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(sample)
    swap(checkpoint)
    document = ckpt("state", "verify", checkpoint, "-o", "json").json()
    found = [(one["path"], one["kind"]) for one in document["damages"]]
    assert found == [(f"state/0/{partition}", "wrong-partition") for partition in (0, 1)]
    deep = ckpt("inspect", checkpoint, "--deep", "-o", "json")
    errors = {one["code"] for one in deep.json()["findings"] if one["severity"] == "error"}
    assert (deep.exit_code, errors) == (1, {"CKPT324"})
    assert ckpt("inspect", checkpoint).exit_code == 0


@pytest.mark.spark
def test_spark_begins_such_keys_anew(spark: Any, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    swap(checkpoint)
    query = queries.QUERIES[QUERIES["aggregation-hdfs-4.2"]]
    answer = observe.observe(spark, query, checkpoint, "sync")
    assert answer["outcome"] == "resumes"
    rows = library.read_state_arrow(str(checkpoint)).to_pylist()
    twice = [key for key, count in Counter(row["key_key"] for row in rows).items() if count == 2]
    assert twice, "a key is in both partitions: with what it had, and with what came since"
