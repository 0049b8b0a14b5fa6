"""A checkpoint without batches, in which the first file of a source's log is empty or bad: which sources fail on it."""

from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.advice import Do, Instruction
from ckpt.restart.findings import Outcome
from tests.support.spark.queries import QUERIES, start


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    folder.joinpath("sources", "0").mkdir(parents=True)
    folder.joinpath("sources", "0", "0").touch()
    return folder


def test_the_start_is_unknown_until_the_file_is_deleted(checkpoint: Path) -> None:
    inspection = ckpt.inspect(str(checkpoint))
    assert {forecast.outcome for forecast in inspection.forecasts} == {Outcome.UNKNOWN}
    (trouble,) = inspection.troubles
    assert (trouble.finding.diagnosis.code, trouble.finding.path) == ("CKPT404", "sources/0/0")
    (step,) = inspection.advice.steps
    assert step.do == Instruction(Do.DELETE, ("sources/0/0",))
    (checkpoint / "sources/0/0").unlink()
    inspection = ckpt.inspect(str(checkpoint))
    assert {forecast.outcome for forecast in inspection.forecasts} == {Outcome.STARTS_FRESH}
    assert inspection.sound


@pytest.mark.parametrize("content", [b"garbage", b"\n", bytes(7), b"v9\n{}"])
def test_so_it_is_with_a_first_line_that_is_no_version(checkpoint: Path, content: bytes) -> None:
    (checkpoint / "sources/0/0").write_bytes(content)
    inspection = ckpt.inspect(str(checkpoint))
    assert {forecast.outcome for forecast in inspection.forecasts} == {Outcome.UNKNOWN}
    assert inspection.advice.steps[0].do == Instruction(Do.DELETE, ("sources/0/0",))


@pytest.mark.parametrize("content", [b"v1", b"v1\n1700000000000", b'\0v1\n{"orders":{"0":4}}', b'\0{"orders":{"0":4}}'])
def test_a_file_that_a_first_start_wrote_is_no_trouble(checkpoint: Path, content: bytes) -> None:
    (checkpoint / "sources/0/0").write_bytes(content)
    inspection = ckpt.inspect(str(checkpoint))
    assert {forecast.outcome for forecast in inspection.forecasts} == {Outcome.STARTS_FRESH}


@pytest.mark.spark
def test_a_file_source_fails_and_starts_once_it_is_deleted(checkpoint: Path, spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"Failed to read log file .*/sources/0/0. Incomplete log file"):
        start(spark, QUERIES["file-source"], checkpoint, inputs=tmp_path).awaitTermination(60)
    assert [*(checkpoint / "offsets").glob("*")] == []
    (checkpoint / "sources/0/0").unlink()
    start(spark, QUERIES["file-source"], checkpoint, inputs=tmp_path).awaitTermination(60)
    assert (checkpoint / "commits/11").is_file()


@pytest.mark.spark
def test_a_source_that_keeps_nothing_there_does_not_look(checkpoint: Path, spark: Any) -> None:
    start(spark, QUERIES["stateless"], checkpoint).awaitTermination(60)
    assert (checkpoint / "commits/0").is_file()
