"""Disks that are full, folders that may not be written, links, other writers: all or nothing, and said in one line."""

import errno
import fcntl
import itertools
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from ckpt.change import quiet
from ckpt.repair import Receipt, Strategy, plan_repair, repair_async
from ckpt.storage import open_storage
from tests.conftest import Ckpt, CopyOf, Run
from tests.repair.doing import apply, facts, undo
from tests.repair.gaps import Gap
from tests.repair.killing import failing
from tests.services.copying import copy_tree

GAP = "async-kafka-4.2"
REPLACING = Gap((0, 3, 8, 9), (0, 1), {"offsets/8": "truncated"}, checksums=True, stale=("offsets/8",))
NOW = ("--apply", "--accept-replay", "--grace", 0)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount, and become another user")


def refused(run: Run) -> str:
    """The reason of a run that did nothing: in the document, and in one line."""
    assert run.exit_code == 3, run.stdout
    document = run.json()
    assert document["applied"] is False
    reason = document["refused"]
    assert isinstance(reason, str)
    assert reason.isprintable(), reason
    return reason


# Any change to the disk may fail.


@pytest.mark.parametrize("for_good", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EIO], ids=errno.errorcode.get)
def test_whatever_fails_all_is_as_it_was_or_undo_makes_it_so(code: int, for_good: bool, tmp_path: Path) -> None:
    top = REPLACING.build(tmp_path / "checkpoint")
    before = facts(top)
    storage = open_storage(str(top))
    taken_back = left = 0
    for at in itertools.count(1):
        backup = tmp_path / f"backup-{at}"
        with pytest.MonkeyPatch.context() as patch:
            tried = failing(patch, at, code, for_good=for_good)
            receipt = apply(plan_repair(storage, Strategy.FILL), top, backup)
        if len(tried) < at:
            break
        assert receipt.problem is None or receipt.problem.isprintable()
        assert receipt.applied == (receipt.problem is None)
        if facts(top) == before:
            assert not receipt.applied
            assert receipt.undone or str(receipt.problem).startswith("nothing was changed")
            taken_back += 1
        else:
            assert not receipt.undone
            assert undo(top, backup).undone
            assert facts(top) == before
            left += 1
    assert receipt.applied
    assert taken_back > 10
    assert for_good == (left > 0), "what fails once is taken back at once"


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


def test_a_connection_lost_midway(tmp_path: Path) -> None:
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
        _, receipt = repair_async(uri, apply=True, backup=backup, accept_replay=True, grace_s=0)
        if receipt.applied:
            break
        assert str(receipt.problem).isprintable()
        assert "cannot be reached" in str(receipt.problem)
        Flaky.left = 10**9
        if store.exists(f"{top}-backup/manifest.json"):
            assert repair_async(uri, undo=backup, grace_s=0)[1].undone
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


def fill(disk: Path, leave: int) -> None:
    """Leave some bytes on a disk."""
    free = os.statvfs(disk)
    (disk / "filler").write_bytes(b"x" * (free.f_bavail * free.f_frsize - leave))


@as_root
def test_a_full_disk_for_the_backup(ckpt: Ckpt, copy_of: CopyOf, small_disk: Path) -> None:
    checkpoint = copy_of(GAP, {"op": "delete", "path": "commits/31"}, {"op": "write", "path": "offsets/30", "text": ""})
    before = facts(checkpoint)
    fill(small_disk, 0)
    run = ckpt("repair-async", checkpoint, *NOW, "--backup", small_disk / "backup", "-o", "json")
    assert "disk is full" in refused(run)
    assert facts(checkpoint) == before


@as_root
def test_a_full_disk_for_the_checkpoint(ckpt: Ckpt, small_disk: Path, tmp_path: Path) -> None:
    checkpoint = Gap((0, 5, 9), (0, 5, 9), checksums=True).build(small_disk / "checkpoint")
    before = facts(checkpoint)
    fill(small_disk, 0)
    run = ckpt("repair-async", checkpoint, *NOW, "--backup", tmp_path / "backup", "-o", "json")
    assert "disk is full" in refused(run)
    assert facts(checkpoint) == before


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
    assert "read-only file system" in reason
    assert "could not be taken back" not in reason
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
            text = str(action())
        except BaseException as error:
            text = f"raised {error!r}"
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading) as pipe:
        return pipe.read()


@pytest.fixture
def open_place(tmp_path: Path) -> Path:
    """A folder that everybody can reach and write to."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o777)
    return tmp_path


@as_root
def test_files_of_somebody_else_are_left_alone(open_place: Path) -> None:
    top = REPLACING.build(open_place / "checkpoint")
    for folder in (top, top / "offsets", top / "commits"):
        folder.chmod(0o777)
    before = facts(top)
    told = as_nobody(lambda: repair_async(str(top), apply=True, accept_replay=True, grace_s=0)[1])
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
        lambda: repair_async(str(top), strategy=Strategy.REWIND, apply=True, accept_replay=True, grace_s=0)[1]
    )
    assert "may not be written (permission denied)" in told
    assert "undone=True" in told
    assert facts(top) == before


# Links, and names that are taken.


def test_a_log_folder_that_is_a_link_is_not_written_through(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint, elsewhere = copy_of(GAP), tmp_path / "elsewhere"
    (checkpoint / "offsets").rename(elsewhere)
    (checkpoint / "offsets").symlink_to(elsewhere)
    before, there = facts(checkpoint), facts(elsewhere)
    run = ckpt("repair-async", checkpoint, *NOW, "-o", "json")
    assert "symbolic link" in refused(run)
    assert facts(checkpoint) == before
    assert facts(elsewhere) == there


@pytest.mark.parametrize("target", ["there", "nowhere"])
def test_a_file_that_is_a_link_is_not_written_through(target: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of(GAP)
    if target == "there":
        (tmp_path / target).write_bytes(b"precious")
    (checkpoint / "offsets" / "30").symlink_to(tmp_path / target)
    before = facts(tmp_path)
    run = ckpt("repair-async", checkpoint, "--strategy", "fill", *NOW, "--backup", f"{tmp_path}-b", "-o", "json")
    assert "offsets/30 is no" in refused(run)
    assert facts(tmp_path) == before


def test_a_folder_where_the_missing_file_belongs(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(GAP, {"op": "mkdir", "path": "offsets/30"})
    run = ckpt("repair-async", checkpoint, "--strategy", "fill", "-o", "json")
    assert "offsets/30 is no file" in refused(run)


def test_a_backup_that_exists_is_not_used(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of(GAP)
    before = facts(tmp_path)
    (tmp_path / "backup").mkdir()
    run = ckpt("repair-async", checkpoint, *NOW, "--backup", tmp_path / "backup", "-o", "json")
    assert "exists already" in refused(run)
    (tmp_path / "backup").rmdir()
    assert facts(tmp_path) == before


def test_a_backup_is_for_its_owner_only(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    assert ckpt("repair-async", copy_of(GAP), *NOW, "--backup", tmp_path / "backup").exit_code == 0
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o700


# Somebody else writes.


def test_two_at_once(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of(GAP)
    before = facts(tmp_path)
    handle = os.open(checkpoint, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        run = ckpt("repair-async", checkpoint, *NOW, "-o", "json")
        assert "is being changed by another ckpt" in refused(run)
        assert facts(tmp_path) == before
    finally:
        os.close(handle)
    assert ckpt("repair-async", checkpoint, *NOW).exit_code == 0


def test_a_query_that_writes_between_the_two_looks(
    ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = copy_of(GAP)
    for file in checkpoint.rglob("*"):
        os.utime(file, (1, 1_600_000_000))
    monkeypatch.setattr(quiet, "LOOKS_APART_S", 0.5)

    def write() -> None:
        time.sleep(0.2)
        (checkpoint / "commits" / ".32.tmp").write_bytes(b"v1")
        os.utime(checkpoint / "commits" / ".32.tmp", (1, 1_600_000_000))

    query = threading.Thread(target=write)
    query.start()
    run = ckpt("repair-async", checkpoint, "--apply", "--quiet", "-o", "json")
    query.join()
    assert "changed while ckpt was looking" in refused(run)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


@pytest.mark.parametrize("path", ["offsets/30", "offsets/32"])
def test_a_query_that_starts_between_the_plan_and_its_apply(path: str, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of(GAP)
    plan = plan_repair(open_storage(str(checkpoint)))
    (checkpoint / path).write_bytes((checkpoint / "offsets" / "31").read_bytes())
    before = facts(checkpoint)
    receipt = apply(plan, checkpoint, tmp_path / "backup")
    assert path in str(receipt.problem)
    assert not receipt.applied
    assert facts(checkpoint) == before
    assert not (tmp_path / "backup").exists()


@pytest.mark.parametrize("at", ["create", "check"])
def test_a_query_that_starts_while_it_is_repaired(
    at: str, copy_of: CopyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = copy_of(GAP)
    plan = plan_repair(open_storage(str(checkpoint)))
    before = facts(checkpoint)
    theirs = "offsets/30" if at == "create" else "offsets/32"
    link = os.link

    def interfering(*args: Any, **kwargs: Any) -> None:
        if args[1] == ("30" if at == "create" else ".30.crc"):
            (checkpoint / theirs).write_bytes(b"v1\n{}\n{}")
        link(*args, **kwargs)

    monkeypatch.setattr(os, "link", interfering)
    receipt = apply(plan, checkpoint, tmp_path / "backup")
    assert receipt.problem
    assert not receipt.applied
    left = facts(checkpoint)
    assert left.pop(theirs)[-1] == b"v1\n{}\n{}", "what they wrote is theirs"
    assert left == before


# Manifests that were edited.

EDITS: dict[str, Callable[[dict], object]] = {
    "a path that leads out": lambda told: told["steps"][0].update(path="offsets/../../30"),
    "an absolute path": lambda told: told["steps"][0].update(path="/etc/passwd"),
    "a path of the query": lambda told: told["steps"][0].update(path="metadata"),
    "a path that is a number": lambda told: told["steps"][0].update(path=30),
    "a path that is no text to the system": lambda told: told["steps"][0].update(path="offsets/\ud800"),
    "a path with a line end": lambda told: told["steps"][0].update(path="offsets/3\n0"),
    "a backup file that leads out": lambda told: told["steps"][-1]["before"].update(file="../../0001-x"),
    "no backup file": lambda told: told["steps"][-1]["before"].update(file=None),
    "a mode that gives away": lambda told: told["steps"][-1]["before"].update(mode=0o4755),
    "a mode without end": lambda told: told["steps"][-1]["before"].update(mode=float("inf")),
    "an owner that cannot be": lambda told: told["steps"][-1]["before"].update(uid=2**70),
    "a time that cannot be": lambda told: told["steps"][-1]["before"].update(mtime_ns=10**30),
    "steps that are none": lambda told: told.update(steps={"a": 1}),
    "another format": lambda told: told.update(manifest=2),
    "another query": lambda told: told.update(query_id="00000000-0000-0000-0000-000000000000"),
    "other contents after": lambda told: told["steps"][-1]["before"].update(sha256="0" * 64),
    "other files beside": lambda told: told.update(others="0" * 64),
}


@pytest.fixture
def repaired(copy_of: CopyOf, tmp_path: Path, ckpt: Ckpt) -> tuple[Path, Path]:
    """A repaired checkpoint, and its backup."""
    checkpoint = copy_of(GAP, {"op": "write", "path": "offsets/30", "text": "v1"})
    assert ckpt("repair-async", checkpoint, *NOW, "--backup", tmp_path / "backup").exit_code == 0
    return checkpoint, tmp_path / "backup"


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_manifest_is_refused(edit: str, repaired: tuple[Path, Path], ckpt: Ckpt) -> None:
    checkpoint, backup = repaired
    told = json.loads((backup / "manifest.json").read_bytes())
    told["steps"].sort(key=lambda step: step["before"] is not None)
    EDITS[edit](told)
    (backup / "manifest.json").write_text(json.dumps(told))
    refused_and_untouched(ckpt, checkpoint, backup)


@pytest.mark.parametrize(
    "raw",
    [b"", b"not json", b"[]", b"7", b"\xff\xfe", b"[" * 100_000, b"{" + b" " * 20_000_000 + b"}", b'{"manifest":1}'],
)
def test_a_manifest_that_is_none_is_refused(raw: bytes, repaired: tuple[Path, Path], ckpt: Ckpt) -> None:
    checkpoint, backup = repaired
    (backup / "manifest.json").write_bytes(raw)
    refused_and_untouched(ckpt, checkpoint, backup)


def test_a_backup_that_was_changed_is_refused(repaired: tuple[Path, Path], ckpt: Ckpt) -> None:
    checkpoint, backup = repaired
    saved = next(backup.glob("0*"))
    saved.write_bytes(b"another")
    assert saved.name in refused_and_untouched(ckpt, checkpoint, backup)
    saved.unlink()
    assert saved.name in refused_and_untouched(ckpt, checkpoint, backup)


def test_a_backup_that_is_not_there_is_refused(repaired: tuple[Path, Path], ckpt: Ckpt, tmp_path: Path) -> None:
    assert "is no backup of ckpt" in refused_and_untouched(ckpt, repaired[0], tmp_path / "nowhere")


def refused_and_untouched(ckpt: Ckpt, checkpoint: Path, backup: Path) -> str:
    before = facts(checkpoint)
    run = ckpt("repair-async", checkpoint, "--undo", backup, "--grace", 0, "-o", "json")
    assert facts(checkpoint) == before
    assert run.json()["undone"] is False
    return refused(run)


@pytest.mark.parametrize("grace", ["nan", "inf", "-1", "x"])
def test_a_grace_that_is_no_time(grace: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(GAP)
    before = facts(checkpoint)
    run = ckpt("repair-async", checkpoint, "--apply", "--quiet", "--grace", grace, "-o", "json")
    assert run.exit_code in (2, 3)
    assert facts(checkpoint) == before


def test_no_manifest_makes_undo_write_through_a_link(repaired: tuple[Path, Path], ckpt: Ckpt, tmp_path: Path) -> None:
    checkpoint, backup = repaired
    (checkpoint / "offsets").rename(tmp_path / "elsewhere")
    (checkpoint / "offsets").symlink_to(tmp_path / "elsewhere")
    before = facts(tmp_path / "elsewhere")
    assert "symbolic link" in refused_and_untouched(ckpt, checkpoint, backup)
    assert facts(tmp_path / "elsewhere") == before
