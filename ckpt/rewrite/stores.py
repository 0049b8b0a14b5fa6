"""The rows of one store, moved: read as bytes from every partition, and put where the new number of them wants them.

No value is decoded; of keys only what decides the partition. HDFS-backed stores hold bare rows, RocksDB a version byte
before each and the first columns of some keys as a row of their own (``PrefixKeyScanStateEncoder``).
"""

import itertools
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ckpt.decode import avro, cells
from ckpt.decode.keys import keys_of, no_prefix, prefix
from ckpt.decode.rows import VERSION, Rows, rows_of
from ckpt.decode.trouble import Undecodable
from ckpt.decode.unsafe import structs_of
from ckpt.formats.schemas import DEFAULT_COLUMN_FAMILY
from ckpt.formats.types import named_fields
from ckpt.model import Json, Operator, Provider, Store
from ckpt.native import hdfs, rocksdb
from ckpt.native.files import StoreFiles
from ckpt.rewrite.dropping import Column, Dropping
from ckpt.rewrite.spreading import GroupingKey, grouping_key, is_single, partitions_for

Pair: TypeAlias = tuple[bytes, bytes]
_INT = struct.Struct("<i")
_MAP = "MapState"


@dataclass(slots=True)
class Families:
    """The numbers of column families, the same in all partitions of the new store."""

    numbers: dict[str, int] = field(default_factory=dict)
    internal: set[str] = field(default_factory=set)

    def take(self, numbers: Mapping[str, int], internal: Iterable[str]) -> None:
        """Those of one partition of the old store; a number that another family has is not taken over."""
        for name, number in sorted(numbers.items(), key=lambda one: one[1]):
            used = self.numbers.values()
            self.numbers.setdefault(name, number if number not in used else max(used) + 1)
        self.internal |= set(internal)


@dataclass(frozen=True, slots=True)
class Kept:
    """What the rows of a family are, in the old store and the new one."""

    key: Json  # a StructType in Spark's JSON
    encoder: Json  # of keys in RocksDB
    prefix: int  # columns that RocksDB keeps as a row of their own
    avro: bool

    @property
    def kinds(self) -> list[Json]:
        """The types of the key's columns."""
        return [kind for _, kind in named_fields(self.key)]

    def keys(self, blobs: Sequence[bytes], provider: Provider) -> Any:
        """Keys as an array of structs. Raises Undecodable."""
        if provider is Provider.HDFS:
            return structs_of(self.key, rows_of([VERSION + blob for blob in blobs]), "key")
        return keys_of(self.key, self.encoder, blobs, avro.key_columns if self.avro else None)


@dataclass(frozen=True, slots=True)
class Moving:
    """One store on its way: where it comes from, and what it becomes."""

    operator: Operator
    store: Store
    old: Provider
    new: Provider
    before: int  # partitions of the old one
    partitions: int | None  # over which rows are spread anew; None: each stays in its partition
    places: int  # partitions of the new store: one, where all rows are in partition 0 whatever their number is
    avro: bool
    delimiter: bytes
    dropping: Dropping

    def kept(self, family: str | None) -> Kept:
        """What a family holds. Raises Undecodable where the state schema does not describe it."""
        if family is None:
            columns = self.store.prefix_columns or 0
            return Kept(self.store.key_schema, prefix(columns) if columns else no_prefix(), columns, avro=False)
        found = {one.name: one for one in self.store.column_families}.get(family)
        if found is None:
            raise Undecodable(f"no state schema describes the column family {family}")
        return Kept(found.key_schema, found.key_encoder, 0, self.avro)

    def moved(self, files: Iterable[StoreFiles], families: Families) -> list[list[Pair]]:
        """The rows of each new partition, keys with the number of their family. Raises Undecodable, StorageError."""
        found: list[list[Pair]] = [[] for _ in range(self.places)]
        for one in files:
            for family, pairs in _stored(one, self.old, families, self.delimiter):
                try:
                    self._spread(found, family, pairs, one.place.partition, families)
                except Undecodable as error:
                    raise one.refused(one.place.folder, error) from None
        return found

    def _spread(
        self,
        found: list[list[Pair]],
        family: str | None,
        pairs: list[Pair],
        partition: int,
        families: Families,
    ) -> None:
        if not pairs:
            return
        single = is_single(self.operator, self.store)
        spread = not single and self.partitions is not None
        columns = self._columns(family, pairs) if spread or self.dropping.values else []
        if (single and partition) or (spread and (partitions_for(columns, len(pairs), self.before) != partition).any()):
            raise Undecodable("it has keys that Spark looks for in other partitions; see ckpt state verify")
        rows = self._converted(pairs)
        if family is not None:
            number = families.numbers[family].to_bytes(2, "little")
            rows = [(number + key, value) for key, value in rows]
        dropped = self.dropping.dropped(columns, len(pairs))
        if not spread or self.partitions is None:
            found[partition] += itertools.compress(rows, ~dropped)
            return
        places = partitions_for(columns, len(pairs), self.partitions)
        for place, row in itertools.compress(zip(places.tolist(), rows, strict=True), ~dropped):
            found[place].append(row)

    def _columns(self, family: str | None, pairs: list[Pair]) -> list[Column]:
        """The grouping key of each row."""
        kept = self.kept(family)
        return grouping_of(self.operator, self.store, family).columns(
            kept.key, kept.keys([key for key, _ in pairs], self.old)
        )

    def _converted(self, pairs: list[Pair]) -> list[Pair]:
        """Rows of a store without families, if the provider changes."""
        if self.old is self.new:
            return pairs
        kept = self.kept(None)
        if self.new is Provider.ROCKSDB:
            return [(_to_rocksdb(kept, key), VERSION + value) for key, value in pairs]
        return [(_to_hdfs(kept, key), value[len(VERSION) :]) for key, value in pairs]


def columns_of(operator: Operator, store: Store) -> list[tuple[str, Json]]:
    """Names and types of an operator's grouping key, as one of its stores has them. Raises Undecodable."""
    if is_single(operator, store):
        return []
    named = [family for family in store.column_families if family.name != DEFAULT_COLUMN_FAMILY]
    name, key = (named[0].name, named[0].key_schema) if named else (None, store.key_schema)
    return grouping_of(operator, store, name).kinds(key)


def grouping_of(operator: Operator, store: Store, family: str | None) -> GroupingKey:
    """Which part of the keys of a store, or of a family of it, is the operator's. Raises Undecodable."""
    maps = [variable.name for variable in operator.variables if variable.kind == _MAP]
    return grouping_key(operator.name, store.name, family, maps)


def _to_rocksdb(kept: Kept, key: bytes) -> bytes:
    if not kept.prefix:
        return VERSION + key
    first, rest = cells.split(key, kept.kinds, kept.prefix)
    return _INT.pack(len(VERSION + first)) + VERSION + first + VERSION + rest


def _to_hdfs(kept: Kept, key: bytes) -> bytes:
    if not kept.prefix:
        return key[len(VERSION) :]
    end = _INT.size + _INT.unpack_from(key)[0]
    first, rest = key[_INT.size + len(VERSION) : end], key[end + len(VERSION) :]
    return cells.joined(first, rest, kept.kinds, kept.prefix)


def _stored(
    files: StoreFiles, provider: Provider, families: Families, delimiter: bytes
) -> Iterator[tuple[str | None, list[Pair]]]:
    """The rows of one partition, some of a family at a time; keys without its number."""
    if provider is Provider.HDFS:
        for keys, values in hdfs.rows_in(files):
            yield None, list(zip(_bytes(keys), _bytes(values), strict=True))
        return
    with rocksdb.store(files) as store:
        if not store.families:
            yield from ((None, some) for some in store.batches(b"", delimiter))
            return
        families.take(store.families, store.internal)
        for family in store.families:
            number = store.number(family)
            for some in store.batches(number, delimiter):
                yield family, [(key[len(number) :], value) for key, value in some]


def _bytes(rows: Rows) -> list[bytes]:
    data = memoryview(rows.raw)
    starts = (rows.at * 8).tolist()
    return [bytes(data[start : start + size]) for start, size in zip(starts, rows.size.tolist(), strict=True)]
