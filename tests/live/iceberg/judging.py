"""Where what ckpt said of an Iceberg table before a start differs from what Spark then did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ckpt import Inspection
from ckpt.live.outlook import SourceOutcome
from ckpt.restart.findings import Outcome
from ckpt.versions import Progress
from tests.live.iceberg.cases import Case


def disagreements(case: Case, found: Inspection, said: dict[str, Any]) -> Iterator[str]:
    """`said` is the answer of `tests/live/iceberg/starts.py`."""
    (forecast,) = (one for one in found.forecasts if one.progress is Progress.SYNC)
    (seen,) = found.live
    error, rows, ran = said["error"], sum(count for _, count in said["batches"]), bool(said["batches"])
    if case.available_now and any(one.diagnosis.code == "CKPT476" for one in seen.findings):
        if error is None or ran:
            yield f"told that a start with availableNow fails, {said}"
        return
    if (seen.outcome is SourceOutcome.FAILS) != (error is not None):
        yield f"told {seen.outcome}, {said}"
    # with availableNow a start goes through the whole table first, so that it fails before it runs a planned batch
    if (forecast.outcome is Outcome.RESUMES) != (error is None or ran) and not case.available_now:
        yield f"forecast {forecast.outcome}, {said}"
    if error and seen.stop is not None and (seen.stop.error or "?") not in error and not case.available_now:
        yield f"forecast {seen.stop.error!r}, Spark: {error}"
    if error is None and seen.rows != rows and seen.rows is not None:
        yield f"{seen.rows} rows wait, {rows} were read"
    if error is None and seen.rows is None and seen.waiting is not None and case.history != "inside a snapshot":
        yield "rows were not counted"
    if error and case.committed and not ran:
        left = said["newest"] == (forecast.batch_id or -1)
        if left != (forecast.outcome is Outcome.FAILS_IN_BATCH):
            yield f"forecast {forecast.outcome} of batch {forecast.batch_id}, newest {said['newest']}"
    if found.sound == (seen.outcome is not SourceOutcome.CONTINUES):
        yield f"sound: {found.sound}, {seen.outcome}"
