"""All that is missing of a chain of state is named at once: who puts it back has the state."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ckpt import Inspection, inspect
from ckpt.advice import Instruction
from tests.conftest import CopyOf
from tests.restart.oracle.cases.model import delete, write
from tests.support.places import SAMPLES
from tests.support.spark import queries

CHAINS = {
    "aggregation-hdfs-4.2": ("[7-9].*", "10.*"),
    "aggregation-changelog-4.2": ("[7-9].*", "10.*"),
    "join-hdfs-3.5": ("[2-9].*",),
    "dedup-hdfs-4.0": ("[2-4].*", "[6-9].*", "10.*"),
    "aggregation-format2-4.2": ("[1-6]_*",),
}


def put_back(inspection: Inspection, original: Path, checkpoint: Path) -> tuple[str, ...]:
    """Do what the step says that puts files back, and nothing else; the files."""
    steps = (step for rated in inspection.troubles if rated.advice for step in rated.advice.all_steps())
    files = next(step.do.paths for step in steps if isinstance(step.do, Instruction) and step.needs_copy)
    for path in files:
        shutil.copy2(original / str(path), checkpoint / str(path))
    return tuple(map(str, files))


def lose(checkpoint: Path, *patterns: str) -> set[str]:
    """Remove files of state; which ones."""
    lost = {path for pattern in patterns for path in (checkpoint / "state").rglob(pattern) if path.is_file()}
    for path in lost:
        path.unlink()
    return {str(path.relative_to(checkpoint)) for path in lost}


@pytest.mark.parametrize("sample", CHAINS)
def test_one_step_names_all(sample: str, tmp_path: Path) -> None:
    checkpoint = shutil.copytree(SAMPLES / sample, tmp_path / "checkpoint")
    lost = lose(checkpoint, *CHAINS[sample])

    broken = inspect(checkpoint)
    files = put_back(broken, SAMPLES / sample, checkpoint)

    assert not broken.sound
    assert {*files} <= lost
    assert inspect(checkpoint).sound


def test_a_damaged_file_after_a_missing_one_is_named_too(copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2", *delete("state/0/0/9.delta"), write("state/0/0/10.delta", ""))

    found = {(rated.code, rated.path) for rated in inspect(checkpoint).troubles}

    assert found >= {("CKPT301", "state/0/0/9.delta"), ("CKPT302", "state/0/0/10.delta")}


@pytest.mark.spark
@pytest.mark.parametrize("provider", ["hdfs", "changelog"])
def test_a_real_start_finds_the_state_that_was_put_back(provider: str, spark: Any, tmp_path: Path) -> None:
    sample = SAMPLES / f"aggregation-{provider}-4.2"
    totals = []
    for folder in ("sound", "checkpoint"):
        checkpoint = shutil.copytree(sample, tmp_path / folder)
        if folder == "checkpoint":
            lose(checkpoint, *CHAINS[sample.name])
            put_back(inspect(checkpoint), sample, checkpoint)
        rows: dict[Any, tuple[Any, ...]] = {}

        def keep(batch: Any, _: int, rows: dict[Any, tuple[Any, ...]] = rows) -> None:
            rows.update({row[0]: tuple(row) for row in batch.collect()})

        aggregation = queries.QUERIES["aggregation"]
        query = queries.start(spark, aggregation, checkpoint, store=provider, sink=keep)
        query.awaitTermination(60)
        assert query.exception() is None
        totals.append((max(report["batchId"] for report in query.recentProgress), rows))
    assert totals[0][1]
    assert totals[0] == totals[1]
