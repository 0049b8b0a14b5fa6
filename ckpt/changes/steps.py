"""A change as a value: which files are created, replaced or removed, in which order, with their bytes.

On local paths Hadoop keeps a hidden checksum file ``.N.crc`` for each ``N`` (``ChecksumFileSystem``). An orphan of it
makes the next write of ``N`` fail, so it is removed before ``N`` and written only after ``N``.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256

from ckpt.errors import StorageError, one_line
from ckpt.formats.limits import LARGEST_CHANGE, refuse_too_large
from ckpt.formats.sidecars import build_hadoop_sidecar, sidecar as sidecar
from ckpt.storage import Listing, ReadRequest, Storage
from ckpt.storage.changed import ChangedStorage, Content, Elsewhere


class FileAction(StrEnum):
    """The act of a step on one file."""

    CREATE = "create"
    REPLACE = "replace"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class FileContent:
    """The size and digest of a file, which identify its bytes."""

    size: int  # bytes
    sha256: str | None  # None: it was listed, and not read

    @staticmethod
    def of(data: "bytes | FileContent | None") -> "FileContent | None":
        """The size and digest of some bytes; None for a file that is not there."""
        return FileContent(len(data), sha256(data).hexdigest()) if isinstance(data, bytes) else data


@dataclass(frozen=True, slots=True)
class FileStep:
    """One file, before and after; None is a file that is not there.

    State may be of any size: a file that is only removed is not read by a plan, and a step that was taken back keeps no
    bytes. A ``FileContent`` stands for it then.
    """

    path: str  # relative to the checkpoint
    before: bytes | FileContent | None
    after: bytes | FileContent | None
    source: str | None = None  # the file of this checkpoint whose content is written
    like: str | None = None  # the file whose owner and permissions are taken over
    holder: Storage | None = field(default=None, compare=False)  # the place that has the content under this path

    @property
    def action(self) -> FileAction:
        """The act of this step."""
        if self.before is None:
            return FileAction.CREATE
        return FileAction.REMOVE if self.after is None else FileAction.REPLACE


def must_fit(listing: Listing, paths: Iterable[str]) -> None:
    """Raise StorageError where a plan would have to read files that are larger than any that Spark writes there."""
    total = 0
    for path in paths:
        size = info.size if (info := listing.info(path)) else 0
        total += size
        damaged = refuse_too_large(path, size)
        if damaged is not None:
            raise StorageError(f"{one_line(path)} cannot be changed: {damaged.reason}")
        if total > LARGEST_CHANGE:
            reason = f"this change would read and write {total:,} bytes or more; the limit is {LARGEST_CHANGE:,}"
            raise StorageError(f"{one_line(path)} and those before it cannot be changed: {reason}")


def read_files(storage: Storage, paths: Iterable[str]) -> dict[str, bytes]:
    """Read whole files at once, by path. Raises NotFound, StorageError."""
    names = list(dict.fromkeys(paths))
    return dict(zip(names, storage.read_all([ReadRequest(path) for path in names]), strict=True))


def plan_removals(storage: Storage, listing: Listing, paths: Iterable[str]) -> Iterator[FileStep]:
    """Steps that remove files, each after its checksum file, as far as they are there. Raises StorageError."""
    removed = [step.path for step in plan_unread_removals(listing, paths)]
    return (FileStep(path, data, None) for path, data in _read_replaced(storage, listing, removed).items())


def _read_replaced(storage: Storage, listing: Listing, paths: Iterable[str]) -> dict[str, bytes | FileContent]:
    """Read the files that are there; one that is too large for a record stays unread, as no plan depends on it."""
    sizes = {path: info.size for path in paths if (info := listing.info(path)) is not None}
    large = {path: FileContent(size, None) for path, size in sizes.items() if refuse_too_large(path, size) is not None}
    small = [path for path in sizes if path not in large]
    must_fit(listing, small)
    return {**read_files(storage, small), **large}


def plan_unread_removals(listing: Listing, paths: Iterable[str]) -> Iterator[FileStep]:
    """Plan removals of files of any size and number, whose content no plan reads."""
    for path in paths:
        for file in (sidecar(path), path):
            info = listing.info(file)
            if info is not None:
                yield FileStep(file, FileContent(info.size, None), None)


def plan_writing(
    storage: Storage, listing: Listing, path: str, data: bytes, source: str | None = None
) -> Iterator[FileStep]:
    """Steps that write a file, with checksums where its neighbours have them; a replaced file keeps those that fit.

    ``source`` is the file that ``data`` is a copy of; a new file takes over its owner and permissions. Raises
    StorageError.
    """
    checksums = sidecar(path)
    old = _read_replaced(storage, listing, (checksums, path))
    checked, was, like = old.get(checksums), old.get(path), path if path in old else source
    if was is not None and checked == build_hadoop_sidecar(data):
        yield FileStep(path, was, data, source, path)
        return
    if checked is not None:
        yield FileStep(checksums, checked, None)
    yield FileStep(path, was, data, source, like)
    yield from _plan_checksums(listing, path, data, like if checked is None else checksums)


def plan_creating(listing: Listing, path: str, data: bytes, like: str, source: str | None = None) -> Iterator[FileStep]:
    """Steps that write a file which is not there (any more), with checksums where its neighbours have them.

    ``like`` is the file whose owner and permissions it takes over, ``source`` the one that ``data`` is a copy of.
    """
    yield FileStep(path, None, data, source, like)
    yield from _plan_checksums(listing, path, data, like)


def _plan_checksums(listing: Listing, path: str, data: bytes, like: str | None) -> Iterator[FileStep]:
    folder = path.rpartition("/")[0]
    if any(name.startswith(".") and name.endswith(".crc") for name in listing.in_folder(folder)):
        yield FileStep(sidecar(path), None, build_hadoop_sidecar(data), like=like)


def view_changed(
    storage: Storage,
    listing: Listing,
    steps: Iterable[FileStep] = (),
    uri: str | None = None,
    *,
    made: Storage | None = None,
    copied: bool = False,
) -> ChangedStorage:
    """A checkpoint as it would be after some steps; ``listing`` is its tree, ``uri`` where it will be if not here.

    A step whose ``after`` is a ``FileContent`` is the file that is its source, or a file of ``made`` where it has none.
    ``copied``: it is the original of a copy, which has no empty folders.
    """
    files: dict[str, Content] = {}
    for step in steps:
        after = step.after
        if isinstance(after, FileContent):
            holder = step.holder or (storage if made is None or step.source else made)
            files[step.path] = Elsewhere(holder, step.source or step.path, after.size)
        else:
            files[step.path] = after
    return ChangedStorage(storage, listing, files, uri, empty_folders=not copied)
