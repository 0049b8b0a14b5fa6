"""A remote checkpoint: the same requests as for a local one, several at a time.

What differs between kinds of remote storage is a ``Backend``; what does not is here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from threading import BoundedSemaphore, Thread
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from ckpt.advice import Words
from ckpt.errors import NotFound, StorageError, UsageError, one_line
from ckpt.storage.base import FileInfo, Folder, Listing, ReadRequest, Root
from ckpt.storage.errors import explain, shorten_error

Question = TypeVar("Question")
Answer = TypeVar("Answer")

REQUESTS_AT_ONCE = 128  # of ckpt, with all its processes
PATIENCE = 45  # seconds; the file systems' own retries mostly end within 25
_FEWEST = 8  # requests that a process may have under way, however many there are
_MARKER = "_$folder$"  # what Hadoop's older S3 clients and EMR leave next to a folder: an empty object


class _Turns:
    """Lets so many requests of this process be under way at a time; the others wait."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.semaphore = BoundedSemaphore(count)


_turns = _Turns(REQUESTS_AT_ONCE)


def share_requests(processes: int) -> None:
    """Let this process have its share of ``REQUESTS_AT_ONCE``, beside others; before it opens anything."""
    global _turns
    _turns = _Turns(max(REQUESTS_AT_ONCE // processes, _FEWEST))


def requests_at_once() -> int:
    """How many requests this process may have under way at a time."""
    return _turns.count


class ListedItem(NamedTuple):
    """Something a backend lists: its path below the root, and what is known of it if it is a file."""

    path: str
    file: FileInfo | None


class Backend(Protocol):
    """One kind of remote storage, rooted at a checkpoint.

    Errors are raised as the library beneath raises them; ``RemoteStorage`` puts them in ckpt's words.
    """

    cure: str | Words  # what usually helps where this kind of storage refuses: credentials, options
    whole_files: bool  # a file is there only with all its bytes
    _root: str  # as the storage spells it, without a slash at its end

    def level(self, folder: str) -> Iterable[ListedItem]:
        """List what is directly in a folder. Raises FileNotFoundError or NotADirectoryError."""

    def everything(self) -> Iterable[ListedItem] | None:
        """The whole tree in fewer requests than one for each folder, or None if that is not possible."""

    def read(self, path: str, offset: int, length: int | None) -> bytes:
        """A range of a file, cut short where the file ends; ``length`` None is up to the end."""

    def below(self, folder: str) -> Self:
        """Return the backend rooted at a folder of it, with the same connections."""
        backend = copy(self)
        backend._root = self.join(folder)
        return backend

    def beside(self, ending: str) -> Self:
        """Return the backend rooted at a hidden folder beside it, ``.NAME.ENDING``, with the same connections."""
        above, _, name = self._root.rstrip("/").rpartition("/")
        backend = copy(self)
        backend._root = f"{above}/.{name}.{ending}"
        return backend

    def join(self, path: str) -> str:
        """A path below the root, as the storage spells it."""
        return f"{self._root}/{path}" if path else self._root or "/"

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write a whole file, so that no reader sees a part of it; if ``pieces`` fails, none is there afterwards.

        Raises FileExistsError if the name is taken. What writes is only for ``ckpt.storage.remote_writer``.
        """

    def replace(self, path: str, data: bytes) -> None:
        """Write a whole file over one that is there; where it can, so that every reader sees one of the two."""

    def copy_from(self, source: str, path: str) -> None:
        """Have the storage copy a file of it, named by its full path."""
        raise OSError(source)  # it has no such request

    def remove_folder(self, path: str) -> None:
        """Remove a folder without files."""
        self.delete(path)

    def remove_tree(self, path: str) -> bool:
        """Remove all that a folder has, if few requests do that; False where each file takes some."""
        return False

    def delete(self, path: str) -> None:
        """Remove a file. Raises FileNotFoundError where it is not there."""

    def make_folder(self, path: str) -> None:
        """Create a folder, where the storage knows such a thing."""


class RemoteFolder:
    """A backend whose errors are put in ckpt's words."""

    def __init__(self, uri: str, backend: Backend, root: str = "") -> None:
        """``uri`` is how the root is shown, ``root`` what paths in messages begin with (by default the same)."""
        self.uri = uri
        self.whole_files = backend.whole_files
        self._root = (root or uri).rstrip("/")
        self._backend = backend

    @contextmanager
    def _explain_errors(self, path: str, doing: str = "read") -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise explain(error, self._shown(path), self._backend.cure, doing) from error

    def _shown(self, path: str) -> str:
        return one_line(f"{self._root}/{path}") if path else self._root


class RemoteStorage(RemoteFolder, Root):
    """A remote checkpoint, with many requests under way at once."""

    local = False

    def below(self, path: str) -> "RemoteStorage":
        """A folder of this one, through the same connections; the URI keeps the options of its query."""
        root, options = self._shown(path), self.uri.removeprefix(self._root).lstrip("/")
        if not path:
            return self
        storage = RemoteStorage(root + options, self._backend.below(path), root)
        storage.names_only = self.names_only
        return storage

    def list_level(self, path: str = "") -> Folder:
        """One folder, in one request for each page of names (a thousand with most object stores).

        Being the first contact, it is given up after ``PATIENCE`` seconds, whatever the library beneath does.
        """
        try:
            listing = _make_listing(_ask_in_time(lambda: self._list_folder(path)))
            return Folder(listing.in_folder(path), frozenset(listing.subfolders(path)))
        except TimeoutError as error:
            raise StorageError(
                f"{self._root} cannot be reached: check the host and the network (no answer in {PATIENCE} s)"
            ) from error

    def list_tree(self, *, tolerant: bool = False) -> Listing:
        """The whole tree: page by page where the storage lists recursively, else folder by folder."""
        refused: dict[str, str] = {}
        with self._explain_errors(""), _turns.semaphore:
            entries = self._backend.everything()
            if entries is not None:
                return _make_listing(entries)
        return replace(_make_listing(self._walk(refused, tolerant=tolerant)), refused=refused)

    def read_many(self, requests: Iterable[ReadRequest]) -> list[bytes | StorageError]:

        def answer(request: ReadRequest) -> bytes | StorageError:
            path, offset, length = request
            try:
                with self._explain_errors(path), _turns.semaphore:
                    return b"" if length == 0 else self._backend.read(path, offset, length)
            except StorageError as error:
                return error

        return _ask_side_by_side(answer, requests)

    def _list_folder(self, folder: str) -> list[ListedItem]:
        with self._explain_errors(folder), _turns.semaphore:
            return list(self._backend.level(folder))

    def _walk(self, refused: dict[str, str], *, tolerant: bool) -> Iterator[ListedItem]:
        """List folder by folder; all folders of the same depth at once. What is refused is recorded, or else raised."""

        def look(folder: str) -> list[ListedItem]:
            try:
                return self._list_folder(folder)
            except NotFound:  # it was listed a moment ago, and has vanished since
                return []
            except StorageError as error:
                if not tolerant:
                    raise
                refused[folder] = str(error)
                return []

        level = self._list_folder("")
        while level:
            yield from level
            folders = [entry.path for entry in level if entry.file is None]
            level = [entry for entries in _ask_side_by_side(look, folders) for entry in entries]


def convert_options(
    scheme: str, options: Mapping[str, str], known: Mapping[str, Callable[[str], object]]
) -> dict[str, Any]:
    """Convert storage options to what a file system takes. Raises UsageError for one that it does not know."""
    values: dict[str, Any] = {}
    for key, text in options.items():
        if key not in known:
            names = ", ".join(sorted(known)) or "none"
            raise UsageError.of(
                "{--storage-options} {key} is unknown for {scheme}://; known are {names}",
                key=key,
                scheme=scheme,
                names=names,
            )
        try:
            values[key] = known[key](text)
        except ValueError as error:
            why = shorten_error(error)
            raise UsageError.of(
                "{--storage-options} {key}={text} is not understood: {why}", key=key, text=text, why=why
            ) from error
    return values


def _make_listing(entries: Iterable[ListedItem]) -> Listing:
    """Put entries in their places, in whatever order they come, and the folders above them."""
    folders: dict[str, dict[str, FileInfo]] = {"": {}}

    def find_folder(path: str) -> dict[str, FileInfo]:
        if path not in folders:
            find_folder(path.rpartition("/")[0])
            folders[path] = {}
        return folders[path]

    for path, info in entries:
        if info is None or path.endswith(_MARKER):
            find_folder(path if info is None else path.removesuffix(_MARKER))
        else:
            folder, _, name = path.rpartition("/")
            find_folder(folder)[name] = info
    return Listing(folders)


def _ask_in_time(ask: Callable[[], Answer]) -> Answer:
    """Ask, for at most ``PATIENCE`` seconds; raises TimeoutError. A library that hangs is left to itself."""
    outcome: Future[Answer] = Future()

    def answer() -> None:
        try:
            outcome.set_result(ask())
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=answer, name="ckpt-first-contact", daemon=True).start()
    return outcome.result(PATIENCE)


def _ask_side_by_side(ask: Callable[[Question], Answer], questions: Iterable[Question]) -> list[Answer]:
    """Ask all questions, some at a time (``requests_at_once``); stopped early, the rest are dropped."""
    todo = list(questions)
    if len(todo) < 2:
        return [ask(question) for question in todo]
    pool = ThreadPoolExecutor(min(requests_at_once(), len(todo)), thread_name_prefix="ckpt-read")
    try:
        return list(pool.map(ask, todo))
    finally:
        pool.shutdown(cancel_futures=True)
