"""Backups as this version makes them, kept for all later ones: ``python -m tests.changes.golden_backups``.

Each archive has a checkpoint that was changed, its backup, and digests of the checkpoint as it was before. Archives of
a version are written once: what users have on their disks does not change either.
"""

import json
import lzma
import tarfile
import tempfile
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from ckpt.changes.apply import apply_plan
from ckpt.storage import open_storage
from ckpt.storage.local_writer import open_writer
from tests.changes.every_plan import CHANGES, built, planned

ARCHIVES = Path(__file__).parent / "golden_backups"


def digests(checkpoint: Path) -> dict[str, str]:
    files = (path for path in sorted(checkpoint.rglob("*")) if path.is_file())
    return {str(path.relative_to(checkpoint)): sha256(path.read_bytes()).hexdigest() for path in files}


def write_archive(change: str, archive: Path) -> None:
    """Apply a change to a new checkpoint, and keep what is there afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, planner = built(change, Path(folder, "checkpoint"))
        backup = Path(folder, "backup")
        Path(folder, "before.json").write_text(json.dumps(digests(checkpoint), indent=1))
        plan, storage = planned(planner, checkpoint), open_storage(str(checkpoint))
        receipt = apply_plan(plan, storage, open_writer(str(checkpoint)), open_writer(str(backup)), 0)
        assert receipt.problem is None, receipt.problem
        with lzma.open(archive, "wb", preset=9) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
            for name in ("before.json", "backup", "checkpoint"):
                tar.add(Path(folder, name), name, filter=_of_nobody)


def _of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    home = ARCHIVES / version("spark-ckpt")
    home.mkdir(parents=True, exist_ok=True)
    for change in CHANGES:
        archive = home / f"{change.replace(' ', '-')}.tar.xz"
        if not archive.exists():
            write_archive(change, archive)
