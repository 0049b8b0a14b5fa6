"""What changing code may ask of a place, and no other code is handed: create a file, remove a file, lock.

Only ``ckpt.change`` may import this module (``pyproject.toml`` says so). Nothing here overwrites: a file that is to be
replaced is removed first, so that no moment has half of it.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from ckpt.errors import StorageError
from ckpt.storage.locations import local_path
from ckpt.storage.uri import NO_OPTIONS, open_drive


class AlreadyThere(StorageError):
    """A file that was to be created exists."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """Who a local file belongs to and who may use it; elsewhere nothing of it is known."""

    mode: int  # permission bits
    uid: int
    gid: int
    mtime_ns: int | None = None  # None: leave the time of writing


class Writer(Protocol):
    """A folder in which files can be created and removed, below one root. Paths are those of ``Storage``.

    Every method raises StorageError, whose one line names the path and the cure.
    """

    @property
    def uri(self) -> str:
        """The root as it was given, for showing."""

    @property
    def exclusive(self) -> bool:
        """Whether ``lock`` keeps a second repair away on this storage."""

    def lock(self) -> AbstractContextManager[None]:
        """Keep other repairs away while the context is open, where the storage can. A crash leaves no lock behind."""

    def make_root(self) -> None:
        """Create the root itself. Raises AlreadyThere where something is there."""

    def create(self, path: str, data: bytes, attributes: Attributes | None = None) -> None:
        """Write a whole file, durably, so that nobody ever sees a part of it. Raises AlreadyThere."""

    def remove(self, path: str) -> None:
        """Remove a file, durably; nothing happens where it is not there."""

    def attributes(self, path: str) -> Attributes | None:
        """Owner, permissions and time of a file; None where the storage has none of these, or the file is gone."""

    def discard_temporary(self, path: str) -> None:
        """Remove what a broken-off ``create`` of this path left behind."""


def open_writer(uri: str, options: Mapping[str, str] = NO_OPTIONS) -> Writer:
    """Open a place for writing: whatever ``open_storage`` opens.

    Raises UsageError or StorageError as ``open_storage`` does.
    """
    local = local_path(uri)
    if local is not None:
        from ckpt.storage.local_writer import LocalWriter

        return LocalWriter(local, uri)
    from ckpt.storage.remote_writer import RemoteWriter

    shown, place, drive = open_drive(uri, options)
    return RemoteWriter(shown, drive, place)
