"""Keys as bytes: which partition Spark's hash names for many at once, and keys taken apart and put together."""

import os
import resource
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from ckpt.errors import CkptError, LeftToSpark
from ckpt.formats.keyhash import partition_of
from ckpt.formats.rows.codecs import compress, decompress
from ckpt.formats.rows.keys import encoder_with_prefix, key_blobs, keys_of
from ckpt.formats.rows.partitions import partitions_of
from ckpt.formats.rows.types import arrow_type
from ckpt.formats.rows.unsafe_writer import rows_from
from ckpt.formats.types import struct_of
from ckpt.new.rewrite.snapshots import FileForm, make_rocksdb_snapshot
from ckpt.new.rewrite.stored_rows import Families, make_stored
from ckpt.state.native.temporary import report_no_room

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "byte": st.integers(-(2**7), 2**7 - 1),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "string": st.text(),
    "binary": st.binary(),
    "decimal(9,2)": st.decimals(-(10**6), 10**6, places=2),
    "decimal(38,4)": st.decimals(-(10**20), 10**20, places=4),
}
COLUMNS = st.sampled_from(sorted(VALUES)).flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(st.none() | VALUES[kind], min_size=3, max_size=9))
)


@given(COLUMNS, st.integers(1, 300))
@pytest.mark.slow
def test_many_keys_are_where_each_of_them_is(column: tuple[str, list[Any]], partitions: int) -> None:
    """`test_hashes.py` compares them with what Spark answers."""
    kind, values = column
    array = pa.array(values, arrow_type(kind))
    found = partitions_of([(kind, array.slice(1))], len(values) - 1, partitions)
    each = [partitions_of([(kind, pa.array([value], array.type))], 1, partitions) for value in values[1:]]
    assert found.tolist() == [numbers[0] for numbers in each]


def structs(fields: list[tuple[str, Any]]) -> tuple[Any, Any]:
    """A StructType, and one struct of it as an array."""
    names = [str(number) for number in range(len(fields))]
    arrays = [pa.array([value], arrow_type(kind)) for kind, value in fields]
    kind = struct_of(list(zip(names, (kind for kind, _ in fields), strict=True)))
    return kind, pa.StructArray.from_arrays(arrays, names)


def encode(fields: list[tuple[str, Any]]) -> bytes:
    return rows_from(*structs(fields)).to_list()[0]


FIELDS = st.lists(
    st.sampled_from(["integer", "long", "string", "binary", "decimal(9,2)", "decimal(38,4)"]).flatmap(
        lambda kind: st.tuples(st.just(kind), st.none() | VALUES[kind])
    ),
    min_size=2,
    max_size=70,
)


@settings(max_examples=40)
@given(FIELDS, st.data())
def test_a_key_of_two_rows_is_what_spark_makes_of_both(fields: list[tuple[str, Any]], data: st.DataObject) -> None:
    """`test_unsafe_writer.py` compares `rows_from` with bytes of Spark."""
    count = data.draw(st.integers(1, len(fields) - 1))
    first, rest = b"\0" + encode(fields[:count]), b"\0" + encode(fields[count:])
    (kind, key), encoder = structs(fields), encoder_with_prefix(count)
    blobs = key_blobs(kind, encoder, key)
    assert blobs == [len(first).to_bytes(4, "little") + first + rest]
    assert rows_from(kind, keys_of(kind, encoder, blobs)).to_list() == [encode(fields)]


_HASHED = ("boolean", "byte", "integer", "long", "string", "binary")


@pytest.mark.slow
@given(
    st.lists(
        st.sampled_from(_HASHED).flatmap(lambda kind: st.tuples(st.just(kind), st.none() | VALUES[kind])),
        min_size=1,
        max_size=70,
    ),
    st.integers(1, 300),
)
def test_the_bytes_of_a_key_say_its_partition(fields: list[tuple[str, Any]], partitions: int) -> None:
    expected = partitions_of([(kind, pa.array([value], arrow_type(kind))) for kind, value in fields], 1, partitions)
    kind, key = structs(fields)
    outer = struct_of([("key", kind)])
    nested = rows_from(outer, pa.StructArray.from_arrays([key], ["key"])).to_list()[0]
    assert [partition_of(kind, encode(fields), partitions), partition_of(outer, nested, partitions)] == [
        expected[0]
    ] * 2


@given(st.binary(max_size=64), st.lists(st.sampled_from([*_HASHED, "double", "variant"]), max_size=5))
def test_bytes_that_are_no_key_are_in_no_partition_or_one_of_them(row: bytes, kinds: list[str]) -> None:
    partition = partition_of(struct_of([(str(number), kind) for number, kind in enumerate(kinds)]), row, 7)
    assert partition is None or (partition in range(7) and len(row) % 8 == 0 and len(row) > 8 * len(kinds))


@given(st.binary(max_size=100_000) | st.integers(0, 100_000).map(bytes))
def test_what_is_compressed_is_read_again(data: bytes) -> None:
    for codec in ("lz4", "zstd", "snappy", "lzf"):
        assert decompress(iter([compress(data, codec)]), codec) == data
    with pytest.raises(LeftToSpark, match="does not write the compression codec brotli"):
        compress(data, "brotli")


def test_a_full_temporary_folder_has_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RocksDB reports it as it does everything."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows, form = make_stored([b"\0key"], [os.urandom(1 << 16)]), FileForm("lz4", checksums=False)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(CkptError, match=r"^the temporary folder .* cannot hold .*: File too large; set TMPDIR"):
            make_rocksdb_snapshot(rows, Families(), "1", form)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())


def test_the_full_folder_is_named_by_a_process_that_asks_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python would choose another one by now, or find none."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert str(report_no_room("it is full", "/used")).startswith("the temporary folder /used cannot hold the files")
    assert str(report_no_room("it is full")).startswith("no temporary folder can hold the files")
