"""Where what ckpt said of a Delta table before a start differs from what Spark then did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ckpt import Inspection
from ckpt.live.outlook import SourceOutcome
from ckpt.restart.findings import Outcome
from ckpt.versions import Progress
from tests.live.delta.cases import Case


def disagreements(case: Case, found: Inspection, said: dict[str, Any]) -> Iterator[str]:
    """`said` is the answer of `tests/live/delta/starts.py`."""
    (forecast,) = (one for one in found.forecasts if one.progress is Progress.SYNC)
    (seen,) = found.live
    error, rows = said["error"], sum(count for _, count in said["batches"])
    missing = case.options == "ignoreMissingFiles" and bool(seen.lost)
    if (seen.outcome is SourceOutcome.FAILS) != (error is not None or missing):
        yield f"told {seen.outcome}, {said}"
    ran = bool(said["batches"])
    if not missing and (forecast.outcome is Outcome.RESUMES) != (error is None or (ran and not case.committed)):
        yield f"forecast {forecast.outcome}, {said}"
    if error and seen.stop is not None and (seen.stop.error or "?") not in error:
        yield f"forecast {seen.stop.error!r}, Spark: {error}"
    newest = max(batch for batch, _ in said["batches"]) if ran else -1
    if error and (seen.stop is None) != ran and not case.committed:
        yield f"forecast {forecast.outcome}, and batches up to {newest} ran"
    if error is None and not missing and seen.rows is not None and rows != seen.rows:
        yield f"{seen.rows} rows wait, {rows} were read"
    if missing and error is None and seen.rows is not None and rows + 10 * (seen.lost or 0) != seen.rows:
        yield f"{seen.rows} rows wait, {seen.lost} files are gone, {rows} were read"
    if error and case.committed:
        left = said["newest"] == (forecast.batch_id or -1)
        if left != (forecast.outcome is Outcome.FAILS_IN_BATCH):
            yield f"forecast {forecast.outcome} of batch {forecast.batch_id}, newest {said['newest']}"
    if found.sound == (seen.outcome is not SourceOutcome.CONTINUES or bool(seen.findings)):
        yield f"sound: {found.sound}, {seen.outcome}"
