"""``ckpt state keys``: what is counted by other means of every unit of every sample."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import ckpt as library
from ckpt.state.reading.units import StateUnit
from tests.commands import contract
from tests.conftest import Ckpt
from tests.state.export import rows
from tests.support.places import SAMPLES


@pytest.mark.slow
@pytest.mark.parametrize(("sample", "unit"), rows.every_unit())
def test_every_key_of_every_unit(sample: str, unit: StateUnit) -> None:
    path, choice = str(SAMPLES / sample), rows.choice(unit)
    table = library.read_state_arrow(path, **choice, partition_id=True)
    names = [name for name in table.column_names if name.startswith("key_")]
    counted = Counter((repr(tuple(row[name] for name in names)), row["partition_id"]) for row in table.to_pylist())
    found = library.state_keys(path, **choice, limit=1000)
    assert sorted(one.rows for one in found.keys) == sorted(counted.values())
    assert [column.name for column in found.columns] == names
    assert all(list(one.key) == names for one in found.keys)
    spread = Counter(table.column("partition_id").to_pylist())
    assert {one.partition: one.rows for one in found.partitions} == spread
    for one in found.partitions:
        own = [key for key in found.keys if key.partition == one.partition]
        assert (one.keys, one.rows, one.bytes) == (
            len(own),
            sum(key.rows for key in own),
            sum(key.bytes for key in own),
        )
    assert [one.bytes for one in found.keys] == sorted((one.bytes for one in found.keys), reverse=True)
    some = library.state_keys(path, **choice, limit=2)
    assert some.keys == found.keys[:2]
    assert some.partitions == found.partitions


def test_a_value_has_the_bytes_of_its_row() -> None:
    """Two longs: a word for which are NULL, and one for each; in RocksDB after a version byte."""
    for sample, size in (("aggregation-hdfs-4.2", 24), ("aggregation-rocksdb-4.2", 25)):
        found = library.state_keys(str(SAMPLES / sample))
        assert {one.bytes for one in found.keys} == {size}


def test_a_key_with_several_rows_counts_once(ckpt: Ckpt) -> None:
    """A list: two elements for each of five keys."""
    words = ["state", "keys", SAMPLES / "tws-rocksdb-4.2", "--variable", "recent"]
    document: dict[str, Any] = ckpt(*words, "-o", "json").json()
    assert contract.disagreements(document, "state keys") == []
    assert [one["rows"] for one in document["keys"]] == [2] * 5
    assert [sum(one[name] for one in document["partitions"]) for name in ("keys", "rows")] == [5, 10]
    lines = [line.split() for line in ckpt(*words, "--limit", "1").stdout.splitlines()]
    assert lines[-6:-4] == [["bytes", "rows", "share", "partition", "key"], ["34", "2", "20.0", "%", "0", "key_key=2"]]
    assert lines[-3:-1] == [["partition", "keys", "rows", "bytes", "share"], ["1", "3", "6", "102", "60.0", "%"]]
