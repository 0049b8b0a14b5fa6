"""State schema files of all versions, and the bytes in which ckpt writes them."""

import json
import struct

import pytest
from hypothesis import given, strategies as st

from ckpt.formats.operators import format_operator_metadata, parse_operator_metadata
from ckpt.formats.schemas import format_state_schema, parse_state_schema
from ckpt.model import ColumnFamily, Fault, Json, Unreadable
from tests.support.places import SAMPLES


def struct_of(*names: str) -> dict:
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in names]
    return {"type": "struct", "fields": fields}


def modified_utf(text: str) -> bytes:
    """Java's ``writeUTF``: zeros as two bytes, characters beyond 16 bits as two surrogates."""
    units = struct.unpack(f"<{len(text.encode('utf-16-le')) // 2}H", text.encode("utf-16-le"))
    coded = b"".join(b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass") for unit in units)
    return struct.pack(">H", len(coded)) + coded


def chunks(text: str, size: int = 60_000) -> bytes:
    """A long string as ``writeJsonSchema`` cuts it, between 16-bit units."""
    units = text.encode("utf-16-le", "surrogatepass")
    parts = [units[i : i + 2 * size].decode("utf-16-le", "surrogatepass") for i in range(0, len(units), 2 * size)]
    coded = []
    for part in parts:
        body = b"".join(
            b"\xc0\x80" if unit == "\0" else unit.encode("utf-8", "surrogatepass")
            for unit in (part if part.isascii() or max(map(ord, part)) < 0x10000 else _surrogates(part))
        )
        coded.append(struct.pack(">H", len(body)) + body)
    return struct.pack(">i", len(parts)) + b"".join(coded)


def _surrogates(text: str) -> str:
    units = text.encode("utf-16-le", "surrogatepass")
    return "".join(map(chr, struct.unpack(f"<{len(units) // 2}H", units)))


KEY, VALUE = struct_of("key"), struct_of("count", "sum")
ENCODER: Json = {"keyStateEncoderType": "PrefixKeyScanStateEncoderSpec", "numColsPrefixKey": 1}


def v2(key: dict = KEY, value: dict = VALUE, size: int = 60_000) -> bytes:
    texts = [json.dumps(schema, ensure_ascii=False) for schema in (key, value)]
    return modified_utf("v2") + b"".join(chunks(text, size) for text in texts)


def v3(ids: bool, user_key: str = "{    }") -> bytes:
    generation = b"\0\1" if ids else b""
    family = modified_utf("counts") + generation + chunks(json.dumps(KEY)) + generation + chunks(json.dumps(VALUE))
    return modified_utf("v3") + struct.pack(">i", 1) + family + chunks(json.dumps(ENCODER)) + chunks(user_key)


def test_version_1_has_plain_strings() -> None:
    data = modified_utf("v1") + modified_utf(json.dumps(KEY)) + modified_utf(json.dumps(VALUE))
    assert parse_state_schema("s", data) == (ColumnFamily("default", KEY, VALUE),)


@pytest.mark.parametrize("size", [60_000, 50, 7, 1])
@pytest.mark.parametrize("name", ["key", "größe", "\U0001f600 smile", "zero\0"])
def test_version_2_has_chunks_which_may_part_surrogates(size, name) -> None:
    key = struct_of(name)
    assert parse_state_schema("s", v2(key, size=size)) == (ColumnFamily("default", key, VALUE),)


@pytest.mark.parametrize("ids", [True, False])
def test_version_3_has_column_families_with_and_without_generation_ids(ids) -> None:
    family = ColumnFamily("counts", KEY, VALUE, ENCODER, None, evolved=ids, generation=int(ids))
    assert parse_state_schema("s", v3(ids)) == (family,)
    user_key = struct_of("user")
    assert parse_state_schema("s", v3(ids, json.dumps(user_key))) == (family._replace(user_key_schema=user_key),)


@pytest.mark.parametrize(
    ("data", "fault", "says"),
    [
        (b"", Fault.EMPTY, "EOFException"),
        (b"\0", Fault.BAD_VERSION, "EOFException"),
        (b"\0\2v", Fault.BAD_VERSION, "EOFException"),
        (b"\0\2v9more", Fault.NEWER_VERSION, "UnsupportedLogVersion"),
        (b"\0\5hello", Fault.BAD_VERSION, None),
        (b"\0\2v0", Fault.BAD_VERSION, None),
        (b"\0\2v2", Fault.BAD_BINARY, "EOFException"),
        (v2()[:-1], Fault.BAD_BINARY, "EOFException"),
        (v3(True)[:-1], Fault.BAD_BINARY, "EOFException"),
        (modified_utf("v1") + modified_utf("[]") + modified_utf("{}"), Fault.BAD_BINARY, None),
        (modified_utf("v2") + chunks("[" * 100_000) * 2, Fault.BAD_BINARY, None),
    ],
)
def test_what_cannot_be_read_and_what_spark_says_to_it(data, fault, says) -> None:
    found = parse_state_schema("s", data)
    assert isinstance(found, Unreadable)
    assert (found.fault, found.says) == (fault, says)


@given(st.integers(0, 400), st.integers(0, 255), st.sampled_from([v2(), v3(True), v3(False)]))
def test_no_flipped_byte_raises(at, value, data) -> None:
    at %= len(data)
    parse_state_schema("s", data[:at] + bytes([value]) + data[at + 1 :])


def test_a_count_that_cannot_be_does_not_cost_memory() -> None:
    assert isinstance(parse_state_schema("s", b"\0\2v3\x7f\xff\xff\xff"), Unreadable)
    assert isinstance(parse_state_schema("s", b"\0\2v2\x7f\xff\xff\xff"), Unreadable)


SCHEMAS = sorted({*SAMPLES.glob("*/state/*/0/**/_metadata/schema"), *SAMPLES.glob("*/state/*/_stateSchema/*/[0-9]*")})


@pytest.mark.parametrize("version", [2, 3])
def test_a_schema_that_is_written_again_has_the_same_bytes(version: int) -> None:
    files = [path for path in SCHEMAS if path.read_bytes()[2:4] == f"v{version}".encode()]
    assert len(files) > 5
    for path in files:
        families = parse_state_schema(str(path), path.read_bytes())
        if not isinstance(families, Unreadable):
            assert format_state_schema(version, families) == path.read_bytes(), path


def test_operator_metadata_that_is_written_again_has_the_same_bytes() -> None:
    files = sorted(SAMPLES.glob("*/state/*/_metadata/metadata"))
    assert len(files) > 10
    for path in files:
        metadata = parse_operator_metadata(str(path), path.read_bytes())
        assert not isinstance(metadata, Unreadable)
        assert format_operator_metadata(metadata) == path.read_bytes(), path
