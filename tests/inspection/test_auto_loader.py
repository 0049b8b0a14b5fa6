"""Auto Loader is named, its files are counted, and a part of its list that is missing is found."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

import ckpt
from ckpt.inspection.inspection import Inspection
from tests.laws.next_obeyed import refused_offers
from tests.support.auto_loader import build


def write_empty(snapshot: Path) -> None:
    """Write a snapshot that names no file, as the first of a database that has no key."""
    with zipfile.ZipFile(snapshot) as read:
        version = read.read("metadata").splitlines()[0]
    with zipfile.ZipFile(snapshot, "w") as written:
        written.writestr("metadata", version + b'\n{"sstFiles":[],"numKeys":0}')


def details(inspection: Inspection, code: str) -> list[str]:
    return [rated.finding.detail for rated in inspection.findings if rated.finding.diagnosis.code == code]


def test_named_and_counted(tmp_path: Path) -> None:
    inspection = ckpt.inspect(str(build(tmp_path / "checkpoint")))

    assert [source.type for source in inspection.sources] == ["cloudFiles"]
    assert [batch.advanced[0].amount for batch in inspection.batches[1:] if batch.advanced[0]] == [4] * 5
    (detail,) = details(inspection, "CKPT260")
    assert detail.endswith("6.zip names 3 SST files")
    assert [advance and advance.amount for advance in inspection.batches[-1].advanced] == [4]
    assert "number 29 in the order of discovery" in str(inspection)


@pytest.mark.parametrize("lost", ["sst", "other size", "zip cut", "all", "emptied", "newest", "empty list"])
def test_a_missing_part_is_found(lost: str, tmp_path: Path) -> None:
    checkpoint = build(tmp_path / "checkpoint")
    database = checkpoint / "sources" / "0" / "rocksdb"
    newest = max(database.glob("*.zip"), key=lambda path: int(path.stem))
    if lost == "sst":
        shutil.rmtree(database / "SSTs")
    elif lost == "other size":
        for file in (database / "SSTs").glob("*.sst"):
            file.write_bytes(file.read_bytes() + b"x")
    elif lost == "zip cut":
        newest.write_bytes(newest.read_bytes()[:-30])
    elif lost == "newest":
        newest.unlink()
    elif lost == "empty list":
        write_empty(newest)
    else:
        shutil.rmtree(database)
        if lost == "emptied":
            database.mkdir()

    inspection = ckpt.inspect(str(checkpoint))

    (detail,) = details(inspection, "CKPT261")
    expected = {
        "sst": "it names SSTs/",
        "other size": "it names SSTs/",
        "zip cut": "it lacks the end of a zip",
        "all": "there is no such folder",
        "emptied": "it has no snapshot (N.zip)",
        "newest": "its checksum file exists, but the file does not",
        "empty list": "it belongs to an empty list, though files were found",
    }
    assert expected[lost] in detail
    assert refused_offers(checkpoint) == {}
    assert not inspection.sound
