"""A RocksDB snapshot that was unpacked into a folder, read without changing it: keys and values in order.

Through rocksdict, which brings RocksDB itself: Spark's merge operator, deleted keys and overlapping files are its
business. Opening writes into the folder, so it is never one of a checkpoint.
"""

import gc
import re
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from ckpt.errors import CkptError, LeftToSpark, Undecodable
from ckpt.extras import install_command
from ckpt.formats.rows import NativeMissing

_SECTION = re.compile(r'\[(Version|DBOptions|CFOptions "default"|TableOptions/BlockBasedTable "default")\]')
_VERSIONS = re.compile(r"(rocksdb|options_file)_version=[\d.]+")
_KNOWN = {
    "merge_operator": re.compile(r"nullptr|StringAppend(TEST)?Operator|\{id=StringAppend(TEST)?Operator;[^/]*\}"),
    "comparator": re.compile(r"leveldb\.BytewiseComparator"),
    "table_factory": re.compile(r"BlockBasedTable"),
}
"""The options without which keys and values would be others, and their values that ckpt knows."""

_FOLDER = re.compile(r"(?<!\S)/\S*/")
"""Of a temporary copy, whose name says nothing to anybody."""

CURRENT = "CURRENT"
"""The file of a database that names its manifest."""


@contextmanager
def open_database(folder: Path, delimiter: bytes) -> Iterator["OpenSnapshot"]:
    """Open a folder that has MANIFEST, CURRENT, OPTIONS and the SST files; without CURRENT it is an empty store.

    ``delimiter`` is what the merge operator puts between two values, of which the options say nothing.
    Raises Undecodable where RocksDB cannot open it, or with another merge operator than Spark's.
    """
    if not (folder / CURRENT).exists():
        yield OpenSnapshot(None)
        return
    rocksdict = import_rocksdict()
    for path in folder.glob("OPTIONS-*"):
        _keep_what_matters(path, delimiter)
    try:
        options, _ = rocksdict.Options.load_latest(str(folder))
        database = rocksdict.Rdict(str(folder), options=options, access_type=rocksdict.AccessType.read_only())
    except Exception as error:  # rocksdict raises nothing more special
        raise Undecodable(f"RocksDB cannot open it: {_line(error)}") from None
    try:
        yield OpenSnapshot(database)
    finally:
        database.close()


def import_rocksdict() -> Any:
    """The package rocksdict. Raises NativeMissing."""
    try:
        import rocksdict
    except ImportError:
        raise NativeMissing(f"reading RocksDB state needs rocksdict: {install_command('native')}") from None
    return rocksdict


def _keep_what_matters(path: Path, delimiter: bytes) -> None:
    """Of the options, keep those that say how to read: others name paths, and RocksDB would open them."""
    merging = f"{{id=StringAppendOperator;delimiter={delimiter.decode()};}}"
    kept = []
    for line in map(str.strip, path.read_text(encoding="utf-8", errors="replace").splitlines()):
        name, _, value = line.partition("=")
        known = _KNOWN.get(name)
        if line.startswith("[") and not _SECTION.fullmatch(line):
            raise LeftToSpark(f"ckpt does not know the section {line} of its options")
        if known and not known.fullmatch(value):
            raise LeftToSpark(f"ckpt does not know its {name} {value}")
        if name == "merge_operator":
            kept.append(f"{name}={merging}")
        elif known or line.startswith("[") or _VERSIONS.fullmatch(line):
            kept.append(line)
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")


def _line(error: Exception) -> str:
    return _FOLDER.sub("", " ".join(str(error).split()))


def _read_without_collector(pairs: Iterator[tuple[bytes, bytes]], size: int) -> list[tuple[bytes, bytes]]:
    """The next pairs. There are no cycles among them, and looking for some takes a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return list(islice(pairs, size))
    finally:
        if was_on:
            gc.enable()


class OpenSnapshot:
    """An open snapshot, or an empty one."""

    def __init__(self, database: Any) -> None:
        self._database = database

    def batches(self, size: int, prefix: bytes = b"") -> Iterator[list[tuple[bytes, bytes]]]:
        """The keys that begin with ``prefix``, in order, with their values: so many at a time.

        Raises Undecodable for damaged blocks.
        """
        if self._database is None:
            return
        last = prefix
        try:
            pairs = self._database.items(from_key=prefix)
            while batch := _read_without_collector(pairs, size):
                last = batch[-1][0]
                if not last.startswith(prefix):
                    end = bisect_left(batch, True, key=lambda pair: not pair[0].startswith(prefix))
                    if end:
                        yield batch[:end]
                    return
                yield batch
            self._must_end_after(last)
        except Exception as error:
            if isinstance(error, CkptError):
                raise
            raise Undecodable(f"RocksDB cannot read it: {_line(error)}") from None

    def value(self, key: bytes) -> bytes | None:
        """The value of a key; None where it is not there. Raises Undecodable for a damaged block."""
        if self._database is None:
            return None
        try:
            value: bytes | None = self._database.get(key)
        except Exception as error:
            raise Undecodable(f"RocksDB cannot read it: {_line(error)}") from None
        return value

    def _must_end_after(self, last: bytes) -> None:
        """Make sure that the last key is the last: rocksdict's ``items`` ends at a damaged block as at the end."""
        cursor = self._database.iter()
        cursor.seek(last)
        if cursor.valid() and cursor.key() == last:
            cursor.next()
        cursor.status()
        if cursor.valid():
            raise Undecodable("RocksDB stopped before the end")
