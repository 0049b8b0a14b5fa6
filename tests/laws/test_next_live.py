"""A program obeys ``next``, real Spark starts the query, and the rows that come again are those that were announced.

The sink is ``foreachBatch``, which gets again what is read again. Had it remembered batch ids, it would lose rows only
where ``left-out`` was announced.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.laws.next_obeyed import Obeyed, announced_rows, obey
from tests.restart.oracle import starts
from tests.restart.oracle.cases import Case
from tests.restart.oracle.cases.model import delete_logs, replace
from tests.support.spark import mutations, queries
from tests.support.spark.damage import DAMAGED

pytestmark = pytest.mark.spark

_MOST_STARTS = 5
_MADE_AT = "file:///tmp/ckpt-samples/inputs"
_DAMAGED = {one.name.removeprefix("damaged-"): one for one in DAMAGED}


@dataclass(frozen=True)
class Incident:
    """A query that was stopped after it had written some rows, and what happened to its checkpoint."""

    case: Case
    rows: str  # that the step announces
    written: int  # rows, or files of a file source, that the sink had

    @property
    def rows_each(self) -> int:
        """Rows that count as one of ``written``."""
        return 5 if self.case.query == "file-source" else 1

    @property
    def newest(self) -> int:
        """The newest batch that the sink had."""
        return self.written - 1 if self.rows_each > 1 else self.written // 10 - 1


def _sample(name: str, query: str, rows: str, written: int = 60) -> Incident:
    damaged = _DAMAGED[name]
    return Incident(Case(name, damaged.base, tuple(damaged.mutations), query), rows, written)


def _gap(name: str, offsets: tuple[int, ...], commits: tuple[int, ...], rows: str, written: int) -> Incident:
    return Incident(Case(name, "stateless-3.5", tuple(delete_logs(offsets, commits))), rows, written)


INCIDENTS = (
    _sample("empty-offset", "stateless", "again"),
    _sample("truncated-offset", "stateless", "again"),
    _sample("empty-commit", "stateless", "again"),
    _sample("commits-ahead-of-offsets", "stateless", "again"),
    _sample("commits-far-behind", "stateless", "again"),
    _sample("missing-predecessor", "stateless", "none"),
    _sample("newer-commit-version", "stateless", "again"),
    _sample("orphan-offset-crc", "stateless", "left-out"),
    _sample("missing-predecessor-uncommitted", "stateless", "again", written=50),
    _gap("commit-lost-below-the-newest", (5,), (4,), "again", written=60),
    _gap("gap-of-asynchronous-tracking", (3, 4), (3, 4, 5), "again", written=30),
    _sample("empty-delta", "aggregation", "again"),
    _sample("missing-delta", "aggregation", "left-out"),
    _sample("state-ahead", "aggregation", "left-out"),
    _sample("missing-sst", "aggregation", "again", written=40),
    _sample("missing-changelog", "aggregation", "left-out"),
    _sample("file-source-log-hole", "file-source", "left-out", written=12),
)


@dataclass
class Run:
    """The batches of some starts: what each read from where to where, and what came out."""

    read: dict[int, tuple[int, int]] = field(default_factory=dict)
    rows: dict[int, list[tuple[Any, ...]]] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return max((end for _, end in self.read.values()), default=0)

    @property
    def totals(self) -> dict[Any, tuple[Any, ...]]:
        """The newest row of each key, as an upserting sink has it."""
        return {row[0]: row for _, rows in sorted(self.rows.items()) for row in rows}


@pytest.fixture(scope="module")
def sound(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """What aggregations do next that nothing happened to."""
    runs = {}
    for incident in INCIDENTS:
        case = incident.case
        if case.stateful and case.sample not in runs:
            folder = tmp_path_factory.mktemp("sound")
            runs[case.sample] = _start(spark, case, mutations.copy_of(case.folder, folder / "checkpoint"), folder, 1)
    return runs


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident.case.name)
def test_the_rows_that_come_again_were_announced(
    incident: Incident, spark: Any, sound: dict[str, Run], tmp_path: Path
) -> None:
    case, written = incident.case, incident.written
    checkpoint = mutations.copy_of(case.folder, tmp_path / "checkpoint", (*_at_home(case), *case.mutations))
    obeyed = obey(checkpoint, without_copy=True)
    assert obeyed.faults == []
    assert (announced_rows(obeyed), bool(obeyed.applied)) == (incident.rows, True)

    run = _start(spark, case, checkpoint, tmp_path, written + 1)
    begin = min(start for start, end in run.read.values() if end > start)
    assert begin == (written if incident.rows == "none" else _announced_begin(obeyed))
    read = sorted(run.read.values())
    assert all(later[0] <= earlier[1] for earlier, later in pairwise(read))
    if incident.rows != "left-out":  # nor does a sink lose any that drops the batches that it has
        assert min(start for batch, (start, _) in run.read.items() if batch > incident.newest) <= written
    if case.stateful:
        assert (run.end, run.totals) == (sound[case.sample].end, sound[case.sample].totals)
    else:
        assert sorted(row[0] for rows in run.rows.values() for row in rows) == [
            *range(begin * incident.rows_each, run.end * incident.rows_each)
        ]


def _start(spark: Any, case: Case, checkpoint: Path, folder: Path, least: int) -> Run:
    """Start the query until it has read so much."""
    run, query = Run(), queries.QUERIES[case.query]
    if query.inputs:
        queries.write_input_files(folder / "inputs" / query.name, least + 1)

    def keep(rows: Any, batch: int) -> None:
        run.rows[batch] = [tuple(row) for row in rows.collect()]

    for _ in range(_MOST_STARTS):
        handle = queries.start(spark, query, checkpoint, store=case.settings, sink=keep, inputs=folder / "inputs")
        handle.awaitTermination(60)
        for report in handle.recentProgress:
            (source,) = report["sources"]
            if report["numInputRows"]:
                ends = (source["startOffset"], source["endOffset"])
                run.read[report["batchId"]] = (_number(ends[0]), _number(ends[1]))
        if case.stateful:
            starts.forget_state(spark)
        if run.end >= least:
            break
    return run


def _announced_begin(obeyed: Obeyed) -> int:
    """The first row that is read again, by the receipt."""
    replays = (replay for document in obeyed.applied for replay in document["replay"])
    return min(_number(source["from"]) for replay in replays for source in replay["sources"])


def _at_home(case: Case) -> tuple[mutations.Mutation, ...]:
    """The log of a file source that knows the files of this test."""
    if case.query != "file-source":
        return ()
    return (replace("sources/0/[0-9]*", _MADE_AT, "file://{folder}/inputs"),)


def _number(offset: Any) -> int:
    """How many rows, or files, are before an offset: a file is an entry of the log of its source."""
    values = json.loads(offset) if isinstance(offset, str) else offset
    if values is None:
        return 0
    return int(values["offset"]) if "offset" in values else int(values["logOffset"]) + 1
