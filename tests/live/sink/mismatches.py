"""Checkpoints and sinks that no longer fit: what `ckpt inspect --sink` says before a start, and what the start does.

A query has read 60 numbered rows in batches 0 to 5, a file each, without a change. Then something happens to its
checkpoint or to its sink, 20 rows are new, and it is started again with two files in a batch: under the old ids come
other rows.
"""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ckpt.changes.rewind.plan import Replayed
from ckpt.changes.rewind.rewind import rewind
from tests.live.sink.remedies_followed import BATCHES, NEW
from tests.live.sink.stateful import ROWS, Numbers
from tests.support.remedies import NOW, remove

OLDER = 3  # batches that the copy of the checkpoint has
EVERY_ROW = BATCHES * ROWS + NEW


class Asked(Numbers):
    """A query without state from files into one kind of sink, and copies of it to which something happens."""

    most = 2

    def __init__(self, spark: Any, folder: Path, sink: str) -> None:
        super().__init__(spark, folder, sink, stateful=False)
        self._old = folder / "old"

    def run_old(self) -> None:
        """Run it as it was meant to, and copy its checkpoint on the way."""
        self.add(0, OLDER)
        assert self.start(self._old, 1) == ""
        shutil.copytree(self._old / "checkpoint", self.folder / "older")
        self.add(OLDER, BATCHES)
        assert self.start(self._old, 1) == ""
        self.add(BATCHES, EVERY_ROW // ROWS)

    def copied(self, name: str) -> Path:
        return self.copy(self._old, name)

    def sql(self, text: str, place: Path) -> None:
        """A statement about the table."""
        self.spark.sql(text.format(table=f"delta.`{place / 'out'}`"))

    def checkpointed(self, place: Path) -> None:
        """Have Delta write a checkpoint of the table, and lose every version below it, as its cleaning does."""
        log = self.spark._jvm.org.apache.spark.sql.delta.DeltaLog
        log.forTable(self.spark._jsparkSession, str(place / "out")).checkpoint()
        for file in sorted((place / "out" / "_delta_log").glob("*.json"))[:-1]:
            remove(file)


Change = Callable[[Any, Path], None]
"""Something happens to a query, with its checkpoint in the folder `checkpoint` of a place."""


def rewound(batch: int, replayed: Replayed) -> Change:
    def change(_: Any, place: Path) -> None:
        receipt = rewind(str(place / "checkpoint"), to_batch=batch, replay=replayed, **NOW)[1]
        assert receipt.applied, receipt.problem

    return change


def _both(*changes: Change) -> Change:
    def change(query: Asked, place: Path) -> None:
        for one in changes:
            one(query, place)

    return change


def _nothing(query: Asked, place: Path) -> None:
    """The query was stopped, and is started again."""


def _restored_older(query: Asked, place: Path) -> None:
    shutil.rmtree(place / "checkpoint")
    shutil.copytree(query.folder / "older", place / "checkpoint")


def uncommitted(_: Any, place: Path) -> None:
    remove(place / "checkpoint" / "commits" / str(BATCHES - 1))


def sink_goes_back(batches: int) -> Change:
    """The sink as an older copy of it: without its last batches."""

    def change(query: Asked, place: Path) -> None:
        for batch in range(BATCHES - batches, BATCHES):
            name = f"_delta_log/{batch:020}.json" if query.sink == "delta" else f"_spark_metadata/{batch}"
            remove(place / "out" / name)
            (place / "out" / "_delta_log" / f"{batch:020}.crc").unlink(missing_ok=True)

    return change


def _recreated(query: Asked, place: Path) -> None:
    shutil.rmtree(place / "out")
    query.spark.range(0).write.format("delta").save(str(place / "out"))


def _restored(query: Asked, place: Path) -> None:
    query.sql(f"RESTORE TABLE {{table}} TO VERSION AS OF {BATCHES - 3}", place)


def new_id(_: Any, place: Path) -> None:
    (place / "checkpoint" / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    (place / "checkpoint" / ".metadata.crc").unlink()


def new_checkpoint(_: Any, place: Path) -> None:
    shutil.rmtree(place / "checkpoint")
    (place / "checkpoint").mkdir()


def _short_memory(query: Asked, place: Path) -> None:
    query.sql(
        "ALTER TABLE {table} SET TBLPROPERTIES('delta.setTransactionRetentionDuration'='interval 1 second')", place
    )
    time.sleep(1.5)


def _long_memory(query: Asked, place: Path) -> None:
    query.sql("ALTER TABLE {table} UNSET TBLPROPERTIES('delta.setTransactionRetentionDuration')", place)


BY_ONE, BY_THREE = (rewound(BATCHES - 1 - steps, Replayed.NEW) for steps in (1, 3))
_BY_ONE_SAME, _BY_THREE_SAME = (rewound(BATCHES - 1 - steps, Replayed.SAME) for steps in (1, 3))

BOTH_SINKS: Mapping[str, Change] = {
    "continued": _nothing,
    "rewound by one": BY_ONE,
    "rewound by one, same": _BY_ONE_SAME,
    "rewound by three, same": _BY_THREE_SAME,
    "restored older": _restored_older,
    "crashed after the sink": uncommitted,
    "crashed before the sink": _both(uncommitted, sink_goes_back(1)),
    "new checkpoint": new_checkpoint,
}
ONLY_DELTA: Mapping[str, Change] = {
    "rewound by three, log cleaned": _both(Asked.checkpointed, BY_THREE),
    "recreated": _recreated,
    "older table": sink_goes_back(2),
    "restored": _restored,
    "restored, uncommitted": _both(_restored, uncommitted),
    "new id": _both(uncommitted, new_id),
    "forgotten": _both(_short_memory, uncommitted),
    "remembered again": _both(_short_memory, _long_memory, uncommitted),
}
CASES = [*(("delta", name) for name in (*BOTH_SINKS, *ONLY_DELTA)), *(("parquet", name) for name in BOTH_SINKS)]


def promised(said: dict[str, Any], before: Counter[int]) -> Counter[int]:
    """How often each row is in the sink afterwards, by what was said: batches are written unless it says otherwise."""
    sink, entry = said["sink"], said["restart"][-1]
    batch, unread = sink["next_batch"], _first_unread(said, entry)
    found = Counter(before)
    first = 1 if entry["reexecutes"] else 2
    while unread < EVERY_ROW:
        until = min(unread + first * ROWS, EVERY_ROW)
        passed = sink["outcome"] == "passes-over" and batch == sink["next_batch"]
        passed |= sink["outcome"] == "drops" and batch <= sink["dropped"][1]
        found.update(() if passed else range(unread, until))
        batch, unread, first = batch + 1, until, 2
    return found


def _first_unread(said: dict[str, Any], entry: dict[str, Any]) -> int:
    """The first row that the next start reads: a file of ``ROWS`` rows is an entry of the source's log."""
    if not entry["sources"]:
        return 0
    start = entry["sources"][0]["from"]
    return (start["logOffset"] + 1) * ROWS if start else 0
