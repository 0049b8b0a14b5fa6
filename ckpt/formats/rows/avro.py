"""Rows that state keeps as Avro (Spark ``AvroStateEncoder``), to Arrow arrays, one after another, and from them.

A version byte, two bytes for the generation of the schema (little-endian), and the fields in Avro's binary form; each
is a union of null and its type (``SchemaConverters.toAvroTypeWithDefaults``), but for elements of arrays and values of
maps. A row of an earlier generation is read with its schema; then its fields are those of the newest, by their names.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import pyarrow as pa

from ckpt.errors import LeftToSpark, Undecodable, Unfit
from ckpt.formats.compression import read_varint
from ckpt.formats.rows.types import arrow_type
from ckpt.formats.types import fields_of, named_fields, struct_of
from ckpt.model import Json

VERSION, FIRST_GENERATION = b"\0", b"\0\0"
_LENGTH = 4
_COMMA = 0x2C
_MOST_WAYS = 64
_HEADER = len(VERSION + FIRST_GENERATION)
_WIDER = {
    "integer": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("binary",),
}
_NULL, _THERE, _END = b"\0", b"\2", b"\0"  # the branches of a union as numbers, and the block that ends
_WHOLE = {
    **dict.fromkeys(("integer", "date"), pa.int32()),
    **dict.fromkeys(("long", "timestamp", "timestamp_ntz"), pa.int64()),
}
_REAL = {"float": struct.Struct("<f"), "double": struct.Struct("<d")}


def structs_of(kind: Json, blobs: Sequence[bytes], what: str, header: bytes = VERSION + FIRST_GENERATION) -> pa.Array:
    """Rows as an array of structs, each after a header. Raises Undecodable where one is not as its schema says."""
    fields = [inner for _, inner in named_fields(kind)]
    rows = []
    for blob in blobs:
        if not blob.startswith(header):
            raise LeftToSpark(f"a row of {what} was written with a different schema from the first")
        reader = _Reader(blob, len(header))
        try:
            rows.append(reader.record(fields))
        except (IndexError, UnicodeDecodeError):
            raise Unfit(f"a row of {what} ends early, or has different columns from its schema") from None
        if reader.at != len(blob):
            raise Unfit(f"a row of {what} has different columns from its schema")
    return pa.array(rows, arrow_type(kind))


def structs_of_generations(kind: Json, blobs: Sequence[bytes], what: str, generations: Mapping[int, Json]) -> pa.Array:
    """Decode rows of several schema generations as structs of ``kind``. Raises as ``structs_of``."""
    heads = [blob[:_HEADER] for blob in blobs]
    there = sorted(set(heads))
    schemas = {_make_header(number): schema for number, schema in generations.items()}
    parts, order = [], list[int]()
    for head in there:
        rows = [row for row, own in enumerate(heads) if own == head]
        schema = schemas.get(head)
        if schema is None:
            raise LeftToSpark(f"a row of {what} was written with a missing schema")
        array = structs_of(schema, [blobs[row] for row in rows], what, head)
        parts.append(_fit(schema, kind, array, what))
        order += rows
    if len(parts) < 2:
        return parts[0] if parts else pa.array([], arrow_type(kind))
    places = pa.array(sorted(range(len(order)), key=order.__getitem__), pa.int64())
    return pa.concat_arrays(parts).take(places)


def _make_header(generation: int) -> bytes:
    return VERSION + generation.to_bytes(len(FIRST_GENERATION), "little")


def _fit(schema: Json, kind: Json, array: pa.Array, what: str) -> pa.Array:
    """An array of one type as the type that it has become, as Avro resolves a reader's schema. Raises LeftToSpark."""
    if array.type == arrow_type(kind):
        return array
    if isinstance(kind, dict) and kind.get("type") == "struct" and fields_of(schema) is not None:
        names = [name for name, _ in named_fields(schema)]
        own, columns = dict(zip(names, zip(named_fields(schema), array.flatten(), strict=True), strict=True)), []
        for (name, wanted), field in zip(named_fields(kind), fields_of(kind) or (), strict=True):
            if name in own:
                (_, has), column = own[name]
                columns.append(_fit(has, wanted, column, what))
            elif isinstance(field, dict) and field.get("nullable") is not False:
                columns.append(pa.nulls(len(array), arrow_type(wanted)))
            else:
                raise LeftToSpark(f"{what}.{name}, which must not be NULL, exists only in later schemas")
        mask = array.is_null() if array.null_count else None
        fields = [pa.field(name, arrow_type(wanted)) for name, wanted in named_fields(kind)]
        return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)
    if isinstance(schema, str) and isinstance(kind, str) and kind in _WIDER.get(schema, ()):
        return array.cast(arrow_type(kind), safe=False)
    raise LeftToSpark(f"ckpt does not read {schema} of {what} as {kind}, which its schema now has")


def key_columns(fields: list[tuple[str, Json]], blobs: Sequence[bytes], last: bool) -> list[pa.Array]:
    """The columns of a row in a key: only the last one names a generation."""
    header = VERSION + FIRST_GENERATION if last else VERSION
    columns: list[pa.Array] = structs_of(struct_of(fields), blobs, "key", header).flatten()
    return columns


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self.at = at

    def record(self, fields: Sequence[Json]) -> tuple[object, ...]:
        return tuple(self._nullable(kind) for kind in fields)

    def _nullable(self, kind: Json) -> object:
        if kind in ("void", "null"):
            return None
        branch = self._number()
        if branch not in (0, 1):
            raise IndexError
        return self._value(kind) if branch else None

    def _value(self, kind: Json) -> object:
        match kind:
            case {"type": "struct"}:
                return self.record([inner for _, inner in named_fields(kind)])
            case {"type": "array", "elementType": str(element)}:  # NULL is in none: Spark refuses to write it
                return [self._value(element) for _ in self._blocks()]
            case {"type": "map", "keyType": "string", "valueType": str(value)}:
                return [(self._bytes().decode(), self._value(value)) for _ in self._blocks()]
            case "boolean":
                return self._take(1) != b"\0"
            case "string":
                return self._bytes().decode()
            case "binary":
                return self._bytes()
            case str() if kind in _WHOLE:
                return self._number()
            case str() if kind in _REAL:
                return _REAL[kind].unpack(self._take(_REAL[kind].size))[0]
        name = (
            kind if isinstance(kind, str) else f"{kind.get('type') if isinstance(kind, dict) else kind}, as it is here,"
        )
        raise LeftToSpark(f"ckpt does not read Avro-encoded values of type {name}")

    def _blocks(self) -> Iterator[int]:
        """A turn for each element: blocks of some elements, up to an empty one."""
        while count := self._number():
            if count < 0:  # then the size of the block follows
                self._number()
            if abs(count) > len(self._data):
                raise IndexError
            yield from range(abs(count))

    def _number(self) -> int:
        number, self.at = read_varint(self._data, self.at)
        return number >> 1 ^ -(number & 1)

    def _bytes(self) -> bytes:
        return self._take(self._number())

    def _take(self, count: int) -> bytes:
        data = self._data[self.at : self.at + count]
        if count < 0 or len(data) < count:
            raise IndexError
        self.at += count
        return data


def elements(value: bytes, generations: Iterable[int] = (0,)) -> list[bytes]:
    """The elements of a list: each after its length, and a comma between them where a merge operator puts one.

    ``generations`` are those that its rows may name.

    A length may begin with the byte of a comma: raises Undecodable where the list can be read in two ways.
    """
    ways: list[tuple[list[bytes], int]] = [([], 0)]
    headers = tuple(map(_make_header, generations))
    readings: list[list[bytes]] = []
    while ways and len(ways) < _MOST_WAYS:
        parts, at = ways.pop()
        while at < len(value):
            nexts = list(_nexts(value, at, headers, first=not parts))
            if not nexts:
                break
            ways += (([*parts, value[begin:end]], end) for begin, end in nexts[1:])
            begin, at = nexts[0]
            parts.append(value[begin:at])
        else:
            readings.append(parts)
    if len(readings) != 1 or ways:
        raise Undecodable(
            "a list can be read in several ways" if readings else "a list does not have the elements it names"
        )
    return readings[0]


def _nexts(value: bytes, at: int, headers: tuple[bytes, ...], *, first: bool) -> Iterator[tuple[int, int]]:
    """Where the next element can begin and end."""
    for start in (at, at + 1) if not first and value[at] == _COMMA else (at,):
        begin = start + _LENGTH
        end = begin + int.from_bytes(value[start:begin], "little")
        if end <= len(value) and value.startswith(headers, begin):
            yield begin, end


def write_rows(kind: Json, array: pa.Array, last: bool = True, generation: int = 0) -> list[bytes]:
    """An array of structs without NULL as rows; in a key only the ``last`` one names a generation.

    Raises Undecodable for a type of which ckpt does not know how it is encoded.
    """
    header = _make_header(generation) if last else VERSION
    return [header + row for row in _records(kind, array)]


def _records(kind: Json, array: pa.Array) -> list[bytes]:
    fields = [inner for _, inner in named_fields(kind)]
    columns = [_write_nullable(inner, column) for inner, column in zip(fields, array.flatten(), strict=True)]
    return [b"".join(parts) for parts in zip(*columns, strict=True)] if columns else [b""] * len(array)


def _write_nullable(kind: Json, array: pa.Array) -> list[bytes]:
    if kind in ("void", "null"):
        return [b""] * len(array)
    there = array.is_valid().to_pylist()
    return [_THERE + value if known else _NULL for known, value in zip(there, _values(kind, array), strict=True)]


def _values(kind: Json, array: pa.Array) -> Sequence[bytes]:
    """Each without the branch of a union; of NULL anything."""
    match kind:
        case {"type": "struct"}:
            return _records(kind, array)
        case {"type": "array", "elementType": str(element)}:
            return _write_blocks(array, _write_without_null(element, array.values))
        case {"type": "map", "keyType": "string", "valueType": str(value)}:
            parts = (_write_without_null("string", array.keys), _write_without_null(value, array.items))
            return _write_blocks(array, [key + own for key, own in zip(*parts, strict=True)])
        case "boolean":
            return [b"\1" if value else b"\0" for value in array.to_pylist()]
        case "string" | "binary":
            texts = (value or b"" for value in array.cast(pa.binary()).to_pylist())
            return [_encode_number(len(text)) + text for text in texts]
        case str() if kind in _WHOLE:
            return [_encode_number(value or 0) for value in array.cast(_WHOLE[kind]).to_pylist()]
        case str() if kind in _REAL:
            return [_REAL[kind].pack(value or 0) for value in array.to_pylist()]
    raise Undecodable(f"ckpt does not write Avro-encoded values of type {kind}")


def _write_without_null(kind: Json, array: pa.Array) -> Sequence[bytes]:
    if array.null_count:
        raise Undecodable("Spark writes no NULL in Avro-encoded arrays and maps")
    return _values(kind, array)


def _write_blocks(array: pa.Array, elements: Sequence[bytes]) -> list[bytes]:
    return [
        b"".join([_encode_number(end - start), *elements[start:end], _END]) if end > start else _END
        for start, end in pairwise(array.offsets.to_pylist())
    ]


def _encode_number(value: int) -> bytes:
    """As Avro has an int or a long."""
    left, written = (value << 1) ^ (value >> 63), bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)
