"""How queries continue where a batch is planned: the suite `rewrite-planned` of `python -m tests.record`.

A query is killed by SIGKILL in a batch whose state is written. Its checkpoint is rewritten, or exported and imported,
and copied. Both start again: the batch runs again; or it is passed over, as by a sink that has it: nothing asks for its
rows, so their state is not computed. Where ckpt says that the new one lacks that state, the batch is computed on the
new one, and its rows go nowhere: the start into noop that ckpt inspect asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ckpt
from tests.new.rewrite import record
from tests.new.rewrite.continuing import state
from tests.new.rewrite.record import JOIN_3, NO_FAMILIES, TRANSFORM
from tests.record.answers import Document, Folder
from tests.record.worker import Installed

PLANNED = 6
"""The batch that is planned and not committed."""
KILLED = PLANNED + 4
AT_ONCE, IN_PYTHON = 13, 3
AGAIN, PASSED = "runs again", "passed over"
NOT_VALIDATED = {"spark.sql.streaming.stateStore.commitValidation.enabled": "false"}
"""Only of foreachBatch does Spark 4.2 ask that it computes a batch; a file sink and Delta skip one without."""
_JOIN_3 = tuple(JOIN_3.items())


@dataclass(frozen=True)
class Case(record.Case):
    """A case whose newest batch is planned."""

    how: str = AGAIN
    partial: bool = False  # some partitions lack the state of that batch

    @property
    def name(self) -> str:
        """Such as `join hdfs, rocksdb, 5 partitions, passed over`."""
        return ", ".join([super().name, *(["partly written"] if self.partial else []), self.how])


CASES = (
    *(Case(query, "hdfs", "rocksdb", 5, how=PASSED) for query in NO_FAMILIES),
    *(Case(query, "changelog", "hdfs") for query in NO_FAMILIES),
    *(Case(query, "rocksdb", None, 3, how=PASSED) for query in NO_FAMILIES[:6]),
    Case(TRANSFORM, "changelog", None, 3),
    *(Case("join", "changelog", None, 3, conf=_JOIN_3, how=how) for how in (AGAIN, PASSED)),
    *(Case("aggregation", "format2", None, 3, how=how) for how in (AGAIN, PASSED)),
    Case(TRANSFORM, "format2", None, 3),
    *(Case("aggregation", "hdfs", "rocksdb", None, 2, how=how) for how in (AGAIN, PASSED)),
    *(Case("aggregation", "hdfs", "rocksdb", 3, partial=True, how=how) for how in (AGAIN, PASSED)),
    Case("join", "changelog", None, 3, partial=True),
    Case("session-window", "rocksdb", "hdfs", partial=True),
    *(Case("aggregation", "hdfs", shape="flat", how=how) for how in (AGAIN, PASSED)),
    Case("join", "hdfs", shape="flat", how=PASSED),
    Case(TRANSFORM, "changelog", None, 3, shape="flat", how=PASSED),
)


def run_queries(spark: Installed, folder: Path, runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run queries side by side; of those whose state is handled in Python, whose workers start slowly, a few."""
    in_python = [number for number, run in enumerate(runs) if run["query"] == TRANSFORM]
    others = [number for number in range(len(runs)) if number not in in_python]
    ran: dict[int, dict[str, Any]] = {}
    for group in (others, *(in_python[at : at + IN_PYTHON] for at in range(0, len(in_python), IN_PYTHON))):
        if group:
            answers = record._run(spark, folder, [runs[number] for number in group])["runs"]
            ran |= zip(group, answers, strict=True)
    return [ran[number] for number in range(len(runs))]


def ask(spark: Installed, cases: Iterable[Case], folder: Path) -> Document:
    """Results of each case on the old and on the new checkpoint."""
    cases = [*cases]
    making = [_run_of(case, case.store, folder / case.name / "made", PLANNED) for case in cases]
    errors = [run["error"] for run in run_queries(spark, folder, making)]
    assert not any(errors), errors
    made = {case: make(case, folder / case.name) for case in cases}
    first: list[dict[str, Any]] = []
    second: list[dict[str, Any]] = []
    for case in cases:
        lacks = made[case].planned_state == ckpt.types.PlannedState.LEFT_OUT
        for which, store in (("old", case.store), ("new", case.after)):
            run = _run_of(case, store, folder / case.name / which, KILLED)
            passed = PLANNED if case.how == PASSED and not (which == "new" and lacks) else None
            first.append({**run, "passed": passed})
            second.append({**run, "until": KILLED + 3})
    answers: Document = {case.name: {"state of the batch": made[case].planned_state} for case in cases}
    ran = run_queries(spark, folder, first)
    going = [number for number, run in enumerate(ran) if run["error"] is None]
    later = dict(zip(going, run_queries(spark, folder, [second[number] for number in going]), strict=True))
    for number, run in enumerate(ran):
        case, which = cases[number // 2], ("old", "new")[number % 2]
        answer: dict[str, Any] = {"rows": [_digest(run["rows"])]}
        if run["error"] is not None:
            answer["error"] = name_error(run["error"])
        else:
            answer["rows"].append(_digest(later[number]["rows"]))
            there = state(folder / case.name / which)
            answer["state"] = {unit: record._digest(rows) for unit, rows in there.items()}
        answers[case.name][which] = answer
    return answers


def make(case: Case, folder: Path) -> ckpt.types.Rewrite:
    """The new checkpoint, beside a copy of the old one; where it is partial, the last partition lacks the state."""
    if case.partial:
        last = max((folder / "made/state/0").glob("[0-9]*"), key=lambda path: int(path.name))
        written = [path for path in last.rglob(f"*{PLANNED + 1}*") if path.parent.name != "SSTs"]
        assert written
        for path in written:
            path.unlink()
    case = replace(case, partial=False)
    return record._renewed(case, folder)


def name_error(text: str) -> str:
    """The condition of an error, and the state file that it names, without its partition."""
    condition = re.search(r"\[([A-Z_.0-9]+)\]", text)
    file = re.search(r"/(\d+\.(?:delta|changelog|zip|snapshot))", text)
    return " ".join(match[1] for match in (condition, file) if match) or text.splitlines()[0][:100]


def _digest(rows: Mapping[str, list[str]]) -> dict[str, Any]:
    return {batch: record._digest(found) for batch, found in rows.items()}


def _run_of(case: Case, store: str, checkpoint: Path, until: int) -> dict[str, Any]:
    run = record._of(case, store, checkpoint, until)
    return {**run, "conf": {**run["conf"], **NOT_VALIDATED}}


class Planned(record.SideBySide):
    """Queries that continue on both checkpoints, on one version."""

    answers = Folder(Path(__file__).with_name("recorded_planned"), key="cases")

    def wanted(self, minor: str) -> Iterator[str]:
        return (case.name for case in CASES if minor == record.MAIN)

    def record(self, spark: Installed, only: str, *, fresh: bool) -> None:
        missing = self.missing(spark.minor, only, fresh=fresh)
        cases = sorted((case for case in CASES if case.name in missing), key=lambda case: case.query == TRANSFORM)
        self.record_groups(spark, cases, AT_ONCE, ask)


SUITE = Planned()
