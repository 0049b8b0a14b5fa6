"""Some damages again, with the Spark that is installed: they end as recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.laws.field.damages import CASES as MADE
from tests.laws.field.recorder import Control, read, tell
from tests.restart.oracle.cases import Case

pytestmark = pytest.mark.spark

CHOSEN = (
    "newest offsets garbled: stateless-4.2",
    "newest offsets too large: file-source-4.2",
    "newest batch deleted, its checksums left: async-4.2",
    "newest commit cut after its first line: aggregation-hdfs-4.2",
    "newest state file lost: aggregation-rocksdb-4.2",
    "several older state files lost: aggregation-changelog-4.2",
    "newest offsets renamed to .bak: aggregation-format2-4.2",
)
CASES = [case for case in MADE if case.name in CHOSEN]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_damage_ends_as_recorded(case: Case, spark: Any, tmp_path: Path) -> None:
    told = tell(spark, case, Control(spark, case, tmp_path), tmp_path)
    assert {**told, "case": case.name} == {key: value for key, value in read()[case.name].items() if key != "of"}


def test_the_chosen_are_recorded() -> None:
    assert {case.name for case in CASES} == {*CHOSEN}
