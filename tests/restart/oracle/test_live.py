"""A part of the oracle asked again, on the Spark that is installed: it must still answer as recorded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.restart.oracle import answers, cases, starts

pytestmark = pytest.mark.spark

LIVE = (
    "gap-whole/sync",
    "gap-fresh/sync",
    "gap-uncommitted/sync",
    "gap-predecessor-missing/sync",
    "gap-predecessor-missing/async",
    "gap-predecessor-missing-uncommitted/sync",
    "gap-predecessor-missing-uncommitted/async",
    "gap-offsets-empty/sync",
    "gap-commits-ahead-by-1/sync",
    "gap-commits-behind-by-2/sync",
    "offset-latest-empty/sync",
    "offset-latest-v2/sync",
    "commit-latest-only-v1/sync",
    "commit-latest-v3/sync",
    "metadata-missing/sync",
    "crc-orphan-commit-next/sync",
    "crc-orphan-offset-next/sync",
    "directory-commit-next/sync",
    "name-leading-zeros-offset/sync",
    "random-stateless-07/sync",
    "hdfs-logs-whole/async",
    "hdfs-delta-6-missing/sync",
    "hdfs-state-gone/sync",
    "changelog-changelog-6-last-byte-cut/sync",
    "flipped-aggregation-rocksdb-4.2-sst-01-stale-crc/sync",
    "flipped-aggregation-rocksdb-4.2-sst-00/sync",
    "flipped-older-zip/sync",
)


def essence(answer: dict[str, Any]) -> dict[str, Any]:
    """What must not change from run to run: what ran, over which offsets, and Spark's error conditions."""
    text = "\n".join(answer["error"] or ())
    conditions = set(re.findall(r"\[([A-Z][A-Z0-9_.]{5,})\]", text))
    words = sorted(conditions) or text.splitlines()[-1:]
    return {key: answer[key] for key in ("outcome", "batch", "reexecutes", "sources")} | {"words": words}


@pytest.mark.parametrize("name", LIVE)
def test_spark_still_answers_as_recorded(spark: Any, name: str, tmp_path: Path) -> None:
    minor = ".".join(spark.version.split(".")[:2])
    if minor not in answers.VERSIONS:
        pytest.skip(f"no answers are recorded for Spark {minor}")
    by_name = {one.name: one for one in cases.CASES}
    case, mode = name.split("/")

    answer = starts.run(spark, by_name[case], mode, tmp_path / "ckpt-oracle-live")

    assert essence(answer) == essence(answers.read(minor)["answers"][name])


def test_the_cases_asked_again_exist():
    assert set(LIVE) <= {f"{case.name}/{mode}" for case in cases.CASES for mode in case.modes("4.2")}
