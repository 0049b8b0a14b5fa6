"""A checkpoint that was moved, held to a real Spark: useless before ``ckpt relocate``, whole after it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.changes.relocate.starting import What, read, start
from tests.conftest import Ckpt

pytestmark = pytest.mark.spark

TWS = What("transform-with-state", "changelog")
JOIN = What("join", "changelog", {"spark.sql.streaming.join.stateFormatVersion": "3"})


def must_go_on(spark: Any, what: What, checkpoint: Path, ckpt: Ckpt) -> None:
    """Several restarts, each with new batches, all in one line with those before; afterwards it looks clean."""
    before = max(int(path.name) for path in checkpoint.glob("commits/[0-9]*"))
    committed, error = start(spark, what, checkpoint, 3)

    assert error is None
    assert len(committed) >= 3
    assert committed == [*range(before + 1, before + 1 + len(committed))]
    inspected = ckpt("inspect", checkpoint, "-o", "json")
    assert inspected.exit_code == 0, inspected.stdout
    assert {one["code"] for one in inspected.json()["findings"]}.isdisjoint({"CKPT305", "CKPT311"})
    named = {path for file in checkpoint.glob("state/*/_metadata/v2/[0-9]*") for path in schema_paths(file)}
    assert all(path.startswith(f"file:{checkpoint}/state/") for path in named)


def schema_paths(file: Path) -> list[str]:
    stores = json.loads(file.read_text().partition("\n")[2])["stateStoreInfo"]
    return [path for store in stores for path in store["stateSchemaFilePaths"]]


@pytest.mark.parametrize("what", [TWS, JOIN], ids=lambda what: what.query)
def test_a_moved_checkpoint_is_read_again(what: What, spark: Any, ckpt: Ckpt, tmp_path: Path) -> None:
    """Before that Spark's reader finds no schema, nor does a start of transformWithState."""
    old, moved = tmp_path / "old", tmp_path / "moved"
    assert start(spark, what, old, 2)[1] is None
    there = read(spark, old)
    assert there[1] is None
    old.rename(moved)
    spare = shutil.copytree(moved, tmp_path / "spare")

    unread = str(read(spark, moved)[1])
    assert unread != "None"
    if what is JOIN:
        assert "STDS_FAILED_TO_READ_STATE_SCHEMA" in unread
    else:
        committed, error = start(spark, TWS, spare, 1)
        assert committed == []
        assert f"{old}/state/0/_stateSchema" in str(error)
        assert ckpt("inspect", moved).exit_code == 1

    assert ckpt("relocate", moved, "--apply", "--grace", 0, "--quiet").exit_code == 0
    assert read(spark, moved) == there
    must_go_on(spark, what, moved, ckpt)
    assert read(spark, moved)[1] is None


def test_relocated_first_and_moved_then(spark: Any, ckpt: Ckpt, tmp_path: Path) -> None:
    """To a place whose name Spark's state reader cannot read, wherever it was written: the query runs there."""
    here, there = tmp_path / "here", tmp_path / "100%20 sure"
    assert start(spark, TWS, here, 1)[1] is None

    assert ckpt("relocate", here, "--to", f"file://{there}", "--apply", "--grace", 0).exit_code == 0
    _, error = start(spark, TWS, shutil.copytree(here, tmp_path / "spare"), 1)
    assert f"{there}/state/0/_stateSchema" in str(error)
    assert not [path for path in there.rglob("*") if path.is_file()]
    shutil.rmtree(there)  # the folders that Spark made where it looked
    here.rename(there)
    must_go_on(spark, TWS, there, ckpt)
    assert "STDS_COMMITTED_BATCH_UNAVAILABLE" in str(read(spark, there)[1])
