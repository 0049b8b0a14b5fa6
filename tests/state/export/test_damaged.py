"""Spark as the judge of what a plan promises: what is let through can be read, and so can what is offered instead."""

from __future__ import annotations

import re
from typing import Any

import pytest

import ckpt
from ckpt.errors import CkptError, UsageError
from ckpt.state.reading.columns import flat_columns
from ckpt.state.reading.units import state_units
from tests.conftest import Ckpt, CopyOf
from tests.state.export import rows
from tests.support.places import ROOT, SAMPLES
from tests.support.spark.damage import DAMAGED
from tests.support.spark.queries import drain

pytestmark = pytest.mark.spark

BASES = {damaged.name: damaged.base for damaged in DAMAGED}


@pytest.mark.parametrize(
    "damaged",
    [
        "missing-operator-metadata",
        "missing-snapshot-zip",
        "truncated-changelog",
        "truncated-delta",
        "truncated-snapshot",
        "truncated-zip",
    ],
)
def test_what_spark_gets_round_is_read(damaged: str, spark: Any) -> None:
    name = f"damaged-{damaged}"
    (unit,) = state_units(ckpt.open_checkpoint(str(SAMPLES / name)))
    frame = ckpt.read_state(str(SAMPLES / name), session=spark)
    assert rows.content(frame) == rows.flattened(rows.answer(BASES[name], unit), flat_columns(unit.schema))


@pytest.mark.parametrize(
    "damaged",
    [
        "empty-delta",
        "missing-changelog",
        "missing-delta",
        "missing-sst",
        "missing-unique-ids",
        "missing-zip",
        "short-of-recorded-size",
        "truncated-sst",
    ],
)
def test_the_batch_that_is_offered_instead_can_be_read(damaged: str, spark: Any) -> None:
    must_be_readable(str(SAMPLES / f"damaged-{damaged}"), spark)


def must_be_readable(path: str, spark: Any) -> None:
    """The state after the batch that is offered instead holds ten rows of each batch."""
    with pytest.raises(CkptError, match=r"`batch=\d+`") as refused:
        ckpt.read_state(path, session=spark)
    offered = int(re.findall(r"batch=(\d+)", str(refused.value))[-1])
    frame = ckpt.read_state(path, session=spark, batch=offered)
    assert frame.selectExpr("sum(value_count)").head()[0] == 10 * (offered + 1)


def test_session_windows_without_operator_metadata(spark: Any, copy_of: CopyOf) -> None:
    """As Spark 3.5 leaves them in RocksDB: no file says which columns of the key come first."""
    sample = "session-window-changelog-4.2"
    path = copy_of(sample, {"op": "delete_tree", "path": "state/0/_metadata"})
    (unit,) = state_units(ckpt.open_checkpoint(str(path)))
    assert unit.prefix_columns == 1
    frame = ckpt.read_state(str(path), session=spark)
    assert rows.content(frame) == rows.flattened(rows.answer(sample, unit), flat_columns(unit.schema))


def test_the_other_side_of_a_damaged_join_is_read(spark: Any) -> None:
    frame = ckpt.read_state(str(SAMPLES / "damaged-missing-join-store"), session=spark, side="left")
    assert frame.count() == 40


def test_names_that_repeat_hold_their_own_values(spark: Any, tmp_path: Any) -> None:
    """Two sums make two fields of one name in the state; keys with expressions for names are quoted nowhere."""
    from pyspark.sql import functions as F

    own = spark.newSession()
    source = own.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).option("numPartitions", 1).load()
    grouped = source.withColumn("a key, with (odd) letters", F.col("value") % 3).groupBy("a key, with (odd) letters")
    sums = grouped.agg(F.sum("value"), F.sum(F.col("value") * 100), F.collect_list("value"), F.max(F.struct("value")))
    drain(sums, tmp_path / "ck", "update", "noop")

    frame = ckpt.read_state(str(tmp_path / "ck"), session=spark)

    names = ["key_a_key_with_odd_letters", "value_sum", "value_sum_2", "value_buf", "value_max_value"]
    assert frame.columns == names
    assert {(row[0], row[1], row[2], row[4]) for row in frame.collect()} == {
        (0, 18, 1800, 9),
        (1, 12, 1200, 7),
        (2, 15, 1500, 8),
    }


def test_shapes_that_do_not_exist_are_refused(spark: Any) -> None:
    with pytest.raises(UsageError, match="flat or raw"):
        ckpt.read_state(str(SAMPLES / "aggregation-hdfs-4.2"), session=spark, shape="round")


def test_a_page_says_what_is_wrong_in_one_line(ckpt: Ckpt) -> None:
    result = ckpt(
        "export-state", "--engine", "spark", ROOT / "sample_checkpoints" / "damaged-missing-sst", "--to", "/tmp/never"
    )
    assert result.exit_code == 3
    assert "CKPT303" in result.refusal()


def test_a_cut_rocksdb_snapshot_is_not_promised_and_what_is_offered_instead_can_be_read(
    copy_of: CopyOf, spark: Any
) -> None:
    """A start falls back to an older snapshot, Spark's reader does not."""
    cut = {"op": "truncate", "path": "state/0/0/{latest}.zip", "bytes": 60}
    must_be_readable(str(copy_of("aggregation-changelog-4.2", cut)), spark)
