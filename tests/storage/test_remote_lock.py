"""The lock beside a remote folder: one holder at a time, and nothing that a crash leaves forever."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Barrier, Lock, Thread
from uuid import uuid4

import fsspec
import pytest

from ckpt.storage import remote_lock
from ckpt.storage.bridge import FsspecBackend
from ckpt.storage.local_writer import open_writer
from ckpt.storage.remote import Backend
from ckpt.storage.remote_lock import Locked, hold_lock


@pytest.fixture
def backend() -> Iterator[Backend]:
    name = f"locks-{uuid4().hex}"
    file_system = fsspec.filesystem("memory")
    yield FsspecBackend(file_system, f"/{name}/.orders.ckpt-lock")
    file_system.rm(f"/{name}", recursive=True)


def names(backend: Backend) -> list[str]:
    try:
        return sorted(path for path, info in backend.level("") if info is not None)
    except FileNotFoundError:
        return []


def test_one_at_a_time_and_nothing_is_left(backend: Backend) -> None:
    with hold_lock(backend, "orders"):
        assert len(names(backend)) == 1
        with pytest.raises(Locked, match="orders is being changed by another ckpt"), hold_lock(backend, "orders"):
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
    monkeypatch.setattr(remote_lock, "_WAIT_S", 0.1)
    backend.put(left.format(uuid4().hex), (b"ckpt",))
    with pytest.raises(Locked), hold_lock(backend, "orders"):
        raise AssertionError
    assert len(names(backend)) == 1
    monkeypatch.setattr(remote_lock, "LEASE_S", 0.05)
    time.sleep(0.1)
    with hold_lock(backend, "orders"):
        assert left.partition("-")[0] == "ticket" or len(names(backend)) == 1
    assert names(backend) == []


def test_a_holder_renews_its_ticket(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    with hold_lock(backend, "orders") as lease:
        (first,) = names(backend)
        lease.must_last()
        assert names(backend) == [first]
        monkeypatch.setattr(remote_lock, "_RENEW_S", 0.0)
        lease.must_last()
        (second,) = names(backend)
        assert second == f"{first}.1"


def test_a_holder_that_was_held_up_too_long_writes_nothing_more(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hold_lock(backend, "orders") as lease:
        monkeypatch.setattr(remote_lock, "_RENEW_S", 0.0)
        monkeypatch.setattr(remote_lock, "LEASE_S", 0.02)
        time.sleep(0.05)
        lease.must_last()  # nobody else was there
        time.sleep(0.05)
        with hold_lock(backend, "orders"), pytest.raises(Locked, match="another one may have it now"):
            lease.must_last()


def test_a_writer_has_it_beside_its_folder() -> None:
    name = uuid4().hex
    first, second = (open_writer(f"memory://{name}/orders") for _ in range(2))
    first.create("offsets/0", b"v1")
    with first.lock():
        assert fsspec.filesystem("memory").ls(f"/{name}/.orders.ckpt-lock")
        with pytest.raises(Locked, match=r"orders is being changed by another ckpt"), second.lock():
            raise AssertionError
        first.replace("offsets/0", b"v2", b"v1")
    with second.lock():
        second.remove("offsets/0")
