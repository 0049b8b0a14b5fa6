"""``ckpt copy`` that is interrupted, while the query deletes files or writes them, or of a file that is large."""

import filecmp
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ckpt.checkpoint.reader import read_checkpoint
from ckpt.errors import StorageError
from ckpt.formats.offsets import UNFINISHED
from ckpt.inspection.inspection import inspect
from ckpt.new.copy import placing
from ckpt.new.copy.copy import copy
from ckpt.new.copy.selection import CannotCopy, select_files
from ckpt.storage import open_storage
from ckpt.storage.local import LocalStorage
from tests.conftest import Ckpt, CopyOf
from tests.new.copy.test_copy import BROKEN, files
from tests.support.places import SAMPLES
from tests.support.remedies import remove

CHANGES = [["repair"], ["rewind", "--to-batch", "7"], ["repair-async"]]


def test_what_is_not_finished_says_so_and_is_not_changed(copy_of: CopyOf, ckpt: Ckpt) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    (checkpoint / "offsets/9").write_bytes(UNFINISHED)
    (checkpoint / "offsets/.9.crc").unlink(missing_ok=True)
    found = ckpt("inspect", checkpoint, "-o", "json").json()["findings"]
    assert [(one["code"], one["path"]) for one in found if one["severity"] == "error"] == [("CKPT113", "offsets/9")]
    assert f"Next Remove {checkpoint}, with every other" in " ".join(ckpt("inspect", checkpoint).stdout.split())
    assert "recommended" not in ckpt("repair", checkpoint).stdout
    for words in CHANGES:
        run = ckpt(*words, checkpoint, "--apply")
        assert run.exit_code == 3
        assert "was interrupted while it wrote this checkpoint" in " ".join((run.stdout + run.stderr).split())
    with pytest.raises(CannotCopy, match="was interrupted while it wrote"):
        copy(str(checkpoint), "memory://of-an-unfinished-one")


@pytest.mark.parametrize(("deleted", "batch"), [(2, 8), (8, 9)])
def test_what_the_query_deletes_meanwhile(
    deleted: int, batch: int, copy_of: CopyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look is of batch 8; before its files are read batch 9 runs, and the oldest ones go."""
    checkpoint = copy_of("aggregation-hdfs-4.2")
    aside = tmp_path / "aside"
    for path in ("offsets/9", "commits/9", "state/0/0/10.delta", "state/0/1/10.delta"):
        aside.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(checkpoint / path, aside / path)
    read_many = LocalStorage.read_many

    def moving(self: LocalStorage, requests: Any) -> Any:
        asked = list(requests)
        if aside.is_dir() and {"offsets/8", "state/0/_metadata/metadata"} <= {one.path for one in asked}:
            shutil.copytree(aside, checkpoint, dirs_exist_ok=True)
            shutil.rmtree(aside)
            for old in range(deleted):
                remove(checkpoint / "offsets" / str(old))
        return read_many(self, asked)

    monkeypatch.setattr(LocalStorage, "read_many", moving)
    result = copy(str(checkpoint), str(tmp_path / "copy"))
    assert not aside.is_dir()
    assert result.batch == batch
    left = sorted(int(path.name) for path in (tmp_path / "copy" / "offsets").glob("[0-9]*"))
    assert left == [*range(deleted, batch + 1)]
    assert inspect(read_checkpoint(open_storage(str(tmp_path / "copy")))).sound


def test_a_named_batch_whose_files_go_meanwhile_is_given_up(copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint, seen = copy_of("aggregation-hdfs-4.2"), itertools.count()
    needed = select_files(open_storage(str(checkpoint)), str(tmp_path / "copy"), batch=7).chain[-1]

    def watcher(done: int, total: int) -> None:
        if next(seen) == 0:
            (checkpoint / needed.path).unlink()

    with pytest.raises(StorageError, match="deletes old files while it runs"):
        copy(str(checkpoint), str(tmp_path / "copy"), batch=7, watcher=watcher)
    assert files(tmp_path / "copy") == {}


@pytest.mark.parametrize(("grow", "said"), [(0, "was written while it was copied"), (-3, "was written while")])
def test_a_large_file_that_is_written_meanwhile_is_not_mixed(
    grow: int, said: str, copy_of: CopyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    file, read_range = checkpoint / "state/0/0/8.snapshot", LocalStorage.read_range

    def writing(self: LocalStorage, path: str, offset: int, length: int) -> bytes:
        if checkpoint / path == file and offset == 50:
            file.write_bytes(bytes(file.stat().st_size + grow))
        return read_range(self, path, offset, length)

    monkeypatch.setattr(placing, "PIECE", 50)
    monkeypatch.setattr(LocalStorage, "read_range", writing)
    with pytest.raises(StorageError, match=f"state/0/0/8.snapshot {said}"):
        copy(str(checkpoint), str(tmp_path / "copy"))
    assert files(tmp_path / "copy") == {}


MEASURED = """
from pathlib import Path
from ckpt.new.copy.copy import copy
copy("{checkpoint}", "{to}")
print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""


@pytest.mark.slow
def test_a_large_snapshot_is_not_held_in_memory(copy_of: CopyOf, tmp_path: Path) -> None:
    """Of 300 MB, the middle of it a hole; the sizes of state files are all that a copy asks of them, and their ends."""
    checkpoint, to = copy_of("aggregation-hdfs-4.2"), tmp_path / "copy"
    snapshot = checkpoint / "state/0/0/8.snapshot"
    end = snapshot.read_bytes()[-21:]
    with snapshot.open("rb+") as file:
        file.truncate(300_000_000)
        file.seek(0, os.SEEK_END)
        file.write(end)
    (checkpoint / "state/0/0/.8.snapshot.crc").unlink()
    script = MEASURED.format(checkpoint=checkpoint, to=to)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(run.stdout) * 1024 < 100_000_000
    assert filecmp.cmp(snapshot, to / "state/0/0/8.snapshot", shallow=False)


@pytest.mark.parametrize("error", [StorageError("the disk is full"), KeyboardInterrupt()])
def test_what_fails_half_way_leaves_nothing(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = itertools.count()

    def watcher(done: int, total: int) -> None:
        if next(written) == 9:
            raise error

    with pytest.raises(type(error)):
        copy(str(SAMPLES / BROKEN), str(tmp_path / "copy"), watcher=watcher)
    assert not (tmp_path / "copy").exists()
    assert copy(str(SAMPLES / BROKEN), str(tmp_path / "copy")).batch == 9, "and the folder can be used"


@pytest.mark.parametrize(("path", "said"), [("metadata", "exists already"), ("10", "something else is writing there")])
def test_what_somebody_else_wrote_there_is_left(path: str, said: str, tmp_path: Path) -> None:
    def watcher(done: int, total: int) -> None:
        (tmp_path / "copy" / path).write_text("of another copy")

    with pytest.raises(StorageError, match=said):
        copy(str(SAMPLES / BROKEN), str(tmp_path / "copy"), watcher=watcher)
    assert files(tmp_path / "copy") == {path: b"of another copy"}
