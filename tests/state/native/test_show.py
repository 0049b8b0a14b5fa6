"""``ckpt state show`` and ``ckpt state count``: rows, keys that are looked for, and where they are."""

from __future__ import annotations

import json
import os
import re
import shutil
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import ckpt as library
from ckpt.errors import UsageError
from ckpt.formats.types import array_of
from ckpt.state.native.json_values import make_plain
from ckpt.state.native.lookup import compare_with, parse_key_parts, parse_typed
from ckpt.state.native.show import state_count, state_show
from ckpt.state.reading.columns import Column, Columns
from ckpt.state.reading.units import StateUnit, UnitKind, state_units
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.state.export import rows
from tests.support.places import SAMPLES


def key_of(row: dict[str, Any]) -> dict[str, str]:
    """The columns of a row's key, as they are typed."""
    return {name: str(value) for name, value in row.items() if name.startswith("key_") and value is not None}


@pytest.mark.slow
@pytest.mark.parametrize(("sample", "unit"), rows.every_unit())
def test_every_key_is_found_in_the_partition_that_its_hash_names(sample: str, unit: StateUnit) -> None:
    path, choice = str(SAMPLES / sample), rows.choice(unit)
    found = state_show(path, **choice, limit=1000)
    assert len(found.rows) == len(rows.answer(sample, unit))
    assert not found.more
    where = library.read_state_arrow(path, **choice, partition_id=True).column("partition_id").to_pylist()
    looked_up = 0
    for row, partition in zip(found.rows, where, strict=True):
        key = key_of(row)
        if not key:
            continue
        one = state_show(path, **choice, key=key, limit=1000)
        assert row in one.rows
        assert all(key_of(other) == key for other in one.rows)
        assert one.partition in (partition, None)
        looked_up += one.partition is not None
    named = unit.operator_name not in (None, "globalLimit")
    assert looked_up == (len(found.rows) if named else 0)


@pytest.mark.parametrize("sample", rows.ANSWERS)
def test_counts_are_those_of_the_answers(sample: str, ckpt: Ckpt) -> None:
    result = ckpt("state", "count", SAMPLES / sample, "-o", "json")
    assert result.exit_code == 0, result.stderr
    document = result.json()
    assert contract.disagreements(document, "state count") == []
    units = rows.units_of(SAMPLES / sample)
    assert [one["rows"] for one in document["units"]] == [len(rows.answer(sample, unit)) for unit in units]
    assert document["batch"] == rows.ANSWERS[sample]["batch"]


@pytest.mark.parametrize("foreign", [False, True])
def test_a_snapshot_of_abandoned_batches_is_named(foreign: bool, copy_of: CopyOf, ckpt: Ckpt) -> None:
    """One that is older than the delta of its version, and holds other rows than the deltas lead to."""
    folder = copy_of("aggregation-hdfs-4.2") / "state/0"
    snapshot = folder / "0/8.snapshot"
    if foreign:
        shutil.copyfile(folder / "0/4.snapshot", snapshot)
    os.utime(snapshot, (1, 1))
    named = ["state/0/0/8.snapshot"] if foreign else []
    for batch, expected in (("6", []), ("7", named), ("9", named)):
        run = ckpt("state", "show", folder.parents[1], "--batch", batch, "-o", "json")
        assert run.json()["foreign_snapshots"] == expected
    page = ckpt("state", "show", folder.parents[1]).stdout
    assert ("8.snapshot has different rows than the changes up to it" in page) is foreign


def test_a_page_of_rows(ckpt: Ckpt) -> None:
    result = ckpt("state", "show", SAMPLES / "aggregation-rocksdb-4.2", "--key", "key=3")
    assert result.exit_code == 0
    assert "operator 0 (stateStoreSave), batch 5, in partition 1" in result.stdout
    assert result.stdout.split()[-3:] == ["3", "9", "279"]


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ("tws-rocksdb-4.2", ("--variable", "parityTtl")),
        ("join-hdfs-3.5", ("--store", "left-keyToNumValues")),
        ("windowed-aggregation-hdfs-4.2", ("--batch", "4", "--limit", "2")),
    ],
)
def test_documents_are_as_published(sample: str, words: tuple[str, ...], ckpt: Ckpt) -> None:
    document = ckpt("state", "show", SAMPLES / sample, *words, "-o", "json").json()
    assert contract.disagreements(document, "state show") == []
    assert document["rows"]
    assert all(list(row) == [column["name"] for column in document["columns"]] for row in document["rows"])


def test_another_batch_has_other_rows(ckpt: Ckpt) -> None:
    words = ("state", "show", SAMPLES / "aggregation-changelog-4.2", "--key", "key_key=0", "-o", "json")
    counts = [ckpt(*words, "--batch", str(batch)).json()["rows"][0]["value_count"] for batch in range(3)]
    assert counts == [2, 3, 5]


def test_a_binary_key_is_typed_as_it_is_shown() -> None:
    columns = Columns((Column("key_x", ("key", "x"), (0, 0), "binary"),), ())
    for value in (b"", b"\0\xff\xfe", bytes(range(256))):
        (shown,) = make_plain(pa.array([value], pa.binary()))
        (part,) = parse_key_parts(columns, {"x": str(shown)})
        assert part.value.to_pylist() == [value]
    with pytest.raises(UsageError, match="ab! is not a valid binary for key_x"):
        parse_key_parts(columns, {"x": "ab!"})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1, 2", "is not a JSON array"),
        ("3", '"3" is not an array for key_x'),
        ('["one"]', "one is not a valid long for key_x"),
    ],
)
def test_an_array_that_is_none_is_refused(text: str, says: str) -> None:
    columns = Columns((Column("key_x", ("key", "x"), (0, 0), array_of("long")),), ())
    assert parse_key_parts(columns, {"x": "[1, null]"})[0].value.to_pylist() == [[1, None]]
    with pytest.raises(UsageError, match=re.escape(says)):
        parse_key_parts(columns, {"x": text})


def test_a_key_that_is_not_there(ckpt: Ckpt) -> None:
    for key in ("key=99", "key"):  # which is NULL
        result = ckpt("state", "show", SAMPLES / "aggregation-hdfs-4.2", "--key", key)
        assert (result.exit_code, "no rows" in result.stdout) == (0, True)
    assert state_count(str(SAMPLES / "aggregation-hdfs-4.2"), key={"key": "99"}).units[0].rows == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--key", "other=1"), "--key: the key has no column other; it has key_window_start, key_window_end, key_key"),
        (("--key", "key=1", "--key", "key=2"), "--key: key is given twice"),
        (("--key", "key=one"), "--key: one is not a valid long for key_key"),
        (("--key", "key=9223372036854775808"), "--key: 9223372036854775808 is not a valid long for key_key"),
        (("--key", "window_start=yesterday"), "--key: yesterday is not a valid timestamp for key_window_start"),
        (("--operator", "7"), "there is no --operator 7"),
        (("--batch", "77"), "there is no batch 77 to read"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], says: str, ckpt: Ckpt) -> None:
    for command in ("show", "count"):
        result = ckpt("state", command, SAMPLES / "windowed-aggregation-hdfs-4.2", *words)
        assert result.exit_code == 2
        assert says in result.refusal()


def test_several_units_are_named(ckpt: Ckpt) -> None:
    result = ckpt("state", "show", SAMPLES / "join-hdfs-3.5")
    assert result.exit_code == 2
    assert result.refusal().endswith("choose one: --operator 0 --side left, --operator 0 --side right")


def test_no_limit_below_one() -> None:
    with pytest.raises(UsageError, match="limit"):
        state_show(str(SAMPLES / "aggregation-hdfs-4.2"), limit=0)


def test_units_of_a_document_are_spelled_alike(ckpt: Ckpt) -> None:
    document = ckpt("state", "count", SAMPLES / "tws-rocksdb-4.2", "-o", "json").json()
    units = [json.dumps(one["unit"]) for one in document["units"]]
    assert len(set(units)) == len(units) == 7
    kinds = {unit.kind for unit in state_units(library.open_checkpoint(str(SAMPLES / "tws-rocksdb-4.2")))}
    assert UnitKind.TIMERS in kinds
    assert sum('"timers": true' in unit for unit in units) == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e999999999", None),
        ("1e-999999999", None),
        ("0e999999999", "0"),
        ("1e35", "1e35"),
        ("1.500", "1.5"),
        ("1.501", None),
    ],
)
def test_a_decimal_is_not_written_out(text: str, value: str | None) -> None:
    if value is None:
        with pytest.raises(UsageError, match="is not a valid decimal for k"):
            parse_typed("k", "decimal(38,2)", text)
    else:
        assert parse_typed("k", "decimal(38,2)", text).as_tuple() == Decimal(text if value != "0" else "0").as_tuple()


def test_an_operator_that_is_called_a_join_has_no_sides(copy_of: CopyOf, ckpt: Ckpt) -> None:
    """Its metadata name no store of a side, and so nothing says what the rows of one are."""
    damaged = copy_of("aggregation-hdfs-4.2")
    metadata = damaged / "state/0/_metadata/metadata"
    metadata.write_bytes(metadata.read_bytes().replace(b"stateStoreSave", b"symmetricHashJoin"))
    metadata.with_name(".metadata.crc").unlink()
    run = ckpt("state", "count", damaged)
    assert run.exit_code == 3
    assert "operator 0, left side: its state schema does not describe its rows" in run.refusal()
    assert ckpt("inspect", "--deep", damaged).exit_code == ckpt("inspect", damaged).exit_code


@pytest.mark.parametrize(
    "command", [("state", "count"), ("export-state", "--all-units", "--plan"), ("rewrite", "--plan")]
)
def test_what_is_left_of_the_state_is_not_all_of_it(command: tuple[str, ...], ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("dedup-aggregation-hdfs-4.2")
    shutil.rmtree(checkpoint / "state/0")
    into = (checkpoint.with_name("new"),) if command[0] == "rewrite" else ()
    run = ckpt(*command, checkpoint, *into)
    assert run.exit_code != 0
    assert "state/0: the operator has no folder, so this is not all of the state" in run.refusal()
    assert ckpt("state", "count", checkpoint, "--operator", 1).exit_code == 0


@pytest.mark.parametrize(
    ("text", "equal"),
    [("NaN", [True, False, None, False]), ("-0.0", [False, True, None, False]), ("1.5", [False, False, None, True])],
)
def test_values_that_are_looked_for_are_equal_as_spark_groups_them(text: str, equal: list[bool | None]) -> None:
    column = Column("key_x", ("key", "x"), (0, 0), "double")
    (part,) = parse_key_parts(Columns((column,), ()), {"x": text})
    assert compare_with(part, pa.array([float("nan"), 0.0, None, 1.5])).to_pylist() == equal
