"""What a start with `readChangeFeed` does at tables: the suite `change-feed` of `python -m tests.record`."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

from tests.live.delta.cases import INCIDENTS, READ, Table, remove
from tests.live.delta.starts import start
from tests.record.answers import Document, OneFile
from tests.record.packages import DELTA, PACKAGE
from tests.record.suite import Whole
from tests.record.worker import Installed

OTHER = ("created-again", "created-again-longer", "replaced")
CLEANED = ("log-from-2", "log-from-3", "log-from-4", "log-from-5")
GONE = ("vacuumed", "file-lost")
RENAMED = ("column-renamed", "column-dropped")
CHANGED = ("overwritten", "updated", "deleted-rows", "deleted-files", "restored")
FINE = ("nothing", "more-rows", "compacted", "column-added", "read-file-lost", "older-copy-goes-on")
_LENIENT = ("log-from-2", "log-from-3", "log-from-5", "created-again-longer", "older-copy", "file-lost")
_FEED = {"readChangeFeed": "true"}


def names() -> list[str]:
    return [
        f"{incident}, {batch}{option}"
        for incident in (*OTHER, *CLEANED, *GONE, *RENAMED, *CHANGED, *FINE, "older-copy")
        for batch in ("committed", "planned")
        for option in ("", ", failOnDataLoss=false")
        if not option or incident in _LENIENT
    ]


def answer(spark: Any, _: dict[str, Any], folder: Path) -> dict[str, Any]:
    spark.conf.set("spark.databricks.delta.properties.defaults.enableChangeDataFeed", "true")
    made, found = folder / "made", {}
    table = Table(spark, made)
    for version in range(READ + 1):
        table.append(version)
        if version < READ:
            start(spark, made, {"options": {"maxFilesPerTrigger": "1", **_FEED}})
    for name in names():
        incident, batch, *option = name.split(", ")
        place = folder / "case"
        shutil.copytree(made, place)
        if batch == "planned":
            remove(place / "checkpoint" / "commits" / str(READ - 1))
        INCIDENTS[incident](Table(spark, place))
        given = {**_FEED, **({"failOnDataLoss": "false"} if option else {})}
        found[name] = start(spark, place, {"options": given})
        shutil.rmtree(place)
    return found


class Feeds(Whole):
    """Starts with `readChangeFeed`; 3.5 and 4.1 were not asked."""

    answers = OneFile(Path(__file__).with_name("feed.json"), partial(json.dumps, indent=0))

    def wanted(self, minor: str) -> list[str]:
        return names() if minor in DELTA.keys() - {"3.5", "4.1"} else []

    def recorded(self, minor: str) -> Document:
        answers: Document = self.answers.read_all().get(minor, {})
        return answers

    def ask_all(self, spark: Installed) -> None:
        self.answers.write(spark.minor, spark.ask("change-feed", {}, {PACKAGE: DELTA[spark.minor]}))


SUITE = Feeds()
