"""Every byte: of 2,000 damages all are seen where a checksum covers the bytes."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from ckpt.checkpoint.state.file_ends import Verdict
from ckpt.checkpoint.state.needed_files import NeededFile
from ckpt.checkpoint.state.one_file import FileOutcome, check_file
from ckpt.model import StateFileKind
from ckpt.storage import open_storage
from tests.state.verify import judge
from tests.state.verify.damage import KINDS, Damage, damages, same_content, state_files, uncovered


def _checked(damage: Damage, folder: Path) -> FileOutcome:
    """What is seen of a damaged file that has no checksum beside it."""
    (folder / "file").write_bytes(damage.apply())
    kind = StateFileKind(damage.path.suffix[1:])
    size = (folder / "file").stat().st_size
    file = NeededFile("file", kind, size, "lz4", checksum=False, hidden_checksum=False)
    return check_file(open_storage(str(folder)), file)


def _missed(count: int, folder: Path) -> list[tuple[Damage, bool]]:
    """Damages that are not seen, and whether they can do harm."""
    missed = []
    for damage in damages(count):
        if _checked(damage, folder) is None:
            data, kind = damage.path.read_bytes(), damage.path.suffix[1:]
            touched = set(range(damage.at, damage.at + len(damage.pattern)))
            harmless = touched <= uncovered(data, kind) or same_content(data, damage.apply(), kind)
            missed.append((damage, not harmless))
    return missed


@pytest.mark.parametrize("count", [300, pytest.param(2_000, marks=pytest.mark.slow)])
def test_all_damage_but_to_uncovered_bytes_is_seen(count: int, tmp_path: Path) -> None:
    missed = _missed(count, tmp_path)
    assert [damage for damage, harmful in missed if harmful] == []
    assert len(missed) <= count // 20, "nearly all bytes are covered"


@pytest.mark.slow
def test_what_makes_spark_fail_or_read_otherwise_is_seen(tmp_path: Path) -> None:
    """Spark is the judge: it was asked about each of the 2,000 damages (``judge.py``)."""
    answers = judge.recorded()
    assert len(answers) == judge.COUNT
    harmful = [damage for damage, answer in zip(damages(judge.COUNT), answers, strict=True) if answer in judge.HARMFUL]
    assert len(harmful) > judge.COUNT // 2
    missed = [damage for damage in harmful if _checked(damage, tmp_path) is None]
    assert len(missed) <= len(harmful) // 100, missed


@pytest.mark.spark
def test_spark_still_judges_so(spark: Any, tmp_path: Path) -> None:
    """Without damaged streams on which it fails: on one of them the JVM ended."""
    asked = judge.Judge(spark, tmp_path)
    answers = judge.recorded()
    kinds = [(damage.path.suffix, answer) for damage, answer in zip(damages(judge.COUNT), answers, strict=True)]
    asked_of = {(suffix, answer) for suffix, answer in kinds if answer != judge.FAILS or suffix in (".sst", ".zip")}
    chosen = {kinds.index(kind) for kind in asked_of}  # the first of each kind of file with each answer
    found = {number: asked.asks(damage) for number, damage in enumerate(damages(max(chosen) + 1)) if number in chosen}
    assert found == {number: answers[number] for number in chosen}


def test_every_kind_of_file_is_damaged() -> None:
    assert {kind for kind, files in state_files().items() if files} == set(KINDS)
    assert {damage.path.suffix[1:] for damage in damages(300)} == set(KINDS)


def test_with_the_hidden_checksum_every_byte_is_covered(tmp_path: Path) -> None:
    """Locally Hadoop keeps a checksum of all bytes; there is nothing that is not seen."""
    seen = 0
    for damage in damages(200):
        hidden = damage.path.with_name(f".{damage.path.name}.crc")
        if not hidden.is_file():
            continue
        (tmp_path / "file").write_bytes(damage.apply())
        shutil.copyfile(hidden, tmp_path / ".file.crc")
        kind = StateFileKind(damage.path.suffix[1:])
        file = NeededFile("file", kind, damage.path.stat().st_size, "lz4", checksum=False, hidden_checksum=True)
        assert isinstance(check_file(open_storage(str(tmp_path)), file), Verdict), damage
        seen += 1
    assert seen > 100
