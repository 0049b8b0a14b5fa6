"""The rows of one store, moved: read as bytes from every partition, and put where the new number of them wants them.

No value is decoded; of keys only what decides the partition. HDFS-backed stores hold bare rows, RocksDB a version byte
before each and the first columns of some keys as a row of their own (``PrefixKeyScanStateEncoder``).
"""

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ckpt.copies.rewrite.dropping import Column
from ckpt.copies.rewrite.filtering import Leaving
from ckpt.copies.rewrite.spreading import find_grouping, hash_rows, is_single
from ckpt.copies.rewrite.stored_rows import Stored, array_of, bounds, make_stored, memory, prepend, strip_first
from ckpt.formats.rows import avro, cells
from ckpt.formats.rows.arrow import copy_pieces
from ckpt.formats.rows.errors import Undecodable
from ckpt.formats.rows.keys import keys_of, no_prefix, prefix
from ckpt.formats.rows.rows import VERSION, WORD, Rows
from ckpt.formats.rows.unsafe import structs_of
from ckpt.formats.types import named_fields
from ckpt.model import Json, Operator, Provider, Store
from ckpt.state.native import rocksdb
from ckpt.state.native.entries import Entries, decode_bytes, decode_rows, read_hdfs_rows, split_elements
from ckpt.state.native.layout import UnitLayout
from ckpt.state.native.store_files import StoreFiles

Family: TypeAlias = tuple[int, str, str | None]
"""Operator, store, and column family; None where the store has none."""

_BYTES = pa.large_binary()
_INT = struct.Struct("<i")
_LIST = "ListState"


@dataclass(slots=True)
class Families:
    """The numbers of column families, the same in all partitions of the new store."""

    numbers: dict[str, int] = field(default_factory=dict)
    internal: set[str] = field(default_factory=set)

    def take(self, numbers: Mapping[str, int], internal: Iterable[str]) -> None:
        """Take over the numbers of one partition's families; a number that another family has is not taken over."""
        for name, number in sorted(numbers.items(), key=lambda one: one[1]):
            used = self.numbers.values()
            self.numbers.setdefault(name, number if number not in used else max(used) + 1)
        self.internal |= set(internal)


@dataclass(slots=True)
class Tally:
    """How many rows families have, and how many of them are left out; of lists every element is one."""

    rows: Counter[Family] = field(default_factory=Counter)
    dropped: Counter[Family] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        """Add the counts of more rows."""
        self.rows.update(other.rows)
        self.dropped.update(other.dropped)


@dataclass(frozen=True, slots=True)
class KeptColumns:
    """The form of a family's rows, in the old store and the new one."""

    key: Json  # a StructType in Spark's JSON
    encoder: Json  # of keys in RocksDB
    prefix: int  # columns that RocksDB keeps as a row of their own
    avro: bool

    @property
    def kinds(self) -> list[Json]:
        """The types of the key's columns."""
        return [kind for _, kind in named_fields(self.key)]


@dataclass(frozen=True, slots=True)
class Moving:
    """One store on its way: where it comes from, and what it becomes."""

    operator: Operator
    store: Store
    old: Provider
    new: Provider
    before: int  # partitions of the old one
    partitions: int | None  # over which rows are spread anew; None: each stays in its partition
    avro: bool
    delimiter: bytes
    leaving: Leaving
    families: Families  # of the new store
    tally: Tally

    def find_kept_columns(self, family: str | None) -> KeptColumns:
        """Return the columns that a family keeps. Raises Undecodable where the state schema does not describe it."""
        if family is None:
            columns = self.store.prefix_columns or 0
            return KeptColumns(self.store.key_schema, prefix(columns) if columns else no_prefix(), columns, avro=False)
        column_family = {described.name: described for described in self.store.column_families}.get(family)
        if column_family is None:
            raise Undecodable(f"no state schema describes the column family {family}")
        return KeptColumns(column_family.key_schema, column_family.key_encoder, 0, self.avro)

    def move_rows(self, files: StoreFiles) -> Iterator[tuple[Any, Stored]]:
        """The rows of an old partition, some at a time: their new partitions as an int64 array, and what is stored.

        Raises Undecodable, StorageError.
        """
        of_hdfs = self.old is Provider.HDFS
        for rows in starmap(_HdfsRows, read_hdfs_rows(files)) if of_hdfs else _read_rocksdb(files, self.delimiter):
            if not len(rows):
                continue
            try:
                yield self._move_batch(rows, files.place.partition)
            except Undecodable as error:
                raise files.refused(files.place.folder, error) from None

    def _move_batch(self, rows: "_HdfsRows | _RocksDBRows", partition: int) -> tuple[Any, Stored]:
        count = len(rows)
        single = is_single(self.operator, self.store)
        spread = not single and self.partitions is not None
        columns = self._take_columns(rows) if spread or self.leaving.of_keys else []
        if (single and partition) or (spread and (hash_rows(columns, count, self.before) != partition).any()):
            raise Undecodable("it has keys that Spark looks for in other partitions; see ckpt state verify")
        places: Any = np.full(count, partition, np.int64)
        if spread and self.partitions is not None:
            places = hash_rows(columns, count, self.partitions)
        dropped = self.leaving.find_left_out(rows, columns, partition)
        family, sizes = (self.operator.id, self.store.name, rows.family), self._count_state_rows(rows)
        self.tally.rows[family] += int(sizes.sum())
        self.tally.dropped[family] += int(sizes[dropped].sum())
        return places[~dropped], self._convert(rows).leave_out(dropped)

    def _count_state_rows(self, rows: "_HdfsRows | _RocksDBRows") -> Any:
        """As how many rows of state each counts: lists as their elements. Raises Undecodable."""
        lists = {variable.name for variable in self.operator.variables if variable.kind == _LIST}
        if isinstance(rows, _HdfsRows) or rows.family not in lists:
            return np.ones(len(rows), np.int64)
        parts = avro.elements if self.avro else split_elements
        return np.fromiter((len(parts(value)) for _, value in rows.pairs), np.int64, len(rows))

    def _take_columns(self, rows: "_HdfsRows | _RocksDBRows") -> list[Column]:
        """The grouping key of each row."""
        kept = self.find_kept_columns(rows.family)
        return find_grouping(self.operator, self.store, rows.family).take_columns(kept.key, rows.decode_keys(kept))

    def _convert(self, rows: "_HdfsRows | _RocksDBRows") -> Stored:
        """As the new store holds them."""
        old_rows = rows.make_stored()
        if rows.family is not None:
            number = self.families.numbers[rows.family].to_bytes(2, "little")
            return (
                old_rows
                if rows.number == number
                else Stored(prepend(number, strip_first(old_rows.keys, 2)), old_rows.values)
            )
        if self.old is self.new:
            return old_rows
        kept = self.find_kept_columns(None)
        to_rocksdb = self.new is Provider.ROCKSDB
        if kept.prefix:
            convert = _to_rocksdb if to_rocksdb else _to_hdfs
            keys = array_of([convert(kept, key) for key, _ in old_rows.list_pairs()])
        else:
            keys = prepend(VERSION, old_rows.keys) if to_rocksdb else _strip_version(old_rows.keys)
        values = prepend(VERSION, old_rows.values) if to_rocksdb else _strip_version(old_rows.values)
        return Stored(keys, values)


def read_families(files: Iterable[StoreFiles]) -> Families:
    """The column families of all partitions of a store. Raises Undecodable, StorageError."""
    families = Families()
    for store_files in files:
        recorded = rocksdb.read_recorded(store_files)
        if recorded is not None:
            families.take(recorded.column_families, recorded.internal_families)
    return families


def _to_rocksdb(kept: KeptColumns, key: bytes) -> bytes:
    first, rest = cells.split(key, kept.kinds, kept.prefix)
    return _INT.pack(len(VERSION + first)) + VERSION + first + VERSION + rest


def _to_hdfs(kept: KeptColumns, key: bytes) -> bytes:
    end = _INT.size + _INT.unpack_from(key)[0]
    first, rest = key[_INT.size + len(VERSION) : end], key[end + len(VERSION) :]
    return cells.join_rows(first, rest, kept.kinds, kept.prefix)


def _strip_version(rows: Any) -> Any:
    """Without the version in front, which is the known one. Raises Undecodable."""
    if memory(rows)[bounds(rows)[0]].any():
        raise Undecodable("a row does not begin with the version that ckpt knows")
    return strip_first(rows, len(VERSION))


@dataclass(frozen=True, slots=True)
class _HdfsRows:
    """Rows of a partition: bare ones."""

    keys: Rows
    values: Rows
    family: None = None
    number: bytes = b""

    def __len__(self) -> int:
        return len(self.keys)

    def decode_keys(self, kept: KeptColumns) -> Any:
        """The keys as an array of structs. Raises Undecodable."""
        return structs_of(kept.key, self.keys, "key")

    def decode_entries(self, layout: UnitLayout, partition: int) -> Entries:
        """Keys and values, decoded."""
        return decode_rows(partition, layout, self.keys, self.values)

    def make_stored(self) -> Stored:
        """Return the bytes of the rows."""
        return Stored(
            *(copy_pieces(rows.raw, rows.at * WORD, rows.size).cast(_BYTES) for rows in (self.keys, self.values))
        )


@dataclass(frozen=True, slots=True)
class _RocksDBRows:
    """Rows of a column family in a partition."""

    pairs: Sequence[tuple[bytes, bytes]]
    family: str | None
    number: bytes  # of the family, which its keys begin with

    def __len__(self) -> int:
        return len(self.pairs)

    def decode_keys(self, kept: KeptColumns) -> Any:
        """The keys as an array of structs. Raises Undecodable."""
        return keys_of(kept.key, kept.encoder, self._strip_families(), avro.key_columns if kept.avro else None)

    def decode_entries(self, layout: UnitLayout, partition: int) -> Entries:
        """Keys and values, decoded."""
        return decode_bytes(partition, layout, self._strip_families(), [value for _, value in self.pairs])

    def _strip_families(self) -> list[bytes]:
        return [key[len(self.number) :] for key, _ in self.pairs]

    def make_stored(self) -> Stored:
        """Return the bytes of the rows."""
        return make_stored([key for key, _ in self.pairs], [value for _, value in self.pairs])


def _read_rocksdb(files: StoreFiles, delimiter: bytes) -> Iterator[_RocksDBRows]:
    with rocksdb.store(files, delimiter) as store:
        for family in store.families or [None]:
            number = store.number(family)
            for pairs in store.batches(number):
                yield _RocksDBRows(pairs, family, number)
