"""The state of the checkpoints of Spark's own tests is counted as two other engines count it."""

import json

import pytest

import ckpt
from tests.state.export import rows
from tests.state.native import agreement
from tests.support.places import GOLDENS

RECORDED = json.loads(agreement.RECORD.read_text())


@pytest.mark.skipif(
    not GOLDENS.is_dir(), reason="there is no ../shared/golden with the checkpoints of Spark's own tests"
)
def test_counts_are_those_of_another_engine() -> None:
    asked: dict[str, set[str]] = {}
    for name, unit in agreement.units():
        recorded = RECORDED[name][unit.label]
        asked.setdefault(name, set()).add(unit.label)
        if recorded["rows"] is not None:
            counted = ckpt.state_count(str(GOLDENS / name), **rows.choice(unit))
            of_unit = {one.unit.label: one.rows for one in counted.units}
            assert (counted.moment.batch, of_unit[unit.label]) == (recorded["batch"], recorded["rows"]), name
    assert asked == {name: set(labels) for name, labels in RECORDED.items()}
