"""What happened to an Iceberg table since a query stopped: real tables, changed by Iceberg, and its checkpoint.

Snapshots 0 to 2 of the table have a file of 10 rows each, which batches 0 to 2 read; 10 rows in snapshot 3 wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.live.steps import more, sql, steps

ROWS = 10
CATALOG = "ckpt_iceberg"
TABLE = f"{CATALOG}.db.t"


def settings(warehouse: Path) -> dict[str, str]:
    """A catalog whose tables are folders: `TABLE` is `warehouse/db/t`."""
    name = f"spark.sql.catalog.{CATALOG}"
    return {
        name: "org.apache.iceberg.spark.SparkCatalog",
        f"{name}.type": "hadoop",
        f"{name}.warehouse": str(warehouse),
        f"{name}.cache-enabled": "false",
    }


@contextmanager
def active_session(spark: Any, warehouse: Path, conf: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A session of its own with the catalog of a folder, as the active one: Iceberg's own calls ask that."""
    own = spark.newSession()
    for key, value in {**settings(warehouse), **(conf or {})}.items():
        own.conf.set(key, value)
    sessions = spark._jvm.org.apache.spark.sql.SparkSession
    sessions.setActiveSession(own._jsparkSession)
    try:
        yield own
    finally:
        sessions.setActiveSession(spark._jsparkSession)


class Table:
    def __init__(self, spark: Any) -> None:
        self.spark = spark

    def create(self) -> None:
        self.sql("CREATE TABLE {table} (id BIGINT) USING iceberg")

    def append(self, number: int, rows: int = ROWS, files: int = 1) -> None:
        first = number * ROWS
        self.spark.range(first, first + rows, 1, files).writeTo(TABLE).append()

    def sql(self, text: str) -> None:
        self.spark.sql(text.format(table=TABLE))

    @property
    def _java(self) -> Any:
        jvm = self.spark._jvm
        return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, TABLE)

    def _id(self, number: int) -> int:
        found: int = [one.snapshotId() for one in self._java.snapshots()][number]
        return found

    def expire(self, *numbers: int) -> None:
        """Snapshots, by their numbers since the table was created."""
        ids = [self._id(number) for number in numbers]
        expiring = self._java.expireSnapshots()
        for one in ids:
            expiring = expiring.expireSnapshotId(one)
        expiring.commit()

    def roll_back(self, number: int) -> None:
        self.roll_back_to(self._id(number))

    def roll_back_to(self, snapshot: int) -> None:
        """As the procedure `rollback_to_snapshot` does."""
        self._java.manageSnapshots().rollbackTo(snapshot).commit()

    def compact(self) -> None:
        actions = self.spark._jvm.org.apache.iceberg.spark.actions.SparkActions.get(self.spark._jsparkSession)
        actions.rewriteDataFiles(self._java).option("rewrite-all", "true").execute()

    def create_again(self, *numbers: int) -> None:
        self.sql("DROP TABLE {table} PURGE")
        self.create()
        for number in numbers:
            self.append(number)


def _expired(*numbers: int) -> Callable[[Table], None]:
    return lambda table: table.expire(*numbers)


_MERGED = "ALTER TABLE {table} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"

INCIDENTS: dict[str, Callable[[Table], None]] = {
    "nothing": steps(),
    "more-rows": steps(lambda table: table.append(4, rows=20, files=4), more(6)),
    "expired-first": _expired(0),
    "expired-before": _expired(0, 1),
    "expired-last": _expired(0, 1, 2),
    "expired-unread": steps(more(4, 5), _expired(0, 1, 2, 3)),
    "expired-middle": _expired(1),
    "rolled-back": lambda table: table.roll_back(1),
    "rolled-back-goes-on": steps(lambda table: table.roll_back(1), more(6, 7)),
    "rolled-back-to-read": lambda table: table.roll_back(2),
    "rolled-back-unread": steps(lambda table: table.roll_back(2), more(6)),
    "rolled-back-expired": steps(lambda table: table.roll_back(1), more(6), _expired(0)),
    "created-again": lambda table: table.create_again(10, 11),
    "created-again-empty": lambda table: table.create_again(),
    "replaced": sql("CREATE OR REPLACE TABLE {table} USING iceberg AS SELECT 1L AS id"),
    "replaced-then-more": steps(sql("CREATE OR REPLACE TABLE {table} USING iceberg AS SELECT 1L AS id"), more(5)),
    "overwritten": sql("INSERT OVERWRITE {table} SELECT 1000L AS id"),
    "overwritten-then-more": steps(sql("INSERT OVERWRITE {table} SELECT 1000L AS id"), more(5)),
    "updated": steps(sql("UPDATE {table} SET id = id + 500 WHERE id < 5"), more(5)),
    "deleted-rows": steps(sql("DELETE FROM {table} WHERE id < 5"), more(5)),
    "deleted-files": steps(sql("DELETE FROM {table} WHERE id < 10"), more(5)),
    "deleted-merged": steps(sql(_MERGED, "DELETE FROM {table} WHERE id < 5"), more(5)),
    "deleted-last": sql("DELETE FROM {table} WHERE id < 10"),
    "deleted-expired": steps(sql("DELETE FROM {table} WHERE id < 10"), more(5), _expired(0, 1, 2, 3)),
    "compacted": steps(more(4), lambda table: table.compact(), more(5)),
    "compacted-expired": steps(more(4), lambda table: table.compact(), more(5), _expired(0, 1, 2, 3, 4)),
    "compacted-last": steps(lambda table: table.compact()),
    "column-added": sql("ALTER TABLE {table} ADD COLUMN name STRING", "INSERT INTO {table} VALUES (77L, 'a')"),
    "column-renamed": steps(
        sql("ALTER TABLE {table} RENAME COLUMN id TO number"), sql("INSERT INTO {table} SELECT 5L")
    ),
}

_OVERWRITES, _DELETES = "streaming-skip-overwrite-snapshots", "streaming-skip-delete-snapshots"
OPTIONS: dict[str, dict[str, str]] = {
    "": {},
    "skip-overwrites": {_OVERWRITES: "true"},
    "skip-deletes": {_DELETES: "true"},
    "one file": {"streaming-max-files-per-micro-batch": "1"},
    "one row": {"streaming-max-rows-per-micro-batch": "1"},
}


@dataclass(frozen=True)
class History:
    """The snapshots of a table, as rows and files, and how a query reads them: a file in a batch."""

    snapshots: tuple[tuple[int, int], ...]
    starts: tuple[int, ...]  # after these snapshots
    batches: int  # that count; the offsets of later ones are taken away


_ONE = (ROWS, 1)
HISTORIES = {
    "snapshots": History((_ONE,) * 4, (0, 1, 2), 3),
    "first batch": History((_ONE,) * 4, (0,), 1),
    "inside a snapshot": History((_ONE, (20, 4), _ONE, _ONE), (0, 1), 3),
}


@dataclass(frozen=True)
class Case:
    """An incident after a history, whether its last batch had been committed, and how the query is then started."""

    history: str
    incident: str
    committed: bool
    options: str = ""
    available_now: bool = False

    @property
    def name(self) -> str:
        batch = "committed" if self.committed else "planned"
        trigger = "availableNow" if self.available_now else ""
        return ", ".join(one for one in (self.history, self.incident, batch, self.options, trigger) if one)

    @property
    def reader(self) -> dict[str, str]:
        return OPTIONS[self.options]


_CHANGED = {
    "overwritten-then-more": ("skip-overwrites", "skip-deletes", "one file"),
    "updated": ("skip-overwrites", "one row"),
    "deleted-files": ("skip-deletes", "skip-overwrites"),
    "deleted-merged": ("skip-deletes", "skip-overwrites"),
    "deleted-last": ("skip-deletes",),
    "more-rows": ("one file", "one row"),
}
_GONE_BACK = ("nothing", "expired-first", "expired-before", "rolled-back")
_OTHERS = {
    "first batch": (*_GONE_BACK, "created-again", "overwritten-then-more"),
    "inside a snapshot": (*_GONE_BACK, "overwritten-then-more", "created-again"),
}
CASES = [
    Case(history, incident, committed, options, available_now)
    for history, incidents in {"snapshots": tuple(INCIDENTS), **_OTHERS}.items()
    for incident in incidents
    for committed in (True, False)
    for options in ("", *(_CHANGED.get(incident, ()) if history == "snapshots" else ()))
    for available_now in ((False, True) if history == "snapshots" and not options else (False,))
]
