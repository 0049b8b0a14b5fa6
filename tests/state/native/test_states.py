"""Random state as each Spark version writes it (``states.py``): without Spark the values that Spark reads."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ckpt
from ckpt.errors import UsageError
from tests.formats.rows.schemas import LATER, SIMPLE, SPECIAL, Types
from tests.formats.rows.test_rows import same
from tests.state.native.states import STORES, VERSIONS, recorded, states


def rows_of(table: Any) -> list[str]:
    """Keys and values in the order of their columns, whatever these are called; in no order."""
    columns = [column.to_pylist() for column in table.columns]
    return sorted(repr([same(value) for value in row]) for row in zip(*columns, strict=True))


def columns_of(table: Any) -> Any:
    """The columns of key and value, whose names may repeat."""
    parts = [part for name in ("key", "value") for part in table.column(name).combine_chunks().flatten()]
    return pa.Table.from_arrays(parts, [str(place) for place in range(len(parts))])


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_state_of_every_version_is_read_as_spark_reads_it(version: str, tmp_path: Path) -> None:
    stores = set()
    for state, folder, table in recorded(version, tmp_path):
        found = ckpt.read_state_arrow(str(folder), shape="raw")
        assert found.num_rows == table.num_rows > 0
        assert rows_of(columns_of(found)) == rows_of(table), state.name
        stores.add(state.store)
    assert stores == set(STORES)


def test_keys_of_arrays_and_null_are_found(tmp_path: Path) -> None:
    """Three of each state, as they are shown, arrays in JSON; what cannot be asked for is left out."""
    asked: Counter[str] = Counter()
    for _, folder, _ in recorded("4.2", tmp_path):
        shown = ckpt.state_show(str(folder), limit=1000)
        kinds = {column.name: column.type for column in shown.columns if column.path[0] == "key"}
        keys = [{name: row[name] for name in kinds} for row in shown.rows]
        for key in [key for key in keys if any(value is None or isinstance(value, list) for value in key.values())][:3]:
            texts = {
                name: value if value is None or isinstance(value, str) else json.dumps(value)
                for name, value in key.items()
            }
            try:
                found = ckpt.state_show(str(folder), key=texts, limit=1000)
            except UsageError:
                continue
            assert found.rows == tuple(other for other in shown.rows if {name: other[name] for name in kinds} == key)
            assert sorted(map(str, found.history().rows)) == sorted(map(str, found.rows))
            asked.update("NULL" if value is None else type(value).__name__ for value in key.values())
    assert asked["NULL"] >= 5
    assert asked["list"] >= 3


@pytest.mark.parametrize("version", VERSIONS)
def test_every_type_of_a_version_is_in_its_state(version: str) -> None:
    types = " ".join(kind for state in states(version) for kind in (*state.keys, *state.values))
    assert all(name in types for name in (*Types.of(version).simple, *Types.of(version).special))


def test_what_later_versions_have() -> None:
    assert set(Types.of("4.3").simple) - set(Types.of("4.0").simple) == set(LATER)
    assert set(Types.of("4.0").simple) == set(SIMPLE)
    assert set(SPECIAL) - set(Types.of("3.5").special) == {"VARIANT"}
