"""Disks that are full, folders that may not be written, links, other writers: all or nothing, and said in one line."""

import errno
import itertools
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from ckpt.changes.apply import Receipt
from ckpt.changes.fixes.repair_async import Strategy, plan_repair, repair_async
from ckpt.storage import open_storage
from tests.changes.applying import GAP, NOW, apply, facts, refused, undo
from tests.changes.fixes.async_gap.gaps import Gap
from tests.changes.killing import failing
from tests.conftest import Ckpt, CopyOf
from tests.support.services.copying import copy_tree

REPLACING = Gap((0, 3, 8, 9), (0, 1), {"offsets/8": "truncated"}, checksums=True, stale=("offsets/8",))
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount, and become another user")


# Any change to the disk may fail.


@pytest.mark.slow
@pytest.mark.parametrize("for_good", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize(
    "error",
    [*(OSError(code, os.strerror(code)) for code in (errno.ENOSPC, errno.EACCES, errno.EIO)), KeyboardInterrupt()],
    ids=["full", "forbidden", "broken", "interrupted"],
)
def test_whatever_fails_all_is_as_it_was_or_undo_makes_it_so(
    error: BaseException, for_good: bool, tmp_path: Path
) -> None:
    top = REPLACING.build(tmp_path / "checkpoint")
    before = facts(top)
    storage = open_storage(str(top))
    taken_back = left = 0
    for at in itertools.count(1):
        backup = tmp_path / f"backup-{at}"
        with pytest.MonkeyPatch.context() as patch:
            tried = failing(patch, at, error, for_good=for_good)
            receipt = apply(plan_repair(storage, Strategy.FILL), top, backup)
        if len(tried) < at:
            break
        assert receipt.problem is None or str(receipt.problem).isprintable()
        assert receipt.applied == (receipt.problem is None)
        if facts(top) == before:
            assert not receipt.applied
            assert receipt.undone or str(receipt.problem).startswith("nothing was changed")
            gave_up = isinstance(error, OSError) and not for_good
            assert not (gave_up and backup.exists()), "no part of a backup is left"
            taken_back += 1
        else:
            assert not receipt.undone
            assert receipt.backup == str(backup), "whoever reads it learns what undo needs"
            assert undo(top, backup).undone
            assert facts(top) == before
            left += 1
    assert receipt.applied
    assert taken_back > 10
    assert for_good == (left > 0), "what fails once is taken back at once"


@pytest.mark.slow
def test_an_undo_that_is_interrupted_goes_on_when_asked_again(tmp_path: Path) -> None:
    for at in itertools.count(1):
        top, backup = REPLACING.build(tmp_path / f"checkpoint-{at}"), tmp_path / f"backup-{at}"
        before = facts(top)
        assert apply(plan_repair(open_storage(str(top)), Strategy.FILL), top, backup).applied
        with pytest.MonkeyPatch.context() as patch:
            tried = failing(patch, at, KeyboardInterrupt(), for_good=False)
            receipt = undo(top, backup)
        if len(tried) < at:
            break
        assert not receipt.undone
        assert "interrupted" in str(receipt.problem)
        assert undo(top, backup).undone
        assert facts(top) == before
    assert at > 5


class Flaky(MemoryFileSystem):
    """A store whose connection is lost after some changes."""

    protocol = "flaky"
    left = 10**9

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace("flaky://", "memory://")))

    def _changed(self) -> None:
        Flaky.left -= 1
        if Flaky.left < 0:
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: object) -> None:
        self._changed()
        super().pipe_file(path, value, mode=mode, **kwargs)

    def rm_file(self, path: str) -> None:
        self._changed()
        super().rm_file(path)


def put(store: Flaky, top: str, path: str, data: bytes) -> None:
    store.pipe_file(f"{top}/{path}", data)


def test_a_connection_lost_midway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock of the change is left too, and is over before the undo."""
    fsspec.register_implementation("flaky", Flaky, clobber=True)
    local = Gap((0, 3, 8, 9), (0,), {"offsets/8": "empty"}).build(tmp_path / "local")
    store = Flaky()
    for allowed in itertools.count(0):
        top = f"/flaky-{allowed}/checkpoint"
        Flaky.left = 10**9
        copy_tree(local, Path, partial(put, store, top))
        uri, backup = f"flaky:/{top}", f"flaky://{top}-backup"
        before = {path: store.cat_file(path) for path in store.find(top)}
        Flaky.left = allowed
        _, receipt = repair_async(uri, apply=True, backup=backup, accept_replay=True, grace=0)
        if receipt.applied:
            break
        assert str(receipt.problem).isprintable()
        assert "cannot be reached" in str(receipt.problem)
        Flaky.left = 10**9
        if store.exists(f"{top}-backup/manifest.json"):
            _, refused = repair_async(uri, undo=backup, grace=0)
            assert refused.undone or "(120 s if it crashed)" in str(refused.problem)
            with monkeypatch.context() as later:
                later.setattr("ckpt.storage.lock_files.LEASE_S", -1)
                assert repair_async(uri, undo=backup, grace=0)[1].undone
        assert {path: store.cat_file(path) for path in store.find(top)} == before
    assert allowed > 4


# Real disks.


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    yield disk
    subprocess.run(["umount", disk], check=True)


def fill(disk: Path) -> None:
    """Leave no byte free on a disk."""
    free = os.statvfs(disk)
    (disk / "filler").write_bytes(b"x" * (free.f_bavail * free.f_frsize))


def refuse(ckpt: Ckpt, checkpoint: Path, *words: object, top: Path | None = None) -> str:
    """Why it is not repaired; nothing of the checkpoint, or below another folder, is changed."""
    before = facts(top or checkpoint)
    reason = refused(ckpt("repair-async", checkpoint, *words, "-o", "json"))
    assert facts(top or checkpoint) == before
    return reason


@as_root
def test_a_full_disk_for_the_backup(ckpt: Ckpt, copy_of: CopyOf, small_disk: Path) -> None:
    checkpoint = copy_of(GAP, {"op": "delete", "path": "commits/31"}, {"op": "write", "path": "offsets/30", "text": ""})
    fill(small_disk)
    assert "disk is full" in refuse(ckpt, checkpoint, *NOW, "--backup", small_disk / "backup")


@as_root
def test_a_full_disk_for_the_checkpoint(ckpt: Ckpt, small_disk: Path, tmp_path: Path) -> None:
    checkpoint = Gap((0, 5, 9), (0, 5, 9), checksums=True).build(small_disk / "checkpoint")
    fill(small_disk)
    assert "disk is full" in refuse(ckpt, checkpoint, *NOW, "--backup", tmp_path / "backup")


@as_root
def test_a_read_only_checkpoint(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    source, mount = copy_of(GAP), tmp_path / "mounted"
    before = facts(source)
    mount.mkdir()
    if subprocess.run(["mount", "--bind", source, mount], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", mount], check=True)
        run = ckpt("repair-async", mount, *NOW, "-o", "json")
        reason = refused(run)
    finally:
        subprocess.run(["umount", mount], check=True)
    assert "mounted read-only (EROFS)" in reason
    assert "could not be reverted" not in reason
    assert facts(source) == before


def as_nobody(action: Callable[[], Receipt]) -> str:
    """What came of it when somebody without rights tried."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        try:
            receipt = action()
            text = f"{receipt!r}: {receipt.problem}"  # a page needs modules that this user may not be able to read
        except BaseException as error:
            text = f"raised {error!r}"
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading) as pipe:
        return pipe.read()


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that everybody can reach and write to; those above `tmp_path` are for this user alone."""
    with tempfile.TemporaryDirectory(prefix="ckpt-open-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


@as_root
def test_files_of_somebody_else_are_left_alone(open_place: Path) -> None:
    top = REPLACING.build(open_place / "checkpoint")
    for folder in (top, top / "offsets", top / "commits"):
        folder.chmod(0o777)
    before = facts(top)
    told = as_nobody(lambda: repair_async(str(top), apply=True, accept_replay=True, grace=0)[1])
    assert "belongs to another user: run ckpt as the user that runs the query" in told
    assert facts(top) == before


@as_root
def test_a_folder_that_may_not_be_written_midway(open_place: Path) -> None:
    top = Gap((0, 1, 5), (0, 1, 5), checksums=True).build(open_place / "checkpoint")
    for path in (top, *top.rglob("*")):
        os.chown(path, 65534, 65534)
    (top / "offsets").chmod(0o555)
    before = facts(top)
    told = as_nobody(
        lambda: repair_async(str(top), strategy=Strategy.REWIND, apply=True, accept_replay=True, grace=0)[1]
    )
    assert "cannot be written (permission denied)" in told
    assert "undone=True" in told
    assert facts(top) == before


# Links, and names that are taken.


def put_aside(folder: Path, elsewhere: Path) -> None:
    """Leave a symbolic link where a folder was."""
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)


@pytest.mark.parametrize(("strategy", "linked"), [("fill", "offsets"), ("rewind", "offsets"), ("rewind", "commits")])
@pytest.mark.parametrize("words", [(), NOW], ids=["plan", "apply"])
def test_a_log_folder_that_is_a_link_is_not_written_through(
    words: tuple[str, ...], strategy: str, linked: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path
) -> None:
    checkpoint = copy_of(GAP)
    put_aside(checkpoint / linked, checkpoint / "elsewhere")
    before = facts(tmp_path)
    run = ckpt("repair-async", checkpoint, "--strategy", strategy, "--accept-replay", *words, "-o", "json")
    assert f"{linked} is a symbolic link, and ckpt writes only to" in refused(run)
    assert run.json()["steps"] == run.json()["after"] == []
    assert facts(tmp_path) == before


@pytest.mark.parametrize("strategy", [Strategy.FILL, Strategy.REWIND])
def test_a_log_folder_that_becomes_a_link_once_it_is_planned(
    strategy: Strategy, copy_of: CopyOf, tmp_path: Path
) -> None:
    checkpoint = copy_of(GAP)
    plan = plan_repair(open_storage(str(checkpoint)), strategy)
    assert plan.steps
    put_aside(checkpoint / "offsets", tmp_path / "elsewhere")
    before = facts(tmp_path)
    receipt = apply(plan, checkpoint, tmp_path / "backup")
    assert str(receipt.problem).startswith("nothing was changed: ")
    assert "offsets/" in str(receipt.problem)
    assert receipt.backup is None
    assert facts(tmp_path) == before, "not even a backup was begun"


@pytest.mark.parametrize("words", [(), NOW], ids=["plan", "apply"])
def test_a_checkpoint_that_is_a_link_itself_is_repaired(
    words: tuple[str, ...], ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(copy_of(GAP))
    run = ckpt("repair-async", tmp_path / "link", *words, "-o", "json")
    assert run.exit_code == (0 if words else 1)
    assert run.json()["applied"] is bool(words)
    assert run.json()["steps"]


@pytest.mark.parametrize("target", ["there", "nowhere"])
def test_a_file_that_is_a_link_is_not_written_through(target: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of(GAP)
    if target == "there":
        (checkpoint / target).write_bytes(b"precious")
    (checkpoint / "offsets" / "30").symlink_to(checkpoint / target)
    expected = "offsets/30 is a symbolic link" if target == "there" else "offsets/30 is not a file"
    words = ("--strategy", "fill", *NOW, "--backup", f"{tmp_path}-b")
    assert expected in refuse(ckpt, checkpoint, *words, top=tmp_path)


def test_a_folder_where_the_missing_file_belongs(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(GAP, {"op": "mkdir", "path": "offsets/30"})
    assert "offsets/30 is not a file" in refuse(ckpt, checkpoint, "--strategy", "fill")


def test_a_backup_that_exists_is_not_used(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint, backup = copy_of(GAP), tmp_path / "backup"
    backup.mkdir()
    assert "already exists" in refuse(ckpt, checkpoint, *NOW, "--backup", backup, top=tmp_path)


def test_a_backup_is_for_its_owner_only(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    assert ckpt("repair-async", copy_of(GAP), *NOW, "--backup", tmp_path / "backup").exit_code == 0
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("grace", ["nan", "inf", "-1", "x"])
def test_a_grace_that_is_no_time(grace: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(GAP)
    before = facts(checkpoint)
    run = ckpt("repair-async", checkpoint, "--apply", "--quiet", "--grace", grace, "-o", "json")
    assert run.exit_code in (2, 3)
    assert facts(checkpoint) == before
