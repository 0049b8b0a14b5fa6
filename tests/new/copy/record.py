"""Queries that go back to points that were made while they ran: the suite `points` of `python -m tests.record`.

A query runs 300 batches, keeps four of them, and is copied every 20 batches. Then it goes back to ten of the points,
each time from a fresh copy of its checkpoint and sink, and runs some batches of other ranges.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ckpt
from ckpt.checkpoint.points import Point, parse_point
from tests.changes.oracle.histories import copy
from tests.new.copy.test_copy import files
from tests.new.copy.test_live import BUSY, newest, wait_for
from tests.new.rewrite.record import AVRO, CHECKSUMS, CODEC, JOIN_3, MAIN
from tests.record.answers import Document, Folder
from tests.record.suite import Cases
from tests.record.worker import Session
from tests.support.spark.plans import TIMES

BATCHES, EVERY, BACK = 300, 20, 10
MORE = 5
"""Batches that the query runs at least from a point; then it is started once more, for one batch."""
STORES = ("hdfs", "rocksdb", "changelog", "format2")
CONF = {**BUSY, "spark.sql.streaming.minBatchesToRetain": "4", "spark.sql.shuffle.partitions": "2"}


@dataclass(frozen=True)
class Case:
    """A query, and how its state is kept."""

    query: str
    store: str
    conf: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """Such as `join rocksdb, 3`."""
        return ", ".join([f"{self.query} {self.store}", *(value for _, value in self.conf)])


CASES = (
    *(Case(query, store) for query in ("once", "aggregation") for store in STORES),
    *(Case("collecting", store) for store in STORES[1:]),
    Case("join", "hdfs"),
    *(Case("join", store, tuple(JOIN_3.items())) for store in STORES[1:]),
    Case("collecting", "changelog", AVRO),  # Spark refuses Avro for other operators
    *(Case("windows", store) for store in ("hdfs", "changelog")),
    *(Case("once", store, ((CODEC, "zstd"), *CHECKSUMS)) for store in ("hdfs", "changelog")),
)


class Query:
    """The query of a case, whose session does as it is asked."""

    def __init__(self, session: Session, case: Case, folder: Path) -> None:
        self.checkpoint, self.out, self._session = folder / "checkpoint", folder / "out", session
        self._job = {"query": case.query, "store": case.store, "out": str(self.out)}
        self._conf = {**CONF, **dict(case.conf)}

    def ask(self, do: str, times: int = 1) -> Document:
        """Ask the session; with ``times`` as many rows in a batch as usual."""
        conf = {**self._conf, TIMES: str(times)}
        answer = self._session.ask({**self._job, "checkpoint": str(self.checkpoint), "do": do, "conf": conf})
        error = answer.pop("error")
        assert error is None, error
        return answer

    def run_on(self) -> None:
        """Run more batches, with twice as many rows, and end after a committed one."""
        last = newest(self.checkpoint) + MORE
        self.ask("start", 2)
        try:
            wait_for(self.checkpoint, last)
        finally:
            self.ask("stop")
        self.ask("more", 2)

    def forget(self, batch: int) -> None:
        """Do what the page says of a file sink: remove the entries of its log after a batch."""
        for file in self.out.glob("_spark_metadata/*"):
            if int(file.name.strip(".").partition(".")[0]) > batch:
                file.unlink()


def ask(
    session: Session,
    case: Case,
    folder: Path,
    batches: int = BATCHES,
    every: int = EVERY,
    back: int = BACK,
    *,
    fresh: bool = True,
) -> Document:
    """Return the sink and the state some batches after each point; ``fresh``: each time from a fresh copy."""
    query, points, saved = Query(session, case, folder), folder / "points", folder / "saved"
    query.ask("start")
    try:
        for batch in range(every, batches, every):
            wait_for(query.checkpoint, batch)
            made = ckpt.copy(str(query.checkpoint), str(points), keep="last=100")
            point = parse_point(made.points[-1])
            assert point is not None
            while datetime.now(UTC) < point.time:  # of two points at one time the newer one is chosen
                time.sleep(0.05)
        wait_for(
            query.checkpoint, max(batches, newest(query.checkpoint) + 6)
        )  # the point is beyond those that are kept
    finally:
        query.ask("stop")
    assert made.linked, "points share files"
    before, answers = files(points), dict[str, Document]()
    oldest = min(int(file.name) for file in (query.checkpoint / "offsets").glob("[0-9]*"))
    beyond = [point for name in made.points if (point := parse_point(name)) and point.batch < oldest][::-1]
    saved, out = query.checkpoint, shutil.copytree(query.out, folder / "saved")
    for number, point in enumerate(beyond[at * len(beyond) // back] for at in range(back)):
        query.checkpoint = folder / f"again-{number}"  # so that the session has no state of it in memory
        copy(saved, query.checkpoint)
        if fresh:
            shutil.rmtree(query.out)
            shutil.copytree(out, query.out)
        else:
            saved = query.checkpoint
        answers[str(point.batch)] = _go_back(query, points, point)
    assert files(points) == before, "points stay as they are"
    return {"points": answers}


def _go_back(query: Query, points: Path, point: Point) -> Document:
    """Rewind the query to a point, and let it run on."""
    how: Any = {"to_batch": point.time, "from_": str(points), "accept_skip": True, "accept_replay": True, "grace": 0}
    backup = query.checkpoint.with_name("backup")
    plan, receipt = ckpt.rewind(str(query.checkpoint), apply=True, sink=str(query.out), backup=str(backup), **how)
    assert receipt.applied, (receipt.problem, plan.refused)
    assert (plan.to_batch, plan.point, newest(query.checkpoint)) == (point.batch, point.name, point.batch)
    shutil.rmtree(backup)
    query.forget(point.batch)
    planned = (query.checkpoint / "offsets" / str(point.batch + 1)).exists()
    query.run_on()
    last = newest(query.checkpoint)
    _, _, offset, *_ = (query.checkpoint / "offsets" / str(last)).read_text().split("\n")
    return {"to": last, "planned": planned, "rows": json.loads(offset)["offset"], **query.ask("read")}


class BackToPoints(Cases[Case]):
    """Each case on one version: how points are made and gone back to has nothing to do with the version."""

    answers = Folder(Path(__file__).with_name("recorded_points"))
    role = "points"
    partly = True  # a case takes up to ten minutes

    def cases(self, minor: str) -> tuple[Case, ...]:
        return CASES if minor == MAIN else ()

    def ask(self, session: Session, case: Case, folder: Path) -> Document:
        return ask(session, case, folder)


SUITE = BackToPoints()
