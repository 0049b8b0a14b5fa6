"""Changelogs of RocksDB state (Spark ``StateStoreChangelogWriter``): their beginning, and the types of their records.

Versions 1 and 3 put or remove keys. Versions 2 and 4 name what each record does, and may merge: append an element to a
list. 3 and 4 begin with the lineage of state store checkpoint format 2, as JSON.
"""

from enum import IntEnum
from typing import NamedTuple

from ckpt.formats.javautf import read_utf

TYPED = (2, 4)
"""The versions whose records begin with their type."""


class RecordType(IntEnum):
    """The kinds of record; the value is the type byte (Spark ``RecordType``)."""

    PUT = 1
    DELETE = 16
    MERGE = 17
    DELETE_RANGE = 32


class UnknownVersion(ValueError):
    """A version that no known Spark writes; the text is how it names itself."""


class Beginning(NamedTuple):
    """The beginning of a changelog."""

    version: int
    lineage: str | None
    end: int  # where its records begin


def read_beginning(data: bytes) -> Beginning:
    """Read it from decompressed bytes; version 1 does not name itself.

    Raises UnknownVersion, or ValueError or struct.error where the bytes end early.
    """
    if data[:3] != b"\0\2v":
        return Beginning(1, None, 0)
    name, at = read_utf(data, 0)
    if name not in ("v2", "v3", "v4"):
        raise UnknownVersion(name)
    if name == "v2":
        return Beginning(2, None, at)
    lineage, at = read_utf(data, at)
    return Beginning(int(name[1:]), lineage, at)
