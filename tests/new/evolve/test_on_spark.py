"""``ckpt evolve --engine spark``: executors write the state that processes of one machine write, or nothing."""

import re
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.errors import CkptError
from ckpt.query.description import DescribedBuffer
from tests.conftest import CopyOf
from tests.new.evolve.columns import COLUMN_CASES
from tests.new.evolve.record import ask, check
from tests.new.evolve.running import Answering
from tests.new.evolve.test_command import COUNT, SUM, describe_aggregates
from tests.new.rewrite.continuing import rows
from tests.support.places import SAMPLES
from tests.support.spark.live import Here

pytestmark = pytest.mark.spark

MORE, NONE = [("key", "long"), ("more", "string")], list[tuple[str, str]]()
CASES = [
    ("aggregation-hdfs-4.2", [("key", "long")]),
    ("aggregation-changelog-4.2", MORE),
    ("aggregation-format2-4.2", NONE),
]


def list_files(folder: Path) -> list[str]:
    """List the files of a checkpoint, without the ids that are new each time."""
    paths = (str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    return sorted(re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", path) for path in paths)


@pytest.mark.parametrize(("sample", "key"), CASES, ids=["columns", "keys that move", "groups that merge"])
def test_they_write_what_one_machine_does(sample: str, key: list[tuple[str, str]], by: Any, tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    describe_aggregates(old, COUNT, SUM)
    describe_aggregates(new, SUM, DescribedBuffer("max", "long", True), COUNT, key=key)
    places = {}
    for name, who in (("here", None), ("there", by)):
        places[name] = tmp_path / name
        plan, _ = ckpt.evolve(
            str(SAMPLES / sample),
            str(places[name]),
            to=str(new),
            from_query=str(old),
            engine=who,
            default={"more": "x"} if key == MORE else {},
            accept_from_now_on=True,
        )
        assert (plan.written, plan.refused) == (True, None)
    assert rows(places["there"]) == rows(places["here"])
    assert list_files(places["there"]) == list_files(places["here"])
    assert ckpt.state_verify(str(places["there"])).damages == ()


def test_the_changed_query_continues(by: Any, spark: Any, tmp_path: Path) -> None:
    case = next(case for case in COLUMN_CASES if case.name == "a key column and an aggregate")
    minor = ".".join(spark.version.split(".")[:2])
    check(case, ask(Here(spark, Answering().answer), case, minor, tmp_path / "case", by))


@pytest.mark.parametrize("key", [[("key", "long")], MORE], ids=["made", "divided"])
def test_a_task_that_fails_leaves_nothing(key: list[tuple[str, str]], by: Any, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    file = checkpoint / "state/0/1/8.snapshot"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    query = describe_aggregates(tmp_path / "new.json", COUNT, key=key)
    default = {"more": "x"} if key == MORE else {}
    with pytest.raises(CkptError, match=r"state/0/1/8\.snapshot"):
        ckpt.evolve(str(checkpoint), str(tmp_path / "new"), to=str(query), default=default, engine=by)
    assert not (tmp_path / "new").exists()
