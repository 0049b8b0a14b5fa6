"""Checkpoints whose offsets are set, and copies, as data: which sample, and what is done to a copy of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ckpt.changes.offsets.plan import OffsetsPlan, offsets_set
from ckpt.new.copy.copy import copy
from tests.changes.offsets.running import moved
from tests.restart.oracle import answers as oracle
from tests.restart.oracle.cases import SAMPLES, Case
from tests.restart.oracle.cases.as_made import relocated
from tests.restart.oracle.cases.model import delete_logs, latest
from tests.support.spark import mutations, samples

CHOSEN = (
    "stateless-3.5",
    "two-sources-3.5",
    "named-sources-4.2",
    "file-source-3.5",
    "aggregation-hdfs-3.5",
    "aggregation-rocksdb-3.5",
    "aggregation-changelog-4.0",
    "aggregation-format2-4.2",
    "windowed-aggregation-hdfs-4.2",
    "join-hdfs-3.5",
    "session-window-hdfs-3.5",
    "dedup-hdfs-4.0",
    "tws-changelog-4.0",
)
"""One sample of each kind of source, operator, state store and format that restarts without a service."""

BY = {"ahead": 7, "back": -7, "uncommitted-ahead": 4, "uncommitted-back": -4}
COPY = "copy"
_MADE = {sample.name: sample for sample in samples.SAMPLES}


@dataclass(frozen=True)
class Question:
    """A sample, and what is done to a copy of it before the query is started."""

    sample: str
    what: str  # a key of BY, or COPY

    @property
    def name(self) -> str:
        """Under which the answer is kept."""
        return f"{self.sample}/{self.what}"

    @property
    def case(self) -> Case:
        """The copy before anything is changed, in the language of the oracle's own cases."""
        made = _MADE[self.sample]
        gone = delete_logs(commits=[latest(self.sample)]) if self.what.startswith("uncommitted") else []
        return Case(self.name, self.sample, (*relocated(made), *gone), made.query, sync_only=True)

    @property
    def to(self) -> Any:
        """The new end of source 0, computed from the sample alone."""
        was = logged(self.sample, latest(self.sample))
        if "logOffset" in was:
            return {"logOffset": was["logOffset"] + (1 if BY[self.what] > 0 else -1)}
        return {**was, "offset": was["offset"] + BY[self.what]}

    def damaged(self, folder: Path) -> Path:
        """The copy, at ``folder / "ck"``."""
        folder.mkdir(parents=True, exist_ok=True)
        return mutations.copy_of(SAMPLES / self.sample, folder / "ck", self.case.mutations)

    def planned(self, folder: Path) -> OffsetsPlan:
        """What ckpt would do to it."""
        return offsets_set(str(self.damaged(folder)), source=0, to=json.dumps(self.to))[0]

    def made(self, folder: Path) -> None:
        """Set the offsets, or copy; the checkpoint to be started is at ``folder / "ck"``."""
        if self.what == COPY:
            copy(str(self.damaged(folder / "original")), str(folder / "ck"))
        else:
            moved(self.damaged(folder), source=0, to=json.dumps(self.to))

    @property
    def of(self) -> str:
        asked = [oracle.fingerprint(self.case), None if self.what == COPY else self.to]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]


def logged(sample: str, batch: int) -> Any:
    """The offset of the first source of a batch, read without ckpt; offset log v2 names its sources."""
    lines = (SAMPLES / sample / "offsets" / str(batch)).read_text().split("\n")[2:]
    return json.loads(lines[0][lines[0].index("{") :])


@cache
def questions() -> tuple[Question, ...]:
    """All of them, but for files ahead of the log, ends before a start, and copies whose files would be elsewhere."""
    return tuple(_questions())


def _questions() -> Iterator[Question]:
    for sample in CHOSEN:
        for what in (*BY, COPY):
            files = sample.startswith("file-source")
            if not (files and (what.endswith("ahead") or what == COPY)) and not (_idle(sample) and "ted-back" in what):
                yield Question(sample, what)


def _idle(sample: str) -> bool:
    """Whether the latest batch had no rows, and only moved the watermark."""
    last = latest(sample)
    return bool(logged(sample, last) == logged(sample, last - 1))
