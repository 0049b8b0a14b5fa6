"""The keys and values of a RocksDB store in one partition: a snapshot, and the changelogs after it."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ckpt.checkpoint.state.folders import SSTS
from ckpt.errors import WITH_SPARK, LeftToSpark, TooLarge, Undecodable
from ckpt.formats.changelog import Overlay, Pairs, changes_of
from ckpt.formats.compression import Corrupt
from ckpt.formats.limits import LARGEST_ZIP
from ckpt.formats.rocksdb import ZipTooLarge, parse_metadata, read_zip
from ckpt.formats.rows.codecs import decompress
from ckpt.formats.rows.rocksdb import CURRENT, OpenSnapshot, open_database
from ckpt.formats.rows.row_checksums import plain_changes, plain_value
from ckpt.model import RocksDBSnapshot, Unreadable
from ckpt.state.book import BOOK
from ckpt.state.native.store_files import MOST_ROWS, StoreFiles
from ckpt.state.native.temporary import make_temporary_folder, report_no_room
from ckpt.storage.locations import local_path

_IN_A_ZIP = re.compile(r"CURRENT|IDENTITY|(MANIFEST|OPTIONS)-\d+|\d+\.log")
_SST = re.compile(r"\d+\.sst")


@contextmanager
def store(files: StoreFiles) -> Iterator["RocksDBStore"]:
    """Open a store: its snapshot in a temporary folder, its changelogs in memory. Raises what reading raises."""
    with ExitStack() as stack:
        path = files.snapshot
        recorded, snapshot = None, OpenSnapshot(None)
        if path is not None:
            try:
                folder = Path(stack.enter_context(make_temporary_folder()))
                with files.refusing(path):
                    recorded = _unpack(files, path, folder)
                    if recorded.ssts and not (folder / CURRENT).exists():
                        raise Undecodable(f"it has no entry {CURRENT}")
                    snapshot = stack.enter_context(open_database(folder, files.delimiter))
            except OSError as error:
                raise report_no_room(str(error.strerror)) from None
        yield RocksDBStore(files, snapshot, recorded.column_families if recorded else {})


def read_recorded(files: StoreFiles) -> RocksDBSnapshot | None:
    """Read what the zip of a snapshot records of itself; None where it has nothing. Raises Undecodable, LeftToSpark."""
    if files.snapshot is None:
        return None
    with files.refusing(files.snapshot):
        return _parse_recorded(files.snapshot, _entries(files, files.snapshot))


@dataclass(frozen=True, slots=True)
class RocksDBStore:
    """One version of one store in one partition."""

    files: StoreFiles
    snapshot: OpenSnapshot
    families: Mapping[str, int]  # and the number of each

    def number(self, family: str | None) -> bytes:
        """Return the prefix of a column family's keys: empty in a store without families."""
        if family is None:
            return b""
        path, number = self.files.snapshot, self.families.get(family)
        if path is None:
            why = f"without a snapshot nothing shows which number the column family {family} has"
            raise self.files.refused(self.files.place.folder, why)
        if number is None or not 0 <= number < 1 << 16:
            raise self.files.refused(path, f"it has no column family {family}")
        return number.to_bytes(2, "little")

    def batches(self, prefix: bytes) -> Iterator[Pairs]:
        """The keys that begin with a prefix, and their values, some at a time."""
        overlay = self._overlay()
        with self.files.refusing(self.files.snapshot or self.files.place.folder):
            for pairs in overlay.over(self.snapshot.batches(MOST_ROWS, prefix), prefix):
                yield self._strip_checksums(pairs)

    def value(self, key: bytes) -> bytes | None:
        """The value of one key; None where it is not there."""
        overlay = self._overlay()
        with self.files.refusing(self.files.snapshot or self.files.place.folder):
            stored = overlay.value(key, self.snapshot.value(key))
            return None if stored is None else self._strip_checksums([(key, stored)])[0][1]

    def _strip_checksums(self, pairs: Pairs) -> Pairs:
        if not self.files.checksums:
            return pairs
        return [(key, plain_value(key, value, self.files.delimiter)) for key, value in pairs]

    def _overlay(self) -> Overlay:
        overlay, total = Overlay(self.files.delimiter), 0
        for path in self.files.logs:
            with self.files.refusing(path):
                data = decompress(self.files.pieces(path), self.files.codec, self.files.most)
                total += len(data)
                if total > self.files.most:
                    most = f"{self.files.most:,}"
                    raise TooLarge(BOOK.text("changelogs_too_large", most=most, spark=WITH_SPARK))
                changes = changes_of(data)
                overlay.apply(plain_changes(changes) if self.files.checksums else changes)
        return overlay


def _unpack(files: StoreFiles, path: str, folder: Path) -> RocksDBSnapshot:
    """Put a database together: what the zip contains, and the SST files that it names."""
    entries = _entries(files, path)
    recorded = _parse_recorded(path, entries)
    if recorded.logs:
        raise LeftToSpark("it has archived write-ahead logs, which ckpt does not read")
    if set(recorded.local_names.values()) != {name for name, _ in recorded.ssts}:
        raise Undecodable("its metadata entry does not name its SST files as Spark does")
    for name, content in entries.items():
        if not _IN_A_ZIP.fullmatch(name):
            raise Undecodable("it contains a file that Spark does not put there")
        (folder / name).write_bytes(content)
    root = local_path(files.storage.uri) if files.storage.local else None
    for local, name in recorded.local_names.items():
        if not _SST.fullmatch(local) or "/" in name or name.startswith("."):
            raise Undecodable("its metadata entry names an SST file as Spark does not")
        there = f"{files.place.folder}/{SSTS}/{name}"
        if root is not None:
            _link(os.path.abspath(f"{root}/{there}"), folder / local)
        else:
            with (folder / local).open("wb") as copy:
                copy.writelines(files.pieces(there))
    return recorded


def _parse_recorded(path: str, entries: dict[str, bytes]) -> RocksDBSnapshot:
    """Parse the entry ``metadata``, which is none of the database."""
    recorded = parse_metadata(path, entries.pop("metadata"))
    if isinstance(recorded, Unreadable):
        raise Undecodable(recorded.reason)
    return recorded


def _entries(files: StoreFiles, path: str) -> dict[str, bytes]:
    data = files.storage.read_range(path, 0, LARGEST_ZIP + 1)
    if len(data) > LARGEST_ZIP:
        raise LeftToSpark(f"it has more than {LARGEST_ZIP:,} bytes")
    try:
        return read_zip(data)[0]
    except ZipTooLarge as error:
        raise LeftToSpark(str(error)) from None
    except Corrupt as error:
        raise Undecodable(str(error)) from None


def _link(path: str, link: Path) -> None:
    """Have RocksDB read a file of the checkpoint where it is, if it is one: a named pipe would block it."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise Undecodable(f"{os.path.basename(path)}, which it names, is not a file")
    os.symlink(path, link)
