"""A folder that is filled with a new checkpoint, file by file, and emptied again if that fails."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Self

from ckpt.advice import Option, Words, join
from ckpt.changes.backup import choose_options
from ckpt.changes.steps import view_changed
from ckpt.checkpoint.checkpoint import OFFSETS, STATE
from ckpt.checkpoint.pipelines import parse_flow, sort_versions
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.errors import CkptError, NotFound, StorageError, UsageError, one_line
from ckpt.formats.offsets import UNFINISHED
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.new.comparing import ReadSums
from ckpt.storage import FileInfo, Listing, Storage, open_storage
from ckpt.storage.base import PIECE
from ckpt.storage.local_writer import open_writer
from ckpt.storage.locations import find_parent, is_inside, is_one_account, local_path, spark_uri
from ckpt.storage.writer import AlreadyThere, Attributes, Writer

Watcher = Callable[[int, int], None]
"""Called with the number of files, or partitions of stores, written so far, and the number of all."""
AT_ONCE = 8  # files that are written to a remote place at a time, of each at most ``PIECE`` bytes in memory


@dataclass(frozen=True, slots=True)
class FilePieces:
    """A file too large to be held in memory, as it was listed; each iteration reads it again, in pieces."""

    storage: Storage
    path: str
    info: FileInfo
    sums: ReadSums | None = None  # of what was read

    def __len__(self) -> int:
        """Bytes."""
        return self.info.size

    def __iter__(self) -> Iterator[bytes]:
        """Pieces of ``PIECE`` bytes, the last one shorter. Raises NotFound, or StorageError if somebody wrote it."""
        for offset in range(0, self.info.size, PIECE):
            piece = self.storage.read_range(self.path, offset, PIECE)
            if len(piece) != min(PIECE, self.info.size - offset):
                self._raise_changed()
            if self.sums is not None:
                self.sums.add(self.path, piece, first=not offset)
            yield piece
        folder, _, name = self.path.rpartition("/")
        if self.storage.list_level(folder).files.get(name, self.info) != self.info:
            self._raise_changed()

    def _raise_changed(self) -> None:
        raise StorageError(f"{one_line(self.path)} changed while it was copied: copy the checkpoint again")


def is_large(info: FileInfo | None) -> bool:
    """Tell whether a file is read in pieces."""
    return info is not None and info.size > PIECE


@dataclass
class Placing:
    """One attempt: what it has written. At the end of a ``with`` statement all of it is there, or nothing is left."""

    storage: Storage
    writer: Writer
    missing: tuple[str, ...] = ()  # folders above it that come with it, outer ones first
    options: Mapping[str, str] = field(default_factory=dict)
    tasks_write: bool = False  # state files are written by tasks, also such as nobody reports
    attributes: Callable[[str], Attributes | None] = lambda path: None
    since: tuple[Storage, Listing] | None = None  # an earlier copy, to link files that have the same bytes
    linked: dict[str, int] = field(default_factory=dict)  # the linked files, and their sizes
    sizes: dict[str, int] = field(default_factory=dict)  # by path
    _newest: str | None = None  # where the newest offsets belong
    _finished: bytes | None = None  # these, once they are there
    _folders: dict[str, None] = field(default_factory=dict)  # those above another before it
    _is_new: bool = False  # nothing was there, not even the folder

    @property
    def begun(self) -> bool:
        """True once the mark of ``begin`` is there."""
        return self._newest is not None

    def make_attempt(self) -> "Placing":
        """Return another attempt at the same place, which has written nothing yet."""
        shared = self.storage, self.writer, self.missing, self.options
        return Placing(*shared, tasks_write=self.tasks_write, since=self.since)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None or self._finished is None:
            self._discard()

    def check_empty(self) -> None:
        """Raise what ``begin`` raises of the folder, as far as that can be known; nothing is created."""
        if self.missing:
            return
        try:
            with _naming_own_options():
                self.writer.check_root()
        except AlreadyThere as error:
            self._check_no_file(error)

    def begin(self, newest: str) -> None:
        """Create the folder with the mark that keeps every start away, in place of the newest offsets.

        A folder that is there and holds no file will do. Raises StorageError.
        """
        for folder in self.missing:
            open_writer(folder, self.options).make_root()
        try:
            with _naming_own_options():
                self.writer.make_root_with(newest, UNFINISHED)
        except NotFound as error:  # a bucket; of the original nothing is gone
            raise StorageError(error.words) from error
        except AlreadyThere as error:
            self._check_no_file(error)
            self.put({newest: UNFINISHED})
        else:
            self._is_new = True
            self.adopt(newest, len(UNFINISHED))
        self._newest = newest

    def _check_no_file(self, error: AlreadyThere) -> None:
        try:
            holds_any = bool(self.storage.list_tree().files)
        except CkptError:  # a file, a link that leads nowhere
            raise error from None
        if holds_any:
            raise error

    def finish(self, data: bytes) -> None:
        """Write the newest offsets themselves: with them the checkpoint is complete. Raises StorageError."""
        assert self._newest is not None
        self.writer.replace(self._newest, data, UNFINISHED, self.attributes(self._newest))
        self.sizes[self._newest], self._finished = len(data), data

    def put(self, files: Mapping[str, bytes | FilePieces]) -> None:
        """Write files, and the folders that they are in; several at a time. Raises StorageError."""
        for path, data in files.items():
            self._make_folder(path.rpartition("/")[0])
            self.sizes[path] = len(data)
        if len(files) < 2:
            for path, data in files.items():
                self._create(path, data)
            return
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="ckpt-copy") as pool:
            list(pool.map(self._create, files, files.values()))

    def take(self, files: Mapping[str, bytes | int]) -> None:
        """Write files; of those that a task has written for this attempt there are only their bytes' numbers."""
        for path, data in files.items():
            if isinstance(data, int):
                self.adopt(path, data)
            else:
                self.put({path: data})

    def adopt(self, path: str, size: int) -> None:
        """Take a file of so many bytes for one of this attempt: somebody else has written it for it."""
        self.sizes[path] = size
        folder = path.rpartition("/")[0]
        above = [folder[:end] for end, letter in enumerate(folder) if letter == "/"]
        self._folders.update(dict.fromkeys([*above, folder]))

    def _discard(self) -> None:
        """Remove everything that was written; the mark that keeps a start from it goes last."""
        if self.tasks_write and self.begun:
            with suppress(CkptError):
                for path, info in self.storage.list_tree().walk(STATE):
                    self.adopt(path, info.size)
        if self._newest is not None and self._finished is not None:
            with suppress(CkptError):
                self.writer.replace(self._newest, UNFINISHED, self._finished)
        for path in reversed(self.sizes):
            with suppress(CkptError):
                self.writer.discard_temporary(path)
                self.writer.remove(path)
        for folder in (*reversed(self._folders), "") if self._is_new else ():
            with suppress(CkptError):
                self.writer.remove_folder(folder)
        self.sizes.clear()
        self._folders.clear()
        for folder in reversed(self.missing):
            open_writer(folder, self.options).remove_folder("")
        self._newest = self._finished = None

    def check(self, uri: str, what: str, like: str, continues: Callable[[Inspection], bool]) -> Inspection:
        """Check that what was written is complete, and starts as its original would; return its inspection.

        Raises StorageError.
        ``continues`` tells whether a start continues as from the original; ``what`` and ``like`` name both in an error.
        """
        self.storage.names_only = True  # its bytes are those that were written just now
        tree = self.storage.list_tree()
        there = {path: info.size for path, info in tree.walk()}
        wrong = sorted(path for path in there.keys() | self.sizes if there.get(path) != self.sizes.get(path))
        view = view_changed(self.storage, tree, uri=spark_uri(uri))
        if wrong:
            problem = f"{wrong[0]} differs from what ckpt wrote: something else is writing there"
        elif continues(made := inspect(read_checkpoint(view))):
            return made
        else:
            problem = f"a start would not continue from it as from {like}"
        raise StorageError(f"{one_line(uri)}: {what} is not complete, and was removed: {problem}")

    def _link(self, path: str, data: bytes | FilePieces) -> bool:
        """Link the earlier copy's file if its time, which links share, is the same; undo that if the bytes differ."""
        if self.since is None:
            return False
        (other, listing), kept = self.since, self.attributes(path)
        mtime_ms = kept.mtime_ns // 1_000_000 if kept and kept.mtime_ns else None
        info = listing.info(path)
        fits = info is not None and info.size == len(data) and mtime_ms in (None, info.mtime_ms)
        if not fits or not self.writer.link(path, other):
            return False
        pieces = enumerate((data,) if isinstance(data, bytes) else data)
        if all(piece == self.storage.read_range(path, number * PIECE, len(piece)) for number, piece in pieces):
            self.linked[path] = len(data)
            return True
        self.writer.remove(path)
        return False

    def _create(self, path: str, data: bytes | FilePieces) -> None:
        try:
            if self._link(path, data):
                return
            if isinstance(data, FilePieces):
                self.writer.create_from(path, data, self.attributes(path))
            else:
                self.writer.create(path, data, self.attributes(path))
        except AlreadyThere:
            del self.sizes[path]  # somebody else's, and not to be removed
            raise

    def _make_folder(self, path: str) -> None:
        if path and path not in self._folders:
            self._make_folder(path.rpartition("/")[0])
            self._folders[path] = None
            self.writer.make_folder(path)


def discard_checkpoint(storage: Storage, writer: Writer) -> None:
    """Remove a checkpoint that ckpt made, marked first so that no query starts on a part of it. Raises StorageError."""
    tree = storage.list_tree()
    newest = f"{OFFSETS}/{max(filter(str.isdecimal, tree.in_folder(OFFSETS)), key=int, default='')}"
    if tree.info(newest) is not None and (data := storage.read(newest)) != UNFINISHED:
        writer.replace(newest, UNFINISHED, data)
    gone = {folder for folder in tree.subfolders("") if folder != OFFSETS and writer.remove_tree(folder)}
    left = [path for path, _ in tree.walk() if path != newest and path.partition("/")[0] not in gone]
    with ThreadPoolExecutor(1 if storage.local else AT_ONCE, thread_name_prefix="ckpt-remove") as pool:
        list(pool.map(writer.remove, left))
    if tree.info(newest) is not None:
        writer.remove(newest)
    for folder in sorted(tree.folders, reverse=True):
        if folder in gone or folder.partition("/")[0] not in gone:
            writer.remove_folder(folder)


def check_apart(checkpoint: str, new: str) -> None:
    """Raise UsageError where one of two places is inside the other."""
    if is_inside(new, checkpoint) or is_inside(checkpoint, new):
        raise UsageError(f"{one_line(new)} is inside the checkpoint, or the reverse: name another folder")


def open_new(
    uri: str, storage_options: Mapping[str, str], missing: tuple[str, ...] = (), *, tasks_write: bool = False
) -> Placing:
    """Where a new checkpoint is to be, and the folders above that are to be made. Raises StorageError, UsageError."""
    options = choose_options(uri, storage_options)
    with _naming_own_options():
        return Placing(open_storage(uri, options), open_writer(uri, options), missing, options, tasks_write)


_OF_ONE_ACCOUNT = frozenset(
    ("account_name", "account_key", "sas_token", "access_key", "secret_key", "session_token", "access_token")
)
"""Storage options that no other account takes."""


def choose_new_options(
    new: str, checkpoint: str, options: Mapping[str, str], own: Mapping[str, str] | None
) -> Mapping[str, str]:
    """Storage options for a new checkpoint: its own, or those of the old one where storage of its kind takes them.

    Raises UsageError where a key would be sent to another account, or the options have no use.
    """
    if own and local_path(new) is not None:
        raise UsageError.of("{--to-storage-options} is for a remote NEW: {new} is local", new=one_line(new))
    if own is not None:
        return own
    shared = choose_options(new, options, checkpoint)
    if (keys := sorted(shared.keys() & _OF_ONE_ACCOUNT)) and not is_one_account(new, checkpoint):
        raise UsageError.of(
            "{given} is for the account of CHECKPOINT, but {new} is in another one: give {--to-storage-options} for it",
            given=join((Option("storage_options"), ", ".join(keys))),
            new=one_line(new),
        )
    return shared


@contextmanager
def _naming_own_options() -> Iterator[None]:
    """Let errors of a new place name the option that is for it."""
    try:
        yield
    except CkptError as error:
        named = {Option("storage_options"): Option("to_storage_options")}
        error.words = Words(
            tuple(named.get(part, part) if isinstance(part, Option) else part for part in error.words.parts)
        )
        raise


def find_first_version(uri: str, storage_options: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Where the first checkpoint of a flow of a declarative pipeline belongs, and the folders above that are missing.

    Any other folder is itself the place, and so is a version. Raises CkptError where the flow has another one already,
    which runs use instead of the new one or would no longer use, or StorageError.
    """
    parsed = parse_flow(uri)
    above = uri if parsed is None or parsed[1] is None else find_parent(uri)
    if parsed is None or above is None:
        return uri, ()
    storage = open_storage(above, choose_options(uri, storage_options))
    missing: list[str] = []
    try:
        with _naming_own_options():
            level = storage.list_level()
    except NotFound:
        while storage.local and above is not None and not _is_there(above):
            missing.append(above)
            above = find_parent(above)
    else:
        names = sort_versions((*level.files, *level.folders))
        if versions := tuple(name for name in names if name != parsed[1]):
            flow = f"flow {one_line(parsed[0].name)} of {one_line(parsed[0].table)}"
            reason = f"{flow} has version {one_line(versions[-1])}, so it has run or was about to run"
            raise CkptError(f"{one_line(uri)}: {reason}; only a flow that has never run can take over a checkpoint")
    return uri if parsed[1] is not None else storage.below("0").uri, tuple(reversed(missing))


def _is_there(uri: str) -> bool:
    try:
        open_storage(uri).list_level()
    except NotFound:
        return False
    return True
