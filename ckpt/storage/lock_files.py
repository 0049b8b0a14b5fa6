"""A lock beside a folder, ``.NAME.ckpt-lock/``, that a crash cannot leave forever: Lamport's bakery.

It is for folders behind a network, and for local mounts without ``flock``. pyarrow's S3 offers no conditional
creation, so the lock needs none: only that a listing shows what was written before it, which S3, HDFS and the other
storages promise. Who wants the lock writes ``choosing-ID``, looks for the highest
number among the tickets, writes ``ticket-NUMBER-ID`` with the next one, and removes the first file. The lowest ticket
has the lock, once nobody is choosing who may get a lower one; who has a higher one gives up at once.

A ticket is for ``LEASE_S`` seconds, by the clock of the storage, and a thread of its holder renews it, whatever the
holder is doing; an older one is what a crash left, and is removed by the next holder. A process that was stopped for
longer looks before its next write, and writes nothing more, unless its ticket is still there and nobody else has one.
"""

import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from threading import Event, RLock, Thread
from typing import NamedTuple, TypeAlias
from uuid import uuid4

from ckpt.errors import NotFound, StorageError
from ckpt.storage.base import FileInfo
from ckpt.storage.remote import Backend, ListedItem

LEASE_S = 120.0
"""Seconds after which a ticket that nobody renews counts as left by a crash."""
_RENEW_S = LEASE_S / 4
_WAIT_S = 10.0  # for others who are choosing, which takes some requests
_AGAIN_S = 0.2
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_NAME = re.compile(r"(?P<kind>choosing|ticket-(?P<number>\d{9}))-(?P<id>[0-9a-f]{32})(?P<renewed>\.\d+)?")


class Locked(StorageError):
    """Another process has the lock, or may be about to get it."""


class _Claim(NamedTuple):
    name: str  # of a file in the folder of the lock
    number: int | None  # None: its owner is choosing
    owner: str
    time_ms: int  # when it was written, by the storage's clock


class LocalFolder:
    """A folder of a local mount, for small files that are created exclusively."""

    def __init__(self, root: str) -> None:
        self._root = root

    def level(self, folder: str) -> Iterable[ListedItem]:
        for name in os.listdir(self.join(folder)):
            with suppress(FileNotFoundError):
                status = os.stat(self.join(name), follow_symlinks=False)
                yield ListedItem(name, FileInfo(status.st_size, status.st_mtime_ns // 1_000_000))

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        self.make_folder("")
        try:
            handle = os.open(self.join(path), _NEW_FILE, 0o600)
        except FileNotFoundError:  # another one gave up, and removed the empty folder
            self.put(path, pieces)
            return
        try:
            for piece in pieces:
                os.write(handle, piece)
        finally:
            os.close(handle)

    def delete(self, path: str) -> None:
        if path:
            os.unlink(self.join(path))
        else:
            os.rmdir(self._root)

    def make_folder(self, path: str) -> None:
        os.makedirs(self.join(path), 0o700, exist_ok=True)

    def join(self, path: str) -> str:
        """A path below the root."""
        return os.path.join(self._root, path)


LockFolder: TypeAlias = Backend | LocalFolder
"""The folder of a lock. Errors are raised as the library beneath raises them."""


class Lease:
    """A lock that is held, until its time is over."""

    def __init__(self, backend: LockFolder, number: int, owner: str) -> None:
        self._backend = backend
        self._number, self._owner = number, owner
        self._names: list[str] = []  # of tickets that may be there
        self._current = ""  # the newest that is
        self._renewed = 0
        self._since = _read_clocks()
        self._lost: str | None = None
        self._ended = Event()
        self._alone = RLock()

    def write(self) -> None:
        """Write a ticket, the first or a newer one in its place."""
        name = f"ticket-{self._number:09}-{self._owner}" + (f".{self._renewed}" if self._renewed else "")
        self._renewed += 1
        self._names.append(name)
        self._backend.put(name, (b"ckpt",))
        self._current = name

    def must_last(self) -> None:
        """Renew the ticket where that is due. Raises Locked where another one may have taken it for left.

        Who takes a ticket for left removes it, and has written another one before that.
        """
        with self._alone:
            now = _read_clocks()
            age = max(after - before for before, after in zip(self._since, now, strict=True))
            if self._lost is None and age <= _RENEW_S:
                return
            if self._lost is None and not self._ended.is_set():
                self._renew(now, age)
            if self._lost is not None:
                raise Locked(self._lost)

    def _renew(self, now: tuple[float, float], age: float) -> None:
        before = self._current
        self.write()
        claims = _list_claims(self._backend)
        others = any(claim.owner != self._owner for claim in claims)
        if age > LEASE_S / 2 and (others or before not in {claim.name for claim in claims}):
            self._lost = f"ckpt was held up for {age:.0f} s while it held the lock: another process may have it now"
            return
        self._since = now
        for name in self._names[:-1]:
            with suppress(FileNotFoundError, NotFound):  # where writing it failed
                self._backend.delete(name)
            self._names.remove(name)

    def keep(self) -> None:
        """Renew the ticket until the end, as a thread does; what fails is tried again, and met by the next write."""
        while not self._ended.wait(_RENEW_S):
            with suppress(Exception):
                self.must_last()

    def end(self) -> None:
        """Remove what is left of it, and the folder where it is empty and the storage has such a thing."""
        self._ended.set()
        with self._alone:
            for name in (*self._names, f"choosing-{self._owner}", ""):
                with suppress(Exception):
                    self._backend.delete(name)


@contextmanager
def hold_lock(backend: LockFolder, shown: str) -> Iterator[Lease]:
    """Hold the lock of a folder while the context is open; ``backend`` is rooted at the lock's own folder.

    Raises Locked, and whatever the library beneath raises.
    """
    owner = uuid4().hex
    lease = Lease(backend, 0, owner)
    try:
        backend.make_folder("")
        choosing = f"choosing-{owner}"
        backend.put(choosing, (b"ckpt",))
        lease._number = 1 + max((claim.number or 0 for claim in _list_claims(backend)), default=0)
        lease.write()
        backend.delete(choosing)
        _must_be_first(backend, owner, shown)
        Thread(target=lease.keep, name="ckpt-lock", daemon=True).start()
        yield lease
    finally:
        lease.end()


class LeaseHolder:
    """A writer whose lock may be one of files, which it renews before it writes."""

    _lease: Lease | None = None

    @contextmanager
    def _hold(self, folder: LockFolder, shown: str, explained: AbstractContextManager[None]) -> Iterator[None]:
        """Hold the lock of a folder; ``explained`` turns errors of taking it into those of the writer."""
        with ExitStack() as stack:
            with explained:
                self._lease = stack.enter_context(hold_lock(folder, shown))
            try:
                yield
            finally:
                self._lease = None

    def _must_hold(self) -> None:
        """Keep the lock before something is written, if it is one of files."""
        if self._lease is not None:
            self._lease.must_last()


def _must_be_first(backend: LockFolder, owner: str, shown: str) -> None:
    """Wait for those who are choosing, and give up where another ticket is lower."""
    until = time.monotonic() + _WAIT_S
    while True:
        claims = _list_claims(backend)
        own = next((claim for claim in claims if claim.owner == owner and claim.number is not None), None)
        if own is None or own.number is None:
            raise Locked(f"the lock of {shown} cannot be held: its ticket disappeared right after it was written")
        others = [claim for claim in claims if claim.owner != owner]
        left = [claim for claim in others if own.time_ms - claim.time_ms > LEASE_S * 1000]
        live = [claim for claim in others if claim not in left]
        if any(claim.number is not None and (claim.number, claim.owner) < (own.number, owner) for claim in live):
            raise Locked(
                f"another ckpt process is changing {shown}: wait until it finishes ({LEASE_S:.0f} s if it crashed)"
            )
        if not any(claim.number is None for claim in live):
            for claim in left:
                with suppress(Exception):
                    backend.delete(claim.name)
            return
        if time.monotonic() > until:
            raise Locked(f"another ckpt process began to change {shown}, and may have crashed: wait {LEASE_S:.0f} s")
        time.sleep(_AGAIN_S)


def _read_clocks() -> tuple[float, float]:
    """Read two clocks in seconds: one that nobody can set, and one that also counts while the machine is suspended."""
    return time.monotonic(), time.time()


def _list_claims(backend: LockFolder) -> list[_Claim]:
    try:
        entries = [(path, info) for path, info in backend.level("") if info is not None]
    except (FileNotFoundError, NotFound):
        return []
    return [
        _Claim(match[0], int(match["number"]) if match["number"] else None, match["id"], info.mtime_ms or 0)
        for path, info in entries
        if (match := _NAME.fullmatch(path.rpartition("/")[2]))
    ]
