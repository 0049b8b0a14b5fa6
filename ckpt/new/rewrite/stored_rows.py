"""Keys and values of a store as they lie in its files: read, and as Arrow arrays of bytes that are to be written."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, starmap
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckpt.checkpoint.state.rewritable import count_session_columns
from ckpt.errors import Undecodable
from ckpt.formats.rows.arrow import copy_pieces, structs, whole
from ckpt.formats.rows.avro import key_columns
from ckpt.formats.rows.keys import encoder_with_prefix, key_blobs, keys_of
from ckpt.formats.rows.types import TypeShape, shape_of
from ckpt.formats.rows.unsafe import VERSION, WORD, Rows, rows_of, structs_of
from ckpt.formats.rows.unsafe_writer import rows_from
from ckpt.formats.types import fields_of, named_fields, struct_of
from ckpt.model import Json, Provider, Store
from ckpt.state.native import rocksdb
from ckpt.state.native.entries import Entries, decode_bytes, decode_rows, read_hdfs_rows
from ckpt.state.native.store_files import StoreFiles, UnitLayout

_SOME = 1 << 16  # rows of which Python has objects at a time


@dataclass(frozen=True, slots=True)
class Stored:
    """Rows of one store. No array has NULL."""

    keys: pa.LargeBinaryArray
    values: pa.LargeBinaryArray
    groups: pa.LargeBinaryArray | None = None
    """The grouping key of each row, where it is asked for and is not all of the key."""

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, which: np.ndarray) -> "Stored":
        """Select values by an int64 array of numpy."""
        places = whole(pa.int64(), which)
        return Stored(*(array if array is None else array.take(places) for array in self.columns))

    @property
    def columns(self) -> tuple[pa.LargeBinaryArray, pa.LargeBinaryArray, pa.LargeBinaryArray | None]:
        """The arrays."""
        return self.keys, self.values, self.groups

    def leave_out(self, left_out: np.ndarray) -> "Stored":
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


def array_of(blobs: Sequence[bytes]) -> pa.LargeBinaryArray:
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


def _join_arrays(arrays: Sequence[pa.LargeBinaryArray | None]) -> pa.LargeBinaryArray | None:
    return None if arrays[0] is None else pa.chunked_array(arrays, pa.large_binary()).combine_chunks()


def encode_rows(schema: Json, arrays: list[pa.Array], count: int, provider: Provider) -> pa.LargeBinaryArray:
    """Encode columns of so many rows, as an array of bytes, as a provider stores them: RocksDB with a version byte."""
    blobs = rows_from(schema, structs([name for name, _ in named_fields(schema)], arrays, count))
    buffers = [None, pa.py_buffer(np.ascontiguousarray(blobs.bounds, np.int64)), pa.py_buffer(blobs.data)]
    rows = pa.Array.from_buffers(pa.large_binary(), len(blobs.bounds) - 1, buffers, 0)
    return _prepend(VERSION, rows) if provider is Provider.ROCKSDB else rows


def divide_batch(batch: pa.RecordBatch, places: np.ndarray, count: int) -> Iterator[tuple[int, bytes]]:
    """The rows of each of so many partitions as a piece, in Arrow's format for streams.

    ``places`` has the partition of each row; one that gets none has no piece.
    """
    order = np.argsort(places, kind="stable")
    starts: list[int] = np.searchsorted(places[order], np.arange(count + 1)).tolist()  # type: ignore[assignment]
    ordered = batch.take(whole(pa.int64(), order))
    for partition, (start, end) in enumerate(pairwise(starts)):
        if end > start:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(ordered.slice(start, end - start))
            yield partition, sink.getvalue().to_pybytes()


def _prepend(first: bytes, array: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Put the same bytes in front of every element of an array."""
    return pc.binary_join_element_wise(_scalar(first), array, _scalar(b""))


def _strip_first(array: pa.LargeBinaryArray, count: int) -> pa.LargeBinaryArray:
    """Strip so many bytes from the front of every element of an array; none is shorter."""
    starts, sizes = _find_bounds(array)
    return copy_pieces(_read_memory(array), starts + count, sizes - count).cast(pa.large_binary())


def _find_bounds(array: pa.LargeBinaryArray) -> tuple[np.ndarray, np.ndarray]:
    """Where each element of an array begins in memory, and how many bytes it has."""
    ends = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
    return ends[:-1], np.diff(ends)


def _read_memory(array: pa.LargeBinaryArray) -> np.ndarray:
    """The memory of an array's elements, as numbers of one byte."""
    numbers: np.ndarray = np.frombuffer(array.buffers()[2] or b"", np.uint8)
    return numbers


def encode_records(rows: Stored, kind: bytes = b"") -> bytes:
    """Join all parts in a row, each behind its length: a big-endian int, as in HDFS-backed files.

    ``kind`` begins each record.
    """
    return _join_parts(_scalar(kind), _encode_lengths(rows.keys), rows.keys, _encode_lengths(rows.values), rows.values)


def encode_removals(keys: pa.LargeBinaryArray, kind: bytes = b"") -> bytes:
    """Encode the removal of keys: a length of -1 in the place of each value."""
    return _join_parts(_scalar(kind), _encode_lengths(keys), keys, _scalar(b"\xff" * 4))


def find_shared(parts: Sequence[Stored]) -> pa.LargeBinaryArray:
    """Find the grouping keys that more than one part has: an array of bytes, each once and in order."""
    groups = [part.keys if part.groups is None else part.groups for part in parts if len(part)]
    if len(groups) < 2:
        return array_of([])
    values, counts = pc.value_counts(_join_arrays([pc.unique(array) for array in groups])).flatten()
    shared = values.filter(pc.greater(counts, 1))
    return shared.take(pc.array_sort_indices(shared))


def list_changes(before: Stored, after: Stored) -> tuple[Stored, pa.LargeBinaryArray]:
    """List the rows that are new or differ from those before, and the keys that are no longer there."""
    same = pc.equal(after.values, before.values.take(pc.index_in(after.keys, value_set=before.keys)))
    gone = pc.invert(pc.is_in(before.keys, value_set=after.keys))
    return after.leave_out(np.asarray(same.fill_null(False))), before.keys.filter(gone)


def _join_parts(*parts: pa.LargeBinaryArray | pa.LargeBinaryScalar) -> bytes:
    """The bytes of parts, arrays and scalars, row by row."""
    joined = pc.binary_join_element_wise(*parts, _scalar(b""))
    if not len(joined):
        return b""
    starts, sizes = _find_bounds(joined)
    data: bytes = _read_memory(joined)[int(starts[0]) : int(starts[-1] + sizes[-1])].tobytes()
    return data


def _encode_lengths(array: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """The bytes of each, as four bytes."""
    sizes: np.ndarray = _find_bounds(array)[1].astype(">i4")
    offsets: np.ndarray = 4 * np.arange(len(sizes) + 1)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(sizes)]
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), buffers, 0)


def _scalar(value: bytes) -> pa.LargeBinaryScalar:
    return pa.scalar(value, pa.large_binary())


@dataclass(slots=True)
class Families:
    """The numbers of column families, the same in all partitions of the new store."""

    numbers: dict[str, int] = field(default_factory=dict)
    internal: set[str] = field(default_factory=set)

    def take(self, numbers: Mapping[str, int], internal: Iterable[str]) -> None:
        """Take over the numbers of one partition's families; a number that another family has is not taken over."""
        for name, number in sorted(numbers.items(), key=lambda pair: pair[1]):
            used = self.numbers.values()
            self.numbers.setdefault(name, number if number not in used else max(used) + 1)
        self.internal |= set(internal)


def read_families(files: Iterable[StoreFiles]) -> Families:
    """The column families of all partitions of a store. Raises Undecodable, StorageError."""
    families = Families()
    for store_files in files:
        recorded = rocksdb.read_recorded(store_files)
        if recorded is not None:
            families.take(recorded.column_families, recorded.internal_families)
    return families


@dataclass(frozen=True, slots=True)
class StoredForm:
    """How a store or column family holds its rows."""

    key: Json  # a StructType in Spark's JSON
    value: Json  # likewise
    encoder: Json  # of keys in RocksDB
    prefix: int = 0  # columns that RocksDB keeps as a row of their own
    generation: int = 0  # of the value's schema, which its Avro rows name


def list_forms(store: Store) -> dict[str, StoredForm]:
    """Return the form of each column family of a store, by name; of a store without any its own, by its name."""
    if store.column_families:
        return {
            own.name: StoredForm(own.key_schema, own.value_schema, own.key_encoder, generation=own.generation)
            for own in store.column_families
        }
    columns = count_session_columns(store) if store.prefix_columns is None else store.prefix_columns
    encoder = encoder_with_prefix(columns)
    return {store.name: StoredForm(store.key_schema, store.value_schema, encoder, columns)}


@dataclass(frozen=True, slots=True)
class HdfsRows:
    """Rows of a partition as they were read: bare ones."""

    keys: Rows
    values: Rows
    family: None = None
    number: bytes = b""

    def __len__(self) -> int:
        return len(self.keys)

    def decode_keys(self, form: StoredForm, *, avro: bool) -> pa.StructArray:
        """Decode the keys. Raises Undecodable."""
        return structs_of(form.key, self.keys, "key")

    def decode_entries(self, layout: UnitLayout, partition: int) -> Entries:
        """Decode keys and values. Raises Undecodable."""
        return decode_rows(partition, layout, self.keys, self.values)

    def make_stored(self) -> Stored:
        """Return the bytes of the rows."""
        parts = (copy_pieces(rows.raw, rows.at * WORD, rows.size) for rows in (self.keys, self.values))
        return Stored(*(part.cast(pa.large_binary()) for part in parts))


@dataclass(frozen=True, slots=True)
class RocksDBRows:
    """Rows of a column family in a partition as they were read."""

    pairs: Sequence[tuple[bytes, bytes]]
    family: str | None
    number: bytes  # of the family, which its keys begin with

    def __len__(self) -> int:
        return len(self.pairs)

    def decode_keys(self, form: StoredForm, *, avro: bool) -> pa.StructArray:
        """Decode the keys. Raises Undecodable."""
        decode = key_columns if avro and self.family is not None else None
        return keys_of(form.key, form.encoder, self._strip_families(), decode)

    @property
    def values(self) -> Rows:
        """The values. Raises Undecodable."""
        return rows_of([value for _, value in self.pairs])

    def decode_entries(self, layout: UnitLayout, partition: int) -> Entries:
        """Decode keys and values. Raises Undecodable."""
        return decode_bytes(partition, layout, self._strip_families(), [value for _, value in self.pairs])

    def make_stored(self) -> Stored:
        """Return the bytes of the rows."""
        return make_stored([key for key, _ in self.pairs], [value for _, value in self.pairs])

    def _strip_families(self) -> list[bytes]:
        return [key[len(self.number) :] for key, _ in self.pairs]


OldRows: TypeAlias = HdfsRows | RocksDBRows


def read_rows(files: StoreFiles, provider: Provider) -> Iterator[OldRows]:
    """Read the rows of a store in one partition, some at a time. Raises Undecodable, StorageError."""
    if provider is Provider.HDFS:
        yield from starmap(HdfsRows, read_hdfs_rows(files))
        return
    with rocksdb.store(files) as store:
        for family in store.families or [None]:
            number = store.number(family)
            for pairs in store.batches(number):
                yield RocksDBRows(pairs, family, number)


def renumber_family(rows: OldRows, number: int) -> Stored:
    """Return the bytes of rows of a column family, which has that number in the new store."""
    stored, first = rows.make_stored(), number.to_bytes(2, "little")
    if rows.number == first:
        return stored
    return Stored(_prepend(first, _strip_first(stored.keys, len(first))), stored.values)


def convert_rows(rows: OldRows, form: StoredForm, old: Provider, new: Provider) -> Stored:
    """Make rows of a store without column families as the new store holds them. Raises Undecodable."""
    old_rows = rows.make_stored()
    if old is new:
        return old_rows
    to_rocksdb = new is Provider.ROCKSDB
    convert = partial(_prepend, VERSION) if to_rocksdb else _strip_version
    if not form.prefix:
        return Stored(convert(old_rows.keys), convert(old_rows.values))
    form = replace(form, key=_texts_as_bytes(form.key))
    keys = rows.decode_keys(form, avro=False)
    blobs = key_blobs(form.key, form.encoder, keys) if to_rocksdb else rows_from(form.key, keys).to_list()
    return Stored(array_of(blobs), convert(old_rows.values))


def _texts_as_bytes(kind: Json) -> Json:
    """A type of keys whose texts need not be UTF-8: Spark does not look whether they are."""
    if fields_of(kind) is not None:
        return struct_of((name, _texts_as_bytes(own)) for name, own in named_fields(kind))
    return "binary" if isinstance(kind, str) and shape_of(kind) is TypeShape.TEXT else kind


def _strip_version(rows: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Strip the version in front, which is the known one. Raises Undecodable."""
    if _read_memory(rows)[_find_bounds(rows)[0]].any():
        raise Undecodable("a row does not begin with the version that ckpt knows")
    return _strip_first(rows, len(VERSION))
