"""Keys and values of a store as they lie in its files: two Arrow arrays of bytes, and what is done to all of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckpt.formats.rows.arrow import copy_pieces, structs, whole
from ckpt.formats.rows.unsafe import VERSION
from ckpt.formats.rows.unsafe_writer import rows_from
from ckpt.formats.types import named_fields
from ckpt.model import Json, Provider

_SOME = 1 << 16  # rows of which Python has objects at a time


@dataclass(frozen=True, slots=True)
class Stored:
    """Rows of one store. No array has NULL."""

    keys: Any
    values: Any
    groups: Any = None  # the grouping key of each row as bytes, where it is asked for and is not all of the key

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, which: Any) -> "Stored":
        """Select values by an int64 array of numpy."""
        places = whole(pa.int64(), which)
        return Stored(*(array if array is None else array.take(places) for array in self.columns))

    @property
    def columns(self) -> tuple[Any, Any, Any]:
        """The arrays."""
        return self.keys, self.values, self.groups

    def leave_out(self, left_out: Any) -> "Stored":
        """Leave out the rows that a mask of numpy names."""
        return self.take(np.flatnonzero(~left_out)) if left_out.any() else self

    def sort(self) -> "Stored":
        """Sort the rows by their keys, as bytes are compared."""
        order = pc.array_sort_indices(self.keys)
        return Stored(self.keys.take(order), self.values.take(order))

    def list_pairs(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the key and the value of every row."""
        for start in range(0, len(self), _SOME):
            columns = (part.slice(start, _SOME).to_pylist() for part in (self.keys, self.values))
            yield from zip(*columns, strict=True)


def make_stored(keys: Sequence[bytes], values: Sequence[bytes]) -> Stored:
    """Make stored rows of keys and values that are objects of Python."""
    return Stored(array_of(keys), array_of(values))


def array_of(blobs: Sequence[bytes]) -> Any:
    """An array of bytes. Not with ``pyarrow.array``: that imports pandas."""
    ends = np.cumsum(np.fromiter(map(len, blobs), np.int64, len(blobs)))
    offsets = pa.py_buffer(np.concatenate([np.zeros(1, np.int64), ends]))
    return pa.Array.from_buffers(pa.large_binary(), len(blobs), [None, offsets, pa.py_buffer(b"".join(blobs))], 0)


def join_stored(parts: Iterable[Stored]) -> Stored:
    """Join the rows of several parts."""
    filled = [part for part in parts if len(part)]
    if len(filled) < 2:
        return filled[0] if filled else make_stored([], [])
    return Stored(*map(_join_arrays, zip(*(part.columns for part in filled), strict=True)))


def _join_arrays(arrays: Sequence[Any]) -> Any:
    return None if arrays[0] is None else pa.chunked_array(arrays, pa.large_binary()).combine_chunks()


def encode_rows(schema: Json, arrays: list[Any], count: int, provider: Provider) -> Any:
    """Encode columns of so many rows, as an array of bytes, as a provider stores them: RocksDB with a version byte."""
    blobs = rows_from(schema, structs([name for name, _ in named_fields(schema)], arrays, count))
    buffers = [None, pa.py_buffer(np.ascontiguousarray(blobs.bounds, np.int64)), pa.py_buffer(blobs.data)]
    rows = pa.Array.from_buffers(pa.large_binary(), len(blobs.bounds) - 1, buffers, 0)
    return prepend(VERSION, rows) if provider is Provider.ROCKSDB else rows


def divide_rows(places: Any, count: int) -> tuple[Any, list[int]]:
    """An order in which rows of each of so many partitions are together, and where in it each partition begins.

    ``places`` has the partition of each row; the last of the beginnings is the number of rows.
    """
    order = np.argsort(places, kind="stable")
    starts: Any = np.searchsorted(places[order], np.arange(count + 1))
    return order, starts.tolist()


def prepend(first: bytes, array: Any) -> Any:
    """Put the same bytes in front of every element of an array."""
    return pc.binary_join_element_wise(_scalar(first), array, _scalar(b""))


def strip_first(array: Any, count: int) -> Any:
    """Strip so many bytes from the front of every element of an array; none is shorter."""
    starts, sizes = bounds(array)
    return copy_pieces(memory(array), starts + count, sizes - count).cast(pa.large_binary())


def bounds(array: Any) -> tuple[Any, Any]:
    """Where each element of an array begins in memory, and how many bytes it has."""
    ends = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
    return ends[:-1], np.diff(ends)


def memory(array: Any) -> Any:
    """The memory of an array's elements, as numbers of one byte."""
    return np.frombuffer(array.buffers()[2] or b"", np.uint8)


def encode_records(rows: Stored, kind: bytes = b"") -> bytes:
    """Join all parts in a row, each behind its length: a big-endian int, as in HDFS-backed files.

    ``kind`` begins each record.
    """
    return _join_parts(_scalar(kind), _encode_lengths(rows.keys), rows.keys, _encode_lengths(rows.values), rows.values)


def encode_removals(keys: Any, kind: bytes = b"") -> bytes:
    """Encode the removal of keys: a length of -1 in the place of each value."""
    return _join_parts(_scalar(kind), _encode_lengths(keys), keys, _scalar(b"\xff" * 4))


def find_shared(parts: Sequence[Stored]) -> Any:
    """Find the grouping keys that more than one part has: an array of bytes, each once and in order."""
    groups = [part.keys if part.groups is None else part.groups for part in parts if len(part)]
    if len(groups) < 2:
        return array_of([])
    table = pa.table({"group": _join_arrays([pc.unique(array) for array in groups])})
    counted = table.group_by("group", use_threads=False).aggregate([("group", "count")])
    shared = counted.filter(pc.field("group_count") > 1)["group"].combine_chunks()
    return shared.take(pc.array_sort_indices(shared))


def list_changes(before: Stored, after: Stored) -> tuple[Stored, Any]:
    """List the rows that are new or differ from those before, and the keys that are no longer there."""
    same = pc.equal(after.values, before.values.take(pc.index_in(after.keys, value_set=before.keys)))
    gone = pc.invert(pc.is_in(before.keys, value_set=after.keys))
    return after.leave_out(np.asarray(same.fill_null(False))), before.keys.filter(gone)


def _join_parts(*parts: Any) -> bytes:
    """The bytes of parts, arrays and scalars, row by row."""
    joined = pc.binary_join_element_wise(*parts, _scalar(b""))
    if not len(joined):
        return b""
    starts, sizes = bounds(joined)
    data: bytes = memory(joined)[int(starts[0]) : int(starts[-1] + sizes[-1])].tobytes()
    return data


def _encode_lengths(array: Any) -> Any:
    """The bytes of each, as four bytes."""
    sizes = bounds(array)[1].astype(">i4")
    offsets: Any = 4 * np.arange(len(sizes) + 1)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(sizes)]
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), buffers, 0)


def _scalar(value: bytes) -> Any:
    return pa.scalar(value, pa.large_binary())
