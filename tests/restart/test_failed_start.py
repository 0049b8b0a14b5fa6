"""Uncommitted batches after a failed start or a kill, and first starts on a source's log that is empty or bad."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.advice import Do, Instruction
from ckpt.restart.findings import Outcome
from tests.conftest import Ckpt, CopyOf
from tests.restart.oracle import answers
from tests.restart.oracle.cases.model import delete_logs
from tests.support.places import SAMPLES
from tests.support.spark.queries import QUERIES, start

FAILED = "it may come from a failed start"


def detail_of(checkpoint: Path, ckpt: Ckpt) -> str:
    findings = ckpt("inspect", checkpoint, "-o", "json").json()["findings"]
    (detail,) = [one["detail"] for one in findings if one["code"] == "CKPT203"]
    return str(detail)


@pytest.mark.parametrize("minor", answers.VERSIONS[1:])
def test_spark_leaves_offsets_of_a_batch_that_never_ran(minor: str) -> None:
    """A deduplication started on the checkpoint of an aggregation, whose latest batch is 5."""
    answer = answers.read(minor)["answers"]["other-query-dedup-on-aggregation/sync"]
    assert (answer["outcome"], answer["batch"], answer["committed"]) == ("fails-at-start", None, False)
    assert answer["offsets"][-1] == "6"
    assert not (SAMPLES / "aggregation-changelog-4.0" / "offsets" / "6").exists()


@pytest.mark.parametrize("sample", ["aggregation-changelog-4.0", "aggregation-hdfs-4.2", "aggregation-format2-4.2"])
def test_a_batch_without_state_may_come_from_a_failed_start(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(sample)
    latest = max(int(file.name) for file in (checkpoint / "offsets").glob("[0-9]*"))
    shutil.copyfile(checkpoint / "offsets" / str(latest), checkpoint / "offsets" / str(latest + 1))
    detail = detail_of(checkpoint, ckpt)
    assert f"state/ has none of version {latest + 2}: {FAILED}" in detail
    assert "the batch's offsets are now fixed" in detail


@pytest.mark.parametrize("sample", ["aggregation-killed-hdfs-4.0", "aggregation-killed-changelog-4.3"])
def test_a_batch_that_wrote_state_was_running(sample: str, ckpt: Ckpt) -> None:
    assert FAILED not in detail_of(SAMPLES / sample, ckpt)


def test_without_state_nothing_is_said(ckpt: Ckpt, copy_of: CopyOf) -> None:
    assert FAILED not in detail_of(copy_of("stateless-4.2", *delete_logs(commits=[5])), ckpt)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    folder.joinpath("sources", "0").mkdir(parents=True)
    folder.joinpath("sources", "0", "0").touch()
    return folder


@pytest.fixture
def started(checkpoint: Path) -> Path:
    """With what a start writes first: the file of the source need not look like Spark's."""
    (checkpoint / "metadata").write_text('{"id":"00000000-0000-4000-8000-000000000001"}')
    return checkpoint


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
def test_so_it_is_with_a_first_line_that_is_no_version(started: Path, content: bytes) -> None:
    (started / "sources/0/0").write_bytes(content)
    inspection = ckpt.inspect(str(started))
    assert {forecast.outcome for forecast in inspection.forecasts} == {Outcome.UNKNOWN}
    assert inspection.advice.steps[0].do == Instruction(Do.DELETE, ("sources/0/0",))


@pytest.mark.parametrize("content", [b"v1", b"v1\n1700000000000", b'\0v1\n{"orders":{"0":4}}', b'\0{"orders":{"0":4}}'])
def test_a_file_that_a_first_start_wrote_is_no_trouble(started: Path, content: bytes) -> None:
    (started / "sources/0/0").write_bytes(content)
    inspection = ckpt.inspect(str(started))
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
