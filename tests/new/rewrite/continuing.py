"""Continues real queries on a rewritten or imported checkpoint and on a copy of the old one, and says what differs.

Both see the same new rows; what they put out, batch by batch, and their state in the end shall be equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ckpt
from tests.support.places import SAMPLES
from tests.support.spark import queries
from tests.support.spark.samples import SAMPLES as ALL

BATCHES = 3
_BY_NAME = {sample.name: sample for sample in ALL}
_STATE_STORE = "spark.sql.streaming.stateStore."
_NOT_OF_THE_KEY = ("sessionStartTime", "__event_time", "index")


@dataclass(frozen=True)
class Case:
    """A sample, and the form that its state is given; with a shape it is exported so, and imported."""

    sample: str
    provider: str | None = None
    partitions: int | None = None
    format_version: int | None = None
    shape: ckpt.types.Shape | None = None

    @property
    def name(self) -> str:
        """Such as `join-rocksdb-4.0, hdfs, 3 partitions`."""
        parts = [self.sample, self.shape, self.provider, f"{self.partitions} partitions" if self.partitions else None]
        return ", ".join(filter(None, [*parts, f"format {self.format_version}" if self.format_version else None]))


def found(spark: Any, case: Case, folder: Path) -> dict[str, Any]:
    """The rows of each batch and the state in the end, on both."""
    uri = str(SAMPLES / case.sample)
    ckpt.copy(uri, str(folder / "old"))
    made = _made(spark, case, uri, folder)
    if made.refused:
        return {"refused": made.refused}
    told: dict[str, Any] = {}
    for name, form in (("old", made.old), ("new", made.new)):
        rows = [_run(spark, case.sample, folder / name, form) for _ in range(BATCHES)]
        told[name] = {"rows": rows, "state": state(folder / name)}
    return told


def _made(spark: Any, case: Case, uri: str, folder: Path) -> ckpt.types.Rewrite:
    form: dict[str, Any] = {
        "provider": case.provider,
        "partitions": case.partitions,
        "format_version": case.format_version,
    }
    if case.shape is None:
        return ckpt.rewrite(uri, str(folder / "new"), **form)
    request = ckpt.types.ExportRequest(uri, to=str(folder / "export"), shape=case.shape, all_units=True)
    ckpt.export_state(request, storage_options=None, session=ckpt.types.Session(spark=spark))
    return ckpt.import_state(str(folder / "export"), str(folder / "new"), like=uri, **form)


def _run(spark: Any, sample: str, checkpoint: Path, form: ckpt.types.Form) -> dict[int, list[str]]:
    """One start: the rows of each batch that it ran."""
    query = queries.QUERIES[_BY_NAME[sample].query]
    store = "hdfs" if form.provider == "hdfs" else "format2" if form.version == 2 else "changelog"
    conf = {
        **_BY_NAME[sample].conf,
        f"{_STATE_STORE}maintenanceInterval": "1s",
        f"{_STATE_STORE}minDeltasForSnapshot": "2",
    }
    batches = queries.run(spark, query, checkpoint, store=store, conf=conf)
    return {batch: sorted(map(str, rows)) for batch, rows in batches.items()}


def frames(checkpoint: Path | str, shape: str = "flat", *, partition_id: bool = False) -> dict[str, Any]:
    """All state of a checkpoint, by the labels of its units."""
    found = {}
    for unit in ckpt.state_units(ckpt.open_checkpoint(str(checkpoint))):
        if not unit.shown_elsewhere:
            part: ckpt.types.Part = {"operator": unit.operator, "side": unit.side, "variable": unit.variable}
            part["timers"] = unit.kind == "timers"
            found[unit.label] = ckpt.read_state_arrow(str(checkpoint), shape=shape, partition_id=partition_id, **part)
    return found


def state(checkpoint: Path) -> dict[str, list[str]]:
    """Every row of every unit."""
    return {label: sorted(map(str, table.to_pylist())) for label, table in frames(checkpoint).items()}


def rows(checkpoint: Path) -> dict[str, list[tuple[Any, str]]]:
    """Of each unit the grouping key and all of each row."""
    return {
        label: sorted((tuple(_list_key(row["key"])), str(row)) for row in table.to_pylist())
        for label, table in frames(checkpoint, "raw").items()
    }


def _list_key(key: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for name, value in key.items():
        if isinstance(value, dict):
            yield from _list_key(value, f"{path}{name}_")
        elif name not in _NOT_OF_THE_KEY:
            yield path + name, str(value)
