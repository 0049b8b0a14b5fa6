"""An uncommitted batch that a failed start left behind, and one that was killed while it ran, are told apart."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import Ckpt, CopyOf
from tests.restart.oracle import answers
from tests.support.places import SAMPLES
from tests.support.remedies import remove

FAILED = "it may come from a start that failed"


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
    assert "the range of the batch is fixed now" in detail


@pytest.mark.parametrize("sample", ["aggregation-killed-hdfs-4.0", "aggregation-killed-changelog-4.3"])
def test_a_batch_that_wrote_state_was_running(sample: str, ckpt: Ckpt) -> None:
    assert FAILED not in detail_of(SAMPLES / sample, ckpt)


def test_without_state_nothing_is_said(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-4.2")
    remove(checkpoint / "commits" / "5")
    assert FAILED not in detail_of(checkpoint, ckpt)
