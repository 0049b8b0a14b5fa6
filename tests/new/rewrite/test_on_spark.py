"""``ckpt rewrite --engine spark``: executors write what processes of one machine do, or nothing."""

from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.errors import CkptError
from ckpt.new.rewrite.filtering import Key
from tests.conftest import CopyOf
from tests.new.rewrite.continuing import state
from tests.new.rewrite.test_dropping import rows
from tests.support.places import SAMPLES

pytestmark = pytest.mark.spark
CASES: list[tuple[str, dict[str, Any]]] = [
    ("aggregation-hdfs-4.2", {"provider": "rocksdb", "partitions": 5}),
    ("join-changelog-4.2", {"provider": "hdfs"}),
    ("join-v3-changelog-4.2", {"format_version": 2}),
    ("limit-hdfs-4.2", {"provider": "rocksdb", "partitions": 3}),
    ("tws-format2-4.3", {"partitions": 7}),
]


@pytest.mark.parametrize(("sample", "form"), CASES, ids=[sample for sample, _ in CASES])
def test_they_write_what_one_machine_does(sample: str, form: dict[str, Any], by: Any, tmp_path: Path) -> None:
    here = ckpt.rewrite(str(SAMPLES / sample), str(tmp_path / "here"), **form)
    there = ckpt.rewrite(str(SAMPLES / sample), str(tmp_path / "there"), engine=by, **form)
    assert rows(tmp_path / "there") == rows(tmp_path / "here")
    assert state(tmp_path / "there") == state(SAMPLES / sample)
    assert [(unit.rows, unit.dropped) for unit in there.units] == [(unit.rows, unit.dropped) for unit in here.units]
    assert ckpt.state_verify(str(tmp_path / "there")).damages == ()


def test_keys_are_left_out_and_counted(by: Any, tmp_path: Path) -> None:
    sample = SAMPLES / "tws-rocksdb-4.2"
    key = dict(next(key for unit in rows(sample).values() for key, _ in unit if key))
    keys: list[Key] = [key, dict.fromkeys(key, "-1")]
    made = ckpt.rewrite(str(sample), str(tmp_path / "new"), partitions=3, drop_keys=keys, engine=by)
    here = ckpt.rewrite(str(sample), str(tmp_path / "here"), partitions=3, drop_keys=keys)
    assert rows(tmp_path / "new") == rows(tmp_path / "here")
    assert [unit.dropped for unit in made.units] == [unit.dropped for unit in here.units]
    assert sum(unit.dropped or 0 for unit in made.units) > 0
    assert made.unseen == (keys[1],)


def test_a_condition_is_evaluated_by_executors(by: Any, tmp_path: Path) -> None:
    form: dict[str, Any] = {"partitions": 3, "where": "value_count > 13 AND key_key <> 3"}
    sample = str(SAMPLES / "aggregation-hdfs-4.2")
    made = ckpt.rewrite(sample, str(tmp_path / "new"), engine=by, **form)
    here = ckpt.rewrite(sample, str(tmp_path / "here"), **form)
    assert rows(tmp_path / "new") == rows(tmp_path / "here")
    assert [(unit.rows, unit.dropped) for unit in made.units] == [(unit.rows, unit.dropped) for unit in here.units]
    assert made.units[0].rows
    assert made.units[0].dropped


@pytest.mark.parametrize("partitions", [2, 5])
def test_a_refusal_leaves_nothing(partitions: int, by: Any, copy_of: CopyOf, tmp_path: Path) -> None:
    """An executor's error is reported like the driver's own, and files that other tasks have written are removed."""
    checkpoint = copy_of("aggregation-hdfs-4.2")
    file = checkpoint / "state/0/1/8.snapshot"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(CkptError, match=r"state/0/1/8\.snapshot"):
        ckpt.rewrite(str(checkpoint), str(tmp_path / "new"), partitions=partitions, engine=by)
    assert not (tmp_path / "new").exists()
