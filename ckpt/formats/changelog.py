"""The records of changelogs, and what they make of a snapshot.

Versions 1 and 3 (``StateStoreChangelogWriterV1``, ``V3``), and HDFS-backed files, have int length and bytes of the key,
int length (-1: removed) and bytes of the value; -1 in the place of a key ends the file. Versions 2 and 4 begin each
record with its type, 0 at the end.
"""

import struct
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from ckpt.errors import LeftToSpark, Undecodable
from ckpt.formats.statefiles import TYPED, RecordType, UnknownVersion, read_beginning

_LENGTH = struct.Struct(">i")
_END = 0
_KINDS = frozenset(RecordType)


class ChangelogRecord(NamedTuple):
    """One record."""

    action: RecordType
    key: bytes
    value: bytes  # of a range its end, which is not in it; empty where a key is removed


def changes_of(data: bytes) -> Iterator[ChangelogRecord]:
    """The records of a changelog that is decompressed. Raises Undecodable where they do not lead to its end mark."""
    with _explaining():
        version, _, at = read_beginning(data)
        yield from _typed(data, at) if version in TYPED else _plain(data, at)


def changes_of_key(data: bytes, key: bytes) -> list[ChangelogRecord]:
    """The records of one key, and those that remove ranges, in order; raises what ``changes_of`` raises.

    Several times as fast: of other records only the lengths are read.
    """
    with _explaining():
        version, _, at = read_beginning(data)
        find, read = (_find_typed, _typed) if version in TYPED else (_find_plain, _plain)
        return [next(read(data, start)) for start in find(data, at, key)]


@contextmanager
def _explaining() -> Iterator[None]:
    try:
        yield
    except UnknownVersion as name:
        raise LeftToSpark(f"ckpt does not know changelogs of version {name}") from None
    except (struct.error, IndexError, ValueError):
        raise Undecodable("it ends in the middle of a record") from None


def _find_plain(data: bytes, at: int, key: bytes) -> list[int]:
    starts, unpack, length_of_key = [], _LENGTH.unpack_from, len(key)
    while (length := unpack(data, at)[0]) != -1:
        if length == length_of_key and data.startswith(key, at + 4):
            starts.append(at)
        (size,) = unpack(data, at + 4 + length)
        if length < 0 or size < -1:
            raise IndexError
        at += 8 + length + (size if size > 0 else 0)
    return starts


def _find_typed(data: bytes, at: int, key: bytes) -> list[int]:
    starts, unpack, length_of_key = [], _LENGTH.unpack_from, len(key)
    while (kind := data[at]) != _END:
        (length,) = unpack(data, at + 1)
        if kind == RecordType.DELETE_RANGE or (length == length_of_key and data.startswith(key, at + 5)):
            starts.append(at)
        elif kind not in _KINDS:
            raise LeftToSpark(f"ckpt does not know records of type {kind} in a changelog")
        (size,) = unpack(data, at + 5 + length)
        if length < 0 or size < -1:
            raise IndexError
        at += 9 + length + (0 if kind == RecordType.DELETE else size)
    return starts


def leads_to_end(data: bytes) -> bool:
    """Tell whether the records of a delta, changelog or HDFS-backed snapshot lead to the one that ends the file."""
    try:
        deque(changes_of(data), maxlen=0)
    except Undecodable:
        return False
    return True


def _plain(data: bytes, at: int) -> Iterator[ChangelogRecord]:
    while (length := _LENGTH.unpack_from(data, at)[0]) != -1:
        key, at = _bytes(data, at + 4, length)
        (length,) = _LENGTH.unpack_from(data, at)
        if length == -1:
            yield ChangelogRecord(RecordType.DELETE, key, b"")
            at += 4
        else:
            value, at = _bytes(data, at + 4, length)
            yield ChangelogRecord(RecordType.PUT, key, value)


def _typed(data: bytes, at: int) -> Iterator[ChangelogRecord]:
    while (kind := data[at]) != _END:
        try:
            action = RecordType(kind)
        except ValueError:
            raise LeftToSpark(f"ckpt does not know records of type {kind} in a changelog") from None
        key, at = _bytes(data, at + 5, _LENGTH.unpack_from(data, at + 1)[0])
        (length,) = _LENGTH.unpack_from(data, at)
        value, at = (b"", at + 4) if action is RecordType.DELETE else _bytes(data, at + 4, length)
        yield ChangelogRecord(action, key, value)


def _bytes(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    if length < 0 or at + length > len(data):
        raise IndexError
    return data[at : at + length], at + length


Pairs: TypeAlias = list[tuple[bytes, bytes]]
"""Keys and their values."""


class Removed:
    """Ranges of keys that were removed, one after the other: which was the last that had a key."""

    def __init__(self) -> None:
        self.count = 0
        self._starts = [b""]  # of stretches of keys, in their order
        self._last = [0]  # for each the number of its last range; 0: none

    def add(self, first: bytes, end: bytes) -> None:
        """Another range, without its end."""
        if first >= end:
            return
        self.count += 1
        start, stop = bisect_left(self._starts, first), bisect_right(self._starts, end)
        self._starts[start:stop], self._last[start:stop] = [first, end], [self.count, self._last[stop - 1]]

    def last(self, key: bytes) -> int:
        """The number of the last range that has the key, counted from 1; 0 for none."""
        return self._last[bisect_right(self._starts, key) - 1]


class _Said(NamedTuple):
    """The changes of one key."""

    after: int  # how many ranges had been removed before
    value: bytes | None  # None: the key was removed
    appended: bool = False  # to what the snapshot has, if it has the key


@dataclass(slots=True)
class Overlay:
    """The changes of keys, to be laid over a snapshot."""

    delimiter: bytes  # what the store's merge operator puts between elements
    said: dict[bytes, _Said] = field(default_factory=dict)
    removed: Removed = field(default_factory=Removed)

    def apply(self, changes: Iterable[ChangelogRecord]) -> None:
        """Take the records of the next changelog."""
        for action, key, value in changes:
            match action:
                case RecordType.PUT:
                    self.said[key] = _Said(self.removed.count, value)
                case RecordType.DELETE:
                    self.said[key] = _Said(self.removed.count, None)
                case RecordType.MERGE:
                    self._append(key, value)
                case RecordType.DELETE_RANGE:
                    self.removed.add(key, value)

    def _append(self, key: bytes, value: bytes) -> None:
        last, before = self.removed.last(key), self.said.get(key)
        if before is None or before.after < last:
            self.said[key] = _Said(self.removed.count, value, appended=not last)
        else:
            own = value if before.value is None else before.value + self.delimiter + value
            self.said[key] = _Said(self.removed.count, own, before.appended)

    def over(self, snapshot: Iterable[Pairs], prefix: bytes) -> Iterator[Pairs]:
        """The pairs of a snapshot as they are after all changes, and then those of new keys.

        Of new keys only those that begin with ``prefix``.
        """
        if not (self.said or self.removed.count):
            yield from snapshot
            return
        stored: set[bytes] = set()
        for pairs in snapshot:
            changed = [(key, self.value(key, value)) for key, value in pairs]
            stored.update(key for key, _ in pairs if key in self.said)
            yield [(key, value) for key, value in changed if value is not None]
        new = [(key, self.value(key, None)) for key in self.said if key not in stored and key.startswith(prefix)]
        yield [(key, value) for key, value in new if value is not None]

    def value(self, key: bytes, before: bytes | None) -> bytes | None:
        """Return a key's value after all changes; None where the key is not there."""
        put, last = self.said.get(key), self.removed.last(key)
        if put is None or put.after < last:
            return None if last else before
        if put.value is None or before is None or not put.appended:
            return put.value
        return before + self.delimiter + put.value
