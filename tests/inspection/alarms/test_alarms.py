"""No false all-clear and hardly a false alarm: what a look says of seeded damages, against what Spark did with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckpt.inspection.inspection import inspect
from ckpt.restart.diagnoses.state import OTHER_STATE_DAMAGED, STATE_AHEAD, STATE_MOVED_JOIN
from ckpt.state.verify.verify import read_every_byte
from tests.inspection.alarms.damages import Damage, damages
from tests.inspection.alarms.record import SUITE
from tests.restart.oracle.cases import SAMPLES
from tests.support.spark import mutations

UNSEEN: dict[str, str] = {}
"""Damages that do harm and that no file shows, and why."""

NEEDLESS: dict[str, str] = {}
"""Damages that did no harm in the batches that were run, and of which a look warns, and why."""

OF_OTHER_TIMES = (STATE_MOVED_JOIN, STATE_AHEAD, OTHER_STATE_DAMAGED)
"""Warnings that are true and say nothing of the next batches: of a sample that was moved, of rows that are read again,
of going back."""

_EACH = 4
"""Every fourth damage is looked at in the quick part."""

RECORDED = {minor: SUITE.recorded(minor) for minor in SUITE.answers.minors}


def _asked() -> list[Damage]:
    return [
        damage
        for damage in damages()
        if any(damage.name in answers and f"{damage.sample} as it is" in answers for answers in RECORDED.values())
    ]


def does_harm(damage: Damage, minor: str) -> bool | None:
    """Tell whether a start failed, or a batch brought other rows than that of the sample; None: it was not asked."""
    answers = RECORDED[minor]
    answer, intact = answers.get(damage.name), answers.get(f"{damage.sample} as it is")
    if answer is None or intact is None:
        return None
    rows, right = answer["rows"], intact["rows"]
    both = rows.keys() & right.keys()
    return answer["error"] is not None or not both or any(rows[batch] != right[batch] for batch in both)


def _look(damage: Damage, folder: Path) -> dict[str, bool]:
    """Tell for each version whether a look is not content: a warning, an error, or a start that may not run."""
    checkpoint = read_every_byte(str(mutations.copy_of(SAMPLES / damage.sample, folder, damage.mutations)))
    looks = {minor: inspect(checkpoint, [minor], asked="sync") for minor in RECORDED}
    return {
        minor: any(rated.finding.diagnosis not in OF_OTHER_TIMES for rated in look.troubles)
        or not all(forecast.outcome.runs for forecast in look.counted)
        for minor, look in looks.items()
    }


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(damage, id=damage.name, marks=[] if not number % _EACH else [pytest.mark.slow])
        for number, damage in enumerate(_asked())
    ],
)
def test_a_look_says_whether_a_start_does_harm(damage: Damage, tmp_path: Path) -> None:
    alarms = _look(damage, tmp_path / "checkpoint")
    for minor, alarm in alarms.items():
        harm = does_harm(damage, minor)
        if harm is None:
            continue
        if harm and not alarm:
            assert damage.name in UNSEEN, f"a false all-clear on {minor}: {RECORDED[minor][damage.name]}"
        if alarm and not harm:
            assert damage.name in NEEDLESS, f"an alarm without harm on {minor}"


def test_few_alarms_are_needless() -> None:
    damaged = [damage for damage in _asked() if not damage.name.endswith(" as it is")]
    assert len(damaged) >= 50
    assert set(UNSEEN) | set(NEEDLESS) <= {damage.name for damage in damages()}
