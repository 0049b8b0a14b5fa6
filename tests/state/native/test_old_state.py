"""State of Spark before 3.5: counted without a schema, values with 4 bytes too many, deduplication of 3.1 to 3.3."""

import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.formats.schemas import DEFAULT_COLUMN_FAMILY, format_state_schema
from ckpt.formats.types import struct_of
from ckpt.model import ColumnFamily
from tests.conftest import Ckpt, CopyOf
from tests.support.places import SAMPLES


@pytest.mark.parametrize("sample", ["aggregation-hdfs-3.5", "join-hdfs-3.5", "pandas-with-state-hdfs-3.5"])
def test_state_without_a_schema_is_counted(sample: str, copy_of: CopyOf, ckpt: Ckpt) -> None:
    old = copy_of(sample)
    for folder in sorted(old.rglob("_metadata")):
        shutil.rmtree(folder)
    expected = ckpt("state", "count", SAMPLES / sample, "-o", "json").json()
    counted = ckpt("state", "count", old, "-o", "json").json()
    assert [unit["rows"] for unit in counted["units"]] == [unit["rows"] for unit in expected["units"]]
    assert sum(unit["rows"] for unit in counted["units"]) > 0
    refused = ckpt("state", "count", old, "--key", "key=3")
    assert refused.exit_code == 3
    assert "restore it from a copy" in refused.stderr
    _without_codec(old)
    shown = ckpt("state", "show", old, "--operator", "0", *(("--side", "left") if "join" in sample else ()))
    assert shown.exit_code == 3
    assert "Spark before 3.1 wrote this state without a schema" in shown.stderr
    assert "`ckpt state count`" in shown.stderr
    assert ckpt("state", "count", old).exit_code == 0


def _without_codec(old: Path) -> None:
    """Offsets of Spark before 3.1 do not record the codec."""
    for file in (old / "offsets").glob("[0-9]*"):
        file.write_text(file.read_text().replace('"spark.sql.streaming.stateStore.compression.codec":"lz4",', ""))


def test_without_commits_it_is_that_of_the_batch_before_the_newest(copy_of: CopyOf, ckpt: Ckpt) -> None:
    """Spark 2.1 kept no commits: what was planned last runs again, from the state of the batch before."""
    old = copy_of("aggregation-hdfs-3.5")
    shutil.rmtree(old / "commits")
    counted = ckpt("state", "count", old, "-o", "json").json()
    assert counted["batch"] == 4


def test_values_of_spark_before_2_3_are_cut_to_whole_words(copy_of: CopyOf, tmp_path: Path) -> None:
    """``RowBasedKeyValueBatch`` appended 4 bytes to them, and readers leave these out."""
    import pyarrow as pa

    from ckpt.formats.rows.codecs import decompress

    old, whole = copy_of("aggregation-hdfs-3.5"), SAMPLES / "aggregation-hdfs-3.5"
    for file in (old / "state").rglob("*.delta"):
        data, longer, at = decompress(iter([file.read_bytes()]), "lz4"), b"", 0
        while (size := struct.unpack_from(">i", data, at)[0]) >= 0:
            key = data[at : at + 4 + size]
            (length,) = struct.unpack_from(">i", data, at + len(key))
            value = data[at + len(key) + 4 :][: max(length, 0)]
            longer += (
                key + struct.pack(">i", length + 4 if length > 0 else length) + value + bytes(4 if length > 0 else 0)
            )
            at += len(key) + 4 + len(value)
        file.write_bytes(pa.compress(longer + data[at:], codec="zstd", asbytes=True))
    for file in (old / "offsets").glob("[0-9]*"):
        file.write_text(file.read_text().replace('codec":"lz4"', 'codec":"zstd"'))
    assert ckpt.read_state_arrow(str(old)) == ckpt.read_state_arrow(str(whole))
    assert ckpt.state_show(str(old), key={"key": "3"}).rows == ckpt.state_show(str(whole), key={"key": "3"}).rows


def test_deduplication_whose_value_schema_names_columns_that_rows_lack(
    copy_of: CopyOf, ckpt: Ckpt, tmp_path: Path
) -> None:
    """Spark 3.1 to 3.3 recorded all columns of the input, and stored one NULL (SPARK-39650)."""
    old = copy_of("dedup-hdfs-4.0")
    expected = ckpt("state", "show", old, "-o", "json").json()["rows"]
    shutil.rmtree(old / "state/0/_metadata")
    (schema,) = (old / "state/0/0").rglob("schema")
    key: Any = _key_schema(old)
    columns = [(field["name"], field["type"]) for field in key["fields"]]
    value = struct_of([*columns, ("more", "string"), ("sent", "timestamp")])
    schema.write_bytes(format_state_schema(2, [ColumnFamily(DEFAULT_COLUMN_FAMILY, key, value, None)]))
    assert ckpt("state", "show", old, "-o", "json").json()["rows"] == [
        {name: own for name, own in row.items() if name.startswith("key")} for row in expected
    ]
    for command in (("count", old), ("keys", old), ("diff", old)):
        assert ckpt("state", *command).exit_code < 2
    assert ckpt("export-state", old, "--to", tmp_path / "rows").exit_code == 0
    for provider in ("hdfs", "rocksdb"):
        new = tmp_path / provider
        assert ckpt("rewrite", old, new, "--provider", provider).exit_code == 0
        rows = ckpt("state", "show", new, "-o", "json").json()["rows"]
        assert sorted(map(str, rows)) == sorted(map(str, ckpt("state", "show", old, "-o", "json").json()["rows"]))


def _key_schema(checkpoint: Path) -> Any:
    (store,) = ckpt.open_checkpoint(str(checkpoint)).operators[0].stores
    return store.key_schema


def test_temporary_files_of_spark_2_are_leftovers(copy_of: CopyOf, ckpt: Ckpt) -> None:
    """``HDFSBackedStateStoreProvider`` wrote a delta to ``temp-`` and a random long, until Spark 2.3."""
    old = copy_of("aggregation-hdfs-3.5")
    for name in ("temp--123", ".temp--123.crc", "temp-9"):
        (old / "state/0/1" / name).write_bytes(b"crc\0")
    (old / "state/0/1/temp-file").write_bytes(b"of somebody else")
    (found,) = (each for each in ckpt("inspect", old, "-o", "json").json()["findings"] if each["code"] == "CKPT505")
    assert found["detail"] == "3 temporary files in this checkpoint"
    assert ckpt("prune", old, "--apply", "--grace", "0").exit_code == 0
    assert [path.name for path in (old / "state/0/1").glob("*temp*")] == ["temp-file"]
