"""A checkpoint whose files are gone while its folders are there: it ran, and a start reads every row again."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ckpt
from tests.support.places import SAMPLES

ID = "70593f07-759f-415f-8591-109f754ff6b0"
CODE = "CKPT127"


def wipe(checkpoint: Path) -> None:
    """Remove all files of the logs and the state, hidden ones too."""
    for folder in ("offsets", "commits", "state"):
        shutil.rmtree(checkpoint / folder, ignore_errors=True)
        (checkpoint / folder).mkdir()


def build(top: Path, folders: Sequence[str], *, has_id: bool) -> Path:
    for folder in ("", *folders):
        (top / folder).mkdir(parents=True, exist_ok=True)
    if has_id:
        (top / "metadata").write_text(f'{{"id":"{ID}"}}')
    return top


def assert_held(page: str) -> None:
    verdict = " ".join(page.partition("\n\n")[0].split())
    assert verdict.startswith("HOLD: there is no batch in ")
    assert f": see {CODE}" in verdict


@pytest.mark.parametrize("has_id", [True, False])
@pytest.mark.parametrize("folders", [("offsets", "commits", "state"), ("commits", "state/0/0"), ("offsets", "commits")])
def test_it_is_started_only_if_it_never_ran(folders: Sequence[str], has_id: bool, tmp_path: Path, ckpt: Ckpt) -> None:
    """A start makes ``metadata`` and both logs at once, and ``state/`` only in a batch that is planned."""
    top = build(tmp_path / "in" / "checkpoint", folders, has_id=has_id)
    could_be_new = has_id and "state" not in folders[-1]
    # what a first start leaves that failed before it had planned a batch looks like this too
    found = "CKPT112" if could_be_new else CODE
    run = ckpt("inspect", top)
    assert (run.exit_code, found in run.stdout) == (1, True)
    for command in ("inspect", "repair"):
        assert "start the query as usual" not in ckpt(command, top).stdout
    held = ckpt("preflight", top)
    assert held.stdout.count("HOLD:") == (not could_be_new)
    assert held.exit_code == (not could_be_new)
    (row,) = ckpt("scan", top.parent, "-o", "json").json()["checkpoints"]
    assert row["worst"]["code"] == found
    assert row["severity"] == ("error" if not could_be_new else "warning")


@pytest.mark.parametrize("sample", ["aggregation-hdfs-4.2", "stateless-4.2"])
def test_a_sample_that_is_wiped(sample: str, tmp_path: Path, ckpt: Ckpt) -> None:
    top = Path(shutil.copytree(SAMPLES / sample, tmp_path / "checkpoint"))
    wipe(top)
    assert [one["code"] for one in ckpt("inspect", top, "-o", "json").json()["findings"]] == [CODE]
    assert_held(ckpt("preflight", top).stdout)


@pytest.mark.parametrize("folder", ["offsets", "commits"])
@pytest.mark.parametrize(("later_s", "found"), [(-3600, "CKPT112"), (5, "CKPT112"), (3600, CODE)])
def test_a_log_that_changed_after_the_first_start(
    folder: str, later_s: int, found: str, tmp_path: Path, ckpt: Ckpt
) -> None:
    """Folders of a query that never planned a batch have the time of its first start; a copy has its own times."""
    top = build(tmp_path / "checkpoint", ("offsets", "commits"), has_id=True)
    written = (top / "metadata").stat().st_mtime
    for name in ("offsets", "commits"):
        os.utime(top / name, (written, written))
    os.utime(top / folder, (written + later_s, written + later_s))
    (finding,) = ckpt("inspect", top, "-o", "json").json()["findings"]
    assert finding["code"] == found
    assert ckpt("preflight", top).exit_code == (found == CODE)
    for command in ("inspect", "repair"):
        page = " ".join(ckpt(command, top).stdout.split())
        assert "as usual" not in page
        assert "batch ids restart at 0" in page or command == "repair"


def test_it_is_first_in_a_scan_and_has_a_metric(tmp_path: Path, ckpt: Ckpt) -> None:
    shutil.copytree(SAMPLES / "stateless-4.2", tmp_path / "healthy")
    shutil.copytree(SAMPLES / "async-4.2", tmp_path / "asynchronous")  # has a warning
    wipe(Path(shutil.copytree(SAMPLES / "aggregation-hdfs-4.2", tmp_path / "wiped")))
    rows = ckpt("scan", tmp_path, "-o", "json").json()["checkpoints"]
    assert [(row["name"], row["severity"]) for row in rows] == [
        ("wiped", "error"),
        ("asynchronous", "warning"),
        ("healthy", "note"),
    ]
    metrics = ckpt("scan", tmp_path, "-o", "prometheus").stdout
    for row in rows:
        line = f'ckpt_checkpoint_batches_vanished{{checkpoint="{row["path"]}"}} {int(row["name"] == "wiped")}\n'
        assert line in metrics


def test_a_new_folder_is_no_wiped_checkpoint(tmp_path: Path, ckpt: Ckpt) -> None:
    assert ckpt("preflight", tmp_path).exit_code == 0


@pytest.mark.spark
def test_a_start_reads_everything_again(spark: Any, tmp_path: Path, ckpt: Ckpt) -> None:
    """And what a first start leaves that fails before its first batch is planned has no ``state/``."""
    files, checkpoint, written = tmp_path / "in", tmp_path / "checkpoint", Counter[str]()
    files.mkdir()
    (files / "a.txt").write_text("a\nb\n")

    def start(at: Path, folder: Path) -> None:
        rows = spark.readStream.format("text").load(str(folder)).groupBy("value").count()
        writer = rows.writeStream.outputMode("update")
        writer = writer.foreachBatch(lambda found, _: written.update(row.value for row in found.collect()))
        writer.option("checkpointLocation", str(at)).trigger(availableNow=True).start().awaitTermination()

    start(checkpoint, files)
    wipe(checkpoint)
    shutil.rmtree(checkpoint / "sources")
    assert_held(ckpt("preflight", checkpoint).stdout)
    start(checkpoint, files)
    assert written == {"a": 2, "b": 2}

    before, failed = dict(written), tmp_path / "failed"
    empty = tmp_path / "empty"
    empty.mkdir()
    start(failed, empty)
    assert written == before
    assert not (failed / "state").exists()
    for folder in ("metadata", "offsets", "commits"):  # as if that start was long ago
        os.utime(failed / folder, (10**9, 10**9))
    start(failed, empty)
    assert "CKPT112" in ckpt("inspect", failed).stdout
    (empty / "a.txt").write_text("a\n")
    start(failed, empty)
    wipe(failed)
    (failed / "state").rmdir()
    assert_held(ckpt("preflight", failed).stdout)
