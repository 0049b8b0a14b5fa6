"""A folder with many checkpoints in it, sound and damaged ones, and what else lies around."""

import os
import shutil
from pathlib import Path
from random import Random

from tests.laws.hostile.mutants import mutate
from tests.support.places import SAMPLE_NAMES, SAMPLES

BROKEN = (
    b"",
    b"v1\n{",
    b"v1\n" + b"[" * 3_000,
    b"v9\n{}",
    b'{"id":',
    b"\xff\xfe",
)
_SMALL = 30  # files


def build(top: Path, count: int, *, hostile: bool) -> Path:
    """``count`` checkpoints, some inside others, between files and folders that are none.

    ``hostile``: a third of them are mutants, with names and kinds of files that only a local disk can have.
    """
    names = [name for name in SAMPLE_NAMES if hostile or _size(name) <= _SMALL]
    for number in range(count):
        rng = Random(number)
        place = (
            top / ("plain", "team a/jobs", "tables/orders/_checkpoints", "day=1", "ünï%20")[number % 5] / f"c{number}"
        )
        if number % 10 == 9:
            place = top / "nested" / f"c{number - number % 20}" / f"inside-{number}"
        place.parent.mkdir(parents=True, exist_ok=True)
        if number % 50 == 11:
            (place / "offsets").mkdir(parents=True)
            continue
        _link(SAMPLES / names[number % len(names)], place)
        if hostile and number % 3 == 0:
            mutate(rng, place)
        elif number % 3 == 1:
            _break(rng, place)
    _between(top)
    return top


def _size(name: str) -> int:
    return sum(len(files) for _, _, files in os.walk(SAMPLES / name))


def _link(sample: Path, place: Path) -> None:
    """A copy that shares files with the sample: they are replaced and never written to."""
    place.mkdir(exist_ok=True)
    shutil.copytree(sample, place, copy_function=shutil.copyfile, dirs_exist_ok=True)


def _break(rng: Random, place: Path) -> None:
    files = sorted(path for path in place.rglob("*") if path.is_file() and "inside" not in str(path))
    if files:
        file = rng.choice(files)
        file.unlink()
        if rng.random() < 0.7:
            file.write_bytes(rng.choice(BROKEN))


def _between(top: Path) -> None:
    """What is no checkpoint: data, a table, notes, empty folders."""
    (top / "empty" / "deep").mkdir(parents=True)
    (top / "notes.txt").write_text("no checkpoint")
    (top / "iceberg" / "metadata").mkdir(parents=True)
    (top / "iceberg" / "metadata" / "v1.metadata.json").write_text("{}")
    table = top / "tables" / "orders"
    for folder in ("_delta_log", "day=2026-11-22"):
        (table / folder).mkdir(parents=True)
    (table / "_delta_log" / "00000000000000000000.json").write_text("{}")
    (table / "day=2026-11-22" / "part-0.parquet").write_bytes(b"PAR1")
