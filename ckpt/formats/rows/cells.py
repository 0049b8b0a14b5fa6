"""UnsafeRows taken apart and put together, byte for byte as Spark's ``UnsafeProjection`` does, whatever is in them.

A row is null bits (8 bytes for each 64 fields), a slot of 8 bytes for each field, and what does not fit into a slot, in
the order of the fields; such a slot has the offset from the row's beginning and the length. Decimals of more than 18
digits and calendar intervals keep 16 bytes, also for NULL.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ckpt.formats.rows.errors import Undecodable
from ckpt.formats.rows.types import TypeShape, shape_of
from ckpt.model import Json

_WORD = 8
_KEPT = 16  # bytes for a value that may grow or become NULL
_SLOT = struct.Struct("<Q")
_LENGTH = (1 << 32) - 1
_IN_THE_SLOT = (TypeShape.NULL, TypeShape.BOOLEAN, TypeShape.FIXED, TypeShape.SMALL_DECIMAL)


@dataclass(frozen=True, slots=True)
class Cell:
    """One field of a row."""

    null: bool
    slot: bytes
    variable: bytes | None  # what the slot points to
    keeps: bool  # 16 bytes, whatever the length is


def cells(row: bytes, kinds: Sequence[Json]) -> list[Cell]:
    """The fields of a row; ``kinds`` are their types in Spark's JSON. Raises Undecodable."""
    begin = _bitset(len(kinds))
    if len(row) < begin + len(kinds) * _WORD:
        raise Undecodable("a row is shorter than its fields")
    return [_cell(row, ordinal, begin + ordinal * _WORD, kind) for ordinal, kind in enumerate(kinds)]


def _cell(row: bytes, ordinal: int, at: int, kind: Json) -> Cell:
    null, slot = bool(row[ordinal // 8] >> ordinal % 8 & 1), row[at : at + _WORD]
    shape = shape_of(kind)
    if shape in _IN_THE_SLOT:
        return Cell(null, slot, None, keeps=False)
    keeps = shape is TypeShape.LARGE_DECIMAL or kind == "interval"
    if null:
        return Cell(null, bytes(_WORD), None, keeps)
    (pointer,) = _SLOT.unpack(slot)
    start, length = pointer >> 32, pointer & _LENGTH
    if start + length > len(row):
        raise Undecodable("a field is not inside its row")
    return Cell(null, slot, row[start : start + length], keeps)


def row_of(fields: Sequence[Cell]) -> bytes:
    """The row that has these fields."""
    nulls = bytearray(_bitset(len(fields)))
    slots, variable = b"", b""
    begin = len(nulls) + len(fields) * _WORD
    for ordinal, cell in enumerate(fields):
        nulls[ordinal // 8] |= cell.null << ordinal % 8
        content = cell.variable
        if content is None and not cell.keeps:
            slots += cell.slot
            continue
        length = len(content or b"")
        slots += _SLOT.pack((begin + len(variable)) << 32 | length)
        variable += (content or b"").ljust(_KEPT if cell.keeps else -(-length // _WORD) * _WORD, b"\0")
    return bytes(nulls) + slots + variable


def split(row: bytes, kinds: Sequence[Json], first: int) -> tuple[bytes, bytes]:
    """A row of the first fields, and one of the others."""
    fields = cells(row, kinds)
    return row_of(fields[:first]), row_of(fields[first:])


def join_rows(first: bytes, rest: bytes, kinds: Sequence[Json], count: int) -> bytes:
    """The row of which ``first`` has ``count`` fields and ``rest`` the others."""
    return row_of([*cells(first, kinds[:count]), *cells(rest, kinds[count:])])


def _bitset(fields: int) -> int:
    return (fields + 63) // 64 * _WORD
