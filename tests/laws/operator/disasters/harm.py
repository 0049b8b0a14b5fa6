"""What a disaster is, and what happens to files: the parts that disasters are made of."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.laws.operator.queries import OLDER, Kind, World
from tests.support.spark.mutations import crc_of

Change = Callable[[World, Random], object]
_STATE_FILE = re.compile(r"(\d+)(_[\w-]+)?\.(delta|snapshot|zip|changelog)")


@dataclass(frozen=True)
class Disaster:
    """Something that happens, and the kinds of queries to which it can."""

    name: str
    happen: Change
    fits: Callable[[Kind], bool]


def always(_: Kind) -> bool:
    return True


def has_state(kind: Kind) -> bool:
    return kind.stateful


def reads(*sources: str) -> Callable[[Kind], bool]:
    return lambda kind: kind.source in sources


def writes(*sinks: str) -> Callable[[Kind], bool]:
    return lambda kind: kind.sink in sinks


def keeps(*stores: str) -> Callable[[Kind], bool]:
    return lambda kind: kind.store in stores


class Menu(dict[str, Disaster]):
    """Disasters of one kind, by name, in their order."""

    def add(self, name: str, happen: Change, fits: Callable[[Kind], bool] = always) -> None:
        """Add a disaster."""
        assert name not in self, name
        self[name] = Disaster(name, happen, fits)


# Files, and what happens to one


def remove(path: Path) -> None:
    """Delete a file with its checksum, or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
        return
    path.unlink(missing_ok=True)
    crc_of(path).unlink(missing_ok=True)


def write(path: Path, text: str | bytes) -> None:
    """Replace a file, without a checksum."""
    crc_of(path).unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


def empty(path: Path) -> None:
    write(path, "")


def cut(path: Path) -> None:
    content = path.read_bytes()
    write(path, content[: len(content) * 2 // 3])


def garble(path: Path) -> None:
    write(path, "\x00\x17garbled" * 3)


def keep_version(path: Path) -> None:
    write(path, "v1\n")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    write(path, bytes(content))


def flip_unnoticed_by_its_checksum(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))


def harm_all(harm: Callable[[Path], None], paths: Callable[[World], list[Path]]) -> Change:
    """Do the same to several files, which are looked up first."""

    def happen(world: World, _: Random) -> None:
        for path in paths(world):
            harm(path)

    return happen


HARMS: dict[str, Callable[[Path], None]] = {"lost": remove, "empty": empty, "cut": cut, "garbled": garble}


def to_log(name: str, back: int, harm: Callable[[Path], None]) -> Change:
    return lambda world, _: harm(world.checkpoint / name / str(newest(world.checkpoint / name) - back))


def newest(log: Path) -> int:
    """The newest batch of a log; 0 for an empty one."""
    return max((int(file.name) for file in log.glob("[0-9]*") if file.name.isdecimal()), default=0)


def remove_all(*patterns: str) -> Change:
    def happen(world: World, _: Random) -> None:
        for pattern in patterns:
            for path in [*world.checkpoint.glob(pattern)]:
                remove(path)

    return happen


def both(*changes: Change) -> Change:
    def happen(world: World, rng: Random) -> None:
        for change in changes:
            change(world, rng)

    return happen


def edit(path: str, old: str, new: str) -> Change:
    """Replace by a regular expression what a hand edits, with its checksum removed; the newest batch is `{newest}`."""

    def happen(world: World, _: Random) -> None:
        file = world.checkpoint / path.format(newest=newest(world.checkpoint / path.partition("/")[0]))
        write(file, re.sub(old, new, file.read_text()))

    return happen


def next_batch(world: World) -> str:
    return str(newest(world.checkpoint / "offsets") + 1)


def log_file(world: World, log: str) -> Path:
    return world.checkpoint / log / str(newest(world.checkpoint / log))


def state_files(world: World, back: int = 0) -> list[Path]:
    """The files of the newest version, or one so many versions older, in each partition and store of one operator."""
    files = (file for file in sorted(world.checkpoint.glob("state/0/*/**/*")) if "_metadata" not in str(file))
    versions = [(int(match[1]), file) for file in files if (match := _STATE_FILE.fullmatch(file.name))]
    newest = max((version for version, _ in versions), default=0)
    return [file for version, file in versions if version == newest - back]


def empty_folder(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def each(world: World, pattern: str, harm: Callable[[Path], None]) -> None:
    for path in sorted(world.checkpoint.glob(pattern)):
        if path.exists() and (path.is_file() or harm is remove) and not path.name.endswith(".crc"):
            harm(path)


def newest_delta_entry(table: Path, back: int = 0) -> Path:
    return sorted((table / "_delta_log").glob("*.json"))[-1 - back]


def crash_after_the_sink(world: World, _: Random) -> None:
    remove(log_file(world, "commits"))


def crash_before_the_sink(world: World, _: Random) -> None:
    """The newest batch has state, and is neither in the sink nor committed."""
    remove(log_file(world, "commits"))
    restore(world, "out", OLDER[-1])


def crash_before_the_state(world: World, rng: Random) -> None:
    """The newest batch is planned, and no more."""
    crash_before_the_sink(world, rng)
    for file in state_files(world):
        remove(file)


def restore(world: World, folder: str, batches: int) -> None:
    """A copy, made after so many batches, replaces the folder."""
    remove(world.folder / folder)
    shutil.copytree(world.copies / str(batches) / folder, world.folder / folder)


def to_state(harm: Callable[[Path], None], back: int = 0, *, everywhere: bool = False) -> Change:
    def happen(world: World, rng: Random) -> None:
        files = state_files(world, back)
        assert files, world.kind.name
        folder = rng.choice(sorted({file.parent for file in files}))
        for file in files:
            if everywhere or file.parent == folder:
                harm(file)

    return happen
