"""Writing on a local (or mounted) file system: every file completely or not at all, and never over an unknown one.

A file is written under a temporary name, flushed to the disk, and then linked to its own name, which fails where that
name is taken, or renamed over the file that it replaces. Folders inside the root are opened without following symbolic
links, and everything is done relative to the folder that was opened, so that nothing in a checkpoint can lead a write
elsewhere. Only ``ckpt.changes`` and ``ckpt.new.copy`` may import this module, which also opens remote places.
"""

import ctypes
import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from ckpt.errors import DiskFull, StorageError, one_line
from ckpt.storage.base import Storage, folders_above, temporary
from ckpt.storage.locations import READ_ONLY, is_read_only, local_path
from ckpt.storage.lock_files import LeaseHolder, LocalFolder
from ckpt.storage.uri import NO_OPTIONS, open_backend
from ckpt.storage.writer import AlreadyThere, Attributes, Writer, report_changed_file

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)  # of a file system without hard links
_RENAME_NOREPLACE = 1  # linux/fs.h


def open_writer(uri: str, options: Mapping[str, str] = NO_OPTIONS) -> Writer:
    """Open a place for writing: whatever ``open_storage`` opens, and raises as it does."""
    local = local_path(uri)
    if local is not None:
        return LocalWriter(local, uri)
    from ckpt.storage.remote_writer import RemoteWriter  # so that a local checkpoint is changed without pyarrow

    shown, root, backend = open_backend(uri, options)
    return RemoteWriter(shown, backend, root)


class LocalWriter(LeaseHolder, Writer):
    """A folder of this machine."""

    def __init__(self, root: str, uri: str) -> None:
        self.uri = uri
        self._root = root

    @contextmanager
    def lock(self, *, required: bool = False) -> Iterator[None]:
        """``flock`` on the root: it leaves no file, and ends with the process. A mount without it gets files beside."""
        with self._explain_errors(""):
            handle = os.open(self._root, _FOLDER)
        try:
            with self._explain_errors(""):
                _refuse_read_only(handle)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                shown = self._shown("")
                raise StorageError(f"another ckpt process is changing {shown}: wait until it finishes") from error
            except OSError:
                with self._lock_by_files(required=required):
                    yield
            else:
                yield
        finally:
            os.close(handle)

    @contextmanager
    def _lock_by_files(self, *, required: bool) -> Iterator[None]:
        """Lock by files in a folder beside the root, as for a remote one; by none, where it cannot be made."""
        name = os.path.basename(os.path.abspath(self._root))
        folder = os.path.join(self._above, f".{name}.ckpt-lock")
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
        except OSError as error:
            if required:
                why = f"its mount has no flock, and {one_line(folder)} cannot be created ({error.strerror})"
                raise StorageError(f"{self._shown('')} has no lock: {why}") from error
            yield
            return
        with self._hold(LocalFolder(folder), self._shown(""), self._explain_errors("")):
            yield

    def check_root(self) -> None:
        """Look whether the root is free, and the folder above it takes one."""
        with self._explain_errors(""):
            if os.path.lexists(self._root):
                raise AlreadyThere(f"{self._shown('')} already exists: name a folder that does not")
            above = self._above
            if not os.path.isdir(above):
                raise StorageError(f"{self._shown('')} cannot be written: create {one_line(above)} first")
            _refuse_read_only(above)
            if not os.access(above, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, "permission denied")

    def make_root(self) -> None:
        """Create the root, for its owner only; the folder above it must exist."""
        self.check_root()
        with self._explain_errors(""):
            os.mkdir(self._root, 0o700)
            try:
                _flush_folder(self._above)
            except OSError:
                self.remove_folder("")
                raise

    def make_root_with(self, path: str, data: bytes) -> None:
        """Make it beside the root, under a temporary name, and rename it."""
        self.check_root()
        unfinished = LocalWriter(os.path.join(self._above, temporary(os.path.basename(self._root))), self.uri)
        unfinished._discard_root(path)
        try:
            unfinished.make_root()
            for folder in folders_above(path):
                unfinished.make_folder(folder)
            unfinished.create(path, data)
            with self._explain_errors(""):
                os.rename(unfinished._root, self._root)
                _flush_folder(self._above)
        except BaseException:
            unfinished._discard_root(path)
            raise

    def _discard_root(self, path: str) -> None:
        """Remove a root that has at most this file, if it is there."""
        with suppress(StorageError):  # of a folder that was not made yet
            self.discard_temporary(path)
            self.remove(path)
        for folder in (*reversed(folders_above(path)), ""):
            with suppress(StorageError):
                self.remove_folder(folder)

    @property
    def _above(self) -> str:
        return os.path.dirname(os.path.abspath(self._root))

    def make_folder(self, path: str) -> None:
        """Create the folder with the usual permissions; the root keeps others out."""
        with self._open_folder(path) as (folder, name), self._explain_errors(path):
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
            _flush(folder)

    def create_from(self, path: str, pieces: Iterable[bytes], attributes: Attributes | None = None) -> None:
        """Write under a temporary name, flush, link into place, flush the folder."""
        with self._write_temporary(path, pieces, attributes) as (unfinished, name, folder):
            _put_in_place(unfinished, name, folder)

    def link(self, path: str, other: Storage) -> bool:
        root = local_path(other.uri)
        self._must_hold()
        with suppress(OSError):  # of another file system, or one without links
            if root is not None and not os.path.islink(f"{root}/{path}"):
                with self._open_folder(path) as (folder, name):
                    os.link(f"{root}/{path}", name, dst_dir_fd=folder, follow_symlinks=False)
                    _flush(folder)
                    return True
        return False

    def replace(self, path: str, data: bytes, was: bytes, attributes: Attributes | None = None) -> None:
        """Write under a temporary name, flush, look at the file again, rename over it, flush the folder."""
        with self._write_temporary(path, (data,), attributes) as (unfinished, name, folder):
            if _bytes_of(name, folder) != was:
                raise report_changed_file(self._shown(path))
            os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)

    @contextmanager
    def _write_temporary(
        self, path: str, pieces: Iterable[bytes], attributes: Attributes | None
    ) -> Iterator[tuple[str, str, int]]:
        """A file under its temporary name, which the caller gives its own; the temporary name is gone afterwards."""
        with self._open_folder(path) as (folder, name), self._explain_errors(path):
            self._must_hold()
            unfinished = temporary(name)
            with suppress(FileNotFoundError):
                os.unlink(unfinished, dir_fd=folder)
            handle = os.open(unfinished, _NEW_FILE, 0o644 if attributes is None else 0o600, dir_fd=folder)
            try:
                try:
                    for piece in pieces:
                        _write_all(handle, piece)
                    if attributes is not None:
                        _set_attributes(handle, attributes)
                    os.fsync(handle)
                finally:
                    os.close(handle)
                yield unfinished, name, folder
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(unfinished, dir_fd=folder)
            _flush(folder)

    def read(self, path: str) -> bytes:
        """Every byte of a file that is no symbolic link."""
        with self._open_folder(path) as (folder, name), self._explain_errors(path):
            return _bytes_of(name, folder)

    def remove(self, path: str) -> None:
        with self._open_folder(path) as (folder, name), self._explain_errors(path), suppress(FileNotFoundError):
            self._must_hold()
            os.stat(name, dir_fd=folder, follow_symlinks=False)  # where nothing may be written, unlinking always fails
            os.unlink(name, dir_fd=folder)
            _flush(folder)

    def attributes(self, path: str) -> Attributes | None:
        """Of a regular file that we own; ckpt could not restore anything else, and so does not touch it."""
        with self._open_folder(path) as (folder, name), self._explain_errors(path):
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                return None
        if not stat.S_ISREG(status.st_mode):
            raise StorageError(
                f"{self._shown(path)} is not a regular file: ckpt does not change files that it cannot restore"
            )
        if os.geteuid() not in (0, status.st_uid):
            raise StorageError(f"{self._shown(path)} belongs to another user: run ckpt as the user that runs the query")
        return Attributes(status.st_mode & 0o777, status.st_uid, status.st_gid, status.st_mtime_ns)

    def remove_folder(self, path: str) -> None:
        with suppress(OSError):  # it is not empty, or gone
            if not path:
                os.rmdir(self._root)
                return
            with self._open_folder(path) as (folder, name):
                os.rmdir(name, dir_fd=folder)

    @contextmanager
    def _open_folder(self, path: str) -> Iterator[tuple[int, str]]:
        """The folder of a file, opened step by step without following links, and the file's name in it."""
        *above, name = path.split("/")
        with self._explain_errors(path):
            handle = os.open(self._root, _FOLDER)
        try:
            for part in above:
                with self._explain_errors(path):
                    inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
                os.close(handle)
                handle = inner
            yield handle, name
        finally:
            os.close(handle)

    @contextmanager
    def _explain_errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            shown = self._shown(path)
            match error.errno:
                case errno.EEXIST:
                    raise AlreadyThere(f"{shown} already exists, but did not a moment ago") from error
                case errno.EROFS:
                    raise StorageError(f"{shown} cannot be written: {READ_ONLY}") from error
                case errno.EACCES | errno.EPERM:
                    reason = (error.strerror or "permission denied").lower()
                    cure = "run ckpt as the user that runs the query"
                    raise StorageError(f"{shown} cannot be written ({reason}): {cure}") from error
                case errno.ENOSPC | errno.EDQUOT:
                    raise DiskFull(f"{shown} cannot be written: the disk is full; free some space first") from error
                case errno.ELOOP | errno.ENOTDIR:
                    cure = "ckpt writes only to the folder itself"
                    raise StorageError(f"{shown} is behind a symbolic link or not in a folder: {cure}") from error
                case _:
                    reason = one_line(error.strerror or str(error))
                    raise StorageError(f"{shown} cannot be written: {reason}; check the disk or mount first") from error

    def _shown(self, path: str) -> str:
        return one_line(os.path.abspath(f"{self._root}/{path}"))


def _refuse_read_only(folder: int | str) -> None:
    if is_read_only(folder):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def _bytes_of(name: str, folder: int) -> bytes:
    with os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder), "rb") as file:
        return file.read()


def _put_in_place(unfinished: str, name: str, folder: int) -> None:
    """Give a file its name, unless the name is taken. Raises FileExistsError."""
    try:
        os.link(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _rename_no_replace(unfinished, name, folder)


def _rename_no_replace(old: str, new: str, folder: int) -> None:
    """``renameat2`` with ``RENAME_NOREPLACE``, for file systems without hard links."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        raise OSError(
            errno.EOPNOTSUPP, "this system has neither hard links here nor a rename that keeps an existing file"
        )
    if rename(folder, os.fsencode(old), folder, os.fsencode(new), _RENAME_NOREPLACE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _write_all(handle: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def _set_attributes(handle: int, wanted: Attributes) -> None:
    """Owner before permissions, which a change of owner may take away."""
    status = os.fstat(handle)
    if (status.st_uid, status.st_gid) != (wanted.uid, wanted.gid):
        os.fchown(handle, wanted.uid, wanted.gid)
    os.fchmod(handle, wanted.mode)
    if wanted.mtime_ns is not None:
        os.utime(handle, ns=(wanted.mtime_ns, wanted.mtime_ns))


def _flush_folder(path: str) -> None:
    handle = os.open(path, _FOLDER)
    try:
        _flush(handle)
    finally:
        os.close(handle)


def _flush(folder: int) -> None:
    """Flush a folder's entries; some file systems know no such thing."""
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
