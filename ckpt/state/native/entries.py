"""The stored keys and values of a unit, batch by batch: as Spark's reader gives them, or a column for each leaf."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ckpt.checkpoint.state.folders import SSTS
from ckpt.errors import WITH_SPARK, TooLarge, Undecodable, Unfit, UsageError
from ckpt.formats.rows import avro
from ckpt.formats.rows.arrow import structs, whole
from ckpt.formats.rows.codecs import MOST_BYTES, decompress
from ckpt.formats.rows.hdfs import Records, find_key, keep_newest, records_of
from ckpt.formats.rows.keys import keys_of
from ckpt.formats.rows.row_checksums import plain_file
from ckpt.formats.rows.types import arrow_type
from ckpt.formats.rows.unsafe import VERSION, Rows, are_one_null, check_width, rows_at, rows_of, structs_of
from ckpt.formats.types import named_fields, type_at
from ckpt.model import Json, Provider
from ckpt.processes import Processes, Runner
from ckpt.state.book import BOOK
from ckpt.state.native import rocksdb
from ckpt.state.native.store_files import MOST_ROWS, StoreFiles, UnitLayout, find_fitting_files, find_store, layout_of
from ckpt.state.native.temporary import make_temporary_folder
from ckpt.state.reading.columns import PARTITION, Columns
from ckpt.state.reading.reading import ChosenState
from ckpt.state.reading.units import StateUnit, UnitKind
from ckpt.storage.locations import is_in_memory

_LENGTH = 4
_COMMA = 0x2C
NOT_AS_WRITTEN = (Undecodable, pa.ArrowException, ValueError, OverflowError, IndexError)
"""Errors of decoding rows that Spark did not write."""


@dataclass(frozen=True, slots=True)
class Entries:
    """Keys of one partition, each with its value: arrays of structs. Of a list each element has its key."""

    partition: int
    keys: Any
    values: Any
    sizes: Any  # of each value, in bytes as it is stored


def entries_of(chosen: ChosenState, unit: StateUnit, only: int | None = None) -> Generator[Entries, None, None]:
    """Everything that is stored for a unit, or in one partition. Raises Undecodable, StateDamaged and StorageError."""
    layout = layout_of(chosen, unit)
    for files in find_fitting_files(chosen, unit.operator, layout.store, only):
        yield from entries_in(files, unit, layout)


def entries_in(files: StoreFiles, unit: StateUnit, layout: UnitLayout) -> Generator[Entries, None, None]:
    """Read a unit's entries from files of one partition. Raises Undecodable and StorageError."""
    if unit.provider is Provider.HDFS:
        for rows in read_hdfs_rows(files):
            yield _decode(decode_rows, files, layout, *rows)
        return
    with rocksdb.store(files) as store:
        number = store.number(layout.family)
        for pairs in store.batches(number):
            keys = [key[len(number) :] for key, _ in pairs]
            yield _decode(decode_bytes, files, layout, keys, [value for _, value in pairs])


def entry_of(chosen: ChosenState, unit: StateUnit, layout: UnitLayout, only: int, key: bytes) -> Iterator[Entries]:
    """Read the entries of one key, in the one partition where it can be; ``key`` is the bytes of its row."""
    for files in find_fitting_files(chosen, unit.operator, layout.store, only):
        if unit.provider is Provider.HDFS:
            record = find_key(read_records(files), key)
            if record is not None:
                yield _decode(decode_rows, files, layout, *_split_records(files, files.place.folder, record))
            continue
        with rocksdb.store(files) as store:
            stored = VERSION + key
            value = store.value(store.number(layout.family) + stored)
            if value is not None:
                yield _decode(decode_bytes, files, layout, [stored], [value])


def read_hdfs_rows(files: StoreFiles) -> Iterator[tuple[Rows, Rows]]:
    """Keys and values of an HDFS-backed store, some at a time. Its files are in memory, as they are in Spark."""
    newest = keep_newest(read_records(files), distinct=files.snapshot is not None)
    for path, records in zip(files.paths, newest, strict=True):
        for start in range(0, len(records), MOST_ROWS):
            yield _split_records(files, path, records.take(slice(start, start + MOST_ROWS)))


def _split_records(files: StoreFiles, path: str, records: Records) -> tuple[Rows, Rows]:
    with files.refusing(path):
        keys = rows_at(records.data, records.key_at, records.key_size)
        return keys, rows_at(records.data, records.value_at, records.value_size)


def read_records(files: StoreFiles) -> list[Records]:
    """The records of every file, oldest first."""
    read: list[Records] = []
    for path in files.paths:
        with files.refusing(path):
            data = decompress(files.pieces(path), files.codec, files.most)
            read.append(records_of(plain_file(data) if files.checksums else data))
            if sum(len(records.data) for records in read) > files.most:
                raise TooLarge(BOOK.text("partition_too_large", most=f"{files.most:,}", spark=WITH_SPARK))
    return read


def _decode(decode: Callable[..., Entries], files: StoreFiles, layout: UnitLayout, *rows: Any) -> Entries:
    try:
        return decode(files.place.partition, layout, *rows)
    except NOT_AS_WRITTEN as error:
        if layout.stated and isinstance(error, Unfit):
            stated = f"rows of {files.place.folder} do not fit the given schema"
            raise Unfit(f"{files.storage.uri}: {stated}: {error}") from None
        raise files.refused(files.place.folder, error) from None


def decode_rows(partition: int, layout: UnitLayout, keys: Rows, values: Rows) -> Entries:
    """Rows of an HDFS-backed store. Raises what is in ``NOT_AS_WRITTEN``."""
    if layout.stated:
        check_width(layout.key, keys, "key")
        check_width(layout.value, values, "value")
    return Entries(partition, structs_of(layout.key, keys, "key"), _values_of(layout, values), values.size)


def decode_bytes(partition: int, layout: UnitLayout, keys: Sequence[bytes], values: Sequence[bytes]) -> Entries:
    """Decode keys and values of a RocksDB family, without its number. Raises what is in ``NOT_AS_WRITTEN``."""
    if layout.stated:
        check_width(layout.key, rows_of(keys), "key")
        check_width(layout.value, rows_of(values), "value")
    key_structs = keys_of(layout.key, layout.encoder, keys, avro.key_columns if layout.avro else None)
    if layout.several:
        generations = layout.generations
        parts = [avro.elements(value, generations) if layout.avro else split_elements(value) for value in values]
        counts = np.fromiter(map(len, parts), np.int64, len(parts))
        key_structs = key_structs.take(whole(pa.int64(), np.repeat(np.arange(len(keys)), counts)))
        values = [element for part in parts for element in part]
    if layout.avro:
        own = avro.structs_of_generations(layout.value, values, "value", layout.generations)
    else:
        own = _values_of(layout, rows_of(values))
    return Entries(partition, key_structs, own, np.fromiter(map(len, values), np.int64, len(values)))


def _values_of(layout: UnitLayout, rows: Rows) -> Any:
    if layout.only_keys and are_one_null(rows):
        return pa.nulls(len(rows), arrow_type(layout.value))
    return structs_of(layout.value, rows, "value")


def split_elements(value: bytes) -> list[bytes]:
    """The elements of a list: each after its length, and a comma between them where a merge operator puts one.

    No length begins with the byte of a comma: an element is a version byte and a row, of a multiple of 8 bytes.
    """
    values: list[bytes] = []
    at = 0
    while at < len(value):
        if values and value[at] == _COMMA:
            at += 1
        length = int.from_bytes(value[at : at + _LENGTH], "little")
        at += _LENGTH
        if length % 8 != 1 or at + length > len(value):
            raise Unfit("a list has no element of the stated length")
        values.append(value[at : at + length])
        at += length
    return values


def raw_schema(unit: StateUnit) -> Any:
    """The columns that Spark's reader gives for a unit, as an Arrow schema."""
    fields = [pa.field(name, arrow_type(kind)) for name, kind in named_fields(unit.schema)]
    return pa.schema([*fields, pa.field(PARTITION, pa.int32())])


def flat_schema(columns: Columns) -> Any:
    """The columns of the flat shape, as an Arrow schema."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns.kept])


def batches_of(
    chosen: ChosenState, unit: StateUnit, columns: Columns | None = None, only: int | None = None
) -> Generator[Any, None, None]:
    """All rows of a unit, or of one partition: flat with these columns, without any as Spark's reader gives them."""
    for entries in entries_of(chosen, unit, only):
        yield make_raw(unit, entries) if columns is None else make_flat(columns, unit, entries)


def make_flat(columns: Columns, unit: StateUnit, entries: Entries) -> Any:
    """Entries as a batch with one column for each leaf."""
    return flatten_batch(columns, make_raw(unit, entries))


def flatten_batch(columns: Columns, batch: Any) -> Any:
    """A raw batch with one column for each leaf."""
    arrays = [pick_field(batch.columns, column.places) for column in columns.kept]
    return pa.RecordBatch.from_arrays(arrays, schema=flat_schema(columns))


def pick_field(columns: Sequence[Any], places: Sequence[int]) -> Any:
    """A field of a field ..., by position."""
    array = columns[places[0]]
    for ordinal in places[1:]:
        array = array.flatten()[ordinal]
    return array


def make_raw(unit: StateUnit, entries: Entries) -> Any:
    """Entries as a batch of rows as Spark's reader gives them."""
    partition = whole(pa.int32(), np.full(len(entries.keys), entries.partition, np.int32))
    return pa.RecordBatch.from_arrays([*_columns(unit, entries), partition], schema=raw_schema(unit))


def _columns(unit: StateUnit, entries: Entries) -> Iterator[Any]:
    key, value = entries.keys, entries.values
    match unit.kind:
        case UnitKind.SIDE:
            yield _first_fields(key, type_at(unit.schema, (0,)))
            yield _first_fields(value, type_at(unit.schema, (1,)))
        case UnitKind.MAP:
            yield from (*key.flatten(), value)
        case UnitKind.TIMERS:
            yield from key.flatten()
        case _:
            yield from (key, value)


def _first_fields(array: Any, kind: Json) -> Any:
    """A struct without the fields that Spark adds at its end."""
    names = [name for name, _ in named_fields(kind)]
    return structs(names, array.flatten()[: len(names)], len(array))


_WORTH_A_PROCESS = 16 << 20  # bytes of files: what takes twice as long to decode as a process to start
_UNPACKED = 10  # times the bytes of its files: what HDFS-backed state takes as rows


UnitWork: TypeAlias = Callable[[ChosenState, StateUnit, Any, Any], Iterable[Any]]
"""A function of a module: from a unit, what all partitions share and one partition, to results."""


def map_partitions(
    chosen: ChosenState,
    unit: StateUnit,
    work: UnitWork,
    what: Any,
    jobs: int | None,
    engine: Runner | None = None,
    only: int | None = None,
) -> Generator[Any, None, None]:
    """The results of each partition of a unit, or of one, in order.

    ``engine`` does the work; by default this process, and others where there is enough to share. Raises UsageError for
    an impossible ``jobs``.
    """
    files = list(find_fitting_files(chosen, unit.operator, find_store(unit), only))
    count = count_processes(chosen, files, jobs)
    with ExitStack() as stack:
        environment: Mapping[str, str] = os.environ
        if engine is None and count > 1:  # nothing of the processes stays if they are killed
            environment = {**os.environ, "TMPDIR": stack.enter_context(make_temporary_folder())}
        partitions = [own.place.partition for own in files]
        runner = engine or Processes(count, environment)
        results = runner.run(open_unit, (work, chosen, unit, what), partitions, ordered=True)
        yield from (result for _, result in stack.enter_context(closing(results)))


def open_unit(shared: tuple[UnitWork, ChosenState, StateUnit, Any]) -> Callable[[Any], Iterable[Any]]:
    """Work on partitions of a unit, in any process."""
    work, *first = shared
    return partial(work, *first)


def count_processes(
    chosen: ChosenState, stores: Sequence[StoreFiles], jobs: int | None, worth: int | None = None
) -> int:
    """How many processes pay, if each is worth so many bytes.

    Of HDFS-backed state at most so many that their partitions fit into memory together.
    Raises UsageError for an impossible ``jobs``; None is one for each core.
    """
    if jobs is not None and jobs < 1:
        raise UsageError.of("{--jobs} must be at least 1")
    if not stores or is_in_memory(chosen.question.checkpoint):
        return 1
    sizes = [_size(chosen, files) for files in stores]
    count = min(jobs or os.cpu_count() or 1, len(stores), sum(sizes) // (worth or _WORTH_A_PROCESS))
    if chosen.units[0].provider is Provider.HDFS:
        count = min(count, MOST_BYTES // (max(sizes) * _UNPACKED + 1))
    return max(count, 1)


def _size(chosen: ChosenState, files: StoreFiles) -> int:
    """Bytes of the files of a version; of SST files of all that are there."""
    ssts = chosen.checkpoint.listing.in_folder(f"{files.place.folder}/{SSTS}") if files.snapshot else {}
    return files.size + sum(info.size for info in ssts.values())
