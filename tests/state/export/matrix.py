"""Which Spark reads which checkpoint through ckpt: every stateful sample, exported under several versions.

The suite `export` of `python -m tests.record` keeps in ``matrix.json`` what came of each unit, and of the frame of
initial state of each operator: ``equal`` (its rows are those of ``answers.json``) or Spark's words.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ckpt.versions import Spark
from tests.record.answers import OneFile
from tests.record.suite import Whole
from tests.record.worker import Installed

if TYPE_CHECKING:
    from ckpt.state.reading.units import StateUnit


def answer(spark: Any, _: dict[str, Any], __: Path) -> dict[str, Any]:
    """Read every unit of every stateful sample, and all of each operator."""
    from tests.state.export import rows
    from tests.support.spark.samples import FOLDER

    told: dict[str, dict[str, str]] = {"units": {}, "initial": {}}
    for sample in rows.ANSWERS:
        units = rows.units_of(FOLDER / sample)
        for unit in units:
            told["units"][f"{sample}: {unit.label}"] = _outcome(partial(_unit_is_equal, spark, sample, unit))
        for operator in sorted({unit.operator for unit in units}):
            own = [unit for unit in units if unit.operator == operator]
            name = f"{sample}: operator {operator}"
            told["initial"][name] = _outcome(partial(_initial_is_equal, spark, sample, own))
    return {"spark": spark.version, **told}


def _outcome(read: Callable[[], bool]) -> str:
    """What came of a reading: ``equal``, or what was said."""
    from tests.support.spark.samples import FOLDER

    try:
        return "equal" if read() else "other rows"
    except Exception as error:
        return " ".join(str(error).split())[:300].replace(str(FOLDER), "")


def _unit_is_equal(spark: Any, sample: str, unit: StateUnit) -> bool:
    import ckpt
    from ckpt.state.reading.columns import flat_columns
    from tests.state.export import rows
    from tests.support.spark.samples import FOLDER

    frame = ckpt.read_state(str(FOLDER / sample), session=spark, **rows.choice(unit))
    columns = flat_columns({"type": "struct", "fields": _fields(unit.schema)})
    return rows.content(frame) == rows.flattened(rows.answer(sample, unit), columns)


def _initial_is_equal(spark: Any, sample: str, units: list[StateUnit]) -> bool:
    import ckpt
    from tests.state.export import grouped
    from tests.support.spark.samples import FOLDER

    frame = ckpt.read_initial_state(str(FOLDER / sample), session=spark, operator=units[0].operator)
    return grouped.found_in(frame) == grouped.wanted_of(sample, units)


def _fields(schema: Any) -> Any:
    return schema["fields"]


class Exports(Whole):
    """Units and initial state of all samples together; 3.5 has no reader of state."""

    answers = OneFile(Path(__file__).with_name("matrix.json"), partial(json.dumps, indent=1))

    def wanted(self, minor: str) -> list[str]:
        return ["units", "initial"] if Spark(minor).rules.state_reader else []

    def recorded(self, minor: str) -> list[str]:
        return [part for part in ("units", "initial") if part in self.answers.read(minor)]

    def ask_all(self, spark: Installed) -> None:
        self.answers.write(spark.minor, spark.ask("export", {}))


SUITE = Exports()
