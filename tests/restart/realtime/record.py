"""Every start of `cases.py`, by a real Spark and a real broker: the suite `real-time` of `python -m tests.record`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import ckpt
from tests.record.answers import Document, Folder
from tests.record.suite import Cases, a_broker
from tests.record.worker import Installed, Session
from tests.restart.oracle import answers
from tests.restart.realtime.cases import STARTS, Start
from tests.support.spark import mutations

ANSWERS = Folder(Path(__file__).parent / "answers", compact=True)


class RealTime(Cases[Start]):
    """Starts in real-time mode, and in micro-batches after it."""

    partly = True  # real-time mode came with Spark 4.1
    answers = ANSWERS
    role = "real-time"
    hanging = {"outcome": "timeout"}  # noqa: RUF012

    def cases(self, minor: str) -> Iterator[Start]:
        return (start for start in STARTS if minor >= start.since)

    def ask(self, session: Session, case: Start, folder: Path) -> Document:
        if case.repaired:
            return session.ask({"start": case.name, "checkpoint": str(repair(case, folder))})
        if not case.rewritten:
            return session.ask({"start": case.name})
        new = rewrite(case, folder)
        answer = session.ask({"start": case.name, "checkpoint": str(new)})
        return {**answer, "counts": read_counts(new, answer["batch"])}

    def fingerprint(self, case: Start) -> str:
        told = [
            answers.fingerprint(case.case),
            case.mode,
            case.conf,
            case.sink,
            *["rewritten"] * case.rewritten,
            *["repaired"] * case.repaired,
        ]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]

    def settings(self, spark: Installed, case: Start) -> AbstractContextManager[dict[str, str]]:
        return a_broker(spark.minor)


def rewrite(start: Start, folder: Path) -> Path:
    """Write the checkpoint with which real-time mode continues a sample."""
    folder.mkdir(parents=True)
    old = mutations.copy_of(start.case.folder, folder / "old", start.case.mutations)
    ckpt.rewrite(str(old), str(folder / "new"), provider="rocksdb", format_version=2)
    return folder / "new"


def repair(start: Start, folder: Path) -> Path:
    """Obey `ckpt migrate real-time` of a query without state."""
    folder.mkdir(parents=True)
    checkpoint = mutations.copy_of(start.case.folder, folder / "checkpoint", start.case.mutations)
    _, receipt = ckpt.repair(str(checkpoint), choose="to-real-time", apply=True, grace=0)
    assert receipt.applied, receipt.problem
    return checkpoint


def read_counts(checkpoint: Path, batch: int) -> dict[str, list[int]]:
    """Read how many numbers each key has in state, and their sum."""
    rows = ckpt.read_state_arrow(str(checkpoint), batch=batch).to_pylist()
    return {str(row["key_key"]): [row["value_count"], row["value_sum"]] for row in rows}


SUITE = RealTime()
