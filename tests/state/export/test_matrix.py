"""The record of which Spark reads which checkpoint: complete, and as the units promise."""

from __future__ import annotations

import pytest

import ckpt
from ckpt.state.reading.units import state_units
from ckpt.versions import Spark, newest
from tests.state.export import matrix, rows
from tests.support.places import SAMPLES

RECORD = matrix.SUITE.answers.read_all()


@pytest.mark.parametrize("version", RECORD)
def test_every_unit_is_read_but_those_that_need_a_later_spark(version: str) -> None:
    assert RECORD[version]["spark"].startswith(version)
    told = RECORD[version]["units"]
    for sample in rows.ANSWERS:
        for unit in rows.units_of(SAMPLES / sample):
            answer = told.pop(f"{sample}: {unit.label}")
            if unit.oldest_spark is not None and not Spark(version).at_least(unit.oldest_spark):
                assert "pip install" in answer
            else:
                assert answer == "equal", (sample, unit.label)
    assert told == {}


@pytest.mark.parametrize("version", RECORD)
def test_initial_state_is_read_wherever_all_its_units_are(version: str) -> None:
    told = RECORD[version]["initial"]
    for sample in rows.ANSWERS:
        units = state_units(ckpt.open_checkpoint(str(SAMPLES / sample)))
        for operator in sorted({unit.operator for unit in units}):
            answer = told.pop(f"{sample}: operator {operator}")
            oldest = newest(unit.oldest_spark for unit in units if unit.operator == operator)
            if oldest and not Spark(version).at_least(oldest):
                assert "pip install" in answer
            else:
                assert answer == "equal", (sample, operator)
    assert told == {}
