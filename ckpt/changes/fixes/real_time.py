"""Let real-time mode of Spark 4.3 continue a query without state: give its newest commit version 2.

That is what a start in real-time mode asks for, also without state, and what it writes then: ``nextBatchWatermarkMs``
and no ids of state files. Shown by real starts with Kafka (``tests/restart/realtime``).
"""

from collections.abc import Iterator
from dataclasses import replace

from ckpt.advice import advise, call, run, words
from ckpt.changes.check_fix import Cost, Draft, Rule, warn_of_failing
from ckpt.changes.plan import STOP_FIRST, NoWay
from ckpt.changes.steps import plan_writing
from ckpt.checkpoint.checkpoint import COMMITS
from ckpt.formats.commits import format_commit_log
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.restart.findings import Asked
from ckpt.storage import Storage
from ckpt.versions import NEWEST

_VERSION = 2


def draft_real_time(storage: Storage, inspection: Inspection) -> Iterator[Draft]:
    """Write the newest commit as one of version 2. Raises NoWay, StorageError."""
    checkpoint = inspection.checkpoint
    committed, commit = checkpoint.commits.latest, checkpoint.commits.newest
    if commit is None:
        raise NoWay("no commit can be read")
    if checkpoint.state is not None or checkpoint.stateful is not False:
        see = run(call("migrate_real_time", checkpoint.uri), words("See how the query goes over to real-time mode."))
        raise NoWay("the query keeps state, or may keep some", advise(see))
    if commit.version >= _VERSION:
        raise NoWay(f"{COMMITS}/{committed} has version {commit.version} already")
    path = f"{COMMITS}/{committed}"
    data = format_commit_log(replace(commit, version=_VERSION, next_watermark_ms=commit.next_watermark_ms or 0))
    steps = tuple(plan_writing(storage, checkpoint.listing, path, data))
    does = f"{path} gets version {_VERSION}, after which real-time mode of Spark 4.3 continues"
    yield Draft(does, Cost.NOTHING, steps, warnings=(STOP_FIRST,))


def _refuse_without_start(_: Inspection, after: Inspection) -> str | None:
    start = inspect(after.checkpoint, (NEWEST,), Asked.REALTIME)
    return (
        None
        if start.forecasts[0].outcome.runs
        else f"as it is, the query {start.verdict[:1].lower()}{start.verdict[1:]}"
    )


STARTS_IN_REAL_TIME = Rule(_refuse_without_start, warn_of_failing)
"""The newest Spark version starts it in real-time mode."""
