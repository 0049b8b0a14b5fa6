"""Every unit of every stateful sample without Spark: the rows that Spark's own reader gave (``answers.json``)."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.errors import CkptError, UsageError
from ckpt.formats.rows.codecs import decompress
from ckpt.state.reading.columns import columns_of
from ckpt.state.reading.units import StateUnit, UnitKind, state_units
from tests.conftest import CopyOf
from tests.state.export import rows
from tests.state.native import batches
from tests.state.native.values import rows_of
from tests.support.places import SAMPLES

RECORDED: dict[str, Any] = json.loads(batches.RECORD.read_text())


def read(sample: str, unit: StateUnit, **more: Any) -> Any:
    return ckpt.read_state_arrow(str(SAMPLES / sample), **rows.choice(unit), **more)


@pytest.mark.parametrize(("sample", "unit"), rows.every_unit())
def test_raw_rows_are_those_of_spark(sample: str, unit: StateUnit) -> None:
    answer = rows.answer(sample, unit)
    found = rows_of(read(sample, unit, shape="raw"))
    if sample == "join-v4-changelog-4.3":  # of which Spark's reader does not decode the time
        (wrong,) = {row["key"].pop("__event_time") for row in answer}
        assert wrong == 1 << 56
        found = [_without_time(row, unit) for row in found]
    assert sorted(found) == sorted(json.dumps(row, sort_keys=True) for row in answer)


def _without_time(row: str, unit: StateUnit) -> str:
    """A row without the time of its event, which is also in its value."""
    found = json.loads(row)
    micros = found["key"].pop("__event_time")
    seconds = found["value"][f"{unit.side}_time"].removesuffix("Z").rpartition(":")[2]
    assert micros % 60_000_000 == round(float(seconds) * 1_000_000)
    return json.dumps(found, sort_keys=True)


@pytest.mark.parametrize(("sample", "unit"), rows.every_unit())
def test_flat_rows_are_those_of_spark(sample: str, unit: StateUnit) -> None:
    columns = columns_of(unit)
    table = read(sample, unit)
    assert table.column_names == [column.name for column in columns.kept]
    assert rows_of(table) == rows.flattened(rows.answer(sample, unit), columns)


@pytest.mark.parametrize("sample", rows.ANSWERS)
def test_counts_are_those_that_the_store_records(sample: str) -> None:
    """Of each store of a join too, where a key is a row."""
    checkpoint = ckpt.open_checkpoint(str(SAMPLES / sample))
    assert checkpoint.state is not None
    keys = {(o.id, store.name): store.num_keys for o in checkpoint.state.operators for store in o.stores}
    for unit in state_units(checkpoint):
        table = read(sample, unit)
        if (recorded := keys[unit.operator, unit.stores[0]]) is not None and unit.kind in (
            UnitKind.KEY,
            UnitKind.STORE,
        ):
            assert table.num_rows == recorded


@pytest.mark.parametrize("sample", [name for name in rows.ANSWERS if name.startswith("aggregation-")])
def test_every_readable_batch_has_the_known_answer(sample: str) -> None:
    """The state after batch B has the rows of batches 0 to B: ten each."""
    (unit,) = state_units(ckpt.open_checkpoint(str(SAMPLES / sample)))
    batches = [batch for first, last in unit.readable_batches for batch in range(first, last + 1)]
    assert len(batches) > 2
    for batch in batches:
        table = read(sample, unit, batch=batch)
        counted = sum(table["value_count"].to_pylist()), sum(table["value_sum"].to_pylist())
        assert counted == (10 * (batch + 1), sum(range(10 * (batch + 1))))


@pytest.mark.slow
@pytest.mark.parametrize("sample", batches.READ_BY)
def test_every_batch_has_the_rows_of_spark(sample: str) -> None:
    recorded = RECORDED[sample]["units"]
    assert RECORDED[sample]["spark"].startswith(batches.READ_BY[sample])
    for unit, batch in batches.units_and_batches(sample):
        found = batches.summary(rows_of(read(sample, unit, shape="raw", batch=batch)))
        assert found == recorded[unit.label].pop(str(batch)), (unit.label, batch)
    assert not any(recorded.values())


@pytest.mark.spark
@pytest.mark.parametrize("sample", ["aggregation-rocksdb-4.2", "join-changelog-4.2"])
def test_this_spark_reads_what_is_recorded(sample: str, spark: Any) -> None:
    for unit, batch in batches.units_and_batches(sample):
        if batch % 3 == 1:
            recorded = json.loads(batches.RECORD.read_text())[sample]["units"][unit.label]
            assert batches.ask(spark, sample, unit, batch) == recorded[str(batch)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sample", "codec", "named"),
    [
        ("aggregation-format2-4.2", "snappy", "snappy"),
        ("join-format2-4.3", "zstd", "zstd"),
        ("join-format2-4.3", "snappy", "org.apache.spark.io.SnappyCompressionCodec"),
        ("tws-format2-4.3", "zstd", "org.apache.spark.io.ZStdCompressionCodec"),
    ],
)
def test_the_lineage_of_format_2_is_read_in_every_codec(sample: str, codec: str, named: str, copy_of: CopyOf) -> None:
    """Without it a changelog alone would be taken for all of the state."""
    copy = in_another_codec(copy_of(sample), codec, named)
    compared = 0
    for unit, batch in batches.units_and_batches(sample):
        whole = read(sample, unit, batch=batch)
        assert ckpt.read_state_arrow(str(copy), batch=batch, **rows.choice(unit)).equals(whole)
        compared += whole.num_rows
    assert compared > 20


def in_another_codec(checkpoint: Path, codec: str, named: str) -> Path:
    """Have all changelogs compressed in another way."""
    import pyarrow as pa

    for path in checkpoint.rglob("*.changelog"):
        data = decompress(iter([path.read_bytes()]), "lz4")
        packed = pa.compress(data, codec, asbytes=True)
        header = b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + len(packed).to_bytes(4, "big")
        path.write_bytes(header + packed if codec == "snappy" else packed)
        path.with_name(f"{path.name}.crc").unlink()
    for path in (checkpoint / "offsets").glob("[0-9]*"):
        path.write_text(path.read_text().replace('compression.codec":"lz4"', f'compression.codec":"{named}"'))
    return checkpoint


def codes(checkpoint: Path) -> set[str]:
    found = ckpt.inspect(ckpt.open_checkpoint(str(checkpoint)))
    return {rated.finding.diagnosis.code for rated in found.findings}


@pytest.mark.parametrize("codec", ["zstd", "snappy"])
def test_a_missing_file_of_the_lineage_is_seen_in_every_codec(codec: str, copy_of: CopyOf) -> None:
    checkpoint = in_another_codec(copy_of("join-format2-4.3"), codec, codec)
    assert "CKPT301" not in codes(checkpoint)
    (gone,) = checkpoint.glob("state/0/0/left-keyWithIndexToValue/3_*.changelog")
    gone.unlink()
    assert "CKPT301" in codes(checkpoint)
    with pytest.raises(CkptError, match="CKPT301"):
        ckpt.read_state_arrow(str(checkpoint), side="left")


def test_the_partition_is_kept_on_request() -> None:
    (unit,) = state_units(ckpt.open_checkpoint(str(SAMPLES / "aggregation-rocksdb-4.2")))
    table = read("aggregation-rocksdb-4.2", unit, partition_id=True)
    answer = rows.answer("aggregation-rocksdb-4.2", unit)
    assert table.column_names[-1] == "partition_id"
    assert {(row["key_key"], row["partition_id"]) for row in table.to_pylist()} == {
        (row["key"]["key"], row["partition_id"]) for row in answer
    }


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"operator": 7}, "there is no `operator=7`"),
        ({"batch": 99}, "there is no batch 99"),
        ({"shape": "round"}, "one of raw, flat, initial-state"),
        ({"shape": "initial-state", "partition_id": True}, "has no fixed partition"),
        ({"shape": "initial-state", "side": "left"}, "all state of an operator"),
    ],
)
def test_what_does_not_exist_is_refused(words: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        ckpt.read_state_arrow(str(SAMPLES / "aggregation-hdfs-4.2"), **words)


def test_nothing_is_written_and_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not next to the checkpoint; and a temporary folder is gone once its reader is, also if a process was killed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / "ckpt-state-999999999-x"
    left.mkdir()
    with ckpt.read_state_batches(str(SAMPLES / "tws-rocksdb-4.2"), variable="recent") as reader:
        assert reader.read_next_batch().num_rows > 0
        assert not left.exists()
        assert len(list(tmp_path.iterdir())) == 1
    del reader
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("sample", "file", "says"),
    [
        ("aggregation-hdfs-4.2", "state/0/1/10.delta", "decompressed with lz4"),
        ("aggregation-hdfs-3.5", "state/0/1/3.delta", "decompressed with lz4"),
        ("aggregation-changelog-4.2", "state/0/1/10.changelog", "decompressed with lz4"),
        ("aggregation-rocksdb-4.2", "state/0/1/SSTs", "block checksum mismatch"),
        ("aggregation-rocksdb-4.2", "state/0/1/6.zip", ""),
    ],
)
def test_a_changed_byte_is_refused_with_the_name_of_the_file(sample: str, file: str, says: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(SAMPLES / sample, copy)
    places = sorted((copy / file).glob("*.sst")) if file.endswith("SSTs") else [copy / file]
    for place in places:
        data = bytearray(place.read_bytes())
        data[40] ^= 0xFF
        place.write_bytes(data)
    with pytest.raises(CkptError, match=rf"state/0/1/.* cannot be read without Spark: .*{says}"):
        ckpt.read_state_arrow(str(copy))


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ("aggregation-rocksdb-4.2", {}),
        ("aggregation-hdfs-4.2", {}),
        ("tws-format2-4.3", {"variable": "recent"}),
        ("join-changelog-4.2", {"side": "left"}),
    ],
)
def test_a_remote_checkpoint_has_the_same_rows(sample: str, words: dict[str, Any]) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory, place = fsspec.filesystem("memory"), f"/native-{sample}"
    memory.put(str(SAMPLES / sample), place, recursive=True)
    try:
        remote = ckpt.read_state_arrow(f"memory:/{place}", **words)
    finally:
        memory.rm(place, recursive=True)
    assert remote.equals(ckpt.read_state_arrow(str(SAMPLES / sample), **words))


def test_state_with_a_missing_file_is_refused_by_its_finding(copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-rocksdb-4.2")
    for gone in (checkpoint / "state/0/0/SSTs").glob("*.sst"):
        gone.unlink()
    with pytest.raises(CkptError, match="CKPT"):
        ckpt.read_state_arrow(str(checkpoint))
