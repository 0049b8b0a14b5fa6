"""Remote storage through fsspec, for whatever pyarrow does not open itself.

fsspec is asked directly and not through ``pyarrow.fs.FSSpecHandler``: the handler asks three questions where
one does (``isdir``, ``find``, and ``isfile`` before each read), loses most file times, and lists through
``find``, whose default takes a folder that cannot be listed for an empty one.
"""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice
from typing import Any

import fsspec
from fsspec.asyn import AsyncFileSystem
from fsspec.core import url_to_fs

from ckpt.advice import words
from ckpt.errors import StorageError, UsageError
from ckpt.storage.base import FileInfo, temporary
from ckpt.storage.errors import explain, shorten_error
from ckpt.storage.remote import Backend, ListedItem, convert_options

# Where the file systems put the time of the last change; only some have one.
_TIMES = ("mtime", "LastModified", "last_modified", "modification_time", "modificationTime", "updated", "created")
_MS_SINCE = 100_000_000_000  # a number above this is in ms (since 1973), below it in s (until 5138)


class FsspecBackend(Backend):
    """A folder of an fsspec file system, written by a conditional put where the file system has one.

    What comes in several pieces is written under a temporary name and renamed: many file systems show a file that is
    being written.
    """

    def __init__(self, file_system: fsspec.AbstractFileSystem, root: str) -> None:
        self.cure = words("see what its fsspec package needs, as environment or {--storage-options}")
        self.whole_files = False  # nobody says
        self.file_system = file_system
        self._root = root.rstrip("/")

    def level(self, folder: str) -> Iterable[ListedItem]:
        """List what is directly in a folder, in one ``ls``."""
        base = self.join(folder)
        self.file_system.invalidate_cache()  # some file systems remember listings, and never ask again
        return self._entries(base, self.file_system.ls(base, detail=True))

    def everything(self) -> Iterable[ListedItem] | None:
        """The whole tree where the file system has a ``find`` of its own, as object stores do."""
        if not _finds_by_itself(self.file_system):
            return None
        base = self.join("")
        self.file_system.invalidate_cache()
        entries = self.file_system.find(base, withdirs=True, detail=True)
        if not entries and not self.file_system.exists(base):
            raise FileNotFoundError(base)
        return self._entries(base, entries.values())

    def read(self, path: str, offset: int, length: int | None) -> bytes:
        """A range of a file, in one ``cat_file``."""
        full = self.join(path)
        if offset == 0 and length is None:
            return bytes(self.file_system.cat_file(full))
        end = None if length is None else offset + length
        try:
            return bytes(self.file_system.cat_file(full, start=offset, end=end))
        except FileNotFoundError:
            raise
        except Exception:
            # A range that begins past the end is an error with object stores.
            if int(self.file_system.info(full)["size"]) <= offset:
                return b""
            raise

    def _entries(self, base: str, entries: Iterable[Mapping[str, Any]]) -> Iterable[ListedItem]:
        root = self._root.strip("/")
        for item in entries:
            name = str(item["name"]).strip("/")
            if name == base.strip("/"):
                if item["type"] != "directory":
                    raise NotADirectoryError(base)
                continue
            path = name.removeprefix(root).lstrip("/")
            yield ListedItem(path, None if item["type"] == "directory" else _file_info(name, item))

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        full, left = self.join(path), iter(pieces)
        self.file_system.invalidate_cache()
        if self.file_system.exists(full):
            raise FileExistsError(path)
        first = list(islice(left, 2))
        if len(first) < 2:
            self._put_whole(full, b"".join(first))
        else:
            self._put_pieces(self.join(temporary(path)), full, chain(first, left))

    def _put_pieces(self, unfinished: str, full: str, pieces: Iterable[bytes]) -> None:
        try:
            with self.file_system.open(unfinished, "wb") as file:
                for piece in pieces:
                    file.write(piece)
            self.file_system.mv(unfinished, full)
        except BaseException:
            with suppress(Exception):
                self.file_system.rm_file(unfinished)
            raise

    def _put_whole(self, full: str, data: bytes) -> None:
        try:
            self.file_system.pipe_file(full, data, mode="create")
        except (TypeError, NotImplementedError, ValueError):  # it knows no such mode
            self.file_system.pipe_file(full, data)

    def replace(self, path: str, data: bytes) -> None:
        """Remove a file, and write it anew: not every file system shows a new one only when it is complete."""
        self.delete(path)
        self.put(path, (data,))

    def delete(self, path: str) -> None:
        self.file_system.rm_file(self.join(path))

    def copy_from(self, source: str, path: str) -> None:
        self.file_system.cp_file(source, self.join(path))

    def remove_folder(self, path: str) -> None:
        self.file_system.rmdir(self.join(path))

    def make_folder(self, path: str) -> None:
        self.file_system.makedirs(self.join(path), exist_ok=True)


def open_fsspec(uri: str, shown: str, options: Mapping[str, str]) -> FsspecBackend:
    """The fsspec file system that a URI names; ``shown`` is how messages name it.

    ``options`` are arguments of the file system's constructor, as text. Raises UsageError for an unknown scheme or
    option, ImportError where the package for the scheme is not installed.
    """
    scheme = uri.partition("://")[0]
    try:
        kind = fsspec.get_filesystem_class(scheme)
    except ValueError:
        raise UsageError(f"ckpt and fsspec do not know {scheme}://: check the URI") from None
    values = convert_options(scheme, options, _arguments(kind))
    try:
        file_system, root = url_to_fs(uri, skip_instance_cache=True, **values)
    except ImportError:  # which the caller explains
        raise
    except (TypeError, ValueError) as error:
        raise UsageError(f"{shown} cannot be opened with these options: {shorten_error(error)}") from error
    except Exception as error:  # each file system has exceptions of its own
        raise explain(error, shown, words("check the URI and {--storage-options}")) from error
    return FsspecBackend(file_system, root)


def _finds_by_itself(file_system: fsspec.AbstractFileSystem) -> bool:
    """Tell whether ``find`` is better than fsspec's default, which walks and passes over what it cannot list."""
    kind = type(file_system)
    if isinstance(file_system, AsyncFileSystem):
        return kind._find is not AsyncFileSystem._find
    return kind.find is not fsspec.AbstractFileSystem.find


def _file_info(name: str, item: Mapping[str, Any]) -> FileInfo:
    size = item.get("size")
    if size is None:
        raise StorageError(f"{name} is listed without its size: copy the checkpoint to a local folder first")
    return FileInfo(int(size), next((_ms(item[key]) for key in _TIMES if item.get(key)), None))


def _ms(time: object) -> int | None:
    """A time as file systems give it, in ms since 1970 UTC; None for anything else."""
    if isinstance(time, str):
        with suppress(ValueError):
            time = datetime.fromisoformat(time)
    if isinstance(time, datetime):
        aware = time if time.tzinfo else time.replace(tzinfo=UTC)
        return int(aware.timestamp() * 1000)
    if isinstance(time, int | float):
        return int(time if time > _MS_SINCE else time * 1000)
    return None


def _arguments(kind: type) -> dict[str, Callable[[str], object]]:
    """The named arguments of a file system's constructors, and how their text is understood: by their defaults."""
    named: dict[str, Callable[[str], object]] = {}
    for base in reversed(kind.__mro__):
        if "__init__" in vars(base) and base is not object:
            for name, parameter in inspect.signature(vars(base)["__init__"]).parameters.items():
                if name != "self" and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                    named[name] = partial(_convert_option, parameter.default)
    return named


def _convert_option(default: object, text: str) -> object:
    """An option's text as the type of its default; JSON objects, lists and literals are parsed. Raises ValueError."""
    if isinstance(default, int | float) and not isinstance(default, bool):
        return type(default)(text)
    if text.lower() in ("true", "false", "null", "none"):
        return {"true": True, "false": False}.get(text.lower())
    return json.loads(text) if text[:1] in ("{", "[") else text
