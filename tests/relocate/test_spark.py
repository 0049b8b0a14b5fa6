"""A checkpoint that was moved, held to a real Spark: useless before ``ckpt relocate``, whole after it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ckpt
from tests.oracle.record import Worker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark is not installed"),
]

TWS: dict[str, Any] = {"query": "transform-with-state", "store": "changelog", "conf": {}}
JOIN: dict[str, Any] = {
    "query": "join",
    "store": "changelog",
    "conf": {"spark.sql.streaming.join.stateFormatVersion": "3"},
}


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    log = tmp_path_factory.mktemp("spark") / "worker.log"
    with Worker(sys.executable, log, "tests.relocate.worker") as started:
        yield started


def run(worker: Worker, what: dict[str, Any], checkpoint: Path, times: int) -> dict[str, Any]:
    return worker.ask({"do": "start", "checkpoint": str(checkpoint), "times": times, **what})


def state(worker: Worker, checkpoint: Path) -> dict[str, Any]:
    return worker.ask({"do": "read", "checkpoint": str(checkpoint)})


def must_go_on(worker: Worker, what: dict[str, Any], checkpoint: Path, ckpt: Ckpt) -> None:
    """Several restarts, each with new batches, all in one line with those before; afterwards it looks clean."""
    before = max(int(path.name) for path in checkpoint.glob("commits/[0-9]*"))
    went_on = run(worker, what, checkpoint, 3)

    assert went_on["error"] is None
    assert len(went_on["committed"]) >= 3
    assert went_on["committed"] == [*range(before + 1, before + 1 + len(went_on["committed"]))]
    inspected = ckpt("inspect", checkpoint, "-o", "json")
    assert inspected.exit_code == 0, inspected.stdout
    assert {one["code"] for one in inspected.json()["findings"]}.isdisjoint({"CKPT305", "CKPT311"})
    named = {path for file in checkpoint.glob("state/*/_metadata/v2/[0-9]*") for path in schema_paths(file)}
    assert all(path.startswith(f"file:{checkpoint}/state/") for path in named)


def schema_paths(file: Path) -> list[str]:
    stores = json.loads(file.read_text().partition("\n")[2])["stateStoreInfo"]
    return [path for store in stores for path in store["stateSchemaFilePaths"]]


def test_a_moved_transform_with_state_checkpoint(worker: Worker, ckpt: Ckpt, tmp_path: Path) -> None:
    old, moved = tmp_path / "old", tmp_path / "moved"
    assert run(worker, TWS, old, 2)["error"] is None
    there = state(worker, old)
    assert there["error"] is None
    old.rename(moved)
    spare = shutil.copytree(moved, tmp_path / "spare")

    assert state(worker, moved)["error"] is not None
    failed = run(worker, TWS, spare, 1)
    assert failed["committed"] == []
    assert f"{old}/state/0/_stateSchema" in failed["error"]
    assert ckpt("inspect", moved).exit_code == 1

    assert ckpt("relocate", moved, "--apply", "--grace", 0, "--quiet").exit_code == 0
    assert state(worker, moved) == there
    must_go_on(worker, TWS, moved, ckpt)
    assert state(worker, moved)["error"] is None


def test_relocated_first_and_moved_then(worker: Worker, ckpt: Ckpt, tmp_path: Path) -> None:
    """To a place whose name Spark's state reader cannot read, wherever it was written: the query runs there."""
    here, there = tmp_path / "here", tmp_path / "100%20 sure"
    assert run(worker, TWS, here, 1)["error"] is None

    assert ckpt("relocate", here, "--to", f"file://{there}", "--apply", "--grace", 0).exit_code == 0
    assert f"{there}/state/0/_stateSchema" in run(worker, TWS, shutil.copytree(here, tmp_path / "spare"), 1)["error"]
    assert not [path for path in there.rglob("*") if path.is_file()]
    shutil.rmtree(there)  # the folders that Spark made where it looked
    here.rename(there)
    must_go_on(worker, TWS, there, ckpt)
    assert "STDS_COMMITTED_BATCH_UNAVAILABLE" in state(worker, there)["error"]


def test_the_state_of_a_moved_join_is_read_again(worker: Worker, ckpt: Ckpt, tmp_path: Path) -> None:
    old, moved = tmp_path / "old", tmp_path / "moved"
    assert run(worker, JOIN, old, 2)["error"] is None
    there = state(worker, old)
    assert there["error"] is None
    old.rename(moved)

    assert "STDS_FAILED_TO_READ_STATE_SCHEMA" in state(worker, moved)["error"]
    assert ckpt("relocate", moved, "--apply", "--grace", 0).exit_code == 0
    assert state(worker, moved) == there
    must_go_on(worker, JOIN, moved, ckpt)
    assert state(worker, moved)["error"] is None
