"""The checkpoints under `sample_checkpoints/`, as data: which query wrote each, how, and what was then done to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "sample_checkpoints"
ORIGIN = Path("/tmp/ckpt-samples")
"""Where the samples were written: `ORIGIN / name`. Paths inside them begin so."""

_STREAMING = "spark.sql.streaming."
_SNAPSHOTS = {_STREAMING + "stateStore.minDeltasForSnapshot": "3"}
_OFFSETS_V2 = {_STREAMING + "offsetLog.formatVersion": "2"}


@dataclass(frozen=True)
class Sample:
    """A checkpoint as Spark left it.

    `run` is how it came about: `starts` starts the query `count` times with `availableNow`, which leaves all
    snapshots to chance; `steady` runs it once, with a trigger every two seconds, up to batch `count`; `killed` is the
    same but SIGKILL comes inside batch `count`; `async` tracks progress asynchronously up to batch `count`;
    `continuous` is the continuous trigger for `count` seconds. `needs` names jars and services beyond Spark.
    """

    name: str
    spark: str
    query: str
    about: str
    store: str | None = None
    run: str = "starts"
    count: int = 6
    conf: Mapping[str, str] = field(default_factory=dict)
    needs: str = ""


SAMPLES: tuple[Sample, ...] = (
    Sample("stateless-3.5", "3.5", "stateless", "Clean stop after batch 5."),
    Sample("aggregation-hdfs-3.5", "3.5", "aggregation", "Deltas only, clean stop.", "hdfs"),
    Sample("aggregation-changelog-4.0", "4.0", "aggregation", "Changelogs only, clean stop.", "changelog"),
)
