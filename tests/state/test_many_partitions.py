"""State of many partitions: Spark's executors say and write what one machine does, in few tasks."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.errors import CkptError
from ckpt.spark.executors import _FEWEST_SLICES as SLICES
from ckpt.state.verify.verify import read_every_byte
from tests.new.rewrite.continuing import state
from tests.support.places import SAMPLES
from tests.support.spark.live import EVERY_CASE

MANY = 1000 if EVERY_CASE else 100
"""Partitions. Each costs Spark some ms, and what is shown does not depend on how many there are."""
SAMPLE = SAMPLES / "aggregation-hdfs-4.2"

pytestmark = pytest.mark.spark
EACH = pytest.mark.skipif(not EVERY_CASE, reason="another one shows the same: CKPT_TEST_ALL=1")


@pytest.fixture(scope="module", params=["hdfs", pytest.param("rocksdb", marks=EACH)])
def wide(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A checkpoint of many partitions, written by this machine."""
    new = str(tmp_path_factory.mktemp("wide") / request.param)
    ckpt.rewrite(str(SAMPLE), new, provider=request.param, partitions=MANY)
    return new


@pytest.fixture(scope="module")
def by(spark: Any) -> Any:
    return ckpt.types.Executors(ckpt.types.Session(spark))


@pytest.fixture
def tasks(spark: Any) -> Callable[[], int]:
    """How many tasks of Spark there were since the test began."""

    def number() -> int:
        (count,) = spark.sparkContext.parallelize([0], 1).mapPartitions(_number_task).collect()
        return int(count)

    before = number()
    return lambda: number() - before - 1


def _number_task(_: Iterator[Any]) -> Iterator[int]:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    yield context.taskAttemptId()


ANSWERS: dict[str, Callable[..., Any]] = {
    "count": ckpt.state_count,
    "show": ckpt.state_show,
    "show a key": lambda path, **how: ckpt.state_show(path, key={"key": "3"}, **how),
    "keys": ckpt.state_keys,
    "verify": ckpt.state_verify,
    "inspect --deep": lambda path, **how: ckpt.inspect(read_every_byte(path, **how)),
}


@pytest.mark.parametrize("name", ANSWERS if EVERY_CASE else ("show", "inspect --deep"))
def test_executors_answer_as_one_machine(name: str, wide: str, by: Any, tasks: Callable[[], int]) -> None:
    here, there = ANSWERS[name](wide), ANSWERS[name](wide, engine=by)
    assert repr(there) == repr(here)
    assert str(there) == str(here)
    assert there == here
    assert 0 < tasks() <= 4 * SLICES


@EACH
def test_they_compare_it(wide: str, by: Any) -> None:
    assert ckpt.state_diff(str(SAMPLE), wide, engine=by) == ckpt.state_diff(str(SAMPLE), wide)


@pytest.mark.parametrize("partitions", [MANY, pytest.param(5, marks=EACH)])
def test_they_write_it(partitions: int, wide: str, by: Any, tasks: Callable[[], int], tmp_path: Path) -> None:
    ckpt.rewrite(wide, str(tmp_path / "new"), provider="rocksdb", partitions=partitions, engine=by)
    assert 0 < tasks() <= SLICES + (0 if partitions == MANY else partitions)
    assert state(tmp_path / "new") == state(SAMPLE)
    assert ckpt.state_verify(str(tmp_path / "new")).damages == ()


@EACH
def test_one_damaged_file_is_named(wide: str, by: Any, tmp_path: Path) -> None:
    ckpt.rewrite(wide, str(tmp_path / "new"), provider="hdfs", partitions=MANY)
    file = tmp_path / "new" / "state" / "0" / str(MANY - 1) / "10.snapshot"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    (damage,) = ckpt.state_verify(str(tmp_path / "new"), engine=by).damages
    assert damage.path == f"state/0/{MANY - 1}/10.snapshot"
    with pytest.raises(CkptError, match=rf"state/0/{MANY - 1}/10\.snapshot"):
        ckpt.state_count(str(tmp_path / "new"), engine=by)
