"""A backup that any earlier version made is undone by this one, byte for byte."""

import json
import tarfile
from pathlib import Path

import pytest

from tests.changes.golden_backups import ARCHIVES, digests
from tests.conftest import Ckpt

EACH = [pytest.param(path, id=f"{path.parent.name} {path.name.partition('.')[0]}") for path in ARCHIVES.glob("*/*.xz")]


def test_every_change_of_the_first_version_is_kept() -> None:
    assert len([*(ARCHIVES / "0.1.0").iterdir()]) >= 18


@pytest.mark.parametrize("archive", EACH)
def test_a_backup_is_undone(archive: Path, tmp_path: Path, ckpt: Ckpt) -> None:
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    checkpoint, before = tmp_path / "checkpoint", json.loads((tmp_path / "before.json").read_text())
    assert digests(checkpoint) != before
    run = ckpt("repair", checkpoint, "--undo", tmp_path / "backup", "--grace", 0)
    assert run.exit_code == 0, run.stderr
    assert digests(checkpoint) == before
