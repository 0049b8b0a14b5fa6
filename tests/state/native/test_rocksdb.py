"""A RocksDB snapshot in its temporary folder: nothing else is opened, and what is in the way has one line."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.errors import CkptError, LeftToSpark, StorageError, Undecodable
from ckpt.formats.rows.rocksdb import open_database
from tests.conftest import CopyOf
from tests.support.places import SAMPLES

STORE = SAMPLES / "tws-rocksdb-4.2" / "state/0/0"
LOCAL_NAME = "000008.sst"
MERGED = Path(__file__).parent / "merged_lists.zip"
"""A snapshot of Spark 4.2 (merge operator version 2) whose lists have elements in three SST files."""


def database(folder: Path, change: Callable[[str], str] = str) -> Path:
    """A snapshot as it is unpacked, with other options."""
    import json

    folder.mkdir()
    newest = max(STORE.glob("*.zip"), key=lambda path: int(path.stem))
    with zipfile.ZipFile(newest) as archive:
        archive.extractall(folder)
    (options,) = folder.glob("OPTIONS-*")
    options.write_text(change(options.read_text()))
    for one in json.loads((folder / "metadata").read_text().partition("\n")[2])["sstFiles"]:
        shutil.copy(STORE / "SSTs" / one["dfsSstFileName"], folder / one["localFileName"])
    (folder / "metadata").unlink()
    return folder


def content(folder: Path) -> list[tuple[bytes, bytes]]:
    with open_database(folder, b",") as snapshot:
        return [pair for some in snapshot.batches(100) for pair in some]


PATHS = [
    "wal_dir=other",
    "wal_dir={other}",
    "db_log_dir=other",
    "db_log_dir={other}",
    "db_paths={{{{path=other;target_size=1}}}}",
    "row_cache=capacity=1",
]


@pytest.mark.parametrize("line", PATHS)
def test_options_open_no_other_place(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = content(database(tmp_path / "plain"))
    assert plain
    other = tmp_path / "other"
    monkeypatch.chdir(tmp_path)
    named = line.format(other=other)
    folder = database(tmp_path / "db", lambda text: text.replace("[DBOptions]", f"[DBOptions]\n  {named}"))
    assert content(folder) == plain
    assert {path.name for path in tmp_path.iterdir()} == {"plain", "db"}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("merge_operator=PutOperator", "does not know its merge_operator PutOperator"),
        ("merge_operator={id=MaxOperator;x=1;}", "does not know its merge_operator"),
        ("comparator=rocksdb.ReverseBytewiseComparator", "does not know its comparator"),
        ("table_factory=PlainTable", "does not know its table_factory"),
        ('[CFOptions "second"]', "does not know the section"),
    ],
)
def test_options_that_are_not_known_are_left_to_spark(line: str, says: str, tmp_path: Path) -> None:
    folder = database(tmp_path / "db", lambda text: f"{text}\n  {line}\n")
    with pytest.raises(LeftToSpark, match=rf"{says}.*: `ckpt export-state --engine spark` reads it$"):
        content(folder)


def test_an_sst_file_that_is_a_pipe_is_not_opened(copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-rocksdb-4.2")
    for file in (checkpoint / "state/0/0/SSTs").glob("*.sst"):
        file.unlink()
        os.mkfifo(file)
    with pytest.raises(CkptError):
        ckpt.read_state_arrow(str(checkpoint))


def test_an_sst_file_behind_a_link_out_of_the_checkpoint_is_not_read(copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("aggregation-rocksdb-4.2")
    for file in (checkpoint / "state/0/0/SSTs").glob("*.sst"):
        shutil.move(file, tmp_path / file.name)
        file.symlink_to(tmp_path / file.name)
    with pytest.raises(StorageError, match=r"\.sst is a symbolic link that leads out of the checkpoint"):
        ckpt.read_state_arrow(str(checkpoint))


@pytest.mark.parametrize("fails", ["mkdtemp", "write_bytes"])
def test_a_full_disk_has_one_line(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile if fails == "mkdtemp" else Path, fails, full)
    with pytest.raises(
        CkptError, match=r"^the temporary folder .*: No space left on device; set TMPDIR to another one$"
    ):
        ckpt.read_state_arrow(str(SAMPLES / "aggregation-rocksdb-4.2"))


def test_column_families_need_a_snapshot(copy_of: CopyOf) -> None:
    checkpoint = copy_of("tws-changelog-4.0")
    for file in checkpoint.glob("state/0/*/*.zip"):
        file.unlink()
    with pytest.raises(Undecodable, match="without a snapshot nothing shows which number the column family"):
        ckpt.read_state_arrow(str(checkpoint), variable="recent")


def test_elements_of_several_files_are_put_together_as_spark_does(tmp_path: Path) -> None:
    """The options say nothing of what the merge operator puts between two values; RocksDB would take a comma."""
    with zipfile.ZipFile(MERGED) as archive:
        archive.extractall(tmp_path)
    with open_database(tmp_path, b"") as snapshot:
        (found,) = [
            value
            for some in snapshot.batches(100)
            for key, value in some
            if key[:2] == b"\x05\0" and key.endswith(b"k0\0\0\0\0\0\0")
        ]
    rows = [b"\x11\0\0\0\0" + bytes(8) + number.to_bytes(8, "little") for number in (300, 864, 492)]
    assert found == b"".join(rows)


def test_damage_is_not_named_by_a_temporary_file(copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-rocksdb-4.2")
    for file in checkpoint.glob("state/0/0/SSTs/*.sst"):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 0x55
        file.write_bytes(data)
    with pytest.raises(Undecodable, match=r"6\.zip cannot be read without Spark: RocksDB cannot .*Corruption") as error:
        ckpt.read_state_arrow(str(checkpoint))
    assert tempfile.gettempdir() not in str(error.value).replace(str(checkpoint), "")
