"""No false all-clear and hardly a false alarm: what a look says of seeded damages, against what Spark did with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckpt.inspection.inspection import inspect
from ckpt.restart.diagnoses.state import OTHER_STATE_DAMAGED, STATE_AHEAD, STATE_MOVED_JOIN
from ckpt.restart.findings import Asked, Severity
from ckpt.state.verify.verify import read_every_byte
from ckpt.versions import Spark
from tests.inspection.alarms.damages import Damage, damages
from tests.inspection.alarms.record import SUITE
from tests.restart.oracle.cases import SAMPLES
from tests.support.spark import mutations

_VERSION = "the file of another version of its store, with rows that fit, and no checksum beside it"
_MOVED = "another offset as Spark could have written it"
_PATH = "another path of a file in the log: only the folder shows which there are (`--sources`)"

UNSEEN: dict[str, str] = {
    "005 state file replaced in aggregation-changelog-4.0": _VERSION,
    "025 file log edited in file-source-3.5": _PATH,
    "027 offset edited in aggregation-changelog-4.0": _MOVED,
    "038 offset edited in aggregation-hdfs-4.2": _MOVED,
    "054 state file replaced in aggregation-hdfs-4.2": _VERSION,
    "091 logs exchanged in aggregation-rocksdb-3.5": "the offsets of the batch before, as a repair writes them too",
    "121 state file replaced in dedup-aggregation-hdfs-4.2": "a file without a key, in place of one with some",
    "176 file log edited in file-source-3.5": _PATH,
    "189 schema edited in limit-hdfs-4.2": "a type of the same form, which all rows fit",
    "192 file log edited in file-source-3.5": _PATH,
    "246 state file replaced in windowed-aggregation-hdfs-4.2": _VERSION,
    "258 offset edited in join-changelog-4.2": _MOVED,
    "291 offset edited in join-hdfs-3.5": _MOVED,
    "319 schema edited in tws-rocksdb-4.2": "a type of the same form, which all rows fit",
}
"""Damages that do harm and that no file shows, and why."""

NEEDLESS: dict[str, str] = {
    "212 offset edited in dedup-hdfs-4.0": "all rows are read again, and the deduplication drops them",
    "282 sources edited in join-hdfs-3.5": "the sources go back to the batch before, which ends at the same rows",
}
"""Damages that do no harm and that hold a start, and why."""

LATE = {"037 state ahead in tws-event-time-changelog-4.2": "the snapshot ahead is loaded by the third start"}
"""Damages that do harm after the batches that were run (``test_remedies_live.py``), and why."""

LATER = ("partitions exchanged", "stores exchanged", "partitions of a store exchanged", "state file replaced")
"""Kinds of damage to state that may do no harm in the few batches that were run: no row of theirs had a lost key."""

OF_OTHER_TIMES = (STATE_MOVED_JOIN, STATE_AHEAD, OTHER_STATE_DAMAGED)
"""Warnings that are true and say nothing of the next batches: of a sample that was moved, of rows that are read again,
of going back."""

_EACH = 8
"""Every eighth damage is looked at in the quick part."""

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
    if answer is None or intact is None or answer["error"] == "it did not end":
        return None
    rows, right = answer["rows"], intact["rows"]
    both = rows.keys() & right.keys()
    return answer["error"] is not None or not both or any(rows[batch] != right[batch] for batch in both)


def _look(damage: Damage, folder: Path) -> dict[str, tuple[bool, bool]]:
    """Tell for each version whether a look gives the all-clear, and whether it holds the start."""
    checkpoint = read_every_byte(str(mutations.copy_of(SAMPLES / damage.sample, folder, damage.mutations)))
    looks = {minor: inspect(checkpoint, [Spark(minor)], Asked.SYNC) for minor in RECORDED}
    answers = {}
    for minor, look in looks.items():
        runs = all(forecast.outcome.runs for forecast in look.counted)
        troubles = [rated for rated in look.troubles if rated.finding.diagnosis not in OF_OTHER_TIMES]
        answers[minor] = not troubles and runs, not runs or any(rated.severity is Severity.ERROR for rated in troubles)
    return answers


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(damage, id=damage.name, marks=[] if not number % _EACH else [pytest.mark.slow])
        for number, damage in enumerate(_asked())
    ],
)
def test_a_look_says_whether_a_start_does_harm(damage: Damage, tmp_path: Path) -> None:
    for minor, (clear, hold) in _look(damage, tmp_path / "checkpoint").items():
        harm = does_harm(damage, minor)
        if harm and clear:
            assert damage.name in UNSEEN, f"a false all-clear on {minor}: {RECORDED[minor][damage.name]}"
        if harm is False and hold and kind_of(damage) not in LATER and damage.name not in LATE:
            assert damage.name in NEEDLESS, f"an alarm without harm on {minor}"


def kind_of(damage: Damage) -> str:
    """Such as ``setting edited``."""
    return damage.name[4:].partition(" in ")[0]


def test_few_alarms_are_needless() -> None:
    damaged = {damage.name for damage in _asked() if not damage.name.endswith(" as it is")}
    assert len(damaged) >= 200
    assert set(UNSEEN) | set(NEEDLESS) <= damaged
    assert len(NEEDLESS) * 100 <= len(damaged)
