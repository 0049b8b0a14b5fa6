"""What happened to a Delta table since a query stopped: real tables, changed by Delta, and the checkpoint of the query.

Versions 0 to 2 of the table have a file of 10 rows each, which batches 0 to 2 read; 10 rows in version 3 wait.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.live.steps import more, sql, steps

ROWS = 10
READ = 3  # batches


class Table:
    """A table in a folder, and the session that changes it."""

    def __init__(self, spark: Any, place: Path) -> None:
        self.spark, self.path = spark, place / "table"

    def append(self, version: int, rows: int = ROWS, files: int = 1, **options: str) -> None:
        first = version * ROWS
        frame = self.spark.range(first, first + rows, 1, files)
        if "mergeSchema" in options:
            frame = frame.selectExpr("id", "CAST(id AS STRING) AS name")
        frame.write.format("delta").mode("append").options(**options).save(str(self.path))

    def overwrite(self, rows: int = ROWS) -> None:
        self.spark.range(1000, 1000 + rows, 1, 1).write.format("delta").mode("overwrite").save(str(self.path))

    def sql(self, text: str) -> None:
        self.forget()
        self.spark.sql(text.format(table=f"delta.`{self.path}`"))

    def forget(self) -> None:
        """Delta keeps tables in memory, by their path: another driver would not."""
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def clean_log(self, first: int) -> None:
        """What Delta's cleaning leaves: a checkpoint of the newest version, and versions from `first` on."""
        self.forget()
        log = self.spark._jvm.org.apache.spark.sql.delta.DeltaLog
        log.forTable(self.spark._jsparkSession, str(self.path)).checkpoint()
        for file in self.path.glob("_delta_log/*.json"):
            if int(file.stem) < first:
                remove(file)

    def vacuum(self) -> None:
        self.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        self.spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "1")  # instead of 10000 tasks
        self.sql("VACUUM {table} RETAIN 0 HOURS")

    def lose_files(self, version: int) -> None:
        """The data files that a version added."""
        for line in (self.path / f"_delta_log/{version:020}.json").read_text().splitlines():
            if "add" in (action := json.loads(line)):
                remove(self.path / action["add"]["path"])

    def create_again(self, versions: int) -> None:
        shutil.rmtree(self.path)
        self.forget()
        for version in range(versions):
            self.append(100 + version)


def remove(file: Path) -> None:
    for one in (file, file.with_name(f".{file.name}.crc"), file.with_suffix(".crc")):
        one.unlink(missing_ok=True)


def _older_copy(table: Table) -> None:
    """The table as a copy of it was after version 1."""
    for version in (2, 3):
        table.lose_files(version)
        remove(table.path / f"_delta_log/{version:020}.json")
    table.forget()


_MAPPED = (
    "ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', "
    "'delta.minWriterVersion' = '5')"
)
_COLUMN = "ALTER TABLE {table} ADD COLUMN more STRING"

INCIDENTS: dict[str, Callable[[Table], None]] = {
    "nothing": steps(),
    "more-rows": lambda table: table.append(4, rows=20, files=4),
    "log-from-2": lambda table: table.clean_log(2),
    "log-from-3": lambda table: table.clean_log(3),
    "log-from-4": steps(more(4, 5), lambda table: table.clean_log(4)),
    "log-from-5": steps(more(4, 5), lambda table: table.clean_log(5)),
    "created-again": lambda table: table.create_again(2),
    "created-again-longer": lambda table: table.create_again(8),
    "replaced": sql("CREATE OR REPLACE TABLE {table} USING delta AS SELECT 1L AS id"),
    "older-copy": _older_copy,
    "older-copy-goes-on": steps(_older_copy, more(6, 7, 8)),
    "overwritten": lambda table: table.overwrite(),
    "updated": sql("UPDATE {table} SET id = id + 500 WHERE id < 5"),
    "deleted-rows": sql("DELETE FROM {table} WHERE id < 5"),
    "deleted-files": sql("DELETE FROM {table} WHERE id < 10"),
    "restored": sql("RESTORE TABLE {table} TO VERSION AS OF 1"),
    "compacted": steps(more(4), sql("OPTIMIZE {table}")),
    "vacuumed": steps(more(4), sql("OPTIMIZE {table}"), lambda table: table.vacuum()),
    "file-lost": lambda table: table.lose_files(3),
    "read-file-lost": lambda table: table.lose_files(2),
    "column-added": lambda table: table.append(4, mergeSchema="true"),
    "columns-mapped": steps(sql(_MAPPED), more(5)),
    "column-renamed": sql(_MAPPED, "ALTER TABLE {table} RENAME COLUMN id TO number"),
    "column-dropped": sql(_COLUMN, _MAPPED, "ALTER TABLE {table} DROP COLUMN more"),
    "first-file-lost": lambda table: table.lose_files(0),
    "second-file-lost": lambda table: table.lose_files(1),
}

OPTIONS: dict[str, dict[str, dict[str, str]]] = {
    "": {},
    "failOnDataLoss=false": {"options": {"failOnDataLoss": "false"}},
    "skipChangeCommits": {"options": {"skipChangeCommits": "true"}},
    "ignoreChanges": {"options": {"ignoreChanges": "true"}},
    "ignoreDeletes": {"options": {"ignoreDeletes": "true"}},
    "ignoreMissingFiles": {"conf": {"spark.sql.files.ignoreMissingFiles": "true"}},
}


@dataclass(frozen=True)
class History:
    """The versions of a table, as rows and files, and how a query reads them: a file in a batch."""

    versions: tuple[tuple[int, int], ...]
    starts: tuple[int, ...]  # after these versions
    batches: int  # that count; the offsets of later ones are taken away


_ONE = (ROWS, 1)
HISTORIES = {
    "versions": History((_ONE,) * 4, (0, 1, 2), 3),
    "first batch": History((_ONE,) * 4, (0,), 1),
    "first table": History((_ONE, _ONE, _ONE), (2,), 2),
    "inside a version": History((_ONE, (20, 4), _ONE), (0, 1), 3),
}


@dataclass(frozen=True)
class Case:
    """An incident after a history, whether its last batch had been committed, and options of the next start."""

    history: str
    incident: str
    committed: bool
    options: str = ""

    @property
    def name(self) -> str:
        batch = "committed" if self.committed else "planned"
        return ", ".join(one for one in (self.history, self.incident, batch, self.options) if one)

    @property
    def reader(self) -> dict[str, str]:
        return OPTIONS[self.options].get("options", {})


_LOSES = ("log-from-3", "log-from-4", "log-from-5", "created-again-longer", "older-copy", "file-lost", "log-from-2")
_CHANGES = ("", "skipChangeCommits", "ignoreChanges", "ignoreDeletes")
_OTHERS = {
    "first batch": ("nothing", "log-from-2", "created-again", "first-file-lost", "second-file-lost"),
    "first table": ("nothing", "log-from-2", "overwritten", "second-file-lost", "read-file-lost"),
    "inside a version": ("nothing", "log-from-2", "overwritten", "second-file-lost"),
}


def _options(history: str, incident: str) -> tuple[str, ...]:
    if history == "versions" and incident in ("updated", "deleted-files"):
        return _CHANGES
    more = ("failOnDataLoss=false",) if incident in _LOSES else ()
    return ("", *more, "ignoreMissingFiles") if incident in ("file-lost", "vacuumed") else ("", *more)


_OF_VERSIONS = tuple(one for one in INCIDENTS if one not in ("first-file-lost", "second-file-lost"))
CASES = [
    Case(history, incident, committed, options)
    for history, incidents in {"versions": _OF_VERSIONS, **_OTHERS}.items()
    for incident in incidents
    for committed in (True, False)
    for options in _options(history, incident)
]
