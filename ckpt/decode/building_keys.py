"""Keys of RocksDB state from Arrow arrays, as each encoder of Spark writes them: what ``ckpt.decode.keys`` reads."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ckpt.decode.arrow import structs
from ckpt.decode.building import memory, rows_from
from ckpt.decode.rows import VERSION
from ckpt.decode.trouble import Undecodable
from ckpt.decode.types import FIXED
from ckpt.formats.types import named_fields, struct_of
from ckpt.model import Json

_INT = struct.Struct("<i")
_NEGATIVE, _POSITIVE, _NULL = 0, 1, 2  # markers of ordering columns


def key_blobs(kind: Json, encoder: Json, keys: Any) -> list[bytes]:
    """An array of structs as keys, without the number of a column family.

    Args:
        kind: The key schema, a StructType in Spark's JSON.
        encoder: ``keyStateEncoderSpec`` as the state schema records it.
        keys: Without NULL.

    Raises:
        Undecodable: ckpt does not write keys of that encoder, or of a type in them.

    """
    fields, columns = list(named_fields(kind)), keys.flatten()
    match encoder:
        case {"keyStateEncoderType": "NoPrefixKeyStateEncoderSpec"}:
            return versioned(kind, keys)
        case {"keyStateEncoderType": "PrefixKeyScanStateEncoderSpec", "numColsPrefixKey": int(count)}:
            first = _part(fields[:count], columns[:count], len(keys))
            return _together(first, _part(fields[count:], columns[count:], len(keys)))
        case {"keyStateEncoderType": "RangeKeyScanStateEncoderSpec", "orderingOrdinals": list(places)}:
            ordinals = [one for one in places if isinstance(one, int)]
            ordering = [(fields[place][0], "binary") for place in ordinals]
            first = _part(ordering, [_comparable(fields[place][1], columns[place]) for place in ordinals], len(keys))
            others = [place for place in range(len(fields)) if place not in ordinals]
            if not others:
                return _together(first, [b""] * len(keys))
            return _together(first, _part([fields[one] for one in others], [columns[one] for one in others], len(keys)))
    raise Undecodable(f"ckpt does not write keys of the encoder {encoder}")


def versioned(kind: Json, array: Any) -> list[bytes]:
    """Rows as RocksDB has them, after a version byte."""
    return [VERSION + row for row in rows_from(kind, array).to_list()]


def _part(fields: Sequence[tuple[str, Json]], columns: Sequence[Any], count: int) -> list[bytes]:
    """Some columns of a key as a row of their own."""
    return versioned(struct_of(fields), structs([name for name, _ in fields], list(columns), count))


def _together(first: list[bytes], rest: list[bytes]) -> list[bytes]:
    return [_INT.pack(len(one)) + one + other for one, other in zip(first, rest, strict=True)]


def _comparable(kind: Json, column: Any) -> Any:
    """A column so that its bytes compare as its values do: a marker, and the value big-endian."""
    if not isinstance(kind, str) or kind not in FIXED or FIXED[kind][0].kind == "f":
        raise Undecodable(f"ckpt does not write keys that are ordered by a column of type {kind}")
    dtype = FIXED[kind][0]
    there = np.asarray(column.is_valid())
    values = np.where(there, memory(column, dtype), dtype.type(0))
    markers = np.where(there, np.where(values < 0, _NEGATIVE, _POSITIVE), _NULL)
    parts: Any = np.empty((len(column), 1 + dtype.itemsize), np.uint8)
    parts[:, 0] = markers
    parts[:, 1:] = values.astype(dtype.newbyteorder(">")).view(np.uint8).reshape(-1, dtype.itemsize)
    data = parts.tobytes()
    return pa.array([data[at : at + parts.shape[1]] for at in range(0, len(data), parts.shape[1])], pa.binary())
