"""``ckpt rewrite --drop-keys``: nothing of these keys is left in any store, and all others are there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ckpt
from ckpt.formats.rows.types import arrow_type
from ckpt.formats.types import array_of, struct_of
from ckpt.model import Json
from ckpt.new.rewrite.filtering import choose_dropping
from tests.conftest import Ckpt
from tests.new.rewrite.continuing import frames
from tests.new.rewrite.test_rewrite import STATEFUL
from tests.support.places import SAMPLES

NOT_OF_THE_KEY = ("sessionStartTime", "__event_time", "index")
QUICK = ("tws-rocksdb-4.2", "join-v3-changelog-4.2", "windowed-aggregation-hdfs-4.2")
WITHOUT = ("-killed-", "limit")  # no keys
WRITTEN = [name for name in STATEFUL if not any(part in name for part in WITHOUT)]


def rows(checkpoint: Path) -> dict[str, list[tuple[Any, str]]]:
    """Of each unit the grouping key and all of each row."""
    return {
        label: sorted((tuple(grouping_key(row["key"])), str(row)) for row in table.to_pylist())
        for label, table in frames(checkpoint, "raw").items()
    }


def grouping_key(key: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for name, value in key.items():
        if isinstance(value, dict):
            yield from grouping_key(value, f"{path}{name}_")
        elif name not in NOT_OF_THE_KEY:
            yield path + name, str(value)


@pytest.mark.parametrize(
    "sample", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in WRITTEN]
)
def test_nothing_is_left_of_the_keys_and_everything_of_others(sample: str, tmp_path: Path) -> None:
    old = rows(SAMPLES / sample)
    keys = sorted({key for unit in old.values() for key, _ in unit if key})[:3:2]
    made = ckpt.rewrite(str(SAMPLES / sample), str(tmp_path / "new"), drop_keys=[dict(key) for key in keys])
    assert made.written, made.refused
    assert rows(tmp_path / "new") == {unit: [one for one in of if one[0] not in keys] for unit, of in old.items()}
    assert sum(one.dropped or 0 for one in made.units) == sum(key in keys for of in old.values() for key, _ in of) > 0
    assert ckpt.state_verify(str(tmp_path / "new")).damages == (), (
        "timers, TTL indexes and counts are those of the rows"
    )


def test_an_operator_without_such_a_column_keeps_all(ckpt: Ckpt, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text('{"key": 2}\n\n{"key_key": "4"}\n{"key": null}\n')
    run = ckpt("rewrite", SAMPLES / "dedup-aggregation-hdfs-4.2", tmp_path / "new", "--drop-keys", file, "-o", "json")
    assert run.exit_code == 0, run.stderr
    assert [one["dropped"] for one in run.json()["units"]] == [None, 2]
    assert run.json()["unseen_keys"] == [{"key": None}]


def test_a_page_names_keys_that_no_row_has(ckpt: Ckpt, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text('{"key": 2}\n{"key": 222}\n{"key_key": 2}\n')
    run = ckpt("rewrite", SAMPLES / "aggregation-hdfs-4.2", tmp_path / "new", "--drop-keys", file)
    page = " ".join(run.stdout.split())
    assert "6 rows, and 1 row left out" in page
    assert '1 of the 3 keys to be left out is in no row: - {"key": "222"}' in page


@pytest.mark.parametrize(
    ("kind", "values", "text", "left_out"),
    [
        ("double", [float("nan"), 0.0, -0.0, None], "NaN", [0]),
        ("float", [float("nan"), 0.0, -0.0, None], "-0.0", [1, 2]),
        ("float", [0.1, 0.1000001], "0.1", [0]),
        ("double", [float("inf"), float("-inf")], "-Infinity", [1]),
        ("date", [2**31 - 1, -(2**31), 0, None], "1970-01-01", [2]),
        ("timestamp", [2**63 - 1, -(2**63), 0, None], "1970-01-01T01:00:00+01:00", [2]),
        ("timestamp_ntz", [2**63 - 1, 0, None], "1970-01-01", [1]),
        ("time(6)", [1_000, None], None, [1]),
        (array_of("long"), [[1], None, []], None, [1]),
        ("boolean", [True, False, None], "false", [1]),
        ("binary", [b"\0\xff", b""], "AP8=", [0]),
        ("string", ["e\u0301", "\u00e9", "\u00e9 "], "\u00e9", [1]),
    ],
)
def test_a_value_is_left_out_as_spark_compares_it(
    kind: Json, values: list[Any], text: str | None, left_out: list[int]
) -> None:
    column = pa.array(values, arrow_type(kind))
    found = choose_dropping([("k", kind)], [{"k": text}]).find_left_out(column, [("k", kind, column)], 0)
    assert found.nonzero()[0].tolist() == left_out


def test_a_column_that_may_be_either_of_two_is_refused() -> None:
    kinds = [("a", struct_of([("b", "long")])), ("a_b", "long"), ("c", "long")]
    with pytest.raises(ckpt.UsageError, match="two columns of the key are called a_b"):
        choose_dropping(kinds, [{"a_b": "1"}])
    assert choose_dropping(kinds, [{"c": "1"}]).values


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"user": 1}', "no operator has the columns user in its key; there are operator 0 (stateStoreSave): key"),
        ('{"key": "x"}', "--drop-keys: x is no long for key"),
        ('{"key": NaN}', "NaN is no long for key"),
        ('{"key": 1, "key_key": 2}', "a key has two values of key"),
        ('{"key": 1, "key": 2}', "line 1 is not a JSON object"),
        ("key=1", "line 1 is not a JSON object of columns and values"),
        ('{"key": 1}\n{}', "line 2 is not a JSON object"),
        ("", "it has no key"),
        (None, "No such file or directory"),
    ],
)
def test_a_file_that_says_no_keys_is_refused(text: str | None, said: str, ckpt: Ckpt, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    if text is not None:
        file.write_text(text)
    run = ckpt("rewrite", SAMPLES / "aggregation-hdfs-4.2", tmp_path / "new", "--drop-keys", file)
    assert run.exit_code == 2
    assert said in run.refusal()
    assert not (tmp_path / "new").exists()
