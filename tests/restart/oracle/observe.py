"""Start a real query on a checkpoint and say what happened, from what Spark itself reports.

Nothing here reads the checkpoint to find out what a batch did: ranges come from the batch's own progress or
plan, and whether tasks ran from Spark's job status. Only the listings are taken from the files.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support.spark import queries

ASYNC = {"asyncProgressTrackingEnabled": "true", "_asyncProgressTrackingOverrideSinkSupportCheck": "true"}
ONE_BATCH = {"processingTime": "10000 hours"}
"""A trigger under which the first batch runs at once and the second never."""
UNHURRIED = {"processingTime": "300 milliseconds"}
"""A trigger that lets the log writes of asynchronous tracking end before the next batch starts."""
REAL_TIME = {"realTime": "1 second"}
SHORT_BATCHES = {"spark.sql.streaming.realTimeMode.minBatchDuration": "1000"}
"""Real-time mode demands batches of 5 seconds, unless told otherwise."""
SINK = "noop"
SCRATCH = "/[^ :]*/ckpt-oracle-"
"""A pattern of how the paths of a worker's scratch folder begin."""
PATIENCE_S = 90.0
MESSAGE = 400
"""How many characters of each exception's message are kept."""


def observe(
    spark: Any,
    query: queries.Query,
    checkpoint: Path,
    mode: str,
    *,
    store: str | None = None,
    batches: int = 1,
    inputs: Path = queries.INPUTS,
    conf: Mapping[str, str] | None = None,
    sink: str = SINK,
) -> dict[str, Any]:
    """Start `query` on `checkpoint`, let `batches` batches run to their commits, and return what happened.

    The keys are described in README.md. `mode` is "sync", "async" or "realtime".
    """
    planned, before = _ids(checkpoint / "offsets"), _ids(checkpoint / "commits")
    trigger = ONE_BATCH if mode == "sync" and batches == 1 else UNHURRIED
    options = ASYNC if mode == "async" else None
    if mode == "realtime":
        trigger, conf = REAL_TIME, SHORT_BATCHES | dict(conf or {})
    how = {"store": store, "inputs": inputs, "sink": sink, "trigger": trigger, "options": options, "conf": conf}
    handle, refusal = _start(spark, query, checkpoint, how)
    if handle is None:
        ran = _never_ran("fails-at-start", refusal)
    else:
        try:
            ran = _watch(spark, handle, checkpoint, 3 if mode == "async" else batches)
        finally:
            with contextlib.suppress(Exception):
                handle.stop()
    first = ran["batch"]
    if mode == "async":
        _blame_first_batch(ran, first in before)
    if ran["outcome"] == "resumes" and first == 0 and 0 not in planned:
        ran["outcome"] = "starts-fresh"
    ran["reexecutes"] = None if first is None else first in planned
    ran["committed"] = first is not None and (checkpoint / "commits" / str(first)).is_file()
    failed = mode == "realtime" and ran["outcome"] == "fails-at-start"
    if (mode == "sync" and batches == 1) or failed:  # otherwise it depends on how far the query got before it stopped
        ran["offsets"], ran["commits"] = _names(checkpoint / "offsets"), _names(checkpoint / "commits")
    return ran


def _start(spark: Any, query: queries.Query, checkpoint: Path, how: dict[str, Any]) -> tuple[Any, list[str] | None]:
    try:
        handle = queries.start(spark, query, checkpoint, **how)
    except Exception as error:
        origin = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
        return None, _chain(origin, checkpoint) if origin is not None else [neutral(str(error), checkpoint)]
    return handle, None


def _never_ran(outcome: str, error: list[str] | None) -> dict[str, Any]:
    return {"outcome": outcome, "batch": None, "sources": None, "rows": None, "error": error}


def _watch(spark: Any, handle: Any, checkpoint: Path, batches: int) -> dict[str, Any]:
    """Wait until `batches` batches are over, the query has died, or patience has run out."""
    execution = handle._jsq.streamingQuery()
    if not _wait_for(lambda: not handle.isActive or _batches_over(handle) >= batches, PATIENCE_S):
        return _never_ran("timeout", None)
    failure = None if handle.isActive else _failure(execution, checkpoint)
    reports = progress(handle)
    if not reports:
        return _unfinished(spark, handle, execution, failure)
    first = reports[0]
    ran = {
        "outcome": "resumes",
        "batch": first["batchId"],
        "sources": [{"from": one["startOffset"], "to": one["endOffset"]} for one in first["sources"]],
        "rows": first["numInputRows"],
        "error": None,
    }
    if failure is not None:
        ran["then"] = _unfinished(spark, handle, execution, failure, done=first["batchId"])
    elif batches > 1:
        ran["then"] = {"outcome": "resumes", "batch": reports[1]["batchId"], "error": None}
    return ran


def _blame_first_batch(ran: dict[str, Any], committed_before: bool) -> None:
    """Turn "resumes, then died" into "fails-at-commit" where what died was the first batch's own log write.

    Asynchronous tracking notices a failed write only after the batch's progress has been reported.
    """
    then = ran.pop("then", None)
    if then is None or then["error"] is None:
        return
    named = re.search(r"(?:(?:offsets|commits)/\.?|detected for )(\d+)", " ".join(then["error"]))
    if named is not None and (committed_before or int(named[1]) == ran["batch"]):
        ran.update(outcome="fails-at-commit", error=then["error"])
    else:
        ran["then"] = then


def _unfinished(
    spark: Any, handle: Any, execution: Any, failure: list[str] | None, done: int | None = None
) -> dict[str, Any]:
    """What became of a batch after `done` that never reported progress: judged by the last job Spark ran."""
    if any("Python worker failed to connect back" in line for line in failure or ()):
        return _never_ran("timeout", failure)
    jobs = _jobs(spark, str(handle.runId))
    last = execution.lastExecution()
    if not jobs or last is None or last.currentBatchId() == done:
        return _never_ran("fails-at-start", failure)
    return {
        "outcome": "fails-at-commit" if jobs[-1] == "SUCCEEDED" else "fails-in-batch",
        "batch": last.currentBatchId(),
        "sources": _planned_ranges(last),
        "rows": None,
        "error": failure,
    }


def _jobs(spark: Any, run_id: str) -> list[str]:
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    tracker = context.statusTracker()
    infos = [tracker.getJobInfo(job) for job in sorted(tracker.getJobIdsForGroup(run_id))]
    return [str(info.get().status()) for info in infos if info.isDefined()]


def _planned_ranges(last: Any) -> list[dict[str, Any]] | None:
    """The offsets between which the batch's plan reads each source; None where a source does not say."""
    leaves = last.logical().collectLeaves()
    ranges = []
    for index in range(leaves.size()):
        leaf = leaves.apply(index)
        if "StreamingDataSourceV2" not in leaf.getClass().getName():
            return None
        start, end = (_json(one.get()) for one in (leaf.startOffset(), leaf.endOffset()))
        beginning = _json(leaf.stream().initialOffset())
        ranges.append({"from": None if start == beginning else start, "to": end})  # as progress would put it
    return ranges


def _json(offset: Any) -> Any:
    return json.loads(offset.json())


def progress(handle: Any) -> list[dict[str, Any]]:
    """The progress of the batches that ended; updates of an idle query are left out."""
    reports = (json.loads(one.json()) for one in handle._jsq.recentProgress())
    return [one for one in reports if "addBatch" in one["durationMs"]]


def _batches_over(handle: Any) -> int:
    return len(progress(handle)) if len(handle._jsq.recentProgress()) else 0


def _failure(execution: Any, checkpoint: Path) -> list[str]:
    problem = execution.exception()
    return _chain(problem.get().getCause(), checkpoint) if problem.isDefined() else ["ended without an error"]


def _chain(throwable: Any, checkpoint: Path) -> list[str]:
    """Class and message of an exception and its causes, without stack traces."""
    return [neutral(line, checkpoint) for line in _messages(throwable)]


def _messages(throwable: Any) -> Iterator[str]:
    while throwable is not None:
        cause, message = throwable.getCause(), throwable.getMessage() or ""
        if cause is None or message != cause.toString():  # a wrapper without words of its own is left out
            message = message.split("\n\tat ")[0].split("\n\nDriver stacktrace")[0]
            yield f"{throwable.getClass().getName()}: {message.strip()[:MESSAGE]}"
        throwable = cause


def neutral(text: str, checkpoint: Path) -> str:
    """Take out of a message what differs from run to run or machine to machine."""
    text = text.replace(str(checkpoint), "<checkpoint>")
    text = re.sub(r"[\w./-]*/site-packages/", "site-packages/", text)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>", text)
    text = re.sub(r"\(TID \d+\) \([^)]*\)", "(TID n)", text)
    text = re.sub(r"@[0-9a-f]{5,8}\b", "@<address>", text)
    text = re.sub(r"stage \d+\.\d+", "stage n", text)
    text = re.sub(r"TID\d+", "TIDn", text)
    return re.sub(SCRATCH + r"\w+", "<scratch>", text)


def _wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if condition():
            return True
        time.sleep(0.05)
    return False


def _names(folder: Path) -> list[str]:
    """Everything in a log folder but well-behaved checksums, sorted; directories end with a slash."""
    found = {one.name: one for one in folder.iterdir()} if folder.is_dir() else {}
    plain = {f".{name}.crc" for name in found}
    kept = (name + "/" * one.is_dir() for name, one in found.items() if name not in plain)
    return sorted(neutral(name, folder) for name in kept)


def _ids(folder: Path) -> set[int]:
    """Batch ids planned before the start: files whose whole name is a number."""
    files = (one for one in folder.iterdir() if one.is_file()) if folder.is_dir() else ()
    return {int(one.name) for one in files if re.fullmatch(r"[0-9]+", one.name)}
