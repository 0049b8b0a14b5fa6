"""Rows of 200 random schemas over all types, as Spark wrote them and as Spark reads them (``record.py``)."""

from __future__ import annotations

import base64
import math
from typing import Any

import pytest

from ckpt.formats.rows.types import arrow_type
from ckpt.formats.rows.unsafe import rows_of, structs_of
from tests.formats.rows.record import CASES, ask, recorded
from tests.formats.rows.schemas import NO_VARIANT, SIMPLE, SPECIAL, cases


def same(value: Any) -> Any:
    """A value so that equal ones compare as equal, and others do not: NaN, -0.0, calendar intervals."""
    if isinstance(value, dict):
        if value.get("value") == NO_VARIANT:
            return None
        return {name: same(inner) for name, inner in value.items()}
    if type(value).__name__ == "MonthDayNano":
        return [value.months, value.days, value.nanoseconds // 1000]
    if isinstance(value, list | tuple):
        return [same(inner) for inner in value]
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value.hex()
    return value


def decoded(found: dict[str, Any]) -> Any:
    blobs = [b"\0" + base64.b64decode(row) for row in found["rows"]]
    return structs_of(found["schema"], rows_of(blobs), "value")


def check(found: dict[str, Any]) -> None:
    array = decoded(found)
    assert array.type == arrow_type(found["schema"])
    array.validate(full=True)
    rows, values = array.to_pylist(), found["values"].to_pylist()
    for name in values[0]:
        assert [same(row[name]) for row in rows] == [same(row[name]) for row in values], name


@pytest.mark.slow
def test_rows_of_every_type_are_decoded_as_spark_does() -> None:
    count = 0
    for found in recorded():
        check(found)
        count += 1
    assert count == CASES


def test_the_record_has_every_type() -> None:
    """Inside of others too, and NULL of each."""
    texts = [kind for case in cases(CASES) for kind in case.kinds]
    assert all(any(name in text for text in texts) for name in SIMPLE | SPECIAL)
    assert all(any(name in text for text in texts if text != name) for name in SIMPLE)


@pytest.mark.spark
def test_this_spark_says_what_is_recorded(spark: Any) -> None:
    """Of some cases, which read what was recorded once."""
    for number, (case, found) in enumerate(zip(cases(CASES), recorded(), strict=True)):
        if number % 20 == 0:
            now = ask(spark, case)
            check(now)
            assert now["rows"] == found["rows"]
