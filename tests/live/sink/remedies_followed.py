"""Damages checkpoints, obeys `ckpt inspect`, restarts, and counts rows in the sink.

A query reads numbered rows, one file a batch, into a sink that remembers batch ids. Its checkpoint and its sink are
copied, the copy is damaged, the remedy that the page ends with is done by the letter, and the query is started again
with rows that are new. What is found says, for each case, how often every row is in the sink afterwards.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ckpt.changes.fixes.repair import FixName, repair
from ckpt.new.copy.copy import copy
from tests.live.sink.stateful import ROWS, Numbers
from tests.migrate.handoff.continuity import inspected
from tests.support.remedies import NOW, obey, remove

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES = 6  # of the old query
NEW = 2 * ROWS  # rows that come after the damage

Damage = Callable[[Path], None]


def _empty_latest(checkpoint: Path) -> None:
    (checkpoint / "offsets" / "5").write_text("")


def _empty_latest_uncommitted(checkpoint: Path) -> None:
    _empty_latest(checkpoint)
    remove(checkpoint / "commits" / "5")


def _commits_ahead(checkpoint: Path) -> None:
    for batch in (4, 5):
        remove(checkpoint / "offsets" / str(batch))


def _commits_behind(checkpoint: Path) -> None:
    for batch in (3, 4, 5):
        remove(checkpoint / "commits" / str(batch))


def _logs_deleted(checkpoint: Path) -> None:
    for folder in ("offsets", "commits", "sources"):
        shutil.rmtree(checkpoint / folder, ignore_errors=True)


DAMAGES: Mapping[str, Damage] = {
    one.__name__.strip("_"): one
    for one in (_empty_latest, _empty_latest_uncommitted, _commits_ahead, _commits_behind, _logs_deleted)
}


class Query(Numbers):
    """One way of reading and one way of writing, below a folder of its own."""

    most = 100

    def __init__(self, spark: Any, folder: Path, source: str, sink: str) -> None:
        super().__init__(spark, folder, sink, stateful=False)
        self._source, self.old = source, folder / "old"

    def run_old(self) -> None:
        """Let the query run as it was meant to: a batch of `ROWS` rows for each file."""
        self.add(0, BATCHES)
        self.start(self.old, 1)

    def write(self, first: int, last: int) -> None:
        rows = self.spark.range(first, last).coalesce(1).write.mode("append")
        rows.format("delta" if self._source == "delta" else "json").save(str(self.folder / "in"))

    def read(self, most: int) -> Any:
        if self._source != "delta":
            return super().read(most)
        return self.spark.readStream.option("maxFilesPerTrigger", most).format("delta").load(str(self.folder / "in"))

    def restarted(self, case: str) -> dict[str, Any]:
        """What becomes of a damaged copy once the page has been obeyed."""
        place = self._damaged(case, case)
        found = inspected(place / "checkpoint")
        remedies = [one["remedy"] for one in found["findings"] if one["severity"] != "note" and one["remedy"]]
        obey(remedies[0] if remedies else "", place / "checkpoint")
        error = self.start(place)
        return {"remedies": remedies, "error": error, "times": self.times(place)}

    def every_way(self, case: str) -> dict[str, Any]:
        """What becomes of a damaged copy by each way that ``ckpt repair`` offers, and what the way was to cost."""
        ways = repair(str(self._damaged(case, f"{case}-plan") / "checkpoint"))[0].ways
        told = {}
        for way in ways:
            if way.cost is None:
                continue
            place = self._damaged(case, f"{case}-{way.name}")
            checkpoint = str(place / "checkpoint")
            receipt = repair(checkpoint, choose=way.name, **NOW)[1]
            error = receipt.problem or self.start(place)
            told[way.name.value] = {"cost": way.cost.name, "error": error, "times": self.times(place)}
        return told

    def cured(self, case: str) -> dict[str, Any]:
        """What becomes of a damaged copy that goes back by one batch, where the sink's cure is obeyed."""
        kept = BATCHES - 2
        place = self._damaged(case, f"{case}-cured")
        if self.sink == "delta":
            self.take_back(place, kept)
            copied = copy(str(place / "checkpoint"), str(place / "new"), batch=kept, new_id=True)
            shutil.rmtree(place / "checkpoint")
            Path(copied.to).rename(place / "checkpoint")
        else:
            plan = repair(str(place / "checkpoint"), choose=FixName.PLAN_AGAIN, **NOW)[0]
            assert plan.after[0].batch_id == kept + 1
            for file in (place / "out" / "_spark_metadata").glob("[0-9]*"):
                if int(file.name) > kept:
                    remove(file)
        return {"error": self.start(place), "times": self.times(place)}

    def named_again(self, *, found: bool) -> dict[str, Any]:
        """What becomes of a Delta table if `metadata` is lost, and the newest commit too, so that a batch runs again.

        The id is the one that the command of the page finds, or another one.
        """
        place = self.copy(self.old, f"named-again-{found}")
        checkpoint = place / "checkpoint"
        for lost in ("metadata", f"commits/{BATCHES - 1}"):
            remove(checkpoint / lost)
        (remedy,) = [one["remedy"] for one in inspected(checkpoint)["findings"] if one["code"] == "CKPT103"]
        (command,) = re.findall("`(grep [^`]*)`", remedy)
        command = command.replace("TABLE", str(place / "out"))
        printed = subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True).stdout
        newest = json.loads(f"{{{printed.splitlines()[-1]}}}")
        query_id = newest["appId"] if found else str(uuid.uuid4())
        receipt = repair(str(checkpoint), query_id=query_id, **NOW)[1]
        error = receipt.problem or self.start(place)
        return {"newest": newest, "error": error, "times": self.times(place)}

    def _damaged(self, case: str, name: str) -> Path:
        place = self.copy(self.old, name)
        DAMAGES[case](place / "checkpoint")
        return place

    def add_new(self) -> None:
        """Rows that the old query has never read."""
        self.write(BATCHES * ROWS, BATCHES * ROWS + NEW)


LIVE = {"parquet": ["commits_behind"], "delta": ["empty_latest"]}
"""What is run unless all is asked for: by sink, the damages."""


def recorded(spark: SparkSession, folder: Path) -> dict[str, Any]:
    return found(spark, folder, {sink: list(DAMAGES) for sink in LIVE})


def found(spark: SparkSession, folder: Path, asked: Mapping[str, list[str]]) -> dict[str, Any]:
    """Damages, for two pairs of source and sink."""
    told: dict[str, Any] = {}
    for source, sink in (("delta", "parquet"), ("files", "delta")):
        query = Query(spark, folder / f"{source}-to-{sink}", source, sink)
        query.run_old()
        query.add_new()
        for case in asked[sink]:
            told[f"{case}/{sink}"] = query.restarted(case)
        told[f"cured/{sink}"] = query.cured("empty_latest")
        if sink == "delta":
            told["named again"] = {found: query.named_again(found=found == "found") for found in ("found", "other")}
        else:
            told["ways"] = {case: query.every_way(case) for case in asked[sink]}
    as_json: dict[str, Any] = json.loads(json.dumps(told))
    return as_json
