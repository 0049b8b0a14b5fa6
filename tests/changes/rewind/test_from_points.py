"""``ckpt rewind --from``: a checkpoint becomes a point that was made of it, where its own logs no longer reach back."""

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.changes.rewind.rewind import rewind
from ckpt.storage import open_storage
from tests.changes.applying import facts
from tests.changes.prune.aged import aged, purge
from tests.commands import contract
from tests.conftest import Ckpt
from tests.new.copy.test_copy import files
from tests.support.places import SAMPLES

POINT = "2026-11-20T00-00-00Z-batch-{}"
AT = datetime(2026, 11, 20, 1, tzinfo=UTC)
NOW: Any = {"apply": True, "grace": 0, "accept_skip": True, "accept_replay": True}
STORES = ["aggregation-hdfs-4.2", "aggregation-changelog-4.2", "aggregation-format2-4.2", "file-source-4.2"]


def prepare(sample: str, top: Path, batch: int = 3) -> tuple[Path, Path]:
    """A checkpoint with few logs, and a folder with a point of an older batch."""
    folder = top / "kept"
    folder.mkdir()
    ckpt.copy(str(SAMPLES / sample), str(folder / POINT.format(batch)), batch=batch)
    return aged(sample, top / "checkpoint", 3), folder


def without_ssts(top: Path) -> dict[str, bytes]:
    return {path: data for path, data in files(top).items() if "SSTs" not in path}


@pytest.mark.parametrize("sample", STORES)
def test_it_becomes_the_point_and_an_undo_restores_it(sample: str, tmp_path: Path) -> None:
    checkpoint, folder = prepare(sample, tmp_path)
    before, point = facts(checkpoint), files(folder)
    plan, receipt = rewind(str(checkpoint), to_batch=AT, from_=str(folder))
    assert facts(checkpoint) == before
    assert (plan.to_batch, plan.point, receipt.applied) == (3, POINT.format(3), False)
    assert plan.again is not None
    assert plan.again.loses
    assert {f.batch_id for f in plan.inspection_after.counted if f.outcome.runs} == {4}  # type: ignore[union-attr]
    assert plan.skips is not None
    assert plan.repeats is not None
    (replay,) = plan.replay or ()
    assert replay.batch == 4
    backup = str(tmp_path / "backup")
    plan, receipt = rewind(str(checkpoint), to_batch=AT, from_=str(folder), backup=backup, **NOW)
    assert receipt.applied, receipt.problem
    assert without_ssts(checkpoint) == without_ssts(folder / POINT.format(3))
    assert files(folder / POINT.format(3)).items() <= files(checkpoint).items()
    assert files(folder) == point
    again, _ = rewind(str(checkpoint), to_batch=AT, from_=str(folder))
    assert not again.needed
    _, undone = rewind(str(checkpoint), undo=backup, grace=0)
    assert undone.undone, undone.problem
    assert facts(checkpoint) == before


def test_schemas_are_found_where_the_checkpoint_is(tmp_path: Path) -> None:
    checkpoint, folder = tmp_path / "checkpoint", tmp_path / "kept"
    folder.mkdir()
    ckpt.copy(str(SAMPLES / "tws-rocksdb-4.2"), str(folder / POINT.format(0)), batch=0)
    ckpt.copy(str(SAMPLES / "tws-rocksdb-4.2"), str(checkpoint))
    purge(checkpoint, 1)
    plan, receipt = rewind(str(checkpoint), to_batch=AT, from_=str(folder), **NOW)
    assert receipt.applied, (receipt.problem, plan.refused)
    operators = ckpt.open_checkpoint(str(checkpoint)).operators
    paths = [path for operator in operators for path in operator.schema_paths]
    assert paths
    assert all(str(path).startswith(f"file:{checkpoint}") for path in paths)


def test_a_batch_that_is_there_needs_no_point(tmp_path: Path) -> None:
    checkpoint, folder = prepare(STORES[0], tmp_path)
    newest = ckpt.open_checkpoint(str(checkpoint)).offsets
    planned = newest.records[newest.ids[-1]].metadata
    assert planned is not None
    for batch in newest.ids[:-1]:
        done = newest.records[batch].metadata
        assert done is not None
        os.utime(checkpoint / "commits" / str(batch), (0, done.timestamp_ms / 1000 + 0.01))
    moment = datetime.fromtimestamp(planned.timestamp_ms / 1000 - 0.005, UTC)
    plan, _ = rewind(str(checkpoint), to_batch=moment, from_=str(folder))
    assert (plan.point, plan.to_batch) == (None, newest.ids[-2])


def test_another_range_leaves_out_what_the_point_had_planned(tmp_path: Path) -> None:
    sample = "aggregation-killed-hdfs-4.0"
    offsets = ckpt.open_checkpoint(str(SAMPLES / sample)).offsets
    committed = ckpt.open_checkpoint(str(SAMPLES / sample)).commits.ids[-1]
    assert offsets.ids[-1] == committed + 1
    folder, checkpoint = tmp_path / "kept", tmp_path / "checkpoint"
    folder.mkdir()
    ckpt.copy(str(SAMPLES / sample), str(folder / POINT.format(committed)))
    shutil.copytree(SAMPLES / sample, checkpoint)
    for log in ("offsets", "commits"):  # as after ten batches more
        for file in (checkpoint / log).iterdir():
            batch = int(file.name.strip(".").partition(".")[0])
            file.rename(file.with_name(file.name.replace(str(batch), str(batch + 10))))
    for replay, first, planned in (("same", committed + 1, True), ("new", committed + 1, False)):
        plan, _ = rewind(str(checkpoint), to_batch=AT, from_=str(folder), replay=replay)
        assert plan.refused is None
        assert plan.inspection_after is not None
        left = plan.inspection_after.checkpoint
        assert (left.offsets.latest == committed + 1) is planned
        assert {f.batch_id for f in plan.inspection_after.counted if f.outcome.runs} == {first}
        assert [each.batch for each in plan.replay or ()] == ([first, first + 1] if planned else [first])


def test_what_is_refused(tmp_path: Path, ckpt: Ckpt) -> None:
    checkpoint, folder = prepare(STORES[0], tmp_path)
    other = tmp_path / "others"
    other.mkdir()
    shutil.copytree(next((folder).iterdir()), other / POINT.format(3))
    (other / POINT.format(3) / "metadata").write_text('{"id":"someone else"}')
    words = ("rewind", checkpoint, "--to-time")
    for more, code, says in (
        (("2026-11-19T01:00Z", "--from", folder), 3, "the oldest is"),
        (("2026-11-20T01:00Z", "--from", other), 3, "it has none of this query"),
        (("2026-11-20T01:00Z", "--from", tmp_path / "no"), 3, "does not exist"),
        (("2026-11-20T01:00Z", "--source-options", "0.path=/x"), 2, "--source-options needs --sources"),
    ):
        run = ckpt(*words, *more)
        assert (run.exit_code, run.stderr.count("\n")) == (code, 1), run.stderr
        assert says in run.stderr
    run = ckpt("rewind", checkpoint, "--to-batch", 3, "--from", folder)
    assert (run.exit_code, run.stderr) == (2, "ckpt: --from goes back to a time, not to a batch\n")


def test_a_point_that_is_not_older_is_not_taken(tmp_path: Path) -> None:
    checkpoint, folder = prepare(STORES[0], tmp_path, batch=8)
    before = facts(checkpoint)
    plan, receipt = rewind(str(checkpoint), to_batch=AT, from_=str(folder), **NOW)
    assert not receipt.applied
    assert "not older" in str(plan.refused)
    assert facts(checkpoint) == before


def test_the_page_and_the_document(tmp_path: Path, ckpt: Ckpt) -> None:
    checkpoint, folder = prepare("file-source-4.2", tmp_path)
    words = ("rewind", checkpoint, "--to-time", "2026-11-20T01:00Z", "--from", folder)
    page = ckpt(*words, "--sources", "--source-options", "0.path=/no/such/folder").stdout
    assert "Source 0: not reached" in page
    assert f"--to-time 2026-11-20T00:00:00Z --from {folder}" in page
    document = ckpt(*words, "-o", "json").json()
    assert contract.disagreements(document, "rewind") == []
    assert document["point"] == POINT.format(3)


@pytest.mark.parametrize("where", ["point", "checkpoint"])
def test_between_kinds_of_storage(where: str, tmp_path: Path) -> None:
    """Hidden checksum files are Hadoop's, on local disks only."""
    fsspec = pytest.importorskip("fsspec")
    checkpoint, folder = prepare(STORES[1], tmp_path)
    memory, remote = fsspec.filesystem("memory"), f"memory://points/{where}"
    local = folder if where == "point" else checkpoint
    for path, data in files(local).items():
        if "/." not in f"/{path}":
            memory.pipe_file(f"{remote.removeprefix('memory:/')}/{path}", data)
    uri, points = (str(checkpoint), remote) if where == "point" else (remote, str(folder))
    plan, receipt = rewind(uri, to_batch=AT, from_=points, backup=None, **NOW)
    assert receipt.applied, (receipt.problem, plan.refused)
    tree = open_storage(uri).list_tree()
    names = {path for path, _ in tree.walk() if "SSTs" not in path}
    assert names == {path for path in without_ssts(folder / POINT.format(3)) if "/." not in f"/{path}"}
