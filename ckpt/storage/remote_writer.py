"""Writing behind a network: a backend's writer, with ckpt's errors.

How a file appears complete, and whether it is missing for a moment while it is replaced, depends on the storage
(``Backend.put``). None has a lock that ends with the process: files beside the folder are one, for a time
(``lock_files``).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256

from ckpt.errors import NotFound, StorageError
from ckpt.storage.base import PIECE, Storage
from ckpt.storage.locations import find_parent, is_same_store
from ckpt.storage.lock_files import LeaseHolder
from ckpt.storage.remote import RemoteFolder
from ckpt.storage.writer import AlreadyThere, Attributes, Writer, report_changed_file


class RemoteWriter(LeaseHolder, RemoteFolder, Writer):
    """A remote folder in which files can be created, replaced and removed."""

    @contextmanager
    def lock(self, *, required: bool = False) -> Iterator[None]:
        """Files beside the folder; nothing at the root of a bucket or file system, which has no place for them."""
        backend = None if find_parent(self.uri) is None else self._backend.beside("ckpt-lock")
        if backend is None:
            if required:
                raise StorageError(f"{self._root} is the root of a bucket, and has no parent folder for a lock")
            yield
            return
        with self._hold(backend, self._root, self._explain_errors("", "locked")):
            yield

    def check_root(self) -> None:
        with suppress(NotFound), self._explain_errors("", "written"):
            if any(True for _ in self._backend.level("")):
                raise AlreadyThere(f"{self._root} already exists: name a folder that does not")

    def make_root_with(self, path: str, data: bytes) -> None:
        """Create the file, which is all that an object store needs; others have its folders for a moment before."""
        self.check_root()
        try:
            folder = path.rpartition("/")[0]
            if folder:
                self.make_folder(folder)
            self.create(path, data)
        except BaseException:
            with suppress(StorageError):
                self.discard_temporary(path)
                self.remove(path)
            raise

    def make_root(self) -> None:
        """Create the root where nothing is; an object store has no folders to create."""
        self.check_root()
        with self._explain_errors("", "written"):
            self._backend.make_folder("")

    def make_folder(self, path: str) -> None:
        with self._explain_errors(path, "written"), suppress(FileExistsError):
            self._backend.make_folder(path)

    def create_from(self, path: str, pieces: Iterable[bytes], attributes: Attributes | None = None) -> None:
        """Put the file and read it again: a store that lost a byte is noticed at once."""
        digest, size = sha256(), 0

        def passing() -> Iterator[bytes]:
            nonlocal size
            for piece in pieces:
                digest.update(piece)
                size += len(piece)
                yield piece

        with self._explain_errors(path, "written"):
            self._must_hold()
            try:
                self._backend.put(path, passing())
            except FileExistsError as error:
                shown = self._shown(path)
                raise AlreadyThere(f"{shown} already exists, but did not a moment ago") from error
            self._must_have(path, size, digest.digest())

    def link(self, path: str, other: Storage) -> bool:
        self._must_hold()
        if isinstance(other, RemoteFolder) and is_same_store(other.uri, self.uri):
            with suppress(Exception):  # such as of a file above its limit
                self._backend.copy_from(other._backend.join(path), path)
                return True
            with suppress(Exception):
                self._backend.delete(path)
        return False

    def replace(self, path: str, data: bytes, was: bytes, attributes: Attributes | None = None) -> None:
        """Look at the file, put the new one over it, and read that again."""
        with self._explain_errors(path, "written"):
            self._must_hold()
            if self._backend.read(path, 0, None) != was:
                raise report_changed_file(self._shown(path))
            self._backend.replace(path, data)
            self._must_have(path, len(data), sha256(data).digest())

    def _must_have(self, path: str, size: int, digest: bytes) -> None:
        """Read what was written, piece by piece. Raises StorageError where it is not that."""
        content = sha256()
        for offset in range(0, size + 1, PIECE):  # one byte more, if there is one
            content.update(self._backend.read(path, offset, min(PIECE, size + 1 - offset)))
        if content.digest() != digest:
            raise StorageError(f"{self._shown(path)} does not contain what was just written: check the storage first")

    def read(self, path: str) -> bytes:
        with self._explain_errors(path, "written"):
            return self._backend.read(path, 0, None)

    def remove(self, path: str) -> None:
        with suppress(NotFound), self._explain_errors(path, "written"):
            self._must_hold()
            self._backend.delete(path)

    def remove_tree(self, path: str) -> bool:
        with self._explain_errors(path, "written"):
            self._must_hold()
            return self._backend.remove_tree(path)

    def attributes(self, path: str) -> None:
        """A remote file's owner is the storage's own affair."""

    def remove_folder(self, path: str) -> None:
        """Also the object that a store keeps for it; no bucket, and one that is left does no harm."""
        with suppress(Exception):
            if path or find_parent(self.uri) is not None:
                self._backend.remove_folder(path)
