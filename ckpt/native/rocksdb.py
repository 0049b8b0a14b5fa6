"""The keys and values of a RocksDB store in one partition: a snapshot, and the changelogs after it."""

import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path

from ckpt.decode.changes import Overlay, Pairs, changes_of
from ckpt.decode.codecs import decompressed
from ckpt.decode.rocksdb import CURRENT, Snapshot, opened
from ckpt.decode.trouble import WITH_SPARK, TooLarge, Undecodable
from ckpt.formats.limits import LARGEST_ZIP
from ckpt.formats.rocksdb import read_whole_zip
from ckpt.model import RocksDBSnapshot, Unreadable
from ckpt.native.files import MOST_ROWS, StoreFiles
from ckpt.native.temporary import temporary
from ckpt.state.folders import SSTS
from ckpt.storage.locations import local_path

_IN_A_ZIP = re.compile(r"metadata|CURRENT|IDENTITY|(MANIFEST|OPTIONS)-\d+|\d+\.log")
_SST = re.compile(r"\d+\.sst")
_CURRENT = re.compile(rb"MANIFEST-\d+\n")
_NOT_A_ZIP = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, struct.error)


@contextmanager
def store(files: StoreFiles) -> Iterator["RocksDBStore"]:
    """Open a store: its snapshot in a temporary folder, its changelogs in memory. Raises what reading raises."""
    with ExitStack() as stack:
        path = files.snapshot
        recorded, snapshot = None, Snapshot(None)
        if path is not None:
            folder = Path(stack.enter_context(temporary()))
            try:
                recorded = _unpack(files, path, folder)
                if recorded.ssts and not (folder / CURRENT).exists():
                    raise Undecodable(f"it has no entry {CURRENT}")
                snapshot = stack.enter_context(opened(folder))
            except (Undecodable, *_NOT_A_ZIP) as error:
                raise files.refused(path, error) from None
        families = recorded.column_families if recorded else {}
        internal = recorded.internal_families if recorded else frozenset()
        yield RocksDBStore(files, snapshot, families, internal)


class RocksDBStore:
    """One version of one store in one partition."""

    def __init__(
        self, files: StoreFiles, snapshot: Snapshot, families: Mapping[str, int], internal: frozenset[str]
    ) -> None:
        self.files = files
        self.families = families  # and the number of each
        self.internal = internal  # those that Spark keeps for itself
        self._snapshot = snapshot

    def number(self, family: str | None) -> bytes:
        """What the keys of a column family begin with: nothing in a store without families."""
        if family is None:
            return b""
        number = self.families.get(family)
        if number is None or not 0 <= number < 1 << 16:
            raise self.files.refused(
                self.files.snapshot or self.files.place.folder, f"it has no column family {family}"
            )
        return number.to_bytes(2, "little")

    def batches(self, prefix: bytes, delimiter: bytes) -> Iterator[Pairs]:
        """The keys that begin with a prefix, and their values, some at a time."""
        overlay = self._overlay(delimiter)
        try:
            yield from overlay.over(self._snapshot.batches(MOST_ROWS, prefix), prefix)
        except Undecodable as error:
            raise self.files.refused(self.files.snapshot or self.files.place.folder, error) from None

    def value(self, key: bytes, delimiter: bytes) -> bytes | None:
        """The value of one key; None where it is not there."""
        overlay = self._overlay(delimiter)
        try:
            return overlay.value(key, self._snapshot.value(key))
        except Undecodable as error:
            raise self.files.refused(self.files.snapshot or self.files.place.folder, error) from None

    def _overlay(self, delimiter: bytes) -> Overlay:
        overlay, total = Overlay(delimiter), 0
        for path in self.files.logs:
            try:
                data = decompressed(self.files.pieces(path), self.files.codec, self.files.most)
                total += len(data)
                if total > self.files.most:
                    raise TooLarge(f"its changelogs unpack to more than {self.files.most:,} bytes: {WITH_SPARK}")
                overlay.apply(changes_of(data))
            except Undecodable as error:
                raise self.files.refused(path, error) from None
        return overlay


def _unpack(files: StoreFiles, path: str, folder: Path) -> RocksDBSnapshot:
    """Put a database together: what the zip contains, and the SST files that it names."""
    data = files.storage.read_range(path, 0, LARGEST_ZIP + 1)
    if len(data) > LARGEST_ZIP:
        raise Undecodable(f"it has more than {LARGEST_ZIP:,} bytes")
    recorded = read_whole_zip(path, data)
    if isinstance(recorded, Unreadable):
        raise Undecodable(recorded.reason)
    if recorded.logs:
        raise Undecodable("it has archived write-ahead logs, which ckpt does not read")
    if set(recorded.local_names.values()) != {name for name, _ in recorded.ssts}:
        raise Undecodable("its metadata entry does not name its SST files as Spark does")
    with zipfile.ZipFile(BytesIO(data)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > LARGEST_ZIP:
            raise Undecodable(f"it unpacks to more than {LARGEST_ZIP:,} bytes")
        for entry in archive.infolist():
            if not _IN_A_ZIP.fullmatch(entry.filename):
                raise Undecodable("it contains a file that Spark does not put there")
            content = archive.read(entry)
            if entry.filename == CURRENT and not _CURRENT.fullmatch(content):
                raise Undecodable("its entry CURRENT does not name a manifest")
            (folder / entry.filename).write_bytes(content)
    root = local_path(files.storage.uri) if files.storage.local else None
    for local, name in recorded.local_names.items():
        if not _SST.fullmatch(local) or "/" in name or name.startswith("."):
            raise Undecodable("its metadata entry names an SST file as Spark does not")
        there = f"{files.place.folder}/{SSTS}/{name}"
        if root is not None:
            os.symlink(os.path.abspath(f"{root}/{there}"), folder / local)
        else:
            (folder / local).write_bytes(files.storage.read(there))
    return recorded
