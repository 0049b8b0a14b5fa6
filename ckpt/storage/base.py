"""The storage as reading code sees it: list it, read a file, read a byte range.

Paths are relative to the root of the checkpoint, with ``/`` between names and none at either end;
``""`` is the root itself. Nothing here can write.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeVar

from ckpt.errors import NotFound, StorageError

Answer = TypeVar("Answer")
_LOOKS = 3  # a log is listed again where its writer has deleted files meanwhile, which is rare


PIECE = 1 << 22
"""Bytes of a large file that are read, and written, at a time."""
TEMPORARY = ".ckpt.tmp"
"""The ending of the names under which files are written before they are put in place; no log listing shows them."""


def temporary(path: str) -> str:
    """The name under which a file is written before it is renamed: hidden, next to it."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}{TEMPORARY}"


def folders_above(path: str) -> list[str]:
    """The folders that a file or folder is in, the outermost first, without the root."""
    return [path[:end] for end, letter in enumerate(path) if letter == "/"]


def retry_vanished(look: Callable[[], Answer]) -> Answer:
    """Look again where files vanish between listing and reading them. Raises NotFound if they still do."""
    for _ in range(_LOOKS - 1):
        with suppress(NotFound):
            return look()
    return look()


class FileInfo(NamedTuple):
    """A file in a listing: its size in bytes and when it was last written, in ms since 1970 UTC.

    Some object stores have no modification time: ``mtime_ms`` is then None.
    """

    size: int
    mtime_ms: int | None


class Folder(NamedTuple):
    """One level of a tree: its files, the names of the folders in it, and which of them are symbolic links."""

    files: Mapping[str, FileInfo]
    folders: frozenset[str]
    links: frozenset[str] = frozenset()


class Oddity(StrEnum):
    """Why something in a listing was not followed as a plain file or folder."""

    LOOP = "a symbolic link to a folder above it"
    REPEATED = "a symbolic link to a folder that many others point to"
    DANGLING = "a symbolic link to nothing"
    OUTSIDE = "a symbolic link that leads out of the checkpoint"
    SPECIAL = "neither a file nor a folder"


NOT_FOLLOWED = "ckpt reads nothing outside; put the files themselves there (`cp -rL` copies the targets of links)"
"""The remedy for a link that leads out of the root."""


class ReadRequest(NamedTuple):
    """A file to read: all of it, or ``length`` bytes from ``offset`` (both in bytes).

    Without ``length`` it is read to its end. A range that goes past the end gives what there is.
    """

    path: str
    offset: int = 0
    length: int | None = None

    def cut(self, data: bytes) -> bytes:
        """Return this range of the bytes of a whole file."""
        return data[self.offset :] if self.length is None else data[self.offset : self.offset + self.length]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Listing:
    """A whole tree as it was listed once.

    ``folders`` has every folder as a key, empty ones too: path -> file name -> what is known of the file.
    ``oddities`` has the paths that were not followed: a looping link is kept as an empty folder, a
    special file as an empty file, a dangling link (which Hadoop does not list either) in neither; a link out of the
    root as an empty folder, or as a file that cannot be read.
    ``links`` has the paths that are symbolic links, whatever they lead to.
    ``refused`` has the folders that could not be listed, which are kept as empty ones, and why.
    ``changed_ms`` says when a file was last created, renamed or removed in a folder, where the storage knows that.
    """

    folders: Mapping[str, Mapping[str, FileInfo]]
    oddities: Mapping[str, Oddity] = field(default_factory=dict)
    links: Set[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)
    changed_ms: Mapping[str, int] = field(default_factory=dict)
    _children: dict[str, list[str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the folders by their parents, in the order of their names."""
        children: dict[str, list[str]] = {}
        for path in sorted(self.folders):
            if path:
                parent, _, name = path.rpartition("/")
                children.setdefault(parent, []).append(name)
        object.__setattr__(self, "_children", children)

    @property
    def files(self) -> int:
        """How many files the tree has."""
        return sum(map(len, self.folders.values()))

    @property
    def bytes(self) -> int:
        """The sizes of all files together."""
        return sum(info.size for files in self.folders.values() for info in files.values())

    def has_folder(self, path: str) -> bool:
        """Tell whether ``path`` is a folder of the tree."""
        return path in self.folders

    def subfolders(self, path: str) -> Sequence[str]:
        """The names of the folders directly in ``path``, sorted as text; none if it is not a folder."""
        return self._children.get(path, ())

    def in_folder(self, path: str) -> Mapping[str, FileInfo]:
        """The files directly in ``path``; none if it is not a folder."""
        return self.folders.get(path, {})

    def info(self, path: str) -> FileInfo | None:
        """Return the listed size and time of the file at ``path``, or None where there is none."""
        folder, _, name = path.rpartition("/")
        return self.folders.get(folder, {}).get(name)

    def link_above(self, path: str) -> str | None:
        """The symbolic link that ``path`` is, or is behind; the outermost one. None where there is none."""
        return next((prefix for prefix in (*folders_above(path), path) if prefix in self.links), None)

    def named(self, fits: Callable[[str], bool]) -> list[str]:
        """The files whose names are so, in the order of their folders' paths."""
        return [
            f"{folder}/{name}" if folder else name
            for folder in sorted(self.folders)
            for name in self.folders[folder]
            if fits(name)
        ]

    def walk(self, path: str = "") -> Iterator[tuple[str, FileInfo]]:
        """Every file in and below ``path``, with its path, folder by folder."""
        pending = [path]
        while pending:
            folder = pending.pop()
            prefix = f"{folder}/" if folder else ""
            for name, info in self.in_folder(folder).items():
                yield prefix + name, info
            pending += (prefix + name for name in reversed(self.subfolders(folder)))


class Storage(Protocol):
    """A checkpoint's root that can be listed and read, and in no way written."""

    uri: str  # the root as it was given, for showing
    local: bool  # where Hadoop keeps a hidden checksum file for every file
    whole_files: bool  # a file is there only with all its bytes, as in an object store: no crash leaves a part of one
    look_deeper: "Callable[[Storage, int], Any] | None" = None
    """Reads the checkpoint with so many batches, and with what every byte of its state has shown; None: nobody looked.

    ``ckpt.state.verify`` sets it, and ``read_checkpoint`` calls it, so that all that is judged afterwards is by it.
    """

    names_only: bool = False  # of state files only names, sizes and ends are looked at; ``below`` passes it on
    seen: Any = None
    """The verdicts on the state files that were read completely (``Verified``): they are not read again."""

    def list_level(self, path: str = "") -> Folder:
        """One folder only, by default the root: cheap, however much is below it.

        Raises NotFound where nothing is there, StorageError where it is a file or cannot be listed.
        """

    def list_tree(self, *, tolerant: bool = False) -> Listing:
        """The whole tree, in as few calls as the storage allows.

        What vanishes meanwhile is left out. Raises as ``list_level`` does; the text names the folder. If this is
        ``tolerant``, folders that the storage refuses to list are data (``refused``).
        """

    def read(self, path: str) -> bytes:
        """A whole file. Raises NotFound, or StorageError where it cannot be read."""
        return self.read_all([ReadRequest(path)])[0]

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """At most ``length`` bytes from ``offset``; fewer where the file ends. Raises as ``read`` does."""
        return self.read_all([ReadRequest(path, offset, length)])[0]

    def read_pieces(self, path: str, size: int) -> Iterator[bytes]:
        """A file from its beginning, in pieces of ``size`` bytes, the last one shorter. Raises as ``read`` does."""
        at = 0
        while piece := self.read_range(path, at, size):
            yield piece
            if len(piece) < size:
                return
            at += len(piece)

    def read_many(self, requests: Iterable[ReadRequest]) -> list[bytes | StorageError]:
        """Answer requests in their order, remote ones side by side.

        A file that cannot be read is answered by its error (NotFound where it vanished since it was
        listed), so that one bad file does not hide the others.
        """

    def read_all(self, requests: Iterable[ReadRequest]) -> list[bytes]:
        """Answer requests as ``read_many`` does. Raises the first error among the answers."""
        answers: list[bytes] = []
        for answer in self.read_many(requests):
            if isinstance(answer, StorageError):
                raise answer
            answers.append(answer)
        return answers


class Root(Storage, Protocol):
    """A storage whose folders can be opened as storages of their own."""

    def below(self, path: str) -> "Root":
        """Return this storage rooted at a folder of it: nothing is connected again, and nothing is asked."""
