"""What Spark makes of each damage: its state reader loads the version, from a copy without any checksum file.

``python -m tests.state.verify.judge`` asks Spark about all of them, and writes ``judged.json``: a letter for each, in
the order of ``damages``. Takes half an hour, with the pyspark of this interpreter.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from zlib import crc32

from tests.restart.oracle.cases.operators import HOMES
from tests.state.verify.damage import Damage, damages
from tests.support.places import SAMPLES
from tests.support.spark import mutations
from tests.support.spark.samples import SAMPLES as MADE

RECORD = Path(__file__).with_name("judged.json")
COUNT = 2_000
FAILS, OTHER, SAME, NOT_READ = "fos-"
HARMFUL = FAILS + OTHER
"""Spark fails; it reads other rows; it reads the same; the version is none that its reader loads."""

VARIABLES = {
    "transform-with-state": ("last", "parity", "parityTtl", "recent", "recentTtl", "rows"),
    "transform-with-state-event-time": ("rows",),
}
_QUERIES = {sample.name: sample.query for sample in MADE}
_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"


class Judge:
    """A session, and a copy of each sample."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._before: dict[tuple[Path, int], list[str]] = {}

    def asks(self, damage: Damage) -> str:
        name = damage.path.relative_to(SAMPLES).parts[0]
        root = self._copy(name)
        there = root / damage.path.relative_to(SAMPLES / name)
        version = _version(damage.path)
        aside = _snapshots_instead_of(there) if there.suffix in (".delta", ".changelog") else []
        for path in aside:
            path.rename(path.with_suffix(".aside"))
        try:
            key = (there.parent, version)
            if key not in self._before:
                self._before[key] = self._rows(name, there, version)
            if not self._before[key]:
                return NOT_READ
            there.write_bytes(damage.apply())
            return self._compared(name, there, version, self._before[key])
        finally:
            there.write_bytes(damage.path.read_bytes())
            for path in aside:
                path.with_suffix(".aside").rename(path)

    def _compared(self, name: str, file: Path, version: int, before: list[str]) -> str:
        try:
            return SAME if self._read(name, file, version) == before else OTHER
        except Exception:  # of py4j, whatever it is that Spark threw
            self._spark.range(1).count()  # fails where the JVM is gone: then it is asked again
            return FAILS

    def _rows(self, name: str, file: Path, version: int) -> list[str]:
        """The rows of an undamaged version; none where Spark cannot read it."""
        try:
            return self._read(name, file, version)
        except Exception:  # the same
            self._spark.range(1).count()
            return []

    def _copy(self, name: str) -> Path:
        root = self._folder / name
        if not root.exists():
            mutations.copy_of(SAMPLES / name, root, HOMES[name])
            for path in [*root.rglob(".*.crc"), *root.rglob("*.crc")]:
                path.unlink(missing_ok=True)
        return root

    def _read(self, name: str, file: Path, version: int) -> list[str]:
        root = self._folder / name
        _, operator, partition, *store = file.parent.relative_to(root).parts
        own = self._spark.newSession()
        _ = own.streams  # Spark 4.2.0 finds its StateStoreCoordinator only once this was touched
        if "format2" in name:
            own.conf.set(_FORMAT, "2")
        found = []
        for options in _readings(_QUERIES[name], [part for part in store if part != "SSTs"]):
            reader = own.read.format("statestore").options(operatorId=operator, batchId=version - 1, **options)
            frame = reader.load(str(root))
            found += [repr(row) for row in frame.where(frame.partition_id == int(partition)).collect()]
        return sorted(found)


def _readings(query: str, store: Sequence[str]) -> Iterator[dict[str, str]]:
    """The options of the state reader that together read a store."""
    if store:
        yield {"storeName": store[0]}
    elif query == "join":
        yield from ({"joinSide": side} for side in ("left", "right"))
    elif query in VARIABLES:
        yield from ({"stateVarName": name} for name in VARIABLES[query])
        yield {"readRegisteredTimers": "true"}
    else:
        yield {}


def _version(file: Path) -> int:
    """The version that a file is of; of an SST file the newest whose snapshot names it."""
    if file.suffix != ".sst":
        return int(file.name.partition(".")[0].partition("_")[0])
    naming = []
    for path in file.parents[1].glob("*.zip"):
        with zipfile.ZipFile(path) as snapshot:
            if file.name.encode() in snapshot.read("metadata"):
                naming.append(_version(path))
    return max(naming, default=0)


def _snapshots_instead_of(log: Path) -> list[Path]:
    """The snapshot of the same version, which Spark would load in its place."""
    stem = log.name.partition(".")[0]
    return [path for path in (log.with_name(f"{stem}.snapshot"), log.with_name(f"{stem}.zip")) if path.exists()]


def fingerprint() -> int:
    """Of all damages: a record of others says nothing."""
    return crc32("".join(f"{one.path.relative_to(SAMPLES)}{one.at}{one.pattern!r}" for one in damages(COUNT)).encode())


def recorded() -> str:
    """What Spark made of each damage; empty where other damages were recorded."""
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    return record["answers"] if record.get("of") == fingerprint() else ""


def _record(letters: str) -> None:
    RECORD.write_text(json.dumps({"of": fingerprint(), "answers": letters}, indent=1) + "\n", encoding="utf-8")


def ask() -> None:
    """Ask Spark about the damages that are not recorded yet; ends early where the JVM does."""
    from tests.support.spark.queries import session

    spark = session(master="local[1]")
    spark.sparkContext.setLogLevel("OFF")
    letters = recorded()
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(spark, Path(folder))
        try:
            for damage in islice(damages(COUNT), len(letters), None):
                letters += judge.asks(damage)
        finally:
            _record(letters)


def main() -> None:
    """Have all be asked, in as many JVMs as that takes: where one ends twice at the same damage, that made it end."""
    while len(before := recorded()) < COUNT:
        for _ in range(2):
            subprocess.run([sys.executable, "-m", __spec__.name, "ask"], check=False)
            if recorded() != before:
                break
        else:
            _record(before + FAILS)


if __name__ == "__main__":
    ask() if sys.argv[1:] else main()
