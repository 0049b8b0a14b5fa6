"""What happened to the files of a file source since a query stopped, and what the next start then does.

Batches 0 to 2 have read a file of 10 rows each; a fourth file waits.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.live.delta.cases import remove
from tests.live.running import finish

ROWS = 10
_BEGAN = time.time() - 3600


def write(folder: Path, number: int, days_older: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{number} a.json"
    file.write_text("".join(f'{{"id": {row}}}\n' for row in range(number * ROWS, (number + 1) * ROWS)))
    at = _BEGAN + number - days_older * 86400
    os.utime(file, (at, at))


def _gone(*numbers: int) -> Callable[[Path], None]:
    def happen(folder: Path) -> None:
        for number in numbers:
            (folder / f"{number} a.json").unlink()

    return happen


def _again(folder: Path) -> None:
    write(folder, 1)
    os.utime(folder / "1 a.json", (_BEGAN + 100, _BEGAN + 100))


def _hidden(folder: Path) -> None:
    for place in ("sub", "_hidden", ".hidden"):
        write(folder / place, 5)
    for name in ("_x.json", ".y.json"):
        (folder / name).write_text('{"id": 1}\n')


INCIDENTS: dict[str, tuple[Callable[[Path], None], Mapping[str, str]]] = {
    "nothing": (lambda folder: None, {}),
    "more": (lambda folder: write(folder, 4), {}),
    "planned-gone": (_gone(2), {}),
    "read-gone": (_gone(0), {}),
    "read-and-planned-gone": (_gone(1, 2), {}),
    "old": (lambda folder: write(folder, 4, days_older=8), {}),
    "old, any age": (lambda folder: write(folder, 4, days_older=8), {"maxFileAge": "720h"}),
    "old, latest first": (lambda folder: write(folder, 4, days_older=8), {"latestFirst": "true"}),
    "old, latest first, limited": (
        lambda folder: write(folder, 4, days_older=8),
        {"latestFirst": "true", "maxFilesPerTrigger": "5"},
    ),
    "written-again": (_again, {}),
    "hidden": (_hidden, {}),
}


def _beside(name: str) -> Callable[[Path], None]:
    """Two new files in a folder beside that of the query."""

    def happen(folder: Path) -> None:
        for number in (4, 5):
            write(folder.with_name(name), number)

    return happen


def _renamed(folder: Path) -> None:
    folder.rename(folder.with_name("other"))


def _below(folder: Path) -> None:
    write(folder / "sub", 4)


def _partitions(folder: Path) -> None:
    write(folder.with_name("other") / "k=1", 4)


MOVES: dict[str, tuple[Callable[[Path], None], Mapping[str, str]]] = {
    "another folder": (_beside("other"), {"path": "other"}),
    "another folder, recursive": (_beside("other"), {"path": "other", "recursiveFileLookup": "true"}),
    "another folder, partitions": (_partitions, {"path": "other"}),
    "another folder, as a pattern": (_beside("other"), {"path": "oth*"}),
    "both folders, as a pattern": (_beside("other"), {"path": "{in put,other}"}),
    "a folder whose name begins the old one's": (_beside("in"), {"path": "in"}),
    "a folder whose name the old one's begins": (_beside("in put 2"), {"path": "in put 2"}),
    "the folder above": (lambda folder: write(folder.parent, 4), {"path": "."}),
    "a folder below": (_below, {"path": "in put/sub"}),
    "renamed": (_renamed, {"path": "other"}),
    "through a link": (lambda folder: folder.with_name("link").symlink_to(folder), {"path": "link"}),
}
"""The same where the query now reads another place."""
EVERY = {**INCIDENTS, **MOVES}
LAST = ("committed", "planned", "idle", "idle planned")
"""The latest batch has read a file, and is committed or not; or, idle, only another source had rows for it."""


class Query:
    """A query of files, and copies of its checkpoint."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.input, self._kept, self._made = spark, folder / "in put", folder / "kept", folder / "made"

    def make(self) -> None:
        for number in range(3):
            write(self.input, number)
        self.start(self._made, {"maxFilesPerTrigger": "1"})
        write(self.input, 3)
        shutil.copytree(self.input, self._kept)

    def happen(self, name: str, checkpoint: Path, last: str = "committed") -> dict[str, str]:
        """The options of the reader after an incident."""
        for one in self.input.parent.iterdir():
            if one.is_file() or one.is_symlink():
                one.unlink()
            elif one not in (self._kept, self._made):
                shutil.rmtree(one)
        shutil.copytree(self._kept, self.input)
        shutil.copytree(self._made, checkpoint)
        latest = "2"
        if last.startswith("idle"):
            latest = "3"
            for log in ("offsets", "commits"):
                shutil.copyfile(checkpoint / log / "2", checkpoint / log / latest)
        if last.endswith("planned"):
            remove(checkpoint / "commits" / latest)
        happen, options = EVERY[name]
        happen(self.input)
        return {"path": str(self.input), **options, **self._elsewhere(options)}

    def _elsewhere(self, options: Mapping[str, str]) -> dict[str, str]:
        return {"path": str(self.input.parent / options["path"])} if "path" in options else {}

    def rows(self, options: Mapping[str, str]) -> Any:
        given = {"path": str(self.input), **options}
        return self.spark.readStream.format("json").schema("id BIGINT").options(**given).load()

    def start(self, checkpoint: Path, options: Mapping[str, str]) -> tuple[str | None, int]:
        """What the start failed with, and how many rows it read."""
        writer = self.rows(options).writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        handle = writer.trigger(availableNow=True).start()
        error, reports = finish(handle, lambda: handle.awaitTermination(60))
        return error, sum(report["numInputRows"] for report in reports)


_MADE: dict[Path, Query] = {}


def answer(spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
    """Do what a job of the recorder wants: `make` or `start`, see `Query`."""
    place = Path(job["place"])
    if job["do"] == "make":
        _MADE[place] = Query(spark, place)
        _MADE[place].make()
        return {}
    error, rows = _MADE[place].start(Path(job["checkpoint"]), job["options"])
    return {"error": error, "rows": rows}
