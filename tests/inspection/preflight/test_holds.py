"""A start that is held has a finding that says why: every damage of the oracle, and each that is seeded."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckpt.checkpoint.reader import open_to_look
from ckpt.inspection.preflight import PlannedStart, judge_start
from ckpt.versions import Spark
from tests.inspection.alarms.damages import damages
from tests.restart.oracle.cases import CASES, SAMPLES
from tests.support.spark import mutations
from tests.support.spark.live import EVERY_CASE

_ASKED = (None, Spark.V3_5, Spark.V4_2)
_EACH = 32  # `make quick` looks at each 32nd damage

_ALL = [
    *((case.name, case.folder, case.mutations) for case in CASES if case.folder.is_dir()),
    *((damage.name, SAMPLES / damage.sample, damage.mutations) for damage in damages()),
]


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(slice(None, None, _EACH), id="some"),
        pytest.param(slice(None, None, 1 if EVERY_CASE else 10), id="many", marks=pytest.mark.slow),
    ],
)
def test_a_hold_has_a_finding(part: slice, tmp_path: Path) -> None:
    held = 0
    for number, (name, folder, damage) in enumerate(_ALL[part]):
        checkpoint = open_to_look(str(mutations.copy_of(folder, tmp_path / f"{number}" / "checkpoint", damage)))
        for spark in _ASKED:
            readiness = judge_start(checkpoint, PlannedStart(spark))
            assert readiness.go or readiness.holds, (name, spark)
            held += not readiness.go
    assert held >= len(_ALL[part])
