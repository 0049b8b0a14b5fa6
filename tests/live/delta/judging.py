"""Where what ckpt said of a Delta table before a start differs from what Spark then did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ckpt import Inspection, Spark, open_checkpoint
from ckpt.inspection.inspection import inspect
from ckpt.live.outlook import SourceOutcome
from ckpt.live.records import DeltaNow, LiveSource
from ckpt.restart.findings import Outcome
from ckpt.versions import Progress
from tests.live.delta.cases import Case
from tests.support.places import SAMPLES


def inspected(checkpoint: Path, now: DeltaNow, version: str) -> Inspection:
    return inspect(open_checkpoint(str(checkpoint)), [Spark(version)], live=[LiveSource(0, now)])


def checkpoint_of(folder: Path, ends: list[Any], *, committed: bool) -> Path:
    """A checkpoint with these offsets, as Spark writes it."""
    sample = SAMPLES / "delta-4.2"
    head = (sample / "offsets" / "0").read_text().splitlines()[1]
    files = {"metadata": (sample / "metadata").read_text()}
    for batch, end in enumerate(ends):
        files[f"offsets/{batch}"] = f"v1\n{head}\n{json.dumps(end)}"
        if committed or batch < len(ends) - 1:
            files[f"commits/{batch}"] = (sample / "commits" / "0").read_text()
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


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
