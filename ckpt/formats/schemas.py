"""State schema files, Spark's ``SchemaHelper.SchemaReader``: what the rows of a state store look like.

``state/<op>/0/[<store>/]_metadata/schema`` (v1, v2: one key and one value schema) and, for transformWithState,
``state/<op>/_stateSchema/<store>/<batch>_<uuid>`` (v3: one entry per column family). All begin with a version in
Java's modified UTF-8 and hold StructTypes as JSON; v2 and v3 cut long JSON into chunks.
"""

import json
import struct
from collections.abc import Sequence

from ckpt.formats.text import EndsEarly, join_parts, read_utf, write_utf
from ckpt.formats.types import strange_type
from ckpt.model import ColumnFamily, Fault, Json, Unreadable

NEWEST_VERSION = 3
"""The highest version that a known Spark writes."""

DEFAULT_COLUMN_FAMILY = "default"
_ENDS_EARLY = "EOFException"
_NO_TYPE = "UNSUPPORTED_DATATYPE"
_CHUNK = 65535 // 3  # characters: each has three bytes at most
_NO_JSON = "{    }"  # as Spark writes an object without a field
_GENERATION = struct.pack(">h", 0)  # the id of the first generation of a schema
_SMALLEST_ENTRY = 2 + 4 * 4  # bytes of a column family without any text


def parse_state_schema(path: str, data: bytes) -> tuple[ColumnFamily, ...] | Unreadable:
    """Read a state schema file of any version."""
    if not data:
        return Unreadable(path, Fault.EMPTY, "the file is empty", says=_ENDS_EARLY)
    try:
        line, at = read_utf(data, 0)
    except (EndsEarly, struct.error):
        return Unreadable(path, Fault.BAD_VERSION, "it does not start with a version", says=_ENDS_EARLY)
    except ValueError:
        return Unreadable(path, Fault.BAD_VERSION, "it does not start with a version")
    if not (line[:1] == "v" and line[1:].isascii() and line[1:].isdecimal() and len(line) < 10):
        return Unreadable(path, Fault.BAD_VERSION, "it does not start with a version")
    version = int(line[1:])
    if not 1 <= version <= NEWEST_VERSION:
        fault = Fault.NEWER_VERSION if version else Fault.BAD_VERSION
        says = "UnsupportedLogVersion" if version else None
        return Unreadable(path, fault, f"its version is v{version}", version, says)
    says = None
    for layout in _LAYOUTS[version]:
        try:
            return tuple(_Reader(data, at, layout).families())
        except (EndsEarly, struct.error):
            says = _ENDS_EARLY
        except _StrangeType as error:
            return Unreadable(path, Fault.BAD_JSON, str(error), version, _NO_TYPE)
        except (ValueError, RecursionError):
            continue
    return Unreadable(path, Fault.BAD_BINARY, "the bytes after its version cannot be decoded", version, says)


def format_state_schema(version: int, families: Sequence[ColumnFamily]) -> bytes:
    """The bytes of a state schema file of version 2, of one column family, or 3, as Spark writes them."""
    if version == 2:
        (family,) = families
        return write_utf("v2") + _chunks(family.key_schema) + _chunks(family.value_schema)
    parts = [write_utf("v3"), struct.pack(">i", len(families))]
    for family in families:
        parts += [write_utf(family.name), _GENERATION, _chunks(family.key_schema), _GENERATION]
        parts += [_chunks(family.value_schema), _chunks(family.key_encoder), _chunks(family.user_key_schema)]
    return b"".join(parts)


def _chunks(value: Json) -> bytes:
    """A JSON text in chunks (``SchemaWriter.writeJsonSchema``)."""
    text = _NO_JSON if value is None else json.dumps(value, separators=(",", ":"))
    chunks = [text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK)]
    return struct.pack(">i", len(chunks)) + b"".join(map(write_utf, chunks))


class _StrangeType(Exception):
    """A type that Spark does not know; the text says which."""


class _Reader:
    def __init__(self, data: bytes, at: int, layout: str) -> None:
        self._data = data
        self._at = at
        self._layout = layout

    def families(self) -> list[ColumnFamily]:
        """All column families. Raises ValueError or struct.error where the bytes are not of this layout."""
        if self._layout in ("whole", "chunked"):
            read = self._utf if self._layout == "whole" else self._text
            return [ColumnFamily(DEFAULT_COLUMN_FAMILY, self._struct(read()), self._struct(read()))]
        count = self._number()
        if not 0 <= count <= len(self._data) // _SMALLEST_ENTRY:
            raise ValueError("an impossible count")
        return [self._family() for _ in range(count)]

    def _family(self) -> ColumnFamily:
        name = join_parts([self._utf()])
        schemas, generations = [], []
        for _ in ("key", "value"):
            generations.append(self._number(">h") if self._layout == "families" else 0)  # which Avro rows name
            schemas.append(self._struct(self._text()))
        encoder, user_key = json.loads(self._text()), json.loads(self._text())
        kinds = (schemas[0], schemas[1], encoder or None, user_key or None)
        return ColumnFamily(name, *kinds, evolved=any(generations), generation=generations[1])

    def _number(self, form: str = ">i") -> int:
        (value,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return int(value)

    def _utf(self) -> str:
        text, self._at = read_utf(self._data, self._at)
        return text

    def _text(self) -> str:
        """A string in chunks (``SchemaWriter.writeJsonSchema``)."""
        count = self._number()
        if not 0 <= count <= len(self._data) // 2:
            raise ValueError("an impossible count")
        return join_parts([self._utf() for _ in range(count)])

    def _struct(self, text: str) -> Json:
        """A StructType's JSON. Raises ValueError where it is something else."""
        value: Json = json.loads(text)
        if not isinstance(value, dict) or not isinstance(value.get("fields"), list):
            raise ValueError("no StructType")
        strange = strange_type(value)
        if strange is not None:
            raise _StrangeType(strange)
        return value


_LAYOUTS = {
    1: ("whole",),
    2: ("chunked",),
    # Spark 4.0.0 writes ids of schema generations before each schema; builds before its release did not.
    3: ("families", "families-without-ids"),
}
