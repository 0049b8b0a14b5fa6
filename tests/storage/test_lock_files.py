"""The lock beside a folder: one holder at a time, whatever it does, and nothing that a crash leaves forever."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Lock, Thread
from uuid import uuid4

import fsspec
import pytest

from ckpt.errors import StorageError
from ckpt.storage import lock_files, open_storage
from ckpt.storage.bridge import FsspecBackend
from ckpt.storage.local_writer import open_writer
from ckpt.storage.lock_files import LocalFolder, Locked, LockFolder, hold_lock
from ckpt.storage.remote import Backend, ListedItem
from tests.changes.fixes.unattended import fail_flock


class InMemory(FsspecBackend):
    """The file system of fsspec in memory, whose ``ls`` raises when another thread deletes what it is listing."""

    def level(self, folder: str) -> list[ListedItem]:
        while True:
            try:
                return list(super().level(folder))
            except KeyError:
                continue


@pytest.fixture
def backend() -> Iterator[Backend]:
    name = f"locks-{uuid4().hex}"
    file_system = fsspec.filesystem("memory")
    yield InMemory(file_system, f"/{name}/.orders.ckpt-lock")
    file_system.rm(f"/{name}", recursive=True)


def names(backend: LockFolder) -> list[str]:
    try:
        return sorted(path for path, info in backend.level("") if info is not None)
    except FileNotFoundError:
        return []


def test_one_at_a_time_and_nothing_is_left(backend: Backend) -> None:
    with hold_lock(backend, "orders"):
        assert len(names(backend)) == 1
        with pytest.raises(Locked, match="another ckpt process is changing "), hold_lock(backend, "orders"):
            raise AssertionError
        assert len(names(backend)) == 1
    assert names(backend) == []
    with hold_lock(backend, "orders"):
        pass
    assert names(backend) == []


def test_many_at_once_have_one_holder(backend: Backend) -> None:
    """No two have it at the same moment, and of those that begin together at least one gets it."""
    inside, most, got = 0, 0, 0
    counting = Lock()
    for _ in range(40):
        begin, before = Barrier(4), got

        def contend(begin: Barrier = begin) -> None:
            nonlocal inside, most, got
            begin.wait()
            try:
                with hold_lock(backend, "orders"):
                    with counting:
                        inside, got = inside + 1, got + 1
                        most = max(most, inside)
                    time.sleep(0.002)
                    with counting:
                        inside -= 1
            except Locked:
                pass

        threads = [Thread(target=contend) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert got > before
    assert most == 1
    assert names(backend) == []


@pytest.mark.parametrize("left", ["ticket-000000007-{}", "choosing-{}"])
def test_a_crash_locks_for_its_lease_only(backend: Backend, left: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_files, "_WAIT_S", 0.1)
    backend.put(left.format(uuid4().hex), (b"ckpt",))
    with pytest.raises(Locked), hold_lock(backend, "orders"):
        raise AssertionError
    assert len(names(backend)) == 1
    monkeypatch.setattr(lock_files, "LEASE_S", 0.05)
    time.sleep(0.1)
    with hold_lock(backend, "orders"):
        assert left.partition("-")[0] == "ticket" or len(names(backend)) == 1
    assert names(backend) == []


def test_a_holder_renews_its_ticket(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    with hold_lock(backend, "orders") as lease:
        (first,) = names(backend)
        lease.must_last()
        assert names(backend) == [first]
        monkeypatch.setattr(lock_files, "_RENEW_S", 0.0)
        lease.must_last()
        (second,) = names(backend)
        assert second == f"{first}.1"


def test_a_holder_that_was_held_up_too_long_writes_nothing_more(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hold_lock(backend, "orders") as lease:
        monkeypatch.setattr(lock_files, "_RENEW_S", 0.0)
        monkeypatch.setattr(lock_files, "LEASE_S", 0.02)
        time.sleep(0.05)
        lease.must_last()  # nobody else was there
        time.sleep(0.05)
        with hold_lock(backend, "orders"):
            for _ in range(2):  # the second time when it reverts what it did
                with pytest.raises(Locked, match="another process may have it now"):
                    lease.must_last()


def test_a_holder_that_only_reads_keeps_its_ticket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read three times as long as the lease keeps every other process out until its end."""
    backend = LocalFolder(str(tmp_path / "lock"))
    monkeypatch.setattr(lock_files, "LEASE_S", 0.4)
    monkeypatch.setattr(lock_files, "_RENEW_S", 0.1)
    with hold_lock(backend, "orders") as lease:
        until = time.monotonic() + 1.2
        while time.monotonic() < until:
            with pytest.raises(Locked, match="another ckpt process is changing"), hold_lock(backend, "orders"):
                raise AssertionError
            time.sleep(0.02)
        lease.must_last()
    assert names(backend) == []
    time.sleep(0.2)
    assert names(backend) == [], "the thread that renewed it has ended"


def test_a_renewal_that_fails_is_met_by_the_next_write(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str, pieces: object) -> None:
        raise OSError("the network is gone")

    with hold_lock(backend, "orders") as lease:
        monkeypatch.setattr(lock_files, "_RENEW_S", 0.0)
        with monkeypatch.context() as gone:
            gone.setattr(backend, "put", fail)
            for _ in range(2):
                with pytest.raises(OSError, match="the network is gone"):
                    lease.must_last()
        lease.must_last()
    assert names(backend) == []


def test_a_machine_that_slept_looks_before_it_writes(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """The monotonic clock of Linux stands while the machine sleeps."""
    with hold_lock(backend, "orders") as lease:
        (first,) = names(backend)
        clock = time.time
        monkeypatch.setattr(time, "time", lambda: clock() + 600)
        backend.delete(first)  # by another one, which has come and gone
        with pytest.raises(Locked, match="held up for 600 s"):
            lease.must_last()


@pytest.fixture
def no_flock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mount without ``flock``."""
    monkeypatch.setattr(fcntl, "flock", fail_flock)


@pytest.mark.usefixtures("no_flock")
@pytest.mark.parametrize("kind", ["a mount", "another storage"])
def test_without_flock_a_writer_has_it_beside_its_folder(kind: str, tmp_path: Path) -> None:
    top = str(tmp_path) if kind == "a mount" else f"memory://{uuid4().hex}"
    first, second = (open_writer(f"{top}/orders") for _ in range(2))
    if kind == "a mount":
        first.make_root()
    first.create("metadata", b"v1")
    with first.lock():
        assert len([path for path, _ in open_storage(top).list_tree().walk(".orders.ckpt-lock")]) == 1
        with pytest.raises(Locked, match=r"another ckpt process is changing "), second.lock():
            raise AssertionError
        first.replace("metadata", b"v2", b"v1")
    with second.lock():
        second.remove("metadata")
    assert not open_storage(top).list_tree().files


@pytest.mark.usefixtures("no_flock")
def test_there_without_a_place_beside_it_only_a_person_may_go_on(tmp_path: Path) -> None:
    (tmp_path / ".orders.ckpt-lock").touch()
    writer = open_writer(str(tmp_path / "orders"))
    writer.make_root()
    with writer.lock():
        writer.create("metadata", b"v1")
    with pytest.raises(StorageError, match=r"orders has no lock: its mount has no flock, and .*ckpt-lock cannot be"):
        writer.lock(required=True).__enter__()


@pytest.mark.usefixtures("no_flock")
def test_there_a_holder_that_lost_it_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (open_writer(str(tmp_path / "orders")) for _ in range(2))
    first.make_root()
    first.create("metadata", b"v1")
    with first.lock():
        monkeypatch.setattr(lock_files, "_RENEW_S", 0.0)
        monkeypatch.setattr(lock_files, "LEASE_S", 0.02)
        time.sleep(0.05)
        with second.lock():
            for write in (lambda: first.remove("metadata"), lambda: first.create("offsets", b"")):
                with pytest.raises(Locked, match="another process may have it now"):
                    write()
    assert second.read("metadata") == b"v1"
    assert not (tmp_path / "orders" / "offsets").exists()
