"""What a sink does when the batch number of a query goes back, and when offsets do.

`python -m tests.live.sink.dropped_batches FOLDER [DELTA]`: the sink is one of files, or a Delta table that the package
DELTA brings. Prints, for each case, how often every row is in the sink, as JSON; it needs pyspark of any version and
nothing of ckpt. A query has read 60 rows in batches 0 to 5, a file each; 20 rows are new when it is started again.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.remedies import remove

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


def write_files(folder: Path, first: int, last: int) -> None:
    folder.mkdir(exist_ok=True)
    for number in range(first, last):
        rows = "".join(f'{{"id": {row}}}\n' for row in range(10 * number, 10 * number + 10))
        file = folder / f"{number}.json"
        file.write_text(rows)
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))  # read in this order


def start(spark: Any, folder: Path, place: Path, most: int, sink: str) -> None:
    """Read what there is, and stop."""
    rows = spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", most).json(str(folder / "in"))
    writer = rows.writeStream.format(sink).option("checkpointLocation", str(place / "checkpoint"))
    writer.option("path", str(place / "out")).trigger(availableNow=True).start().awaitTermination(300)


def changed(old: Path, place: Path, case: str) -> Path:
    """A copy of checkpoint and sink with the change of a case; the sink's log names its files by absolute path."""
    shutil.copytree(old, place)
    for file in (place / "out" / "_spark_metadata").glob("[0-9]*"):
        text = file.read_text().replace(f"{old}/", f"{place}/")
        remove(file)
        file.write_text(text)
    offsets, commits, copied = CASES[case]
    checkpoint = place / "checkpoint"
    for batch, source in copied.items():
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
    sink = job["sink"]
    write_files(folder / "in", 0, 6)
    start(spark, folder, folder / "old", 1, sink)
    write_files(folder / "in", 6, 8)
    found: dict[str, Any] = {}
    for case in CASES:
        place = changed(folder / "old", folder / case, case)
        start(spark, folder, place, 100, sink)
        times = Counter(row.id for row in spark.read.format(sink).load(str(place / "out")).collect())
        missing = [row for row in range(80) if not times[row]]
        found[case] = {"missing": missing, "twice": sorted(row for row, count in times.items() if count > 1)}
    return {"spark": spark.version, "sink": found}
