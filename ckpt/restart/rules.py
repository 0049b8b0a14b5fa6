"""The rules of a restart, in the order in which Spark comes to them.

They follow ``MicroBatchExecution.populateStartOffsets`` and what it calls; the first rule that has something to say
decides. ``docs/restart.md`` explains them in the same order, and ``tests/restart/oracle`` holds Spark's own answers.
"""

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.restart import batch, before_logs, logs, offsets
from ckpt.restart.findings import Forecast
from ckpt.restart.start import Start
from ckpt.versions import Progress, Spark

RULES = (
    before_logs.no_micro_batches,
    before_logs.query_metadata,
    before_logs.source_logs,
    before_logs.nothing_planned,
    logs.latest_offsets,
    logs.unfinished_repartition,
    logs.latest_sources,
    logs.predecessor,
    logs.recorded_settings,
    logs.latest_commit,
    offsets.doubtful_offsets,
    offsets.malformed_offsets,
    offsets.source_entries,
    batch.refuse_asynchronous,
    batch.load_state,
    batch.meet_obstacle,
    batch.runs,
)


def forecast(checkpoint: Checkpoint, spark: Spark, progress: Progress) -> Forecast:
    """Forecast the next start: a pure function of what was read."""
    start = Start(checkpoint, spark, progress)
    return next(answer for rule in RULES if (answer := rule(start)) is not None)
