"""Values that repeat their key: Spark puts out what is in the value, so both have to say the same."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ckpt import settings
from ckpt.copies.fill.fitting import Misfit, make_struct
from ckpt.formats.operators import OperatorName
from ckpt.formats.rows.errors import Undecodable
from ckpt.formats.rows.unsafe_writer import rows_from
from ckpt.formats.types import name_and_type, named_fields, struct_of
from ckpt.model import Json, Operator
from ckpt.state.reading.units import StateUnit


def check_repeated_keys(operator: Operator, recorded: Mapping[str, str], unit: StateUnit, columns: list[Any]) -> None:
    """Raise Misfit for a row whose value says another key than its own.

    Values of session windows begin with the session and what it is grouped by, those of aggregations in state format 1
    with the key. ``recorded`` are the settings in the offsets, ``columns`` key and value.
    """
    if operator.name == OperatorName.SESSIONS:
        _check_columns(unit, columns, 1)
        _check_equal(columns[0].field(columns[0].type.num_fields - 1), columns[1].field(0).field(0), "timestamp")
    elif operator.name == OperatorName.AGGREGATION and recorded.get(settings.AGGREGATION_FORMAT) == "1":
        _check_columns(unit, columns, 0)


def _check_columns(unit: StateUnit, columns: list[Any], first: int) -> None:
    """From which column on the value repeats the key."""
    key, value = (list(named_fields(kind)) for _, kind in named_fields(unit.schema))
    for ordinal, (name, kind) in enumerate(key[: len(key) - first]):
        at = ordinal + first
        if at >= len(value) or _describe_field(value[at]) != _describe_field((name, kind)):
            raise Undecodable(f"{unit.label}: its values are not those that ckpt knows of {unit.operator_name}")
        _check_equal(columns[0].field(ordinal), columns[1].field(at), kind)


def _describe_field(field: tuple[str, Json]) -> tuple[str, str]:
    return name_and_type({"name": field[0], "type": field[1]})


def _check_equal(own: Any, other: Any, kind: Json) -> None:
    rows = struct_of([("key", kind)])
    there: Any = np.ones(len(own), bool)
    both = (rows_from(rows, make_struct(rows, [column], there)).to_list() for column in (own, other))
    for row, (first, second) in enumerate(zip(*both, strict=True)):
        if first != second:
            raise Misfit(row, "its value repeats the key, and says another one")
