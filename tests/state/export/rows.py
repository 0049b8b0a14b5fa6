"""What must come out of a checkpoint: the rows that Spark's own reader gave with hand-set options (``answers.py``)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ckpt.state.reading.columns import Columns
from ckpt.state.reading.units import StateUnit, UnitKind, state_units
from tests.support.spark.samples import FOLDER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ANSWERS: dict[str, Any] = json.loads((FOLDER / "answers.json").read_text())


def units_of(path: Path | str, operator: int | None = None) -> list[StateUnit]:
    """The units of a checkpoint, or of one operator, that together hold its state once."""
    made = Path(path).parent.name == FOLDER.name
    units = _units_of_sample(str(path)) if made else state_units(str(path))
    return [unit for unit in units if operator in (None, unit.operator) and not unit.shown_elsewhere]


@cache
def _units_of_sample(path: str) -> tuple[StateUnit, ...]:
    """No test changes a sample, and many files are parametrised with all of them."""
    return state_units(path)


def every_unit() -> list[Any]:
    """Each unit of each stateful sample, as a parameter."""
    import pytest  # not at the top: whoever records answers has none

    units = [(sample, unit) for sample in ANSWERS for unit in units_of(FOLDER / sample)]
    return [pytest.param(sample, unit, id=f"{sample}: {unit.label}") for sample, unit in units]


def every_operator() -> list[Any]:
    """Each operator of each stateful sample, as a parameter."""
    import pytest

    ids = [(sample, operator) for sample, answer in ANSWERS.items() for operator in map(int, answer["operators"])]
    return [pytest.param(sample, operator, id=f"{sample}: operator {operator}") for sample, operator in ids]


def options_of(unit: StateUnit) -> dict[str, str]:
    """The options under which ``answers.py`` read the same view."""
    match unit.kind:
        case UnitKind.SIDE:
            return {"joinSide": str(unit.side)}
        case UnitKind.TIMERS:
            return {"readRegisteredTimers": "true"}
    return {} if unit.variable is None else {"stateVarName": unit.variable}


def choice(unit: StateUnit) -> dict[str, Any]:
    """The arguments of ``read_state`` that pick a unit."""
    picked: dict[str, Any] = {"operator": unit.operator, "side": unit.side, "variable": unit.variable}
    picked["timers"] = unit.kind is UnitKind.TIMERS
    picked["store"] = unit.stores[0] if unit.kind is UnitKind.STORE else None
    return picked


def answer(sample: str, unit: StateUnit) -> list[dict[str, Any]]:
    """The rows of a unit, as Spark gives them."""
    (view,) = (
        view
        for view in ANSWERS[sample]["operators"][str(unit.operator)]["views"]
        if view["options"] == options_of(unit)
    )
    rows: list[dict[str, Any]] = view["rows"]
    return rows


def flattened(rows: list[dict[str, Any]], columns: Columns) -> list[str]:
    """The same rows with one column for each leaf: as text, sorted."""
    return sorted(
        json.dumps({column.name: leaf(row, column.path) for column in columns.kept}, sort_keys=True) for row in rows
    )


def leaf(row: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        row = None if row is None else row[name]
    return row


def content(frame: DataFrame) -> list[str]:
    """The rows of a frame as text, sorted."""
    from pyspark.sql.functions import struct, to_json

    rows = frame.select(to_json(struct("*"), {"ignoreNullFields": "false"})).collect()
    return sorted(json.dumps(json.loads(row[0]), sort_keys=True) for row in rows)


def all_leaves(kind: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths to the leaves of a JSON row."""
    if isinstance(kind, dict):
        for name, inner in kind.items():
            yield from all_leaves(inner, (*path, name))
    else:
        yield path
