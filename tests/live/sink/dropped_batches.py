"""What a sink does when the batch number of a query goes back, and when offsets do.

The sink is one of files, or a Delta table: a role of `tests/record/process.py`. A query has read 60 rows in batches 0
to 5, a file each; 20 rows are new when it is started again. Kept is how often every row is then in the sink.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.live.sink.stateful import Numbers
from tests.support.remedies import remove
from tests.support.spark.mutations import copied

Log = list[int]

CASES: dict[str, tuple[Log, Log, dict[int, int]]] = {
    "untouched": ([], [], {}),
    "offsets-moved-away": ([5], [5], {}),
    "offsets-copied": ([], [], {5: 4}),
    "commits-moved-away": ([4, 5], [4, 5], {}),
    "commits-kept-offsets-copied": ([], [], {4: 3, 5: 3}),
    "planned-batches-moved-away": ([4, 5], [3, 4, 5], {}),
    "planned-batches-emptied": ([], [3, 4, 5], {3: 2, 4: 2, 5: 2}),
    "logs-deleted": (list(range(6)), list(range(6)), {}),
    "logs-and-id-deleted": (list(range(6)), list(range(6)), {}),
}
"""Offsets and commits that are removed, and offsets that are replaced by those of an earlier batch."""


def changed(old: Path, place: Path, case: str) -> Path:
    """A copy of checkpoint and sink with the change of a case."""
    copied(old, place)
    offsets, commits, replaced = CASES[case]
    checkpoint = place / "checkpoint"
    for batch, source in replaced.items():
        remove(checkpoint / "offsets" / str(batch))
        shutil.copyfile(checkpoint / "offsets" / str(source), checkpoint / "offsets" / str(batch))
    for path in [*(f"offsets/{i}" for i in offsets), *(f"commits/{i}" for i in commits)]:
        remove(checkpoint / path)
    if case.startswith("logs-"):
        shutil.rmtree(checkpoint / "sources")
    if case == "logs-and-id-deleted":
        remove(checkpoint / "metadata")
    return place


def answer(spark: Any, job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Every case, one after the other."""
    folder.mkdir()
    query = Numbers(spark, folder, job["sink"], stateful=False)
    query.add(0, 6)
    assert query.start(folder / "old") == ""
    query.add(6, 8)
    found: dict[str, Any] = {}
    for case in CASES:
        place = changed(folder / "old", folder / case, case)
        assert query.start(place, 100) == ""
        times = query.times(place)
        missing = [row for row in range(80) if row not in times]
        found[case] = {"missing": missing, "twice": sorted(row for row, count in times.items() if count > 1)}
    return {"spark": spark.version, "sink": found}
