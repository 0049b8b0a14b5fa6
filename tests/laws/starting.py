"""Starts of the query of a case: what each batch read from where to where, and the rows that came out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.restart.oracle import starts
from tests.restart.oracle.cases import Case
from tests.restart.oracle.cases.model import replace
from tests.support.spark import mutations, queries

TOPIC, INPUT_FILES = "orders", 14
_MADE_AT = "file:///tmp/ckpt-samples/inputs"
_MOST_STARTS = 5


@dataclass
class Started:
    """The batches of some starts: what each read of each source, and the rows that it wrote."""

    read: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    rows: dict[int, list[tuple[Any, ...]]] = field(default_factory=dict)

    @property
    def ends(self) -> list[int]:
        """Where the newest batch ended in each source."""
        return [end for _, end in self.read[max(self.read)]] if self.read else []

    @property
    def totals(self) -> dict[Any, tuple[Any, ...]]:
        """The newest row of each key, as an upserting sink has it."""
        return {row[0]: row for _, rows in sorted(self.rows.items()) for row in rows}


def home(case: Case, folder: Path, damage: Iterable[mutations.Mutation]) -> Path:
    """A copy of the sample, damaged; the log of a file source knows the files of this folder."""
    moved = (replace("sources/0/[0-9]*", _MADE_AT, "file://{folder}/inputs"),) if case.query == "file-source" else ()
    return mutations.copy_of(case.folder, folder / "checkpoint", (*moved, *damage))


def start(
    spark: Any,
    case: Case,
    checkpoint: Path,
    is_done: Callable[[Started], bool] = lambda _: True,
    conf: Mapping[str, str] | None = None,
) -> Started:
    """Start the query of a case once, or until it has read enough."""
    started, query, inputs = Started(), queries.QUERIES[case.query], checkpoint.parent / "inputs"
    if query.inputs:
        queries.write_input_files(inputs / query.name, INPUT_FILES)

    def keep(rows: Any, batch: int) -> None:
        started.rows[batch] = sorted(map(tuple, rows.collect()), key=str)

    for _ in range(_MOST_STARTS):
        handle = queries.start(spark, query, checkpoint, store=case.settings, sink=keep, inputs=inputs, conf=conf)
        handle.awaitTermination(90)
        for report in handle.recentProgress:
            ends = [(source["startOffset"], source["endOffset"]) for source in report["sources"]]
            started.read[report["batchId"]] = [(starts_at(begin), starts_at(end)) for begin, end in ends]
        starts.forget_state(spark)
        if is_done(started):
            break
    return started


def starts_at(offset: Any) -> int:
    """How many rows, or files, are before an offset."""
    values = json.loads(offset) if isinstance(offset, str) else offset
    if values is None:
        return 0
    if TOPIC in values:
        return sum(values[TOPIC].values())
    return int(values["offset"]) if "offset" in values else int(values["logOffset"]) + 1
