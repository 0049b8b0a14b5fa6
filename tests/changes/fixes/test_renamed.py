"""Checksum files that were left prove which file was renamed, and which query id a lost ``metadata`` had."""

import gzip
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import ckpt as library
from ckpt.advice import Instruction
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.live.sink.records import SinkLog, SinkWriter
from ckpt.storage import open_storage
from tests.conftest import Ckpt, CopyOf
from tests.support.spark.queries import drain

OTHER = "11111111-2222-4333-8444-555555555555"
NOW: dict[str, Any] = {"apply": True, "grace": 0}
RENAMED = {
    "offsets/5": ("offsets/5.bak", "offsets/5 (copy)", "offsets/.5.9c1e.tmp", "offsets/05", "offsets/5.gz"),
    "offsets/4": ("offsets/old4",),
    "commits/5": ("commits/5~", "commits/5.gz"),
    "metadata": ("metadata.old", "metadata.gz"),
}
CASES = [(lost, name) for lost, names in RENAMED.items() for name in names]


def rename(top: Path, lost: str, name: str) -> None:
    data = (top / lost).read_bytes()
    (top / lost).unlink()
    (top / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


@pytest.mark.parametrize(("lost", "name"), CASES)
def test_a_renamed_file_is_named_and_gets_its_name_again(lost: str, name: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    top = copy_of("stateless-4.2")
    was = (top / lost).read_bytes()
    rename(top, lost, name)
    inspected = ckpt("inspect", top, "-o", "json").json()
    proofs = [one for one in inspected["findings"] if f"{name} has the content of {lost}" in (one["detail"] or "")]
    assert proofs
    (first, *_), page = inspected["next"], ckpt("inspect", top).stdout
    assert first["command"][1:] == ["repair", str(top)]
    assert "from a copy" not in page.partition("\nNext")[2]
    plan, receipt = library.repair(str(top), **NOW)
    assert (receipt.applied, plan.rows, plan.replay) == (True, "none", ())
    assert (top / lost).read_bytes() == was
    assert (top / name).exists() == (name != "offsets/05")
    assert ckpt("inspect", top).exit_code == 0
    undone = library.repair(str(top), undo=receipt.backup, grace=0)[1]
    assert undone.undone
    assert (top / name).exists()
    assert not (top / lost).exists()


@pytest.mark.parametrize("edit", [lambda data: data + b" ", lambda data: b"", lambda data: data[:-1] + b"x"])
def test_a_file_of_other_bytes_proves_nothing(edit: Any, copy_of: CopyOf) -> None:
    top = copy_of("stateless-4.2")
    was = (top / "offsets/5").read_bytes()
    (top / "offsets/5").unlink()
    (top / "offsets/5.bak").write_bytes(edit(was))
    (top / "offsets/5.gz").write_bytes(b"\x1f\x8b no gzip")
    assert read_checkpoint(open_storage(str(top))).renamed == {}


def lose_id(top: Path, how: str) -> str:
    known: str = json.loads((top / "metadata").read_text())["id"]
    if how == "missing":
        (top / "metadata").unlink()
    else:
        (top / "metadata").write_text("" if how == "empty" else '{"id":"16da')
    return known


@pytest.mark.parametrize("how", ["missing", "empty", "cut"])
def test_a_wrong_id_is_disproved_and_the_right_one_proved(how: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    top = copy_of("stateless-4.2")
    known = lose_id(top, how)
    wrong = ckpt("repair", top, "--query-id", OTHER)
    assert wrong.exit_code == 2
    assert "is not the query's id" in wrong.refusal()
    assert "--query-id ID" in ckpt("inspect", top).stdout
    right = ckpt("repair", top, "--query-id", known.upper(), "--apply", "--grace", 0)
    assert right.exit_code == 0
    assert ".metadata.crc proves" in right.stdout.replace("\n          ", " ")
    assert json.loads((top / "metadata").read_text()) == {"id": known}
    assert ckpt("inspect", top).exit_code == 0


def test_without_checksums_any_id_is_taken(ckpt: Ckpt, copy_of: CopyOf) -> None:
    top = copy_of("stateless-4.2")
    lose_id(top, "missing")
    (top / ".metadata.crc").unlink()
    assert ckpt("repair", top, "--query-id", OTHER).exit_code == 1


def test_checksums_prove_which_writer_of_a_sink_is_the_query(copy_of: CopyOf) -> None:
    top = copy_of("stateless-4.2")
    known = lose_id(top, "missing")
    checkpoint = read_checkpoint(open_storage(str(top)))
    writers = [SinkWriter(app_id, 5, None, expired=False) for app_id in (OTHER, known)]
    both, other = (SinkLog("s3://b/t", "delta", writers=tuple(each)) for each in (writers, writers[:1]))
    found = both.find_query(checkpoint)
    assert found is not None
    assert found.app_id == known
    unproven = replace(checkpoint, metadata_checksums=None)
    assert other.find_query(unproven) == writers[0]
    assert both.find_query(unproven) is None
    assert other.find_query(checkpoint) is None


@pytest.mark.spark
@pytest.mark.parametrize(
    ("lost", "by_hand"),
    [(["offsets/2"], False), (["offsets/2", "commits/2"], False), (["metadata"], True), (["offsets/1"], True)],
)
def test_no_row_is_read_again(lost: list[str], by_hand: bool, spark: Any, tmp_path: Path) -> None:
    source, out, top = (tmp_path / name for name in ("in", "out", "checkpoint"))
    source.mkdir()

    def run(files: range) -> None:
        for number in files:
            (source / f"{number}.json").write_text(f'{{"id": {number}}}\n')
        rows = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(str(source))
        drain(rows, top, sink=lambda batch, _: batch.write.mode("append").parquet(str(out)))

    run(range(3))
    for path in lost:
        rename(top, path, f"{path}.{uuid4().hex[:4]}.gz" if path == "offsets/1" else f"{path}.bak")
    if by_hand:
        steps = library.inspect(str(top)).advice.all_steps()
        lines = [str(step.do.line) for step in steps if isinstance(step.do, Instruction)]
        subprocess.run(next(line for line in lines if line), shell=True, check=True)
    else:
        plan, receipt = library.repair(str(top), **NOW)
        assert (receipt.applied, plan.rows) == (True, "none")
    run(range(3, 5))
    assert sorted(row.id for row in spark.read.parquet(str(out)).collect()) == [0, 1, 2, 3, 4]
