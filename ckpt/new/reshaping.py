"""Gives the rows of a store other columns: each is taken from an old one, or filled with a constant."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from ckpt.errors import Undecodable
from ckpt.formats.rows.arrow import structs
from ckpt.formats.rows.keys import key_blobs
from ckpt.formats.rows.types import arrow_type
from ckpt.formats.rows.unsafe import rows_of, structs_of
from ckpt.formats.types import named_fields
from ckpt.model import Json, Provider, Store
from ckpt.new.evolve.origins import ColumnOrigin, FamilyColumns, StoreColumns, read_constant
from ckpt.new.fill.fitting import Misfit, fit_array, make_struct
from ckpt.new.rewrite.filtering import Column
from ckpt.new.rewrite.stored_rows import Stored, array_of, encode_rows
from ckpt.new.rewrite.stores import Families, list_forms
from ckpt.query.compare_queries import find_window_start
from ckpt.state.native.entries import split_elements

_NUMBER = 2  # bytes of the number of a column family in front of its keys
_LENGTH = 4  # bytes of the number in front of an element of a list


@dataclass(frozen=True)
class ColumnReshaping:
    """Gives the rows of a store new columns; a key is encoded as one row, so sessions, which have a prefix, keep it."""

    columns: StoreColumns
    provider: Provider

    @property
    def changes_keys(self) -> bool:
        """True if rows get other keys, and so may change their partition."""
        return self.columns.key is not None

    @property
    def one_partition(self) -> bool:
        """True if all new rows are in partition 0."""
        return self.columns.has_no_key

    def make_key(self, columns: list[Column], count: int) -> list[Column]:
        """Make the new grouping key of so many rows. Raises Undecodable."""
        fields = list(named_fields(self.columns.key_schema))
        origins = self.columns.key or ()
        if self.columns.indexed:
            fields, origins = fields[:-1], origins[:-1]
        arrays = _pick_columns(fields, origins, [array for _, _, array in columns], count)
        return [(name, kind, array) for (name, kind), array in zip(fields, arrays, strict=True)]

    def reshape(self, rows: Any, key: list[Column], store: Store) -> Stored:
        """Make the new bytes of rows, whose new grouping key is ``key``. Raises Undecodable."""
        if self.columns.key is None:
            keys = rows.make_keys()
        else:
            arrays = [array for _, _, array in key]
            if self.columns.indexed:
                arrays.append(rows.decode_keys(list_forms(store)[store.name], avro=False).flatten()[-1])
            keys = self._encode(self.columns.key_schema, arrays, len(rows))
        if self.columns.value is None:
            values = rows.make_values()
        else:
            there = rows.decode_values(store.value_schema).flatten()
            arrays = _pick_columns(named_fields(self.columns.value_schema), self.columns.value, there, len(rows))
            values = self._encode(self.columns.value_schema, arrays, len(rows))
        return Stored(keys, values)

    def reshape_family(
        self, family: str, rows: Stored, delimiter: bytes, key: list[Column], old_keys: Callable[[], Any]
    ) -> Stored | None:
        """Make the new bytes of rows of a column family, whose new grouping key is ``key``. Raises Undecodable."""
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
        there = structs_of(columns.old_schema, rows_of([element for own in lists for element in own]), "value")
        arrays = _pick_columns(named_fields(columns.value_schema), columns.value, there.flatten(), len(there))
        written = self._encode(columns.value_schema, arrays, len(there))
        if not columns.is_list:
            return Stored(rows.keys, written)
        elements = iter(len(row).to_bytes(_LENGTH, "little") + row for row in written.to_pylist())
        return Stored(rows.keys, array_of([delimiter.join(next(elements) for _ in own) for own in lists]))

    @staticmethod
    def _encode_keys(columns: FamilyColumns, keys: Any, key: list[Column], old_keys: Callable[[], Any]) -> Any:
        """Make the bytes of the keys of a column family, whose number they begin with."""
        arrays = [array for _, _, array in key]
        if columns.indexed:
            arrays.append(old_keys().flatten()[-1])
        names = [name for name, _ in named_fields(columns.key_schema)]
        blobs = key_blobs(columns.key_schema, columns.key_encoder, structs(names, arrays, len(keys)))
        return array_of([old[:_NUMBER] + new for old, new in zip(keys.to_pylist(), blobs, strict=True)])

    @cached_property
    def _families(self) -> dict[str, FamilyColumns]:
        return {family.name: family for family in self.columns.families}

    def rename(self, families: Families) -> Families:
        """Give the column families their new names."""
        names = {family.name: family.new_name or family.name for family in self.columns.families}
        numbers = {names.get(name, name): number for name, number in families.numbers.items()}
        return Families(numbers, {names.get(name, name) for name in families.internal})

    def merge(self, rows: Stored) -> Stored:
        """Merge rows that now have the same key. Raises Undecodable."""
        if self.columns.merges is None or not len(rows):
            return rows
        from ckpt.new.rewrite.merging import RowMerging

        return RowMerging(self.columns, self.provider).merge(rows)

    def _encode(self, schema: Json, arrays: list[Any], count: int) -> Any:
        return encode_rows(schema, arrays, count, self.provider)


def _pick_columns(
    fields: Iterable[tuple[str, Json]], origins: Sequence[ColumnOrigin], old: Sequence[Any], count: int
) -> list[Any]:
    """Make columns of so many rows from the old ones, or from constants. Raises Undecodable."""
    arrays = []
    import numpy as np

    rows = np.arange(count)
    for (name, kind), origin in zip(fields, origins, strict=True):
        constant = read_constant(name, kind, origin)
        if origin.old is None:
            arrays.append(_repeat(kind, constant, count))
            continue
        try:
            array = old[origin.old]
            if origin.window is not None:
                array = _lengthen_windows(kind, array, *origin.window)
            elif origin.fields is not None:
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


def _lengthen_windows(kind: Json, windows: Any, length_us: int, offset_us: int) -> Any:
    """Return for each window, a struct of its start and end, the longer one that it is in."""
    start = windows.flatten()[0]
    import numpy as np

    starts = find_window_start(np.asarray(start.cast(pa.int64())), length_us, offset_us)
    times = [pa.array(each).cast(start.type) for each in (starts, starts + length_us)]
    return structs([name for name, _ in named_fields(kind)], times, len(start))


def _repeat(kind: Json, value: Any, count: int) -> Any:
    own = arrow_type(kind)
    return pa.nulls(count, own) if value is None else pa.repeat(pa.scalar(value, own), count)
