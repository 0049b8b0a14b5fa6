"""Undo reads its manifest with suspicion, and that of every earlier version of ckpt to the end."""

import datetime
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ckpt.changes.backup import name_default_backup
from tests.changes.applying import GAP, NOW, facts, refused
from tests.changes.golden_backups import ARCHIVES, digests
from tests.conftest import Ckpt, CopyOf

EDITS: dict[str, Callable[[dict], object]] = {
    "a path that leads out": lambda told: told["steps"][0].update(path="offsets/../../30"),
    "an absolute path": lambda told: told["steps"][0].update(path="/etc/passwd"),
    "a path of the query": lambda told: told["steps"][0].update(path="metadata"),
    "a path that is a number": lambda told: told["steps"][0].update(path=30),
    "a path that is no text to the system": lambda told: told["steps"][0].update(path="offsets/\ud800"),
    "a path with a line end": lambda told: told["steps"][0].update(path="offsets/3\n0"),
    "a backup file that leads out": lambda told: told["steps"][-1]["before"].update(file="../../0001-x"),
    "no backup file": lambda told: told["steps"][-1]["before"].update(file=None),
    "a mode that gives away": lambda told: told["steps"][-1]["before"].update(mode=0o4755),
    "a mode without end": lambda told: told["steps"][-1]["before"].update(mode=float("inf")),
    "an owner that cannot be": lambda told: told["steps"][-1]["before"].update(uid=2**70),
    "a time that cannot be": lambda told: told["steps"][-1]["before"].update(mtime_ns=10**30),
    "steps that are none": lambda told: told.update(steps={"a": 1}),
    "another format": lambda told: told.update(manifest=2),
    "a format that only equals ours": lambda told: told.update(manifest=True),
    "no command": lambda told: told.update(command=None),
    "another query": lambda told: told.update(query_id="00000000-0000-0000-0000-000000000000"),
    "other contents after": lambda told: told["steps"][-1]["before"].update(sha256="0" * 64),
    "other files beside": lambda told: told.update(others="0" * 64),
}


@pytest.fixture
def repaired(copy_of: CopyOf, tmp_path: Path, ckpt: Ckpt) -> tuple[Path, Path]:
    checkpoint = copy_of(GAP, {"op": "write", "path": "offsets/30", "text": "v1"})
    assert ckpt("repair-async", checkpoint, *NOW, "--backup", tmp_path / "backup").exit_code == 0
    return checkpoint, tmp_path / "backup"


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_manifest_is_refused(edit: str, repaired: tuple[Path, Path], ckpt: Ckpt) -> None:
    checkpoint, backup = repaired
    told = json.loads((backup / "manifest.json").read_bytes())
    told["steps"].sort(key=lambda step: step["before"] is not None)
    EDITS[edit](told)
    (backup / "manifest.json").write_text(json.dumps(told))
    refused_and_untouched(ckpt, checkpoint, backup)


@pytest.mark.parametrize(
    "raw",
    [b"", b"not json", b"[]", b"7", b"\xff\xfe", b"[" * 100_000, b"{" + b" " * 20_000_000 + b"}", b'{"manifest":1}'],
)
def test_a_manifest_that_is_none_is_refused(raw: bytes, repaired: tuple[Path, Path], ckpt: Ckpt) -> None:
    checkpoint, backup = repaired
    (backup / "manifest.json").write_bytes(raw)
    refused_and_untouched(ckpt, checkpoint, backup)


def test_a_backup_that_was_changed_is_refused(repaired: tuple[Path, Path], ckpt: Ckpt) -> None:
    checkpoint, backup = repaired
    saved = next(backup.glob("0*"))
    saved.write_bytes(b"another")
    assert saved.name in refused_and_untouched(ckpt, checkpoint, backup)
    saved.unlink()
    told = refused_and_untouched(ckpt, checkpoint, backup)
    assert f"is incomplete: {saved.name}, the copy of offsets/30, is missing" in told


def test_a_backup_that_is_not_there_is_refused(repaired: tuple[Path, Path], ckpt: Ckpt, tmp_path: Path) -> None:
    assert "is not a backup made by ckpt" in refused_and_untouched(ckpt, repaired[0], tmp_path / "nowhere")


def refused_and_untouched(ckpt: Ckpt, checkpoint: Path, backup: Path) -> str:
    before = facts(checkpoint)
    run = ckpt("repair-async", checkpoint, "--undo", backup, "--grace", 0, "-o", "json")
    assert facts(checkpoint) == before
    assert run.json()["undone"] is False
    return refused(run)


def test_no_manifest_makes_undo_write_through_a_link(repaired: tuple[Path, Path], ckpt: Ckpt, tmp_path: Path) -> None:
    checkpoint, backup = repaired
    (checkpoint / "offsets").rename(tmp_path / "elsewhere")
    (checkpoint / "offsets").symlink_to(tmp_path / "elsewhere")
    before = facts(tmp_path)
    run = ckpt("repair-async", checkpoint, "--undo", backup, "--grace", 0)
    assert (run.exit_code, "is a symbolic link that leads out" in run.refusal()) == (3, True)
    assert facts(tmp_path) == before


def test_two_changes_in_one_second_have_a_backup_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> "Stopped":
            return cls(2026, 1, 2, 3, 4, 5, tzinfo=tz)

    monkeypatch.setattr("ckpt.changes.backup.datetime", Stopped)
    names = []
    for _ in range(3):
        names.append(Path(name_default_backup(str(tmp_path / "orders"))))
        names[-1].mkdir()
    first = "orders.ckpt-backup-20260102T030405Z"
    assert [name.name for name in names] == [first, f"{first}-2", f"{first}-3"]


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
