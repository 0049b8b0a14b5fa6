"""Whatever preflight holds, a finding says why: every damage that Spark was asked about, version by version."""

import pytest

from ckpt.checkpoint.reader import open_checkpoint
from ckpt.inspection.preflight import PlannedStart, judge_start
from ckpt.restart.findings import Asked
from ckpt.versions import Spark
from tests.restart.oracle import cases
from tests.support.spark import mutations

_EACH = 16  # of the cases, so that the quick part takes less than a second

STARTS = [
    *(PlannedStart(spark=spark, progress=progress) for spark in (None, *Spark) for progress in Asked),
    PlannedStart(must_exist=True),
]


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(1, _EACH))])
def test_every_hold_has_a_finding(first: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    silent = []
    for case in cases.CASES[first::_EACH]:
        if not case.folder.is_dir():
            continue
        folder = tmp_path_factory.mktemp("case") / "checkpoint"
        mutations.copy_of(case.folder, folder, case.mutations)
        checkpoint = open_checkpoint(str(folder))
        answers = ((start, judge_start(checkpoint, start)) for start in STARTS)
        silent += [(case.name, start) for start, answer in answers if not answer.go and not answer.holds]
    assert silent == []
