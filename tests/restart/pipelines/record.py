"""Every case of `cases.py`, in one pipeline of a real Spark: the suite `pipelines` of `python -m tests.record`.

The Python needs `pyspark[pipelines]`.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ckpt
from ckpt.versions import Spark
from tests.record.answers import Document, Folder
from tests.record.suite import Whole, dated
from tests.record.worker import Installed
from tests.restart.pipelines.cases import ADOPTED, ALL, CASES, REFRESHED, SINK, TWO, Case
from tests.restart.pipelines.lab import Pipeline

ANSWERS = Folder(Path(__file__).parent / "answers", compact=True)
ASKED = tuple(spark.value for spark in Spark if spark.at_least(Spark.V4_1))
"""Versions that have pipelines."""
FLOWS = Path(__file__).parent / "flows"
"""Two flows as the first run of 4.1 leaves them, without and with state: what the forecast is tried on."""


class Pipelines(Whole):
    """Three runs of one pipeline, with what happens in between."""

    def wanted(self, minor: str) -> Iterable[str]:
        """Return the names of the cases."""
        return [case.name for case in ALL] + [TWO, SINK] if minor in ASKED else []

    def recorded(self, minor: str) -> Iterable[str]:
        """Return the names of the cases that were recorded."""
        answers: Document = ANSWERS.read(minor)["answers"]
        return answers

    def ask_all(self, spark: Installed) -> None:
        """Run it, and keep what became of each flow."""
        with TemporaryDirectory(prefix="ckpt-pipeline-") as folder:
            log = Path(folder, "log")
            where = Path(folder, "pipeline")
            pipeline = Pipeline(spark.python, spark.jars.parent, where, log)
            with pipeline:
                _begin(pipeline, keep_flows=spark.minor == ASKED[0])
            answers: Document = {TWO: {"rows": [pipeline.count_rows(TWO)]}}
            for number, remedies in ((3, False), (4, True)):
                _prepare(pipeline, answers, number, remedies=remedies)
                with pipeline:  # a new driver, which has no state in memory
                    _run(pipeline, answers, "afterwards" if remedies else "run")
                    if remedies:
                        answers[TWO]["union"] = _unite(pipeline)
            folders = (pipeline.folder / "storage/_checkpoints").rglob(f"into_{SINK}")
            answers[SINK] = {"folders": [str(path.relative_to(pipeline.folder / "storage")) for path in folders]}
        ANSWERS.write(spark.minor, {**dated(spark), "answers": answers})


SUITE = Pipelines()


_AT_FIRST = {case.table: case.keyed for case in (*CASES, *REFRESHED)}
_ADOPTED = {case.table: case.keyed for case in ADOPTED}
_INPUTS = (*_AT_FIRST, *_ADOPTED, f"{TWO}_a", f"{TWO}_b", SINK)


def _begin(pipeline: Pipeline, *, keep_flows: bool) -> None:
    """Run every flow that begins with the pipeline, and the queries that a flow takes over."""
    for table in _INPUTS:
        for number in range(3):
            pipeline.put(table, number)
    pipeline.run_ordinary(_ADOPTED)
    pipeline.define(_AT_FIRST, [TWO], sinks=[SINK])
    failures = pipeline.run("run")
    assert not failures, failures
    if keep_flows:
        for case in CASES[:2]:
            shutil.rmtree(FLOWS / case.name, ignore_errors=True)
            shutil.copytree(pipeline.flow(case.table), FLOWS / case.name, ignore=shutil.ignore_patterns(".*"))
    failures = pipeline.run("run", "--full-refresh", ",".join(case.table for case in REFRESHED))
    assert not failures, failures


def _prepare(pipeline: Pipeline, answers: Document, number: int, *, remedies: bool) -> None:
    """Damage the flows, or follow the remedies; then each source has another file."""
    for case in ALL if remedies else CASES:
        if remedies:
            answers[case.name]["remedy"] = _follow(case, pipeline)
        else:
            case.damage(pipeline.flow(case.table))
            if case.cleaned:
                shutil.rmtree(pipeline.folder / "in" / case.table)
    for table in () if remedies else _ADOPTED:
        ckpt.copy(str(pipeline.folder / "ordinary" / table), str(pipeline.flow(table)))
    for table in _INPUTS:
        pipeline.put(table, number)


def _run(pipeline: Pipeline, answers: Document, key: str) -> None:
    pipeline.define(_AT_FIRST | _ADOPTED, [TWO], sinks=[SINK])
    begins = time.time()
    failures = pipeline.run("run")
    for case in ALL:
        answers.setdefault(case.name, {})[key] = _look(case, pipeline, failures, begins)
    answers[TWO]["rows"].append(pipeline.count_rows(TWO))


def _unite(pipeline: Pipeline) -> list[int]:
    """Let one flow write the table that had two, refresh it in full, and count its rows."""
    pipeline.define({}, union=[TWO])
    failures = pipeline.run("run", "--full-refresh", TWO)
    assert not failures, failures
    return pipeline.count_rows(TWO)


def _follow(case: Case, pipeline: Pipeline) -> Document | None:
    """Do what the case asks ckpt for; return what it announced, and why it did nothing, if it did nothing."""
    if case.remedy is None:
        return None
    call: Any = getattr(ckpt, case.remedy)
    flow = pipeline.flow(case.table)
    if case.remedy == "prune":
        plan, receipt = call(str(flow), superseded=True, apply=True, grace=0)
    else:
        plan, receipt = call(str(flow / "0"), apply=True, grace=0, accept_skip=True, accept_replay=True)
    return {
        "applied": receipt.applied,
        "problem": receipt.problem,
        "skips": plan.skips and str(plan.skips),
        "repeats": plan.repeats and str(plan.repeats),
    }


def _look(case: Case, pipeline: Pipeline, failures: dict[str, str], begins: float) -> Document:
    """What a run has done with a flow: the version, the batches that it committed in it, and the rows afterwards."""
    flow = pipeline.flow(case.table)
    touched = {file.parent.parent for file in flow.glob("*/*/[0-9]*") if file.stat().st_mtime >= begins}
    assert len(touched) < 2, touched
    version = next(iter(touched), None)
    error = failures.get(case.table)
    return {
        "version": None if version is None else version.name,
        "committed": [] if version is None else sorted(_list_new(version, begins)),
        "error": None if error is None else error.replace(str(pipeline.folder), "").split(" SQLSTATE")[0][:500],
        "rows": pipeline.count_rows(case.table),
        "versions": sorted(path.name for path in flow.iterdir()),
    }


def _list_new(version: Path, begins: float) -> Iterator[int]:
    for file in (version / "commits").glob("[0-9]*"):
        if file.stat().st_mtime >= begins:
            yield int(file.name)
