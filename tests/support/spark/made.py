"""All samples in one folder, as tests want them: those of the repository, and the damaged ones made from them.

    python -m tests.support.spark.made

makes them, at the root of the repository, and prints where they are. Git ignores the folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import sys
from pathlib import Path

from . import mutations
from .damage import DAMAGED, Damaged
from .samples import FOLDER, SAMPLES

PLACE = FOLDER.parent / "build" / "samples" / FOLDER.name


def complete() -> Path:
    """The folder of all samples: as it is, or made anew where the samples or their damage changed since.

    Several test processes may ask at the same time: one makes it, the others wait.
    """
    PLACE.parent.mkdir(parents=True, exist_ok=True)
    stamp = PLACE.with_name("made-from")
    with open(PLACE.with_name("lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = _origin()
        if not (PLACE.is_dir() and stamp.is_file() and stamp.read_text() == wanted):
            stamp.unlink(missing_ok=True)
            shutil.rmtree(PLACE, ignore_errors=True)
            _make(PLACE)
            stamp.write_text(wanted)
    return PLACE


def derive(one: Damaged, folder: Path) -> Path:
    """Make a damaged sample below `folder`, without the folders that were emptied: Git would not keep them."""
    made = mutations.copy_of(FOLDER / one.base, folder / one.name, one.mutations)
    for path in sorted((path for path in made.rglob("*") if path.is_dir()), reverse=True):
        if not any(path.iterdir()):
            path.rmdir()
    return made


def _make(place: Path) -> None:
    for sample in SAMPLES:
        shutil.copytree(FOLDER / sample.name, place / sample.name)
    for one in DAMAGED:
        derive(one, place)


def _origin() -> str:
    """What the folder is made from: the samples' files and the code that damages them, by size and time."""
    files = sorted([*FOLDER.rglob("*"), *Path(__file__).parent.glob("*.py")])
    facts = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files if path.is_file()]
    return hashlib.sha256(repr(facts).encode()).hexdigest()


if __name__ == "__main__":
    sys.stdout.write(f"{complete()}\n")
