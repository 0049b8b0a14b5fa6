"""Which types a format holds: refused by name before anything is written."""

from __future__ import annotations

from typing import Any

import pytest

from ckpt.errors import UsageError
from ckpt.export.columns import Column
from ckpt.export.targets import Format, check_types

ARRAY = {"type": "array", "elementType": "long", "containsNull": True}
MAP = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}
DAYS = "interval day to second"


def refused(kind: Any, target: Format) -> str | None:
    try:
        check_types([Column("value_x", ("value", "x"), (1, 0), kind)], target)
    except UsageError as error:
        return str(error)
    return None


@pytest.mark.parametrize("kind", [ARRAY, MAP, "binary", {"type": "array", "elementType": MAP, "containsNull": True}])
def test_csv_refuses_what_is_nested_by_name(kind: Any) -> None:
    told = refused(kind, Format.CSV)
    assert told is not None
    assert "value_x" in told
    assert "--format parquet" in told


@pytest.mark.parametrize("target", [Format.PARQUET, Format.DELTA, Format.JSON])
def test_the_others_hold_it(target: Format) -> None:
    assert refused(ARRAY, target) is None
    assert refused(MAP, target) is None


def test_intervals() -> None:
    assert refused(DAYS, Format.PARQUET) is None
    assert "--format parquet" in str(refused(DAYS, Format.DELTA))
    assert "--format json" in str(refused("interval", Format.PARQUET))
    assert refused(DAYS, Format.CSV) is None


@pytest.mark.parametrize("target", list(Format))
def test_void_is_in_no_format(target: Format) -> None:
    assert refused("void", target) is not None
    assert refused({"type": "array", "elementType": "void", "containsNull": True}, target) is not None
