"""Runs the next batches of an unstarted query on a temporary copy of its checkpoint, for ``ckpt.rehearse``.

The sink is Spark's ``noop``. The query runs in a clone of the session, so that no listener of the session sees it.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import fspath
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from ckpt.advice import plain
from ckpt.changes.steps import sidecar
from ckpt.checkpoint.checkpoint import OFFSETS, Checkpoint
from ckpt.checkpoint.reader import open_checkpoint
from ckpt.checkpoint.sources.connectors import BY_SHAPE
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.errors import CkptError, UsageError
from ckpt.formats.offsets import format_offset_log
from ckpt.inspection.explain.explain import explain
from ckpt.inspection.preflight import PlannedStart, judge_start
from ckpt.model import Location
from ckpt.new.carry_over import evolve_checkpoint
from ckpt.new.copy.copy import copy
from ckpt.new.evolve.plan import EvolveOptions
from ckpt.new.rehearsal import RehearsalEnd, RehearsedBatch, RehearsedQuery
from ckpt.new.request import NewCheckpoint
from ckpt.query.description import QueryDescription
from ckpt.settings import KAFKA_OLD_FETCHING, MIN_BATCHES_TO_RETAIN, RECENT_PROGRESS
from ckpt.spark.jobs import words_of
from ckpt.spark.planning import Planner
from ckpt.spark.preflight import describe, plan_start
from ckpt.spark.session import clone_session, hand_over
from ckpt.state.native.diff import state_diff

_EVERY_SECONDS = 0.02  # how often batches are counted: short ones run on meanwhile
_FEWEST_RETAINED = 1000  # so that the state before the first batch is there at the end
_HARMLESS = frozenset(SourceType) - {SourceType.UNKNOWN} - BY_SHAPE
"""Sources that Spark only reads; other ones may acknowledge or delete what a batch has read."""
_OUTSIDE = ("schematrackinglocation", "schemalocation")
"""Options of Delta's reader: a log of schemas that it writes, which is not in the copy."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The checkpoint of a rehearsal, and how queries are run on copies of it."""

    checkpoint: Location
    storage_options: Mapping[str, str] | None
    output_mode: str
    batches: int
    seconds: float
    limit: int  # changed rows of state that are kept

    def describe(self, frame: DataFrame) -> QueryDescription:
        """Describe a query whose sources stay as they are when it runs. Raises UsageError for any other."""
        _check_harmless(frame, self.output_mode)
        description = describe(frame, self.output_mode, self.checkpoint, self.storage_options)
        for number, source in enumerate(description.sources):
            if source.kind not in _HARMLESS:
                raise UsageError(f"source {number} is {source.kind}: reading it may have side effects")
        return description

    def rehearse(
        self,
        frame: DataFrame,
        folder: Path,
        described: QueryDescription | None = None,
        wanted: EvolveOptions | None = None,
        old: QueryDescription | None = None,
    ) -> RehearsedQuery:
        """Run a query on a copy, which is carried over to it as ``wanted`` says; None: on a plain one.

        Without new rows it reads those of an earlier batch again: schemas are only compared once a batch is planned.
        """
        plan = None
        if wanted is not None:
            new = NewCheckpoint(
                uri=str(folder), old=fspath(self.checkpoint), options=self.storage_options or {}, new_id=True
            )
            plan, _ = evolve_checkpoint(described, self.checkpoint, new, wanted, self.storage_options)
        if plan is None or plan.refused is not None:
            copy(self.checkpoint, str(folder), storage_options=self.storage_options, new_id=True)
        copied = open_checkpoint(str(folder))
        result = _run(frame, folder, self.output_mode, self.batches, self.seconds)
        untried = result.end is RehearsalEnd.NO_MORE_ROWS and not result.batches
        if untried and (again := _read_again(copied, folder)) is not None:
            result = replace(_run(frame, folder, self.output_mode, 1, self.seconds), again=again)
        elif not untried:
            result = _compare_state(result, folder, self.limit)
        on_plain_copy = plan is None or plan.refused is not None
        if untried:
            start = plan_start(frame, copied, self.output_mode, None)
        else:
            start = PlannedStart(None if described is None else described.spark, query=described)
        if untried or (described is not None and on_plain_copy):
            judged = judge_start(copied, replace(start, old=old if on_plain_copy else None))
            result = replace(result, preflight=judged)
        if plan is None:
            return result
        refused = None if plan.refused is None else plain(plan.refused)
        evolved = refused is None and plan.needed
        return replace(result, evolved=evolved, refused=refused, knows_less=plan.knows_less)


def _read_again(checkpoint: Checkpoint, folder: Path) -> int | None:
    """Let a copy begin its next batch where the last batch with rows began; returns that batch, None if none is known.

    A source without a logged offset (``-``) begins as at the first start.
    """
    offsets = checkpoint.offsets
    newest, latest = offsets.newest, offsets.latest
    if newest is None or latest is None or latest not in checkpoint.commits:
        return None
    ends = {source.name if source.name else number: source for number, source in enumerate(newest.sources)}
    for batch in reversed(offsets.ids):
        before = None if batch == 0 else offsets.readable(offsets.before(batch))
        if before is None and batch > 0:
            return None
        logged = before.sources if before is not None else ()
        began = {source.name if source.name else number: source for number, source in enumerate(logged)}
        if began.keys() <= ends.keys() and any(key not in began or began[key].text != ends[key].text for key in ends):
            lines = tuple(began.get(key, replace(source, text=None, value=None)) for key, source in ends.items())
            path = f"{OFFSETS}/{latest}"
            (folder / sidecar(path)).unlink(missing_ok=True)
            (folder / path).write_bytes(format_offset_log(replace(newest, sources=lines)))
            return batch
    return None


def _check_harmless(frame: DataFrame, output_mode: str) -> None:
    """Raise UsageError where an option of a reader has Spark write to its source."""
    planner = Planner(frame, output_mode)
    for number, leaf in enumerate(planner.leaves):
        options = planner.read_options(leaf)
        if options.get("cleansource", "off").lower() != "off":
            raise UsageError(
                f"source {number} has cleanSource={options['cleansource']}: a rehearsal would delete or move its "
                "files; rehearse the query without this option"
            )
        for option in _OUTSIDE:
            if option in options:
                raise UsageError(f"source {number} has {option}: Delta would write to that log of schemas")
        old_fetching = str(frame.sparkSession.conf.get(KAFKA_OLD_FETCHING, "false")).lower() == "true"
        if old_fetching and "kafka.group.id" in options:
            raise UsageError(
                f"source {number} has kafka.group.id: with {KAFKA_OLD_FETCHING}=true it would join that group"
            )


def _run(frame: DataFrame, folder: Path, output_mode: str, batches: int, seconds: float) -> RehearsedQuery:
    """Run the next batches on a copy; the state is not compared yet."""
    session = clone_session(frame.sparkSession)
    session.conf.set(MIN_BATCHES_TO_RETAIN, str(_FEWEST_RETAINED))
    session.conf.set(RECENT_PROGRESS, str(_FEWEST_RETAINED))
    _ = session.streams  # Spark 4.2.0 finds its StateStoreCoordinator only once this was touched
    end, done = RehearsalEnd.NO_MORE_ROWS, tuple[RehearsedBatch, ...]()
    deadline = time.monotonic() + seconds
    query: Any = None
    try:
        writer = hand_over(frame, session).writeStream.format("noop").outputMode(output_mode)
        query = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start()
        while True:
            ended = query.awaitTermination(_EVERY_SECONDS)
            done = _list_batches(query)
            if ended or len(done) >= batches:
                break
            if time.monotonic() > deadline:
                end = RehearsalEnd.TIMEOUT
                break
    except (PySparkException, Py4JJavaError) as error:
        done = () if query is None else _list_batches(query)
        if len(done) < batches:
            words = words_of(error)
            explanation = explain(f"{words}\n{error}")
            return RehearsedQuery(RehearsalEnd.FAILED, done, error=words, explanation=explanation)
    finally:
        if query is not None:
            query.stop()
    if len(done) >= batches:
        end = RehearsalEnd.ENOUGH
    return RehearsedQuery(end, done[:batches])


def _list_batches(query: Any) -> tuple[RehearsedBatch, ...]:
    """The batches that have run so far; a trigger without a batch has no ``addBatch`` among its times."""
    rows = [json.loads(progress.json()) for progress in query._jsq.recentProgress()]
    return tuple(
        RehearsedBatch(
            row["batchId"],
            row["numInputRows"],
            row["sink"]["numOutputRows"] if row["sink"].get("numOutputRows", -1) >= 0 else None,
            row["durationMs"]["triggerExecution"],
        )
        for row in rows
        if "addBatch" in row["durationMs"]
    )


def _compare_state(result: RehearsedQuery, folder: Path, limit: int) -> RehearsedQuery:
    checkpoint = open_checkpoint(str(folder))
    if not result.batches or not checkpoint.operators:
        return result
    first, last = result.batches[0].batch, result.batches[-1].batch
    try:
        diff = state_diff(str(folder), from_batch=first - 1, to_batch=last, limit=limit)
    except CkptError as error:
        return replace(result, state_unknown=str(error).replace(f"{folder}", "the copy"))
    return replace(result, state=diff.units)
