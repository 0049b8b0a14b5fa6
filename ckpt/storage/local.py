"""A checkpoint on a local (or mounted) file system, with nothing but the standard library."""

import errno
import os
import stat
from collections import Counter
from collections.abc import Iterable
from functools import cached_property, partial
from pathlib import PurePath
from urllib.parse import quote

from ckpt.errors import NotAFolder, NotFound, NotThereYet, StorageError, UsageError, one_line
from ckpt.storage.base import NOT_FOLLOWED, FileInfo, Folder, Listing, Oddity, ReadRequest, Root
from ckpt.storage.locations import local_path

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A named pipe in place of a file must not block the reader, nor a terminal become its own.
_OPEN_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MOST_TIMES = 16  # that one folder is listed because links lead to it
_LARGEST_ARGUMENT = 1 << 24  # bytes
_OPENED = "/dev/fd/"  # what a shell has opened, as in <(command)
_SPARE = 1 << 12  # bytes read past the listed size, in case the file grew

# Half the price of calling FileInfo, which matters for half a million files.
_file_info = partial(tuple.__new__, FileInfo)


def ends(path: str) -> bool:
    """Tell whether reading a file comes to an end: no device, nor a pipe that nobody may write to. Raises OSError."""
    mode = os.stat(path).st_mode
    return stat.S_ISREG(mode) or (stat.S_ISFIFO(mode) and path.startswith(_OPENED))


def read_text(path: str) -> str:
    """The text of a small file that an argument names. Raises OSError, and ValueError where it is not UTF-8."""
    if not ends(path):
        raise OSError(errno.EINVAL, "it is not a file")
    with open(path, "rb") as file:
        data = file.read(_LARGEST_ARGUMENT + 1)
    if len(data) > _LARGEST_ARGUMENT:
        raise OSError(errno.EFBIG, f"it has more than {_LARGEST_ARGUMENT >> 20} MiB")
    return data.decode("utf-8")


def is_gone(path: str) -> bool:
    """Tell whether a file that a checkpoint names by an absolute local path, spelled as Spark does, is missing.

    Only its name is looked up: nothing is opened. False for a remote path, and where it cannot be known.
    """
    try:
        local = path.removeprefix("file:") if path.startswith("file:/") else local_path(path)
        if local is not None:
            os.stat(local)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError, UsageError):
        return False
    return False


class LocalStorage(Root):
    """A folder read with ``os.scandir`` and read-only opens. Symbolic links are followed where they stay in it."""

    def __init__(self, root: str, uri: str) -> None:
        self.uri = uri
        self.local = True
        self.whole_files = False
        self._root = root

    @cached_property
    def _real_root(self) -> str:
        """The root itself, which may be a link."""
        return os.path.realpath(self._root)

    def _leads_out(self, path: str) -> bool:
        return os.path.commonpath((self._real_root, os.path.realpath(f"{self._root}/{path}"))) != self._real_root

    def below(self, path: str) -> "LocalStorage":
        """A folder of this one; a ``file:`` URI is percent-encoded."""
        named = quote(path) if self.uri.startswith("file:") else path
        if not path:
            return self
        storage = LocalStorage(f"{self._root}/{path}", f"{self.uri.rstrip('/')}/{named}")
        storage.names_only = self.names_only
        return storage

    def list_level(self, path: str = "") -> Folder:
        files, folders, _, links = self._scan(path, {})
        return Folder(files, frozenset(folders), frozenset(links))

    def list_tree(self, *, tolerant: bool = False) -> Listing:
        """The whole tree, one ``scandir`` for each folder and one ``stat`` for each file."""
        tree: dict[str, dict[str, FileInfo]] = {}
        refused: dict[str, str] = {}
        changed: dict[str, int] = {}
        oddities: dict[str, Oddity] = {}
        all_links: set[str] = set()
        pending = [("", False)]  # and whether it is behind a symbolic link
        times: Counter[tuple[int, int]] = Counter()
        while pending:
            path, linked = pending.pop()
            if linked and self._is_repeated(path, times):
                tree[path], oddities[path] = {}, Oddity.REPEATED
                continue
            try:
                files, folders, odd, links = self._scan(path, changed)
            except NotFound:
                if path:
                    continue  # it vanished since its parent was listed
                raise
            except StorageError as error:
                if not (tolerant and path):
                    raise
                tree[path], refused[path] = {}, str(error)
                continue
            tree[path] = files
            prefix = f"{path}/" if path else ""
            oddities.update((prefix + name, oddity) for name, oddity in odd.items())
            all_links.update(prefix + name for name in links)
            for name in folders:
                if odd.get(name) in (Oddity.LOOP, Oddity.OUTSIDE):
                    tree[prefix + name] = {}
                else:
                    pending.append((prefix + name, linked or name in links))
        return Listing(tree, oddities, all_links, refused, changed)

    def read_many(self, requests: Iterable[ReadRequest]) -> list[bytes | StorageError]:
        """One after the other: a local disk gains nothing from threads."""
        return [self._answer(request) for request in requests]

    def _is_repeated(self, path: str, times: Counter[tuple[int, int]]) -> bool:
        """Tell whether a folder behind symbolic links was reached too often: links to folders of links multiply."""
        try:
            status = os.stat(f"{self._root}/{path}")
        except OSError:
            return False  # listing it says why
        times[status.st_dev, status.st_ino] += 1
        return times[status.st_dev, status.st_ino] > _MOST_TIMES

    def _scan(
        self, path: str, changed: dict[str, int]
    ) -> tuple[dict[str, FileInfo], list[str], dict[str, Oddity], set[str]]:
        """List one folder: files, names of folders, what is odd among them, and which are symbolic links."""
        files: dict[str, FileInfo] = {}
        folders: list[str] = []
        odd: dict[str, Oddity] = {}
        links: set[str] = set()
        try:
            # Scanning an open folder spares the system the walk down the path for each file in it.
            handle = os.open(f"{self._root}/{path}", _OPEN_FOLDER)
            try:
                changed[path] = os.fstat(handle).st_mtime_ns // 1_000_000
                with os.scandir(handle) as entries:
                    for entry in entries:
                        if entry.is_file(follow_symlinks=False):
                            try:
                                status = entry.stat(follow_symlinks=False)
                            except FileNotFoundError:
                                continue  # it vanished since the folder was read
                            files[entry.name] = _file_info((status.st_size, status.st_mtime_ns // 1_000_000))
                        elif entry.is_dir(follow_symlinks=False):
                            folders.append(entry.name)
                        else:
                            if entry.is_symlink():
                                links.add(entry.name)
                            self._scan_odd(path, entry, files, folders, odd)
            finally:
                os.close(handle)
        except OSError as error:
            raise self._explain_error(error, path) from None
        return files, folders, odd, links

    def _scan_odd(
        self, path: str, entry: os.DirEntry[str], files: dict[str, FileInfo], folders: list[str], odd: dict[str, Oddity]
    ) -> None:
        """Record a symbolic link under what it points to, or something that is not a file."""
        try:
            status = entry.stat()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise
            if entry.is_symlink():
                odd[entry.name] = Oddity.DANGLING
            return
        if stat.S_ISDIR(status.st_mode):
            folders.append(entry.name)
            if _lies_in(f"{self._root}/{path}", status):
                odd[entry.name] = Oddity.LOOP
            elif self._leads_out(f"{path}/{entry.name}"):
                odd[entry.name] = Oddity.OUTSIDE
            return
        files[entry.name] = FileInfo(status.st_size, status.st_mtime_ns // 1_000_000)
        if not stat.S_ISREG(status.st_mode):
            odd[entry.name] = Oddity.SPECIAL
        elif entry.is_symlink() and self._leads_out(f"{path}/{entry.name}"):
            odd[entry.name] = Oddity.OUTSIDE

    def _answer(self, request: ReadRequest) -> bytes | StorageError:
        """Read what one request asks for; only ordinary files are read."""
        path, offset, length = request
        try:
            handle = self._open(path)
            try:
                status = os.fstat(handle)
                if not stat.S_ISREG(status.st_mode):
                    kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a file (a pipe, a socket or a device)"
                    raise StorageError(f"{self._shown(path)} is {kind}: move it away; Spark cannot read it either")
                return _pread(handle, offset, length, status.st_size)
            finally:
                os.close(handle)
        except StorageError as error:
            return error
        except OSError as error:
            return self._explain_error(error, path)

    def _open(self, path: str) -> int:
        """Open a file; only a link that stays below the root is followed. Raises StorageError, OSError."""
        try:
            return os.open(f"{self._root}/{path}", _OPEN_FILE | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        if self._leads_out(path) and ends(f"{self._root}/{path}"):
            raise StorageError(f"{self._shown(path)} is {Oddity.OUTSIDE}: {NOT_FOLLOWED}")
        return os.open(f"{self._root}/{path}", _OPEN_FILE)

    def _shown(self, path: str) -> str:
        return one_line(os.path.abspath(f"{self._root}/{path}"))

    def _explain_error(self, error: OSError, path: str) -> StorageError:
        shown = self._shown(path)
        match error.errno:
            case errno.ENOENT if not path and os.path.islink(self._root.rstrip("/")):
                return NotFound(f"{shown} is a link that points to nothing: check its target")
            case errno.ENOENT:
                return NotThereYet(f"{shown} does not exist: check the path")
            case errno.ENOTDIR:
                return NotAFolder(f"{shown} is not a folder: give the checkpoint's own folder")
            case errno.EACCES | errno.EPERM:
                return StorageError(f"{shown} cannot be read: run ckpt as a user that can (permission denied)")
            case _:
                reason = one_line(error.strerror or str(error))
                return StorageError(f"{shown} cannot be read: {reason}; check the disk or mount first")


def _lies_in(path: str, folder: os.stat_result) -> bool:
    """Tell whether ``path`` is ``folder`` or below it, by its name or after resolving links."""
    ways = (PurePath(os.path.abspath(path)), PurePath(os.path.realpath(path)))
    above = {parent for way in ways for parent in (way, *way.parents)}
    return any(os.path.samestat(folder, os.stat(parent)) for parent in above)


def _pread(handle: int, offset: int, length: int | None, size: int) -> bytes:
    """Read a range, or up to the end where ``length`` is None, in as many calls as it takes.

    ``size`` is that of the file: read at once, a large one is in memory once.
    """
    most, parts = max(size - offset, 0) + _SPARE, list[bytes]()
    left = most if length is None else length
    while left > 0 and (part := os.pread(handle, min(left, most), offset)):
        if len(part) == length:  # mostly: of thousands of files a few bytes
            return part
        parts.append(part)
        offset += len(part)
        left = most if length is None else left - len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
