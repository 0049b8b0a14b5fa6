"""``.metadata.crc`` alone in a folder (``rm -rf CHECKPOINT/*`` leaves it) keeps a new query from its ``metadata``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ckpt import inspect
from ckpt.advice import RowCost
from ckpt.changes.fixes.repair import FixName, repair
from ckpt.restart.findings import Severity
from tests.support.places import SAMPLES
from tests.support.spark import queries


@pytest.fixture
def emptied(tmp_path: Path) -> Path:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    shutil.copy2(SAMPLES / "stateless-4.2" / ".metadata.crc", checkpoint)
    return checkpoint


@pytest.mark.parametrize("folders", [(), ("offsets", "commits"), ("offsets", "sources")])
def test_the_repair_that_inspect_advises_removes_it(emptied: Path, folders: tuple[str, ...]) -> None:
    for folder in folders:
        (emptied / folder).mkdir()

    advised = inspect(emptied).advice
    plan, receipt = repair(emptied, apply=True, grace=0, accept_skip=True, accept_replay=True)

    assert [call.name for call in advised.calls] == ["repair"]
    assert plan.chosen is not None
    assert plan.chosen.name is FixName.TIDY
    assert [step.path for step in plan.steps] == [".metadata.crc"]
    assert receipt.applied
    left = {rated.code for rated in inspect(emptied).findings if rated.severity is not Severity.NOTE}
    assert left == ({"CKPT127"} if "commits" in folders else set())  # its batches vanished too


def test_that_the_query_begins_anew_has_to_be_accepted(emptied: Path) -> None:
    plan, _ = repair(emptied)

    assert (plan.rows, plan.unattended) == (RowCost.LEFT_OUT, False)
    assert plan.skips is not None
    assert plan.repeats is not None


def test_it_stays_where_it_proves_the_query_id(tmp_path: Path) -> None:
    checkpoint = shutil.copytree(SAMPLES / "stateless-4.2", tmp_path / "checkpoint")
    (checkpoint / "metadata").unlink()

    plan, _ = repair(checkpoint)

    assert plan.refused
    assert plan.steps == ()


@pytest.mark.spark
def test_a_real_start_fails_with_it_and_begins_anew_without(spark: Any, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    rows: list[int] = []

    def start() -> str | None:
        try:
            batches = queries.run(spark, queries.QUERIES["stateless"], checkpoint)
            rows.extend(row[0] for batch in batches.values() for row in batch)
        except Exception as error:
            return str(error)
        return None

    assert start() is None
    first = [*rows]
    for path in checkpoint.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name[0] != ".":
            path.unlink()
    failed = inspect(checkpoint).forecasts[-1].error
    said = start()
    repair(checkpoint, apply=True, grace=0, accept_skip=True, accept_replay=True)
    assert start() is None

    assert failed is not None
    assert said is not None
    assert failed in said
    assert len(first) >= 10
    assert sorted(rows) == sorted([*first, *first])  # read from the beginning again, as the plan has said
