"""``ckpt import-state`` of Delta tables: what is in them now is the state, or they are refused in a line."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import ckpt as library
from ckpt.extras import install_command
from ckpt.state.export.targets import Format
from tests.conftest import Ckpt
from tests.new.fill.test_import_state import AGGREGATION, exported, refuse
from tests.new.rewrite.continuing import frames, state
from tests.support.places import SAMPLES
from tests.support.services.fixtures import Upload

deltalake = pytest.importorskip("deltalake")


def as_delta(export: Path) -> Path:
    """The only unit of an export written anew, as a Delta table of two commits."""
    folder = export / "operator-0"
    table, said = parquet.read_table(folder), json.loads((folder / "_ckpt_export.json").read_text())
    instants = [
        (one.name, pa.timestamp("us", "UTC") if pa.types.is_timestamp(one.type) else one.type) for one in table.schema
    ]
    table = table.cast(pa.schema(instants))
    shutil.rmtree(folder)
    deltalake.write_deltalake(folder, table.slice(0, 3))
    deltalake.write_deltalake(folder, table.slice(3), mode="append")
    (folder / "_ckpt_export.json").write_text(json.dumps({**said, "format": "delta"}))
    return export


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return as_delta(exported(AGGREGATION, tmp_path / "export"))


@pytest.mark.parametrize("sample", ["aggregation-hdfs-4.2", "session-window-changelog-4.2"])
def test_it_is_imported_as_its_current_version_is(sample: str, tmp_path: Path) -> None:
    given = as_delta(exported(SAMPLES / sample, tmp_path / "export"))
    library.import_state(str(given), str(tmp_path / "all"), like=str(SAMPLES / sample))
    assert state(tmp_path / "all") == state(SAMPLES / sample)
    deltalake.DeltaTable(given / "operator-0").delete("key_key = 2")
    library.import_state(
        str(given), str(tmp_path / "new"), like=str(SAMPLES / sample), provider="rocksdb", partitions=3
    )
    (before,), (after,) = (frames(place).values() for place in (SAMPLES / sample, tmp_path / "new"))
    kept = [row for row in before.to_pylist() if row["key_key"] != 2]
    assert sorted(map(str, after.to_pylist())) == sorted(map(str, kept))
    assert 0 < len(kept) < len(before)


def test_one_behind_a_network_is_the_same(memory_uri: Upload, export: Path, tmp_path: Path) -> None:
    deltalake.DeltaTable(export / "operator-0").delete("key_key = 2")
    uri, options = memory_uri(export)
    for name, place in (("here", str(export)), ("there", uri)):
        library.import_state(place, str(tmp_path / name), like=str(AGGREGATION), storage_options=options)
    assert state(tmp_path / "here") == state(tmp_path / "there") != state(AGGREGATION)


def logged(folder: Path, action: dict[str, Any]) -> None:
    """Add a commit, as Spark may write it."""
    number = len([*(folder / "_delta_log").glob("*.json")])
    (folder / "_delta_log" / f"{number:020}.json").write_text(json.dumps(action))


def mapped(folder: Path) -> None:
    metadata = next(
        json.loads(line)["metaData"]
        for line in (folder / "_delta_log" / f"{0:020}.json").read_text().splitlines()
        if "metaData" in line
    )
    logged(folder, {"metaData": {**metadata, "configuration": {"delta.columnMapping.mode": "name"}}})


def marked(folder: Path) -> None:
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    logged(folder, {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}})


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (mapped, "has column mapping, which deltalake does not read"),
        (marked, "is not a Delta table that deltalake reads"),
        (
            lambda folder: shutil.rmtree(folder / "_delta_log"),
            "has no _delta_log, but its _ckpt_export.json calls it a Delta table",
        ),
        (lambda folder: next(folder.glob("*.parquet")).unlink(), "is not a Delta table that deltalake reads"),
        (
            lambda folder: deltalake.DeltaTable(folder).update({"value_count": "NULL"}, predicate="key_key = 2"),
            "value_count is NULL",
        ),
        (
            lambda folder: deltalake.write_deltalake(
                folder, deltalake.DeltaTable(folder).to_pyarrow_table(), mode="append"
            ),
            "its key is",
        ),
    ],
)
def test_what_is_no_state_is_refused_in_a_line(
    damage: Any, told: str, export: Path, ckpt: Ckpt, tmp_path: Path
) -> None:
    damage(export / "operator-0")
    assert told in refuse(ckpt, export, tmp_path / "new")


def test_without_the_package_its_extra_is_named(
    export: Path, ckpt: Ckpt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    assert refuse(ckpt, export, tmp_path / "new").endswith(install_command("deltalake"))


@pytest.mark.spark
def test_what_spark_wrote_and_edited(spark: Any, tmp_path: Path) -> None:
    """Instants that are INT96 in its files; a row is changed and another one deleted."""
    pytest.importorskip("delta", reason="delta-spark is not installed")
    sample = SAMPLES / "session-window-changelog-4.2"
    request = library.types.ExportRequest(str(sample), to=str(tmp_path / "export"), all_units=True, format=Format.DELTA)
    library.export_state(request, storage_options=None, session=library.types.Session(spark=spark))
    table = f"delta.`{tmp_path}/export/operator-0`"
    spark.sql(f"DELETE FROM {table} WHERE key_key = 2")
    spark.sql(f"UPDATE {table} SET value_count = 77 WHERE key_key = 5")
    library.import_state(str(tmp_path / "export"), str(tmp_path / "new"), like=str(sample))
    (before,), (after,) = (frames(place).values() for place in (sample, tmp_path / "new"))
    edited = [
        {**row, **({"value_count": 77} if row["key_key"] == 5 else {})}
        for row in before.to_pylist()
        if row["key_key"] != 2
    ]
    assert sorted(map(str, after.to_pylist())) == sorted(map(str, edited))


@pytest.mark.spark
def test_executors_divide_it_file_by_file(by: Any, export: Path, tmp_path: Path) -> None:
    """A row that is there twice is named as one machine names it: by its place in its own file."""
    folder, old = export / "operator-0", str(AGGREGATION)
    library.import_state(str(export), str(tmp_path / "new"), like=old, partitions=3, engine=by)
    assert state(tmp_path / "new") == state(AGGREGATION)
    first = sorted(deltalake.DeltaTable(folder).file_uris())[0]
    again = parquet.read_table(first).slice(1, 1)
    deltalake.write_deltalake(folder, again, mode="append")
    refusals = set()
    for executors in (None, by):
        with pytest.raises(library.CkptError) as refusal:
            library.import_state(str(export), str(tmp_path / "refused"), like=old, partitions=3, engine=executors)
        refusals.add(str(refusal.value))
    (text,) = refusals
    assert "its key is that of row " in text
