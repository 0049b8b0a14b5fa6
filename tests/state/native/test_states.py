"""Random state as each Spark version writes it (``states.py``): without Spark the values that Spark reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ckpt
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


@pytest.mark.parametrize("version", VERSIONS)
def test_state_of_every_version_is_read_as_spark_reads_it(version: str, tmp_path: Path) -> None:
    stores = set()
    for state, folder, table in recorded(version, tmp_path):
        found = ckpt.read_state_arrow(str(folder), shape="raw")
        assert found.num_rows == table.num_rows > 0
        assert rows_of(columns_of(found)) == rows_of(table), state.name
        stores.add(state.store)
    assert stores == set(STORES)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_type_of_a_version_is_in_its_state(version: str) -> None:
    types = " ".join(kind for state in states(version) for kind in (*state.keys, *state.values))
    assert all(name in types for name in (*Types.of(version).simple, *Types.of(version).special))


def test_what_later_versions_have() -> None:
    assert set(Types.of("4.3").simple) - set(Types.of("4.0").simple) == set(LATER)
    assert set(Types.of("4.0").simple) == set(SIMPLE)
    assert set(SPECIAL) - set(Types.of("3.5").special) == {"VARIANT"}
