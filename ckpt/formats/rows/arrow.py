"""Arrow arrays from numpy ones."""

from itertools import pairwise

import numpy as np
import pyarrow as pa

from ckpt.errors import LeftToSpark, Undecodable

_SMALL = 1 << 31  # bytes that offsets of 32 bits reach
_FEW = 64  # pieces that Python copies one by one


def validity(nulls: np.ndarray) -> pa.Buffer | None:
    """Arrow's bitmap of what is not NULL; None where nothing is."""
    return pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None


def fixed(kind: pa.DataType, values: np.ndarray, nulls: np.ndarray) -> pa.Array:
    """An array of a type of fixed width, from values as they lie in memory."""
    buffers = [validity(nulls), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(kind, len(nulls), buffers, int(nulls.sum()))


def whole(kind: pa.DataType, values: np.ndarray) -> pa.Array:
    """Make an array without NULL; ``pyarrow.array`` imports pandas, which takes longer than most reads."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))], 0)


def booleans(values: np.ndarray, nulls: np.ndarray) -> pa.Array:
    """An array of booleans."""
    return fixed(pa.bool_(), np.packbits(values, bitorder="little"), nulls)


def texts(
    kind: pa.DataType, raw: np.ndarray, starts: np.ndarray, sizes: np.ndarray, nulls: np.ndarray, what: str
) -> pa.Array:
    """An array of strings or binaries, copied out of memory. Raises Undecodable for text that is not UTF-8."""
    try:
        if len(starts) <= _FEW and not nulls.any() and int(sizes.sum()) < _SMALL and kind in (pa.string(), pa.binary()):
            return _few_texts(kind, raw, starts, sizes)
        return spread(copy_pieces(raw, starts[~nulls], sizes[~nulls]), nulls).cast(kind)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        raise Undecodable(f"{what} contains text that is not UTF-8") from None


def _few_texts(kind: pa.DataType, raw: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> pa.Array:
    """An array of a few, made without ``pyarrow.compute``, whose import takes longer than finding a key."""
    data = b"".join(raw[start : start + size].tobytes() for start, size in zip(starts, sizes, strict=True))
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    if kind == pa.string():
        for start, end in pairwise(ends):
            data[start:end].decode()
    return pa.Array.from_buffers(kind, len(sizes), [None, pa.py_buffer(ends), pa.py_buffer(data)], 0)


def copy_pieces(raw: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> pa.Array:
    """Pieces of memory as an array of binaries.

    One array over the memory has the pieces and what is between them in turn; Arrow copies every second element.
    """
    bounds: np.ndarray = np.empty(2 * len(starts) + 1, np.int64)
    bounds[:-1:2] = starts
    bounds[1::2] = starts + sizes
    bounds[-1] = bounds[-2] if len(starts) else 0
    if (np.diff(bounds) < 0).any():
        return pa.array(
            [raw[a : a + z].tobytes() for a, z in zip(starts.tolist(), sizes.tolist(), strict=True)], pa.large_binary()
        )
    kind, width = (pa.binary(), np.int32) if bounds[-1] < _SMALL else (pa.large_binary(), np.int64)
    buffers = [None, pa.py_buffer(bounds.astype(width)), pa.py_buffer(raw)]
    both = pa.Array.from_buffers(kind, 2 * len(starts), buffers, 0)
    return both.take(whole(pa.int64(), np.arange(0, 2 * len(starts), 2)))


def spread(values: pa.Array, nulls: np.ndarray) -> pa.Array:
    """An array with NULL put where it is NULL, from one that has only the others."""
    if not nulls.any():
        return values
    return values.take(fixed(pa.int64(), np.cumsum(~nulls) - 1, nulls))


def lists(values: pa.Array, counts: np.ndarray) -> pa.Array:
    """An array of lists without NULL, from all their elements."""
    return pa.ListArray.from_arrays(offsets(counts), values)


def offsets(counts: np.ndarray) -> pa.Array:
    """Where the elements of each list begin, and where those of the last end."""
    ends = np.cumsum(counts)
    if len(ends) and ends[-1] >= _SMALL:
        raise LeftToSpark("the arrays of one batch have too many elements")
    return whole(pa.int32(), np.concatenate([[0], ends]).astype(np.int32))


def structs(names: list[str], columns: list[pa.Array], count: int) -> pa.Array:
    """An array of structs without NULL; names may repeat."""
    kind = pa.struct([pa.field(name, column.type) for name, column in zip(names, columns, strict=True)])
    return pa.Array.from_buffers(kind, count, [None], 0, children=columns)
