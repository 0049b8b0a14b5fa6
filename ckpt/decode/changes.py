"""Changelogs of RocksDB state (Spark ``StateStoreChangelogWriter``), and what they make of a snapshot.

Versions 1 and 3 put or remove keys. Versions 2 and 4 name what each record does, and may merge: append an element to a
list. 3 and 4 begin with the lineage of state store checkpoint format 2.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from ckpt.decode.trouble import Undecodable
from ckpt.formats.javautf import EndsEarly, read_utf

_LENGTH = struct.Struct(">i")
_END = 0


class Action(IntEnum):
    """What a record does; the value is its type byte (Spark ``RecordType``)."""

    PUT = 1
    DELETE = 16
    MERGE = 17
    DELETE_RANGE = 32


class Change(NamedTuple):
    """One record."""

    action: Action
    key: bytes
    value: bytes  # of a range its end, which is not in it; empty where a key is removed


def changes_of(data: bytes) -> Iterator[Change]:
    """The records of a changelog that is decompressed. Raises Undecodable where they do not lead to its end mark."""
    try:
        version, at = _version(data)
        yield from _typed(data, at) if version in (2, 4) else _plain(data, at)
    except (struct.error, IndexError, EndsEarly):
        raise Undecodable("it ends in the middle of a record") from None


def _version(data: bytes) -> tuple[int, int]:
    """The version of a changelog, and where its records begin: version 1 does not name itself."""
    if data[:3] != b"\0\2v":
        return 1, 0
    text, at = read_utf(data, 0)
    if text not in ("v2", "v3", "v4"):
        raise Undecodable(f"ckpt does not know changelogs of version {text}")
    version = int(text[1:])
    return version, at if version == 2 else read_utf(data, at)[1]


def _plain(data: bytes, at: int) -> Iterator[Change]:
    while (length := _LENGTH.unpack_from(data, at)[0]) != -1:
        key, at = _bytes(data, at + 4, length)
        (length,) = _LENGTH.unpack_from(data, at)
        if length == -1:
            yield Change(Action.DELETE, key, b"")
            at += 4
        else:
            value, at = _bytes(data, at + 4, length)
            yield Change(Action.PUT, key, value)


def _typed(data: bytes, at: int) -> Iterator[Change]:
    while (kind := data[at]) != _END:
        try:
            action = Action(kind)
        except ValueError:
            raise Undecodable(f"ckpt does not know records of type {kind} in a changelog") from None
        key, at = _bytes(data, at + 5, _LENGTH.unpack_from(data, at + 1)[0])
        (length,) = _LENGTH.unpack_from(data, at)
        value, at = (b"", at + 4) if action is Action.DELETE else _bytes(data, at + 4, length)
        yield Change(action, key, value)


def _bytes(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    if length < 0 or at + length > len(data):
        raise IndexError
    return data[at : at + length], at + length


Pairs: TypeAlias = list[tuple[bytes, bytes]]
"""Keys and their values."""


@dataclass(slots=True)
class Overlay:
    """What changelogs say of keys, to be laid over a snapshot."""

    delimiter: bytes  # what the store's merge operator puts between elements
    values: dict[bytes, bytes | None] = field(default_factory=dict)  # None: the key was removed
    appended: dict[bytes, bytes] = field(default_factory=dict)  # to what the snapshot has, if it has the key
    ranges: list[tuple[bytes, bytes]] = field(default_factory=list)  # of keys that were removed: from, to (without)

    def apply(self, changes: Iterable[Change]) -> None:
        """Take the records of the next changelog."""
        for action, key, value in changes:
            match action:
                case Action.PUT:
                    self.values[key] = value
                    self.appended.pop(key, None)
                case Action.DELETE:
                    self.values[key] = None
                    self.appended.pop(key, None)
                case Action.MERGE:
                    self._append(key, value)
                case Action.DELETE_RANGE:
                    self._remove(key, value)

    def _append(self, key: bytes, value: bytes) -> None:
        if key in self.values:
            before = self.values[key]
            self.values[key] = value if before is None else before + self.delimiter + value
        elif self._is_removed(key):
            self.values[key] = value
        else:
            before = self.appended.get(key)
            self.appended[key] = value if before is None else before + self.delimiter + value

    def _remove(self, first: bytes, end: bytes) -> None:
        self.ranges.append((first, end))
        for known in (self.values, self.appended):
            for key in [key for key in known if first <= key < end]:
                del known[key]

    def _is_removed(self, key: bytes) -> bool:
        return any(first <= key < end for first, end in self.ranges)

    def over(self, snapshot: Iterable[Pairs], prefix: bytes) -> Iterator[Pairs]:
        """The pairs of a snapshot as they are after all changes, and then those of new keys.

        Of new keys only those that begin with ``prefix``.
        """
        if not (self.values or self.appended or self.ranges):
            yield from snapshot
            return
        seen: set[bytes] = set()
        for pairs in snapshot:
            changed = [(key, self.value(key, value)) for key, value in pairs]
            seen.update(key for key, _ in pairs if key in self.values or key in self.appended)
            yield [(key, value) for key, value in changed if value is not None]
        new = [*self.values.items(), *self.appended.items()]
        yield [(key, value) for key, value in new if value is not None and key not in seen and key.startswith(prefix)]

    def value(self, key: bytes, before: bytes | None) -> bytes | None:
        """What a key's value is after all changes; None where the key is not there."""
        if key in self.values:
            return self.values[key]
        if key in self.appended:
            own = self.appended[key]
            return own if before is None else before + self.delimiter + own
        return None if self._is_removed(key) else before
