"""A part asked again, on the installed Spark: the same answers as recorded, and nothing for ckpt to find later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ckpt.checkpoint.reader import open_checkpoint
from ckpt.inspection.inspection import inspect
from tests.changes.fixes.async_gap.oracle import record, repairing
from tests.changes.fixes.async_gap.oracle.test_repairs import broken_promises, named
from tests.restart.oracle import answers as oracle
from tests.restart.oracle.starts import continue_on
from tests.restart.oracle.test_live import essence
from tests.support.spark.live import EVERY_CASE, Here

pytestmark = pytest.mark.spark

LIVE = (
    "async-3.5-whole/fill",
    "async-3.5-whole/rewind",
    "async-3.5-uncommitted/fill",
    "async-3.5-without-latest/fill",
    "async-3.5-commits-far-behind/fill",
    "async-3.5-commits-ahead/fill",
    "async-3.5-commits-ahead/rewind",
    "async-3.5-no-commits/rewind",
    "async-far-gap/fill",
    "predecessor-missing/fill",
    "predecessor-missing-uncommitted/fill",
    "predecessor-missing-both-logs-uncommitted/rewind",
    "commits-ahead-predecessor-missing/fill",
    "alone/fill",
    "killed-predecessor-missing/fill",
    "predecessor-empty-stale-crc-uncommitted/fill",
    "predecessor-truncated-uncommitted/rewind",
    "latest-empty/fill",
    "latest-truncated/rewind",
    "nearest-earlier-empty/fill",
    "orphan-crc-offsets-next/fill",
    "orphan-crc-commits-next/fill",
    "orphan-crc-commits-latest/rewind",
    "stale-crc-latest/fill",
    "no-crc-at-all/fill",
    "two-sources-3.5-gap-uncommitted/fill",
    "file-source-3.5-gap-uncommitted/fill",
    "v1-after-v2-uncommitted/fill",
    "aggregation-hdfs-3.5-gap/fill",
    "aggregation-changelog-4.0-gap/fill",
)


@pytest.fixture
def here(spark: Any, tmp_path: Path) -> Here:
    return Here(spark, continue_on)


@pytest.mark.parametrize("name", named() if EVERY_CASE else LIVE)
def test_spark_starts_a_repaired_checkpoint_as_promised(here: Here, name: str, tmp_path: Path) -> None:
    minor, question = ".".join(here.spark.split(".")[:2]), record.find_question(name)
    if minor not in oracle.VERSIONS:
        pytest.skip(f"no answers are recorded for Spark {minor}")
    plan = repairing.planned(repairing.damaged(question.case, tmp_path / "planned"), question.strategy)

    answer = record.SUITE.ask(here, question, tmp_path / "repaired")

    assert broken_promises(question, minor, plan, answer) == []
    recorded = record.SUITE.recorded(minor)[name]
    assert essence(answer["first"]) == essence(recorded["first"])
    later = inspect(open_checkpoint(str(tmp_path / "repaired" / "ck")))
    assert later.sound, [one.finding for one in later.findings]


def test_enough_is_asked_again() -> None:
    assert len(LIVE) == len(set(LIVE)) >= 30
