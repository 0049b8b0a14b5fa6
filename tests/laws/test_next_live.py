"""A program obeys ``next``, real Spark starts the query, and the rows that come again are those that were announced.

The sink is ``foreachBatch``, which gets again what is read again. Had it remembered batch ids, it would lose rows only
where ``left-out`` was announced.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.laws.next_obeyed import Obeyed, announced_rows, obey
from tests.laws.starting import Started, home, start, starts_at
from tests.restart.oracle.cases import Case
from tests.restart.oracle.cases.model import delete_logs
from tests.support.spark.damage import DAMAGED

pytestmark = pytest.mark.spark

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


@pytest.fixture(scope="module")
def sound(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Started]:
    """What aggregations do next that nothing happened to."""
    runs = {}
    for incident in INCIDENTS:
        case = incident.case
        if case.stateful and case.sample not in runs:
            folder = tmp_path_factory.mktemp("sound")
            runs[case.sample] = start(spark, case, home(case, folder, ()), lambda run: run.ends >= [1])
    return runs


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident.case.name)
def test_the_rows_that_come_again_were_announced(
    incident: Incident, spark: Any, sound: dict[str, Started], tmp_path: Path
) -> None:
    case, written = incident.case, incident.written
    checkpoint = home(case, tmp_path, case.mutations)
    obeyed = obey(checkpoint, without_copy=True)
    assert obeyed.faults == []
    assert (announced_rows(obeyed), bool(obeyed.applied)) == (incident.rows, True)

    run = start(spark, case, checkpoint, lambda run: run.ends >= [written + 1])
    ranges = {batch: of_source for batch, (of_source,) in run.read.items()}
    begin = min(first for first, end in ranges.values() if end > first)
    assert begin == (written if incident.rows == "none" else _announced_begin(obeyed))
    read = sorted(ranges.values())
    assert all(later[0] <= earlier[1] for earlier, later in pairwise(read))
    if incident.rows != "left-out":  # nor does a sink lose any that drops the batches that it has
        assert min(first for batch, (first, _) in ranges.items() if batch > incident.newest) <= written
    if case.stateful:
        assert (run.ends, run.totals) == (sound[case.sample].ends, sound[case.sample].totals)
    else:
        assert sorted(row[0] for rows in run.rows.values() for row in rows) == [
            *range(begin * incident.rows_each, run.ends[0] * incident.rows_each)
        ]


def _announced_begin(obeyed: Obeyed) -> int:
    """The first row that is read again, by the receipt."""
    replays = (replay for document in obeyed.applied for replay in document["replay"])
    return min(starts_at(source["from"]) for replay in replays for source in replay["sources"])
