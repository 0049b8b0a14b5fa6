"""``ckpt rewrite --drop-keys``: nothing of these keys is left in any store, and all others are there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ckpt
from tests.conftest import Ckpt
from tests.places import SAMPLES
from tests.rewrite.test_rewrite import STATEFUL

NOT_OF_THE_KEY = ("sessionStartTime", "__event_time", "index")
QUICK = ("tws-rocksdb-4.2", "join-v3-changelog-4.2", "windowed-aggregation-hdfs-4.2")
WITHOUT = ("3.5", "-killed-", "join-v4", "limit")  # not written at all, or no keys
WRITTEN = [name for name in STATEFUL if not any(part in name for part in WITHOUT)]


def rows(checkpoint: Path) -> dict[str, list[tuple[Any, str]]]:
    """Of each unit the grouping key and all of each row."""
    found: dict[str, list[tuple[Any, str]]] = {}
    for unit in ckpt.state_units(ckpt.open_checkpoint(str(checkpoint))):
        if not unit.shown_elsewhere:
            part: ckpt.Part = {"operator": unit.operator, "side": unit.side, "variable": unit.variable}
            part["timers"] = unit.kind == "timers"
            there = ckpt.read_state_arrow(str(checkpoint), shape="raw", **part).to_pylist()
            found[unit.label] = sorted((tuple(grouping_key(row["key"])), str(row)) for row in there)
    return found


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
    made = ckpt.rewrite_checkpoint(str(SAMPLES / sample), str(tmp_path / "new"), drop_keys=[dict(key) for key in keys])
    if sample.startswith("tws-avro"):
        assert made.refused
        return
    assert made.written, made.refused
    assert rows(tmp_path / "new") == {unit: [one for one in of if one[0] not in keys] for unit, of in old.items()}
    assert sum(one.dropped or 0 for one in made.units) == sum(key in keys for of in old.values() for key, _ in of) > 0
    assert ckpt.verify_state(str(tmp_path / "new")).damages == (), (
        "timers, TTL indexes and counts are those of the rows"
    )


def test_an_operator_without_such_a_column_keeps_all(ckpt: Ckpt, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text('{"key": 2}\n\n{"key_key": "4"}\n{"key": null}\n')
    run = ckpt(
        "rewrite", SAMPLES / "dedup-aggregation-hdfs-4.2", "--into", tmp_path / "new", "--drop-keys", file, "-o", "json"
    )
    assert run.exit_code == 0, run.stderr
    assert [one["dropped"] for one in run.json()["units"]] == [None, 2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"user": 1}', "no operator has the columns user in its key; there are operator 0 (stateStoreSave): key"),
        ('{"key": "x"}', "x is no long for key"),
        ("key=1", "line 1 is no JSON object of columns and values"),
        ('{"key": 1}\n{}', "line 2 is no JSON object"),
        ("", "there is no key in it"),
        (None, "No such file or directory"),
    ],
)
def test_a_file_that_says_no_keys_is_refused(text: str | None, said: str, ckpt: Ckpt, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    if text is not None:
        file.write_text(text)
    run = ckpt("rewrite", SAMPLES / "aggregation-hdfs-4.2", "--into", tmp_path / "new", "--drop-keys", file)
    assert run.exit_code == 2
    assert said in run.refusal()
    assert not (tmp_path / "new").exists()
