"""The continuity cases, and how one run of them comes to its outcomes: old queries, SIGKILL, migration, new queries."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from tests.migrate.continuity import STOPS, new, split
from tests.migrate.continuity_input import LAST_WATERMARK, LATE_BY_TIME, LATE_BY_WINDOW, ROWS, everything
from tests.migrate.continuity_old import KINDS
from tests.migrate.continuity_sources import SOURCES
from tests.support.services.process import kill_when_ready

EVERY = ["-".join(case) for case in product(KINDS, SOURCES, STOPS)]
"""The full product, which is recorded."""


@dataclass(frozen=True)
class Outcome:
    """What a case came to. An answer is a row that a query put out, as JSON."""

    case: str
    old: Counter[str]
    new: Counter[str]
    control: Counter[str]
    batches: dict[str, dict[str, list[int]]]  # of the old and the new query: "offsets" and "commits"
    state_version: int  # the newest that the old query wrote

    @property
    def lost(self) -> list[str]:
        """Answers of the control that the two queries did not give, or not as often."""
        return sorted((self.control - (self.old + self.new)).elements())

    @property
    def surplus(self) -> list[str]:
        """Answers of the two queries that the control did not give, or not as often."""
        return sorted(((self.old + self.new) - self.control).elements())

    def rows(self) -> int:
        """The input rows that the two queries counted, be it in answers or in what the end of the input left open."""
        return counted(split(self.case)[0], [json.loads(one) for one in (self.old + self.new).elements()])


def counted(kind: str, answers: list[dict[str, Any]]) -> int:
    """The input rows that answers of a kind account for."""
    if kind == "windows":
        return _sum(answers) + sum(row.second >= LAST_WATERMARK for row in everything())
    closed, latest = [one for one in answers if one.get("expired")], {}
    for one in sorted(answers, key=lambda one: int(one["n"])):
        latest[one["key"]] = one
    if kind == "group-state":  # other sessions than those of the last rows have expired
        open_keys = {row.key for row in everything() if row.second + 15 >= LAST_WATERMARK}
        latest = {key: latest[key] for key in open_keys}
    return _sum([*closed, *latest.values()])


def _sum(answers: list[dict[str, Any]]) -> int:
    return sum(int(one["n"]) for one in answers)


def expected(kind: str) -> int:
    """The input rows that are not late for a query of this kind."""
    late: set[Any] = set()
    if kind == "windows":
        late = LATE_BY_WINDOW
    elif kind in ("group-state", "event-time"):
        late = LATE_BY_TIME
    return ROWS - len(late)


def run(spark: Any, folder: Path, cases: list[str]) -> list[Outcome]:
    """Run cases: what comes before the migration in a JVM that is killed. Raises RuntimeError where that fails.

    `CKPT_KAFKA` and `CKPT_SPARK_JARS` are in the environment.
    """
    command = [sys.executable, "-m", "tests.migrate.continuity", str(folder), *cases]
    kill_when_ready(command, folder / "old.log")
    new(spark, folder, cases)
    return [_outcome(folder / case) for case in cases]


def _outcome(folder: Path) -> Outcome:
    old, new = folder / "old", folder / "new"
    return Outcome(
        case=folder.name,
        old=_answers(old.glob("*.json")),
        new=_answers((new / "answers").glob("*.json")),
        control=_answers((folder / "control").glob("*.json")),
        batches={
            one.name: {log: _ids(one / "checkpoint" / log) for log in ("offsets", "commits")} for one in (old, new)
        },
        state_version=_state_version(old / "checkpoint"),
    )


def _state_version(checkpoint: Path) -> int:
    files = (checkpoint / "state").rglob("[0-9]*.*")
    return max(int(file.name.partition(".")[0]) for file in files if file.suffix in (".delta", ".zip", ".changelog"))


def _answers(files: Iterable[Path]) -> Counter[str]:
    return Counter(
        json.dumps(json.loads(line), sort_keys=True) for file in files for line in file.read_text().splitlines()
    )


def _ids(log: Path) -> list[int]:
    return sorted(int(file.name) for file in log.iterdir() if file.name.isdecimal())
