"""The records of HDFS-backed deltas and snapshots (Spark ``HDFSBackedStateStoreProvider``).

Each is the length of the key, the key, the length of the value (-1 where the key was removed) and the value; lengths
are big-endian ints, and one of -1 in the place of a key ends the file.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ckpt.errors import Undecodable
from ckpt.formats.rows.arrow import copy_pieces
from ckpt.formats.rows.unsafe import WORD

_INT = 4
_ALIKE = 32  # records of the same sizes in a row, after which many are looked at together
_TOGETHER = 1 << 16
_BYTES = pa.large_binary()


@dataclass(frozen=True, slots=True)
class Records:
    """Where the records of a file are: arrays of offsets and lengths in bytes."""

    data: bytes
    key_at: np.ndarray
    key_size: np.ndarray
    value_at: np.ndarray
    value_size: np.ndarray  # -1: the key was removed

    def __len__(self) -> int:
        return len(self.key_at)

    def take(self, which: np.ndarray | slice) -> "Records":
        """Select rows by a mask or a slice."""
        parts = (self.key_at, self.key_size, self.value_at, self.value_size)
        return Records(self.data, *(part[which] for part in parts))

    def pairs(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Each key and its value as they are stored; None for a key that was removed."""
        parts = (self.key_at, self.key_size, self.value_at, self.value_size)
        for key_at, key_size, value_at, value_size in zip(*(part.tolist() for part in parts), strict=True):
            value = self.data[value_at : value_at + value_size] if value_size >= 0 else None
            yield self.data[key_at : key_at + key_size], value


def records_of(data: bytes) -> Records:
    """The records of a file that is decompressed. Raises Undecodable where they do not lead to its end mark."""
    starts, key_size, value_size = lengths_of(data)
    if (value_size % WORD == _INT).any():
        return records_of(_without_last_ints(data, starts, key_size, value_size))
    if (key_size % WORD).any() or (value_size[value_size >= 0] % WORD).any() or (value_size < -1).any():
        raise Undecodable("a row's length is not a multiple of 8 bytes")
    key_at: np.ndarray = (starts + 1) * _INT
    return Records(data, key_at, key_size, key_at + key_size + _INT, value_size)


def _without_last_ints(data: bytes, starts: np.ndarray, key_size: np.ndarray, value_size: np.ndarray) -> bytes:
    """The file without the 4 bytes that Spark before 2.3 appended to values, and that Spark leaves out as it loads."""
    every, ends = [], zip(((starts + 1) * _INT).tolist(), key_size.tolist(), value_size.tolist(), strict=True)
    for key_at, key, value in ends:
        size, value_at = value // WORD * WORD if value > 0 else value, key_at + key + _INT
        kept = data[key_at - _INT : value_at - _INT], size.to_bytes(_INT, "big", signed=True)
        every += [*kept, data[value_at : value_at + max(size, 0)]]
    return b"".join([*every, b"\xff" * _INT])


def lengths_of(data: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each record begins, counted in ints, and the bytes of its key and value. Raises as ``records_of`` does."""
    ints = array("i")
    ints.frombytes(memoryview(data)[: len(data) // _INT * _INT])
    ints.byteswap()
    try:
        starts = _starts(ints)
    except IndexError:
        raise Undecodable("it ends in the middle of a record") from None
    lengths = np.frombuffer(ints, np.int32)
    key_size = lengths[starts].astype(np.int64)
    value_size = lengths[starts + 1 + key_size // _INT].astype(np.int64)
    return starts, key_size, value_size


def _starts(ints: "array[int]") -> np.ndarray:
    """Where each record begins, counted in ints. Raises IndexError where the data ends before its end mark."""
    starts: list[np.ndarray] = []
    one_by_one: list[int] = []
    at, before, alike = 0, (0, 0), 0
    while (key := ints[at]) >= 0:
        value = ints[at + 1 + (key >> 2)]
        one_by_one.append(at)
        alike = alike + 1 if (key, value) == before else 0
        before = (key, value)
        at += 2 + (key >> 2) + (value >> 2 if value > 0 else 0)
        if alike >= _ALIKE:
            alike = 0
            run = _read_alike(ints, one_by_one[-1], at, key, value)
            if len(run):
                starts += [np.array(one_by_one, np.int64), run]
                at = int(run[-1]) + at - one_by_one.pop()
                one_by_one = []
    if key != -1:
        raise Undecodable("the length of a key is negative")
    return np.concatenate([*starts, np.array(one_by_one, np.int64)])


def _read_alike(ints: "array[int]", last: int, at: int, key: int, value: int) -> np.ndarray:
    """The records from ``at`` on that have the same lengths as the last one before it."""
    step, lengths = at - last, np.frombuffer(ints, np.int32)
    starts: np.ndarray = at + step * np.arange(min(_TOGETHER, (len(ints) - at) // step))
    differ = (lengths[starts] != key) | (lengths[starts + 1 + (key >> 2)] != value)
    return starts[: int(differ.argmax()) if differ.any() else len(starts)]


def keep_newest(files: Sequence[Records], *, distinct: bool) -> Iterator[Records]:
    """Of the records of files, oldest first, those that hold: the last of each key, if that was not removed.

    ``distinct``: no key is twice in the first file, which is a snapshot.
    """
    if len(files) == 1 and distinct:
        yield files[0].take(files[0].value_size >= 0)
        return
    pieces = (copy_pieces(np.frombuffer(file.data, np.uint8), file.key_at, file.key_size) for file in files)
    keys = pa.chunked_array([keys.cast(_BYTES) for keys in pieces], _BYTES).combine_chunks()
    codes = np.frombuffer(keys.dictionary_encode().indices.buffers()[1], np.int32)[: len(keys)]
    last: np.ndarray = np.empty(int(codes.max(initial=-1)) + 1, np.int64)
    last[codes] = np.arange(len(codes))  # of the same place assigned to twice, the later value stays
    holds: np.ndarray = np.zeros(len(codes), bool)
    holds[last] = True
    start = 0
    for records in files:
        yield records.take(holds[start : start + len(records)] & (records.value_size >= 0))
        start += len(records)


def find_key(files: Sequence[Records], key: bytes) -> Records | None:
    """Of the records of files, oldest first, the one that holds for a key; None where none does."""
    for records in reversed(files):
        rows = find_rows(records, key)
        if len(rows):
            last = records.take(rows[-1:])
            return last if last.value_size[0] >= 0 else None
    return None


def find_rows(records: Records, key: bytes) -> np.ndarray:
    """The positions of the records of a key."""
    rows = np.flatnonzero(records.key_size == len(key))
    words = np.frombuffer(records.data, "<i4", len(records.data) // _INT)
    for index, word in reversed([*enumerate(np.frombuffer(key, "<i4"))]):  # rows of a type begin alike
        rows = rows[words[records.key_at[rows] // _INT + index] == word]
    return rows
