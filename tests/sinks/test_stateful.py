"""A stateful query goes back by a batch: the sink passes over it, and one start into noop computes its state.

Recorded on every Spark (`record.py`), and run on the installed one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.oracle.answers import VERSIONS
from tests.sinks.record import read
from tests.sinks.stateful import BATCHES, NUMBERS, Numbers, followed, gone_back


@pytest.mark.parametrize("minor", VERSIONS)
def test_one_start_into_noop_brought_the_state_back(minor: str) -> None:
    answer = read("stateful")[minor]["files"]
    assert answer["at once"] == "state/0/0/", "the state of the batch that was passed over is not there"
    assert answer["noop"] == answer["then"] == ""
    assert answer["times"] == [1] * NUMBERS


@pytest.mark.spark
def test_one_start_into_noop_brings_the_state_back(spark: Any, tmp_path: Path) -> None:
    query = Numbers(spark, tmp_path)
    plan = gone_back(query, tmp_path / "old")
    assert any('.writeStream.format("noop").trigger(once=True)' in text for text in plan.warnings)

    answer = followed(query, tmp_path / "old")

    assert f"/state/0/0/{BATCHES}.delta" in answer["at once"]
    assert answer["noop"] == answer["then"] == ""
    assert answer["times"] == [1] * NUMBERS
