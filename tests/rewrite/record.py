"""Record how queries continue on rewritten checkpoints: `python -m tests.rewrite.record --spark 4.1=/path/python`.

Each interpreter, which needs pyspark alone, makes a checkpoint for every case. The ckpt of this one writes it in
another form, and copies it. Then the query runs on both, is killed by SIGKILL in a batch whose state is written, is
started again, and is killed ten batches later; the rows of every batch and the state in the end are kept.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ckpt
from tests.rewrite.continuing import state

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).with_name("recorded")
STARTS = 3
KILLED = (3, 13)
"""The query is killed in these batches after the rewrite."""
_STORE = "spark.sql.streaming.stateStore."
BUSY = {f"{_STORE}maintenanceInterval": "1s", f"{_STORE}minDeltasForSnapshot": "3"}
JOIN_3 = {"spark.sql.streaming.join.stateFormatVersion": "3"}
TRANSFORM = "transform-with-state-event-time"
NO_FAMILIES = (
    *("aggregation", "windowed-aggregation", "session-window", "dedup", "dedup-within-watermark", "dedup-aggregation"),
    *("limit", "join", "pandas-with-state"),
)


@dataclass(frozen=True)
class Case:
    """A query whose state is kept in one way, and then in another."""

    query: str
    store: str
    provider: str | None = None
    partitions: int | None = None
    version: int | None = None
    since: str = "4.0"
    conf: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """Such as `join hdfs, rocksdb, 5 partitions`."""
        parts = [f"{self.query} {self.store}", *(value for _, value in self.conf), self.provider]
        parts += [f"{self.partitions} partitions" if self.partitions else None]
        return ", ".join(filter(None, [*parts, f"format {self.version}" if self.version else None]))

    @property
    def after(self) -> str:
        """How the state is kept afterwards, in the words of `STATE_STORES`."""
        if self.version == 2:
            return "format2"
        return self.provider.replace("rocksdb", "changelog") if self.provider else self.store


CASES = (
    *(Case(query, "hdfs", "rocksdb", 5) for query in NO_FAMILIES),
    *(Case(query, "changelog", "hdfs") for query in NO_FAMILIES),
    *(Case(query, "rocksdb", None, 1) for query in ("aggregation", "session-window", TRANSFORM)),
    Case(TRANSFORM, "changelog", None, 3),
    Case("join", "changelog", None, 3, since="4.2", conf=tuple(JOIN_3.items())),
    *(Case(query, "changelog", None, 3, 2, since="4.2") for query in ("aggregation", "join", TRANSFORM)),
    *(Case(query, store, since="3.5") for query in NO_FAMILIES[:5] for store in ("hdfs", "rocksdb")),
)


def path(minor: str) -> Path:
    """Where the answers of a version are."""
    return FOLDER / f"{minor}.json"


def recorded() -> list[str]:
    """The versions of which there are answers."""
    return sorted(file.stem for file in FOLDER.glob("*.json"))


def read(minor: str) -> dict[str, Any]:
    """What one Spark answered, by case."""
    found: dict[str, Any] = json.loads(path(minor).read_text())
    return found


def cases(minor: str) -> list[Case]:
    """Those that a version can be asked."""
    fits = [case for case in CASES if case.since <= minor]
    return [case for case in fits if minor != "3.5" or case.since == "3.5"]


def ask(minor: str, python: str, some: Iterable[Case], folder: Path) -> dict[str, Any]:
    """What became of each case on both checkpoints."""
    chosen, newest = [*some], {}
    told: dict[str, Any] = {}
    for _ in range(STARTS):
        ran = _run(python, folder, [_of(case, case.store, folder / case.name / "made", None) for case in chosen])
    for case in chosen:
        old, new = folder / case.name / "old", folder / case.name / "new"
        ckpt.copy_checkpoint(str(folder / case.name / "made"), str(old))
        form: Any = {"provider": case.provider, "partitions": case.partitions, "format_version": case.version}
        made = ckpt.rewrite_checkpoint(str(old), str(new), new_id=True, **form)  # both run at the same time
        assert made.written, (case.name, made.refused)
        newest[case] = made.batch
    both = [(case, which) for case in chosen for which in ("old", "new")]
    rows: list[dict[str, Any]] = [{} for _ in both]
    for after in KILLED:
        runs = [
            _of(case, case.store if which == "old" else case.after, folder / case.name / which, newest[case] + after)
            for case, which in both
        ]
        ran = _run(python, folder, runs)
        for kept, one in zip(rows, ran["runs"], strict=True):
            assert one["error"] is None, one["error"]
            kept[f"to the kill {after} batches later"] = one["rows"]
    for (case, which), kept in zip(both, rows, strict=True):
        there = state(folder / case.name / which)
        told.setdefault(case.name, {})[which] = {
            "rows": {run: {batch: _digest(found) for batch, found in of.items()} for run, of in kept.items()},
            "state": {unit: _digest(found) for unit, found in there.items()},
        }
    assert ran["spark"].startswith(f"{minor}."), ran["spark"]
    return {"spark": ran["spark"], "cases": told}


def _of(case: Case, store: str, checkpoint: Path, until: int | None) -> dict[str, Any]:
    conf = {**BUSY, **dict(case.conf)}
    return {"query": case.query, "store": store, "conf": conf, "checkpoint": str(checkpoint), "until": until}


def _run(python: str, folder: Path, runs: list[dict[str, Any]]) -> dict[str, Any]:
    command = [python, "-m", "tests.rewrite.judging", str(folder / "inputs")]
    environment = os.environ | {"PYSPARK_PYTHON": python}
    ran = subprocess.run(
        command, cwd=ROOT, input=json.dumps(runs), capture_output=True, text=True, env=environment, timeout=3000
    )
    if not ran.stdout.strip():
        raise SystemExit(ran.stderr[-3000:])
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def _digest(rows: list[str]) -> list[Any]:
    """How many there are, and a fingerprint of them."""
    return [len(rows), hashlib.sha256("\n".join(rows).encode()).hexdigest()[:12]]


def write(minor: str, answers: Mapping[str, Any]) -> None:
    """Keep the answers, a case in a line."""
    lines = (f"{json.dumps(name)}: {json.dumps(told)}" for name, told in sorted(answers["cases"].items()))
    FOLDER.mkdir(exist_ok=True)
    path(minor).write_text(f'{{"spark": {json.dumps(answers["spark"])}, "cases": {{\n' + ",\n".join(lines) + "\n}}\n")


def main() -> None:
    """Read the command line and record one version after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", action="append", required=True, metavar="MINOR=PYTHON")
    parser.add_argument("--only", help="cases whose names contain this, and print instead of keeping them")
    options = parser.parse_args()
    for pair in options.spark:
        minor, _, python = pair.partition("=")
        with TemporaryDirectory(prefix="ckpt-rewrite-") as folder:
            some = [case for case in cases(minor) if (options.only or "") in case.name]
            answers = ask(minor, python, some, Path(folder))
        if options.only:
            sys.stdout.write(json.dumps(answers, indent=1) + "\n")
        else:
            write(minor, answers)


if __name__ == "__main__":
    main()
