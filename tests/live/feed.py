"""What a start with `readChangeFeed` does at tables to which something happened: `python -m tests.live.feed 4.2`.

To be run with the Python of that Spark, and the Delta package in the environment (`delta_worker.PACKAGE`).
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.live import delta_worker
from tests.live.delta_cases import INCIDENTS, READ, Table, remove

RECORDED = Path(__file__).with_name("feed.json")
OTHER = ("created-again", "created-again-longer", "replaced")
CLEANED = ("log-from-2", "log-from-3", "log-from-4", "log-from-5")
GONE = ("vacuumed", "file-lost")
RENAMED = ("column-renamed", "column-dropped")
CHANGED = ("overwritten", "updated", "deleted-rows", "deleted-files", "restored")
FINE = ("nothing", "more-rows", "compacted", "column-added", "read-file-lost", "older-copy-goes-on")
_LENIENT = ("log-from-2", "log-from-3", "log-from-5", "created-again-longer", "older-copy", "file-lost")
_FEED = {"readChangeFeed": "true"}


def names() -> list[str]:
    """Of the cases."""
    return [
        f"{incident}, {batch}{option}"
        for incident in (*OTHER, *CLEANED, *GONE, *RENAMED, *CHANGED, *FINE, "older-copy")
        for batch in ("committed", "planned")
        for option in ("", ", failOnDataLoss=false")
        if not option or incident in _LENIENT
    ]


def answers(spark: Any, folder: Path) -> dict[str, Any]:
    """What each start did."""
    spark.conf.set("spark.databricks.delta.properties.defaults.enableChangeDataFeed", "true")
    made, found = folder / "made", {}
    table = Table(spark, made)
    for version in range(READ + 1):
        table.append(version)
        if version < READ:
            delta_worker.start(spark, made, {"options": {"maxFilesPerTrigger": "1", **_FEED}})
    for name in names():
        incident, batch, *option = name.split(", ")
        place = folder / "case"
        shutil.copytree(made, place)
        if batch == "planned":
            remove(place / "checkpoint" / "commits" / str(READ - 1))
        INCIDENTS[incident](Table(spark, place))
        given = {**_FEED, **({"failOnDataLoss": "false"} if option else {})}
        found[name] = delta_worker.start(spark, place, {"options": given})
        shutil.rmtree(place)
    return found


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        session = delta_worker.session(Path(scratch))
        known = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
        known[sys.argv[1]] = answers(session, Path(scratch))
        RECORDED.write_text(json.dumps(dict(sorted(known.items())), indent=0) + "\n")
        session.stop()
