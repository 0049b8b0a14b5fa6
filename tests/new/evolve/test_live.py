"""A part of the recorded changes asked again, on the Spark that is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.new.evolve.cases import CASES, Case
from tests.new.evolve.columns import COLUMN_CASES, ColumnCase
from tests.new.evolve.record import ask, check
from tests.new.evolve.running import Answering
from tests.new.evolve.tables import TABLE_CASES
from tests.support.spark.live import EVERY_CASE, Here

pytestmark = pytest.mark.spark

LIVE = (
    "delta and file rows: add table first",
    "two files agg planned: reorder and add",
    "two files rows: add middle, in place",
    "names agg: renamed",
    "hdfs: agg to dedup agg, source added",
    "a variable renamed, its fields in another order, one gone",
    "a much longer gap, aggregates more and less",
)
"""Other columns of state are in `test_on_spark.py`."""
EVERY: tuple[Case | ColumnCase, ...] = (*CASES, *TABLE_CASES, *COLUMN_CASES)
BY_NAME = {case.name: case for case in EVERY}
ASKED = [case for case in EVERY if case.needs in ("", "delta")] if EVERY_CASE else [BY_NAME[name] for name in LIVE]


@pytest.fixture(scope="module")
def here(spark: Any) -> Here:
    return Here(spark, Answering().answer)


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.name)
def test_a_changed_query_continues(
    here: Here, spark: Any, case: Case | ColumnCase, tmp_path_factory: pytest.TempPathFactory
) -> None:
    minor = ".".join(spark.version.split(".")[:2])
    folder = Path(tmp_path_factory.getbasetemp()) / "evolve" / str(EVERY.index(case))
    folder.parent.mkdir(exist_ok=True)
    check(case, ask(here, case, minor, folder))
