"""The rows of one store, moved: read as bytes from every partition, and put where the new number of them wants them.

No value is decoded; of keys only what decides the partition. HDFS-backed stores hold bare rows, RocksDB a version byte
before each and the first columns of some keys as a row of their own (``PrefixKeyScanStateEncoder``).
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from ckpt.advice import Words
from ckpt.checkpoint.state.rewritable import count_session_columns, is_single
from ckpt.errors import Undecodable
from ckpt.formats.rows.arrow import copy_pieces, whole
from ckpt.formats.rows.avro import elements, key_columns
from ckpt.formats.rows.keys import encoder_with_prefix, key_blobs, keys_of
from ckpt.formats.rows.types import TypeShape, shape_of
from ckpt.formats.rows.unsafe import VERSION, WORD, Rows, rows_of, structs_of
from ckpt.formats.rows.unsafe_writer import rows_from
from ckpt.formats.statefiles import TIMED_ROWS
from ckpt.formats.types import fields_of, named_fields, struct_of
from ckpt.model import Json, Operator, Provider, Store
from ckpt.new.book import BOOK
from ckpt.new.rewrite.filtering import IN_NONE, Column, Leaving, SplitFilter, find_strays
from ckpt.new.rewrite.spreading import GroupingKey, find_grouping, hash_rows
from ckpt.new.rewrite.stored_rows import Stored, array_of, bounds, encode_rows, memory, prepend, strip_first
from ckpt.state.native import rocksdb
from ckpt.state.native.entries import Entries, decode_bytes, decode_rows, read_hdfs_rows, split_elements
from ckpt.state.native.json_values import make_plain
from ckpt.state.native.store_files import StoreFiles, UnitLayout

Family: TypeAlias = tuple[int, str, str | None]
"""Operator, store, and column family; None where the store has none."""

_BYTES = pa.large_binary()
_LIST = "ListState"
SHOWN = 5  # keys that a refusal names


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
class RefusedKeys:
    """Keys for which a checkpoint is not written."""

    in_none: bool  # each new checkpoint leaves them out
    count: int = 0
    names: list[str] = field(default_factory=list)  # at most ``SHOWN``, as JSON


@dataclass(slots=True)
class Tally:
    """How many rows families have, and how many of them are left out; of lists every element is one."""

    rows: Counter[Family] = field(default_factory=Counter)
    dropped: Counter[Family] = field(default_factory=Counter)
    refused: dict[str | Words, RefusedKeys] = field(default_factory=dict)  # by what is wrong with them

    def add(self, other: "Tally") -> None:
        """Add the counts of more rows."""
        self.rows.update(other.rows)
        self.dropped.update(other.dropped)
        for why, keys in other.refused.items():
            self.refuse(why, keys.count, keys.names, in_none=keys.in_none)

    def refuse(self, why: str | Words, count: int, names: Iterable[str], *, in_none: bool = False) -> None:
        """Count keys for which nothing is written; ``names`` are those of some of them, or of all."""
        known = self.refused.setdefault(why, RefusedKeys(in_none))
        known.count += count
        known.names = sorted({*known.names, *names})[:SHOWN]


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


class Reshaping(Protocol):
    """Other columns of the rows of a store."""

    @property
    def changes_keys(self) -> bool:
        """True if rows get other keys, and so may change their partition."""
        ...

    @property
    def one_partition(self) -> bool:
        """True if all new rows are in partition 0."""
        ...

    def make_key(self, columns: list[Column], count: int) -> list[Column]:
        """Make the new grouping key of so many rows."""
        ...

    def reshape(self, rows: "_HdfsRows | _RocksDBRows", key: list[Column], store: Store) -> Stored:
        """Make the new bytes of rows, whose grouping key is ``key``. Raises Undecodable."""
        ...

    def reshape_family(
        self, family: str, rows: Stored, delimiter: bytes, key: list[Column], old_keys: Callable[[], Any]
    ) -> Stored | None:
        """Make the new bytes of rows of a column family, whose grouping key is ``key``; None: it is left out.

        ``old_keys`` decodes the keys of rows.
        """
        ...

    def rename(self, families: Families) -> Families:
        """Give the column families their new names."""
        ...

    def merge(self, rows: Stored) -> Stored:
        """Merge rows that now have the same key. Raises Undecodable."""
        ...


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
    reshaping: "Reshaping | None" = None  # the new columns of the store
    grouped: bool = False  # rows keep their grouping key, where it is not all of the key

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
        grouped = self.grouped and (rows.family is not None or not self._find_grouping(rows).is_whole)
        columns = self._take_columns(rows) if spread or grouped or self.leaving.of_keys else []
        if (single and partition) or (spread and (hash_rows(columns, count, self.before) != partition).any()):
            raise Undecodable(BOOK.text("rewrite_strays"))
        places: Any = np.full(count, partition, np.int64)
        if self.reshaping is not None and self.reshaping.changes_keys:
            columns = self.reshaping.make_key(columns, count)
        if spread and self.partitions is not None:
            places = hash_rows(columns, count, self.partitions)
        if isinstance(self.leaving, SplitFilter):
            left_out = self.leaving.find_each(rows, columns, partition)
            self._count_strays(rows, find_strays(left_out))
            dropped = left_out[0]
        else:
            dropped = self.leaving.find_left_out(rows, columns, partition)
        family, sizes = (self.operator.id, self.store.name, rows.family), self._count_state_rows(rows)
        self.tally.rows[family] += int(sizes.sum())
        self.tally.dropped[family] += int(sizes[dropped].sum())
        if self.reshaping is not None and rows.family is not None:
            stored, old_keys = self._convert(rows), partial(self._decode_keys, rows)
            reshaped = self.reshaping.reshape_family(rows.family, stored, self.delimiter, columns, old_keys)
            return (places[:0], Stored(array_of([]), array_of([]))) if reshaped is None else (places, reshaped)
        if self.reshaping is not None:
            return places, self.reshaping.reshape(rows, columns, self.store)
        stored = self._convert(rows)
        if grouped:
            stored = replace(stored, groups=encode_columns(columns, count))
        return places[~dropped], stored.leave_out(dropped)

    def _count_strays(self, rows: "_HdfsRows | _RocksDBRows", strays: Mapping[str, Any]) -> None:
        """Count the rows that are not in exactly one of several new checkpoints, and name some."""
        for why, mask in strays.items():
            if mask.any():
                keys = self._decode_keys(rows).take(whole(pa.int64(), np.flatnonzero(mask)[:SHOWN]))
                what = f"operator {self.operator.id} {why}"
                self.tally.refuse(what, int(mask.sum()), name_keys(keys), in_none=why == IN_NONE)

    def _count_state_rows(self, rows: "_HdfsRows | _RocksDBRows") -> Any:
        """As how many rows of state each counts: lists as their elements. Raises Undecodable."""
        lists = {variable.name for variable in self.operator.variables if variable.kind == _LIST}
        several = rows.family is not None and (rows.family in lists or rows.family.endswith(TIMED_ROWS))
        if isinstance(rows, _HdfsRows) or not several:
            return np.ones(len(rows), np.int64)
        parts = split_elements
        if self.avro:
            newest = list_forms(self.store)[rows.family or ""].generation
            parts = partial(elements, generations=range(newest + 1))
        return np.fromiter((len(parts(value)) for _, value in rows.pairs), np.int64, len(rows))

    def _take_columns(self, rows: "_HdfsRows | _RocksDBRows") -> list[Column]:
        """The grouping key of each row."""
        keys, form = self._decode_keys(rows), self._find_form(rows)
        return self._find_grouping(rows).take_columns(form.key, keys)

    def _find_grouping(self, rows: "_HdfsRows | _RocksDBRows") -> GroupingKey:
        return find_grouping(self.operator, self.store, rows.family)

    def _decode_keys(self, rows: "_HdfsRows | _RocksDBRows") -> Any:
        """The keys as an array of structs. Raises Undecodable."""
        return rows.decode_keys(self._find_form(rows), avro=self.avro)

    def _find_form(self, rows: "_HdfsRows | _RocksDBRows") -> StoredForm:
        form = list_forms(self.store).get(rows.family or self.store.name)
        if form is None:
            raise Undecodable(f"no state schema describes the column family {rows.family}")
        return form

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
        form = list_forms(self.store)[self.store.name]
        to_rocksdb = self.new is Provider.ROCKSDB
        convert = partial(prepend, VERSION) if to_rocksdb else _strip_version
        if form.prefix:
            form = replace(form, key=_texts_as_bytes(form.key))
            structs = rows.decode_keys(form, avro=False)
            keys = array_of(
                key_blobs(form.key, form.encoder, structs) if to_rocksdb else rows_from(form.key, structs).to_list()
            )
        else:
            keys = convert(old_rows.keys)
        return Stored(keys, convert(old_rows.values))


def encode_columns(columns: Sequence[Column], count: int) -> Any:
    """Encode columns of so many rows as one row of bytes each: equal values are equal bytes."""
    schema = struct_of((name, kind) for name, kind, _ in columns)
    return encode_rows(schema, [array for _, _, array in columns], count, Provider.HDFS)


def name_keys(keys: Any) -> list[str]:
    """Name keys, an array of structs, as JSON."""
    return [json.dumps(key, ensure_ascii=False) for key in make_plain(keys)]


def read_families(files: Iterable[StoreFiles]) -> Families:
    """The column families of all partitions of a store. Raises Undecodable, StorageError."""
    families = Families()
    for store_files in files:
        recorded = rocksdb.read_recorded(store_files)
        if recorded is not None:
            families.take(recorded.column_families, recorded.internal_families)
    return families


def _texts_as_bytes(kind: Json) -> Json:
    """A type of keys whose texts need not be UTF-8: Spark does not look whether they are."""
    if fields_of(kind) is not None:
        return struct_of((name, _texts_as_bytes(own)) for name, own in named_fields(kind))
    return "binary" if isinstance(kind, str) and shape_of(kind) is TypeShape.TEXT else kind


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

    def decode_keys(self, form: StoredForm, *, avro: bool) -> Any:
        """The keys as an array of structs. Raises Undecodable."""
        return structs_of(form.key, self.keys, "key")

    def decode_entries(self, layout: UnitLayout, partition: int) -> Entries:
        """Keys and values, decoded."""
        return decode_rows(partition, layout, self.keys, self.values)

    def decode_values(self, kind: Json) -> Any:
        """The values as an array of structs. Raises Undecodable."""
        return structs_of(kind, self.values, "value")

    def make_keys(self) -> Any:
        """Return the bytes of the keys."""
        return copy_pieces(self.keys.raw, self.keys.at * WORD, self.keys.size).cast(_BYTES)

    def make_values(self) -> Any:
        """Return the bytes of the values."""
        return copy_pieces(self.values.raw, self.values.at * WORD, self.values.size).cast(_BYTES)

    def make_stored(self) -> Stored:
        """Return the bytes of the rows."""
        return Stored(self.make_keys(), self.make_values())


@dataclass(frozen=True, slots=True)
class _RocksDBRows:
    """Rows of a column family in a partition."""

    pairs: Sequence[tuple[bytes, bytes]]
    family: str | None
    number: bytes  # of the family, which its keys begin with

    def __len__(self) -> int:
        return len(self.pairs)

    def decode_keys(self, form: StoredForm, *, avro: bool) -> Any:
        """The keys as an array of structs. Raises Undecodable."""
        decode = key_columns if avro and self.family is not None else None
        return keys_of(form.key, form.encoder, self._strip_families(), decode)

    def decode_entries(self, layout: UnitLayout, partition: int) -> Entries:
        """Keys and values, decoded."""
        return decode_bytes(partition, layout, self._strip_families(), [value for _, value in self.pairs])

    def decode_values(self, kind: Json) -> Any:
        """The values as an array of structs. Raises Undecodable."""
        return structs_of(kind, rows_of([value for _, value in self.pairs]), "value")

    def _strip_families(self) -> list[bytes]:
        return [key[len(self.number) :] for key, _ in self.pairs]

    def make_keys(self) -> Any:
        """Return the bytes of the keys."""
        return array_of([key for key, _ in self.pairs])

    def make_values(self) -> Any:
        """Return the bytes of the values."""
        return array_of([value for _, value in self.pairs])

    def make_stored(self) -> Stored:
        """Return the bytes of the rows."""
        return Stored(self.make_keys(), self.make_values())


def _read_rocksdb(files: StoreFiles, delimiter: bytes) -> Iterator[_RocksDBRows]:
    with rocksdb.store(files, delimiter) as store:
        for family in store.families or [None]:
            number = store.number(family)
            for pairs in store.batches(number):
                yield _RocksDBRows(pairs, family, number)
