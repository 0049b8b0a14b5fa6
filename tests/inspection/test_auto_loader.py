"""Auto Loader is named, its files are counted, and a part of its list that is missing is found."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ckpt
from ckpt.inspection.inspection import Inspection
from tests.support.auto_loader import build


def details(inspection: Inspection, code: str) -> list[str]:
    return [rated.finding.detail for rated in inspection.findings if rated.finding.diagnosis.code == code]


def test_named_and_counted(tmp_path: Path) -> None:
    inspection = ckpt.inspect(str(build(tmp_path / "checkpoint")))

    assert [source.type for source in inspection.sources] == ["cloudFiles"]
    assert [batch.advanced[0].amount for batch in inspection.batches[1:] if batch.advanced[0]] == [4] * 5
    (detail,) = details(inspection, "CKPT260")
    assert detail.endswith("6.zip names 3 SST files")
    assert inspection.sound
    assert [advance and advance.amount for advance in inspection.batches[-1].advanced] == [4]
    assert "continues from file 29 in the order of discovery" in str(inspection)


@pytest.mark.parametrize("lost", ["sst", "other size", "zip cut", "all"])
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
    else:
        shutil.rmtree(database)

    inspection = ckpt.inspect(str(checkpoint))

    (detail,) = details(inspection, "CKPT261")
    expected = {
        "sst": "it names SSTs/",
        "other size": "it names SSTs/",
        "zip cut": "it lacks the end of a zip",
        "all": "there is no such folder",
    }
    assert expected[lost] in detail
    assert not inspection.sound
