"""A file system that is mounted read-only is called that: no other user can write there, and no other backup helps."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ROOT, SAMPLES

_MOUNT = [
    "unshare",
    "-rm",
    "sh",
    "-c",
    'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"',
    "sh",
]
_CKPT = [sys.executable, "-m", "ckpt"]
_APPLY = ("--choose", "read-again", "--accept-replay", "--accept-skip", "--apply", "--grace", "0")


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    """A folder with two checkpoints, of which one is damaged."""
    folder = tmp_path / "mounted"
    shutil.copytree(SAMPLES / "stateless-4.2", folder / "damaged")
    (folder / "damaged/offsets/5").write_bytes(b"")
    shutil.copytree(SAMPLES / "aggregation-hdfs-4.2", folder / "checkpoint")
    shutil.copytree(folder / "damaged", tmp_path / "elsewhere")
    return folder


def run(mounted: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command that sees this folder read-only."""
    tried = subprocess.run([*_MOUNT, str(mounted), "true"], check=False, capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"nothing can be mounted here: {tried.stderr.strip()}")
    command = [*_MOUNT, str(mounted), *_CKPT, *words]
    return subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("repair", "mounted/damaged", *_APPLY), 3),
        (("repair", "mounted/damaged", *_APPLY, "--backup", "backup"), 3),
        (("repair", "elsewhere", *_APPLY, "--backup", "mounted/backup"), 3),
        (("copy", "mounted/checkpoint", "mounted/new"), 3),
        (("export-state", "mounted/checkpoint", "--to", "mounted/exported"), 2),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_would_write_there_says_so(words: tuple[str, ...], code: int, mounted: Path) -> None:
    names = ("mounted", "elsewhere", "backup")
    places = [str(mounted.parent / word) if word.partition("/")[0] in names else word for word in words]

    done = run(mounted, *places)

    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == code, said
    assert "file system is mounted read-only (EROFS)" in said
    assert "permission" not in said
    assert "as the user" not in said
    assert ("name another folder with --backup" in said) is ("mounted/backup" in words)
    assert not (mounted.parent / "backup").exists()


def test_what_reads_does_not_notice(mounted: Path) -> None:
    assert run(mounted, "inspect", str(mounted / "checkpoint")).returncode == 0
