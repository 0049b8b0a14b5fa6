"""The storage as changing code sees it, and no other code is handed: create, replace or remove a file, lock.

Only ``ckpt.changes`` may import this module (``pyproject.toml`` says so). No moment has half of a file, and only
``replace`` writes over one, if that still has the bytes that its caller has seen.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from ckpt.errors import StorageError
from ckpt.storage.base import Storage, temporary


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
    """A folder in which files can be created, replaced and removed, below one root. Paths are those of ``Storage``.

    Every method raises StorageError, whose one line names the path and the cure.
    """

    uri: str  # the root as it was given, for showing

    def lock(self, *, required: bool = False) -> AbstractContextManager[None]:
        """Keep other changes away while the context is open. A crash leaves no lock, or one for two minutes.

        A storage that has no place for a lock goes without, but refuses where it is ``required``.
        """

    def check_root(self) -> None:
        """Raise what ``make_root`` raises, as far as that can be known without writing."""

    def make_root(self) -> None:
        """Create the root itself. Raises AlreadyThere where something is there."""

    def make_root_with(self, path: str, data: bytes) -> None:
        """Create the root with a file in it; where the storage can, no moment has the root without the file.

        Raises AlreadyThere where something is there. What fails leaves nothing.
        """

    def make_folder(self, path: str) -> None:
        """Create a folder in one that is there, where the storage knows such a thing; one that is there will do."""

    def create(self, path: str, data: bytes, attributes: Attributes | None = None) -> None:
        """Write a whole file, durably, so that no reader ever sees a part of it. Raises AlreadyThere."""
        self.create_from(path, (data,), attributes)

    def create_from(self, path: str, pieces: Iterable[bytes], attributes: Attributes | None = None) -> None:
        """Write a file of any size, of which some pieces are held at a time.

        An error of ``pieces`` is passed on, and no file is there then; an object store may show a part of it before
        that, for a moment.
        """

    def link(self, path: str, other: Storage) -> bool:
        """Make a file of another folder one of this, by a hard link or a copy of the storage; False where none can be.

        Links are safe: Spark and ckpt rename new files to their names, and each SST file has a name of its own.
        """

    def replace(self, path: str, data: bytes, was: bytes, attributes: Attributes | None = None) -> None:
        """Write a whole file over one that has the bytes ``was`` until then; where the storage can, in one moment."""

    def read(self, path: str) -> bytes:
        """A whole file, as it is now."""

    def remove(self, path: str) -> None:
        """Remove a file, durably; nothing happens where it is not there."""

    def attributes(self, path: str) -> Attributes | None:
        """Owner, permissions and time of a file; None where the storage has none of these, or the file is gone."""

    def remove_folder(self, path: str) -> None:
        """Remove a folder, or with ``""`` the root, if it is empty and the storage knows such a thing."""

    def remove_tree(self, path: str) -> bool:
        """Remove all that a folder has, if few requests do that; False where each file takes some."""
        return False

    def discard_temporary(self, path: str) -> None:
        """Remove what an interrupted ``create`` of this path left."""
        self.remove(temporary(path))


def report_changed_file(shown: str) -> StorageError:
    """A file that was to be replaced has other bytes than its caller has seen."""
    return StorageError(f"{shown} changed a moment ago: something else is writing here")
