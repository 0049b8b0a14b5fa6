"""Start real queries on changed checkpoints, and say which rows each batch brought."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ckpt.changes.offsets.plan import OffsetsPlan, offsets_set
from tests.support.places import SAMPLES
from tests.support.spark import mutations, plans, queries

Rows = dict[int, list[tuple[Any, ...]]]
Build = Callable[[Any], Any]


def run(
    spark: Any,
    build: Build,
    checkpoint: Path,
    *,
    store: str | None = None,
    mode: str = "append",
    conf: Mapping[str, str] | None = None,
) -> Rows:
    """Run a query to the end of what is there: the rows of each batch, sorted. Raises what Spark raises."""
    query = queries.Query("built here", lambda session, _: build(session), mode)
    batches = queries.run(spark, query, checkpoint, store=store, conf=conf)
    return {batch: sorted(tuple(row) for row in rows) for batch, rows in batches.items()}


def copied(sample: str | Path, to: Path, *damage: mutations.Mutation) -> Path:
    """A copy of a sample, or of another checkpoint."""
    if isinstance(sample, str):
        return mutations.copy_of(SAMPLES / sample, to, damage)
    shutil.copytree(sample, to)
    return to


def moved(checkpoint: Path, **how: Any) -> OffsetsPlan:
    """Set offsets, and accept what it costs."""
    backup = str(checkpoint.with_name(checkpoint.name + " backup"))
    how |= {"accept_skip": True, "accept_replay": True, "apply": True, "backup": backup, "grace": 0}
    plan, receipt = offsets_set(str(checkpoint), **how)
    assert receipt.applied, receipt.problem or plan.refused
    return plan


def apply_as_printed(plan: OffsetsPlan, checkpoint: Path) -> OffsetsPlan:
    """Type what the page prints, with what it asks to accept and nothing else."""
    assert plan.asked is not None
    accepted = {"accept_skip": plan.skips is not None, "accept_replay": plan.repeats is not None}
    backup = str(checkpoint.with_name("backup"))
    typed: dict[str, Any] = {**dict(plan.asked.options), **accepted, "backup": backup, "grace": 0}
    again, receipt = offsets_set(str(checkpoint), apply=True, **typed)
    assert receipt.applied, (receipt.problem, again.refused)
    return again


def rate(session: Any, rows: int = plans.ROWS) -> Any:
    """Rows (timestamp, value), `rows` a batch; `value` counts up from 0."""
    reader = session.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
    return reader.option("numPartitions", 1).option("startTimestamp", plans.START_MS).load()
