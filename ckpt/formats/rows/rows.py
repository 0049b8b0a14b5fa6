"""Rows in memory: where each begins and how long it is. Everything that reads a row goes through its bounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ckpt.formats.rows.errors import Undecodable, Unfit

WORD = 8  # bytes: Spark's UnsafeRow consists of 8-byte words


@dataclass(frozen=True, slots=True)
class Rows:
    """UnsafeRows (or what is built alike: structs, arrays and maps in them) in one block of memory.

    ``words`` is an int64 array over the memory; ``at`` has the word in which each row begins, ``size`` its bytes.
    """

    words: Any
    at: Any
    size: Any

    def __len__(self) -> int:
        return len(self.at)

    @property
    def raw(self) -> Any:
        """The memory as bytes."""
        return self.words.view(np.uint8)

    def take(self, which: Any) -> "Rows":
        """Select rows by a mask, indices or a slice."""
        return Rows(self.words, self.at[which], self.size[which])

    def inside(self, words: Any, sizes: Any, what: str) -> "Rows":
        """One part of each row: from a word of it on, so many bytes. Raises Unfit where it is not inside."""
        ends = words * WORD + sizes
        if ((words < 0) | (sizes < 0) | (ends > self.size)).any():
            raise Unfit(f"{what} is not inside its row")
        return Rows(self.words, self.at + words, sizes)


def rows_at(data: bytes, starts: Any, sizes: Any) -> Rows:
    """Rows in a block of bytes, which all begin at the same place of a word.

    Raises Unfit where a size is none that Spark writes, or beyond the end.
    """
    shift = int(starts[0]) % WORD if len(starts) else 0
    if len(starts) and (sizes % WORD).any():
        raise Unfit("the length of a row is no multiple of 8 bytes")
    if len(starts) and (((starts - shift) % WORD).any() or int((starts + sizes).max()) > len(data)):
        raise Unfit("a row is not where its record says")
    count = max(len(data) - shift, 0) // WORD
    return Rows(np.frombuffer(data, "<i8", count, shift if count else 0), (starts - shift) // WORD, sizes)


VERSION = b"\0"
"""What precedes each row in RocksDB (Spark ``STATE_ENCODING_VERSION``)."""


def rows_of(blobs: Sequence[bytes]) -> Rows:
    """Rows that are bytes objects, each after a version byte, which is 0."""
    lengths = np.fromiter(map(len, blobs), np.int64, len(blobs))
    data = _PADDING.join([b"", *blobs])
    ends = np.cumsum(lengths + len(_PADDING))
    starts = ends - lengths + 1
    if (lengths < 1).any() or np.frombuffer(data, np.uint8)[starts - 1].any():
        raise Undecodable("a row does not begin with the version that ckpt knows")
    return rows_at(data, starts, lengths - 1)


_PADDING = bytes(WORD - 1)
