"""A stateful query goes back by a batch: the sink passes over it, and one start into noop computes its state.

Recorded on every Spark (`record.py`), and run on the installed one. A copy has the state of a planned batch with it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ckpt.changes.plan import First
from ckpt.changes.rewind.rewind import rewind
from ckpt.new.copy.copy import copy
from tests.conftest import Ckpt
from tests.live.sink.record import STATEFUL
from tests.live.sink.stateful import BATCHES, NEWEST, NUMBERS, Numbers, followed, gone_back
from tests.restart.oracle.answers import VERSIONS
from tests.support.remedies import NOW, remove
from tests.support.spark.live import EVERY_CASE


@pytest.mark.parametrize("minor", VERSIONS)
def test_one_start_into_noop_brought_the_state_back(minor: str) -> None:
    answer = STATEFUL.recorded(minor)["files"]
    assert answer["at once"] == "state/0/0/", "the state of the batch that was passed over is not there"
    assert answer["noop"] == answer["then"] == ""
    assert answer["times"] == [1] * NUMBERS


@pytest.mark.spark
def test_one_start_into_noop_brings_the_state_back(spark: Any, tmp_path: Path) -> None:
    query = Numbers(spark, tmp_path)
    plan = gone_back(query, tmp_path / "old")
    assert plan.first is First.NOOP
    assert any('.writeStream.format("noop").trigger(once=True)' in str(text) for text in plan.notices)

    answer = followed(query, tmp_path / "old")

    assert f"/state/0/0/{BATCHES}.delta" in answer["at once"]
    assert answer["noop"] == answer["then"] == ""
    assert answer["times"] == [1] * NUMBERS


@pytest.mark.spark
@pytest.mark.parametrize("sink", ["parquet", "delta"] if EVERY_CASE else ["parquet"])
def test_preflight_holds_a_repaired_query_until_it_has_run_into_noop(
    sink: str, spark: Any, ckpt: Ckpt, tmp_path: Path
) -> None:
    query, place = Numbers(spark, tmp_path, sink), tmp_path / "query"
    checkpoint = place / "checkpoint"
    query.add(0, BATCHES)
    assert query.start(place) == ""
    remove(checkpoint / "state" / "0" / "0" / f"{BATCHES}.delta")
    query.add(BATCHES)

    repaired = ckpt("repair", checkpoint, "--sink", place / "out", "--apply", "--accept-replay", "--grace", 0)

    assert repaired.exit_code == 0
    assert "only then does preflight answer START." in " ".join(repaired.stdout.split())
    held = ckpt("preflight", checkpoint, "-o", "json")
    assert (held.exit_code, [one["code"] for one in held.json()["holds"]]) == (1, ["CKPT419"])
    assert ckpt("preflight", checkpoint, "--sink", place / "out").exit_code == 1
    assert query.start(place, noop=True) == ""
    assert ckpt("preflight", checkpoint).exit_code == 0
    assert query.start(place) == ""
    assert query.times(place) == dict.fromkeys(range(NUMBERS), 1)
    assert ckpt("preflight", checkpoint).exit_code == 0


@pytest.mark.spark
@pytest.mark.parametrize("written", [True, False] if EVERY_CASE else [True])
def test_of_a_planned_batch_the_page_says_how_to_see_whether_the_sink_has_it(
    written: bool, spark: Any, tmp_path: Path
) -> None:
    query, place = Numbers(spark, tmp_path), tmp_path / "query"
    query.add(0, BATCHES)
    assert query.start(place) == ""
    entry = place / "out" / "_spark_metadata" / str(NEWEST)
    remove(place / "checkpoint" / "commits" / str(NEWEST))
    if not written:
        remove(entry)

    plan, receipt = rewind(str(place / "checkpoint"), to_batch=NEWEST - 1, **NOW)

    assert (receipt.applied, plan.first) == (True, First.NOOP_IF_WRITTEN)
    assert any(
        f"its output folder contains _spark_metadata/{NEWEST} or a later entry" in str(s.says) for s in plan.in_sinks
    )
    query.add(BATCHES)
    if entry.exists():
        assert query.start(place, noop=True) == ""
    assert query.start(place) == ""
    assert query.times(place) == dict.fromkeys(range(NUMBERS), 1)


@pytest.mark.spark
@pytest.mark.parametrize("sink", ["parquet", "delta"] if EVERY_CASE else ["delta"])
def test_a_copy_of_a_query_that_was_killed_before_its_commit(sink: str, spark: Any, tmp_path: Path) -> None:
    """The sink has the planned batch and passes over it: its state has to be in the copy."""
    query, place = Numbers(spark, tmp_path, sink), tmp_path / "query"
    query.add(0, BATCHES)
    assert query.start(place) == ""
    remove(place / "checkpoint" / "commits" / str(NEWEST))

    assert copy(str(place / "checkpoint"), str(tmp_path / "copy")).batch == NEWEST - 1
    shutil.rmtree(place / "checkpoint")
    (tmp_path / "copy").rename(place / "checkpoint")
    query.add(BATCHES)
    query.add(NEWEST)

    assert query.start(place) == ""
    assert query.times(place) == dict.fromkeys(range(NUMBERS), 1)
