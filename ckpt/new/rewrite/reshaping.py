"""Gives the rows of a store other columns: each is taken from an old one, or filled with a constant."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from ckpt.errors import Undecodable
from ckpt.formats.rows.arrow import structs, whole
from ckpt.formats.rows.keys import key_blobs
from ckpt.formats.rows.types import arrow_type
from ckpt.formats.rows.unsafe import VERSION, rows_of, structs_of
from ckpt.formats.rows.unsafe_writer import rows_from
from ckpt.formats.types import named_fields, struct_of
from ckpt.model import Json, Provider, Store
from ckpt.new.evolve.origins import (
    ColumnMerge,
    ColumnOrigin,
    FamilyColumns,
    LongerSessions,
    MadeWindow,
    StoreColumns,
    read_constant,
)
from ckpt.new.fitting import Misfit, fit_array, make_struct
from ckpt.new.rewrite.merging import merge_columns
from ckpt.new.rewrite.spreading import Column
from ckpt.new.rewrite.stored_rows import Families, OldRows, Stored, array_of, encode_rows, join_stored, list_forms
from ckpt.query.compare_queries import find_window_start
from ckpt.state.native.entries import split_elements

_NUMBER = 2  # bytes of the number of a column family in front of its keys
_LENGTH = 4  # bytes of the number in front of an element of a list


@dataclass(frozen=True)
class ColumnReshaping:
    """Gives the rows of a store new columns; a key is encoded as one row, so sessions, which have a prefix, keep it."""

    columns: StoreColumns
    provider: Provider

    def make_key(self, columns: list[Column], count: int) -> tuple[np.ndarray, list[Column]]:
        """Make the new grouping key of so many rows, and say which row each new one is made of. Raises Undecodable."""
        fields = list(named_fields(self.columns.key_schema))
        origins = self.columns.key or ()
        if self.columns.indexed:
            fields, origins = fields[:-1], origins[:-1]
        sources, old = np.arange(count), [array for _, _, array in columns]
        for origin in origins:
            if origin.window is not None and origin.old is not None:
                sources, windows = _make_windows(old[origin.old], origin.window)
                old = [array.take(whole(pa.int64(), sources)) for array in old]
                old[origin.old] = windows
        arrays = _pick_columns(fields, origins, old, len(sources))
        return sources, [(name, kind, array) for (name, kind), array in zip(fields, arrays, strict=True)]

    def reshape(self, rows: OldRows, key: list[Column], store: Store, sources: np.ndarray) -> Stored:
        """Make the new bytes of rows, whose new grouping key is ``key``, each of one old row. Raises Undecodable."""
        stored = rows.make_stored()
        several = len(sources) != len(rows) or bool((np.diff(sources) != 1).any())
        stored = stored.take(sources) if several else stored
        keys, values = stored.keys, stored.values
        if self.columns.key is not None:
            arrays = [array for _, _, array in key]
            if self.columns.indexed:
                arrays.append(rows.decode_keys(list_forms(store)[store.name], avro=False).flatten()[-1])
            keys = self._encode(self.columns.key_schema, arrays, len(stored))
        if self.columns.value is not None:
            there = structs_of(store.value_schema, rows.values, "value").flatten()
            there = [array.take(whole(pa.int64(), sources)) for array in there] if several else there
            arrays = _pick_columns(named_fields(self.columns.value_schema), self.columns.value, there, len(stored))
            values = self._encode(self.columns.value_schema, arrays, len(stored))
        return Stored(keys, values)

    def reshape_family(
        self, family: str, rows: Stored, delimiter: bytes, key: list[Column], old_keys: Callable[[], pa.StructArray]
    ) -> Stored | None:
        """Make the new bytes of rows of a column family, whose new grouping key is ``key``; None: it is left out.

        ``old_keys`` decodes the keys of ``rows``. Raises Undecodable.
        """
        columns = self._families.get(family)
        if columns is not None and columns.key_schema is not None:
            rows = Stored(self._encode_keys(columns, rows.keys, key, old_keys), rows.values)
            if columns.value is None:
                return rows
        if columns is None or (columns.new_name is not None and columns.value is None):
            return rows
        if columns.new_name is None or columns.value is None:
            return None
        values = rows.values.to_pylist()
        lists = [split_elements(value) for value in values] if columns.is_list else [[value] for value in values]
        there = structs_of(columns.old.value_schema, rows_of([element for own in lists for element in own]), "value")
        arrays = _pick_columns(named_fields(columns.value_schema), columns.value, there.flatten(), len(there))
        written = self._encode(columns.value_schema, arrays, len(there))
        if not columns.is_list:
            return Stored(rows.keys, written)
        elements = iter(len(row).to_bytes(_LENGTH, "little") + row for row in written.to_pylist())
        return Stored(rows.keys, array_of([delimiter.join(next(elements) for _ in own) for own in lists]))

    @staticmethod
    def _encode_keys(
        columns: FamilyColumns, keys: pa.LargeBinaryArray, key: list[Column], old_keys: Callable[[], pa.StructArray]
    ) -> pa.LargeBinaryArray:
        """Make the bytes of the keys of a column family, whose number they begin with."""
        arrays = [array for _, _, array in key]
        if columns.indexed:
            arrays.append(old_keys().flatten()[-1])
        names = [name for name, _ in named_fields(columns.key_schema)]
        blobs = key_blobs(columns.key_schema, columns.old.key_encoder, structs(names, arrays, len(keys)))
        return array_of([old[:_NUMBER] + new for old, new in zip(keys.to_pylist(), blobs, strict=True)])

    @cached_property
    def _families(self) -> dict[str, FamilyColumns]:
        return {family.old.name: family for family in self.columns.families}

    def rename(self, families: Families) -> Families:
        """Give the column families their new names."""
        names = {family.old.name: family.new_name or family.old.name for family in self.columns.families}
        numbers = {names.get(name, name): number for name, number in families.numbers.items()}
        return Families(numbers, {names.get(name, name) for name in families.internal})

    def merge(self, rows: Stored) -> Stored:
        """Merge rows that have the same key. Raises Undecodable."""
        merges = self.columns.merges
        if merges is None or not len(rows):
            return rows
        if self.columns.sessions is not None:
            return self._merge_sessions(rows, self.columns.sessions, merges)
        codes = np.asarray(rows.keys.dictionary_encode().indices)
        if not merges:
            return rows.take(np.sort(np.unique(codes, return_index=True)[1]))
        repeated = np.bincount(codes)[codes] > 1
        if not repeated.any():
            return rows
        several = np.flatnonzero(repeated)
        order = several[np.argsort(codes[several], kind="stable")]
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        groups = rows.take(order)
        columns = merge_columns(self._decode(groups), starts, merges)
        values = self._encode(self.columns.value_schema, columns, len(starts))
        return join_stored([rows.leave_out(repeated), Stored(groups.take(starts).keys, values)])

    def _decode(self, rows: Stored) -> list[pa.Array]:
        """The columns of new values."""
        version = VERSION if self.provider is Provider.HDFS else b""  # that rows in RocksDB have already
        blobs = rows_of([version + value for value in rows.values.to_pylist()])
        return list(structs_of(self.columns.value_schema, blobs, "value").flatten())

    def _merge_sessions(self, rows: Stored, sessions: LongerSessions, merges: tuple[ColumnMerge, ...]) -> Stored:
        """Lengthen sessions, and merge those of a group that meet (``MergingSessionsIterator``)."""
        fields, columns = list(named_fields(self.columns.value_schema)), self._decode(rows)
        start, end = (np.asarray(each.cast(pa.int64())) for each in columns[sessions.window].flatten())
        own = [number for number in range(sessions.lead) if number != sessions.window]
        key = struct_of(fields[number] for number in own)
        groups = structs([fields[number][0] for number in own], [columns[number] for number in own], len(rows))
        codes = np.asarray(array_of(rows_from(key, groups).to_list()).dictionary_encode().indices)
        order = np.lexsort((start, codes))
        codes, start = codes[order], start[order]
        end = _accumulate_ends(codes, end[order] + sessions.added_us)
        begins: np.ndarray = np.append(True, (codes[1:] != codes[:-1]) | (start[1:] > end[:-1]))
        starts = np.flatnonzero(begins)
        kind = columns[sessions.window].flatten()[0].type
        ends = end[np.append(starts[1:], len(start)) - 1]
        times = [pa.array(each).cast(kind) for each in (start[starts], ends)]
        taken = [column.take(pa.array(order)) for column in columns]
        lead = [column.take(pa.array(starts)) for column in taken[: sessions.lead]]
        names = [name for name, _ in named_fields(fields[sessions.window][1])]
        lead[sessions.window] = structs(names, times, len(starts))
        merged = merge_columns(taken[sessions.lead :], starts, merges) if merges else []
        values = self._encode(self.columns.value_schema, [*lead, *merged], len(starts))
        return Stored(rows.take(order[starts]).keys, values)

    def _encode(self, schema: Json, arrays: list[pa.Array], count: int) -> pa.LargeBinaryArray:
        return encode_rows(schema, arrays, count, self.provider)


def _pick_columns(
    fields: Iterable[tuple[str, Json]], origins: Sequence[ColumnOrigin], old: Sequence[pa.Array], count: int
) -> list[pa.Array]:
    """Make columns of so many rows from the old ones, or from constants. Raises Undecodable."""
    arrays = []
    rows = np.arange(count)
    for (name, kind), origin in zip(fields, origins, strict=True):
        constant = read_constant(name, kind, origin)
        if origin.old is None:
            arrays.append(pa.repeat(pa.scalar(constant, arrow_type(kind)), count))
            continue
        try:
            array = old[origin.old]
            if origin.fields is not None:
                inner = _pick_columns(named_fields(kind), origin.fields, array.flatten(), count)
                array = make_struct(kind, inner, np.asarray(array.is_valid()))
            elif origin.derived:
                array = array.cast(arrow_type(kind))
                array = array if constant is None else array.fill_null(constant)
            arrays.append(fit_array(kind, array, rows, name))
        except pa.ArrowInvalid as error:
            raise Undecodable(f"{name}: {error}") from None
        except Misfit as error:
            raise Undecodable(error.why) from None
    return arrays


def _make_windows(old: pa.StructArray, window: MadeWindow) -> tuple[np.ndarray, pa.StructArray]:
    """Make the windows, structs of a start and an end, that old ones are parts of; each with the place of its part."""
    start = old.flatten()[0]
    began = np.asarray(start.cast(pa.int64()))
    latest = np.asarray(find_window_start(began, window.slide_us, window.offset_us))
    places: list[np.ndarray] = []
    starts: list[np.ndarray] = []
    for before_us in range(0, window.length_us, window.slide_us):
        after = began - (latest - before_us)  # of the start of the new one
        own = np.flatnonzero((after % window.part_us == 0) & (after <= window.length_us - window.part_us))
        places.append(own)
        starts.append(latest[own] - before_us)
    begins = np.asarray(np.concatenate(starts))
    ends = np.asarray(begins + window.length_us)
    times = [pa.array(each).cast(start.type) for each in (begins, ends)]
    return np.concatenate(places), structs([field.name for field in old.type], times, len(begins))


def _accumulate_ends(codes: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The latest of each end and those before it in its group; ``codes`` are numbers of groups, in order.

    Sessions of several checkpoints may be inside each other.
    """
    ranked: np.ndarray = np.sort(ends)
    places = codes.astype(np.int64) * len(ends) + np.searchsorted(ranked, ends)
    latest: np.ndarray = ranked[np.maximum.accumulate(places) % len(ends)]
    return latest
