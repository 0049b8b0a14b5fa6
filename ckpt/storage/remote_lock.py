"""A lock beside a remote folder, ``.NAME.ckpt-lock/``, that a crash cannot leave forever: Lamport's bakery.

pyarrow's S3 offers no conditional creation, so the lock needs none: only that a listing shows what was written before
it, which S3, HDFS and the other storages promise. Who wants the lock writes ``choosing-ID``, looks for the highest
number among the tickets, writes ``ticket-NUMBER-ID`` with the next one, and removes the first file. The lowest ticket
has the lock, once nobody is choosing who may get a lower one; who has a higher one gives up at once.

A ticket is for ``LEASE_S`` seconds, by the clock of the storage, and its holder renews it while it writes; an older
one is what a crash left, and is removed by the next holder. A holder that was held up for longer writes nothing more,
unless its ticket is still there and nobody else has one.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple
from uuid import uuid4

from ckpt.errors import NotFound, StorageError
from ckpt.storage.base import FileInfo
from ckpt.storage.remote import Backend

LEASE_S = 120.0
"""Seconds after which a ticket that nobody renews counts as left by a crash."""
_RENEW_S = LEASE_S / 4
_WAIT_S = 10.0  # for others who are choosing, which takes some requests
_AGAIN_S = 0.2
_NAME = re.compile(r"(?P<kind>choosing|ticket-(?P<number>\d{9}))-(?P<id>[0-9a-f]{32})(?P<renewed>\.\d+)?")


class Locked(StorageError):
    """Another process has the lock, or may be about to get it."""


class _Claim(NamedTuple):
    """A file in the folder of the lock."""

    name: str
    number: int | None  # None: its owner is choosing
    owner: str
    time_ms: int  # when it was written, by the storage's clock


class Lease:
    """A lock that is held, until its time is over."""

    def __init__(self, backend: Backend, number: int, owner: str) -> None:
        self._backend = backend
        self._number, self._owner = number, owner
        self._names: list[str] = []
        self._renewed = 0
        self._since = time.monotonic()

    def write(self) -> None:
        """Write a ticket, the first or a newer one in its place."""
        since = time.monotonic()
        name = f"ticket-{self._number:09}-{self._owner}" + (f".{self._renewed}" if self._renewed else "")
        self._names.append(name)
        self._backend.put(name, (b"ckpt",))
        self._renewed += 1
        self._since = since

    def must_last(self) -> None:
        """Renew the ticket where that is due. Raises Locked where another one may have taken it for left.

        Who takes a ticket for left removes it, and has written another one before that.
        """
        age = time.monotonic() - self._since
        if age <= _RENEW_S:
            return
        self.write()
        old, claims = self._names[:-1], _list_claims(self._backend)
        others = any(claim.owner != self._owner for claim in claims)
        if age > LEASE_S / 2 and (others or not {claim.name for claim in claims}.issuperset(old)):
            raise Locked(f"ckpt was held up for {age:.0f} s while it held the lock: another one may have it now")
        for name in old:
            self._backend.delete(name)
            self._names.remove(name)

    def end(self) -> None:
        """Remove what is left of it, and the folder where it is empty and the storage has such a thing."""
        for name in [*self._names, f"choosing-{self._owner}"]:
            with suppress(Exception):
                self._backend.delete(name)
        with suppress(Exception):
            self._backend.delete("")


@contextmanager
def hold_lock(backend: Backend, shown: str) -> Iterator[Lease]:
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
        _must_be_first(backend, lease, owner, shown)
        yield lease
    finally:
        lease.end()


def _must_be_first(backend: Backend, lease: Lease, owner: str, shown: str) -> None:
    """Wait for those who are choosing, and give up where another ticket is lower."""
    until = time.monotonic() + _WAIT_S
    while True:
        claims = _list_claims(backend)
        own = next((claim for claim in claims if claim.owner == owner and claim.number is not None), None)
        if own is None or own.number is None:
            raise Locked(f"the lock of {shown} cannot be held: its ticket is gone a moment after it was written")
        others = [claim for claim in claims if claim.owner != owner]
        left = [claim for claim in others if own.time_ms - claim.time_ms > LEASE_S * 1000]
        live = [claim for claim in others if claim not in left]
        if any(claim.number is not None and (claim.number, claim.owner) < (own.number, owner) for claim in live):
            raise Locked(
                f"{shown} is being changed by another ckpt: wait for its end, or {LEASE_S:.0f} s if it crashed"
            )
        if not any(claim.number is None for claim in live):
            for claim in left:
                with suppress(Exception):
                    backend.delete(claim.name)
            return
        if time.monotonic() > until:
            raise Locked(f"another ckpt began to change {shown}, and may have crashed: wait {LEASE_S:.0f} s")
        time.sleep(_AGAIN_S)


def _list_claims(backend: Backend) -> list[_Claim]:
    try:
        entries = [(path, info) for path, info in backend.level("") if info is not None]
    except (FileNotFoundError, NotFound):
        return []
    return [_parse(match, info) for path, info in entries if (match := _NAME.fullmatch(path.rpartition("/")[2]))]


def _parse(match: re.Match[str], info: FileInfo) -> _Claim:
    number = match["number"]
    return _Claim(match[0], None if number is None else int(number), match["id"], info.mtime_ms or 0)
