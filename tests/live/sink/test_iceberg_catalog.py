"""A table by its name in an Iceberg catalog, ``iceberg://CATALOG/NAMESPACE.TABLE``: read, and rolled back by ckpt.

Real tables of pyiceberg in a catalog of SQLite, whose snapshots name a batch as those of Spark do.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ckpt as library
from ckpt import NotFound, StorageError, UsageError
from ckpt.live.sink.iceberg import roll_back
from ckpt.live.sink.reader import read_sink
from ckpt.live.sink.records import SinkKind
from tests.conftest import Ckpt, CopyOf
from tests.support.spark.live import trace

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyiceberg", reason="pyiceberg is not installed")
pytestmark = pytest.mark.slow
SAMPLE, FIRST, NEWEST, KEPT = "aggregation-hdfs-4.2", 5, 9, 6
PLACE = "iceberg://ckpttests/db.orders"
WRONG = 1_000_000


class Orders:
    """The table; batch N of the query writes the number N, after `KEPT` a wrong one."""

    def __init__(self, catalog: Any) -> None:
        self.catalog = catalog

    def write(self, number: int, query: str | None = None, batch: int = 0) -> None:
        of_spark = {"spark.sql.streaming.queryId": query, "spark.sql.streaming.epochId": str(batch)} if query else {}
        self.catalog.load_table("db.orders").append(pa.table({"id": [number]}), snapshot_properties=of_spark)

    @property
    def numbers(self) -> list[int]:
        return sorted(self.catalog.load_table("db.orders").scan().to_arrow()["id"].to_pylist())

    @property
    def snapshots(self) -> list[int]:
        return [snapshot.snapshot_id for snapshot in self.catalog.load_table("db.orders").snapshots()]


@pytest.fixture
def checkpoint(copy_of: CopyOf) -> Path:
    return copy_of(SAMPLE)


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.utils.config import Config

    for key, value in {"TYPE": "sql", "URI": f"sqlite:///{tmp_path}/db", "WAREHOUSE": f"file://{tmp_path}/w"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__CKPTTESTS__{key}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    catalog = load_catalog("ckpttests")
    catalog.create_namespace("db")
    return catalog


@pytest.fixture
def orders(checkpoint: Path, catalog: Any) -> Orders:
    catalog.create_table("db.orders", pa.schema([("id", pa.int64())]))
    table, query = Orders(catalog), json.loads((checkpoint / "metadata").read_text())["id"]
    for batch in range(FIRST, NEWEST + 1):
        table.write(batch if batch <= KEPT else WRONG + batch, query, batch)
    return table


def test_it_is_read_as_its_catalog_has_it(orders: Orders, checkpoint: Path, ckpt: Ckpt) -> None:
    log = read_sink(PLACE)
    assert (log.kind, [writer.last_batch for writer in log.writers]) == (SinkKind.ICEBERG, [NEWEST])
    document = ckpt("inspect", checkpoint, "--sink", PLACE, "-o", "json").json()
    assert document["sink"]["outcome"] == "continues"


def test_query_and_table_go_back_together(orders: Orders, checkpoint: Path, ckpt: Ckpt) -> None:
    back = (
        "rewind",
        checkpoint,
        "--sink",
        PLACE,
        "--to-sink-version",
        orders.snapshots[KEPT - FIRST],
        "--replay",
        "new",
    )
    planned = ckpt(*back, "--restore-sink", "-o", "json")
    assert (planned.exit_code, planned.json()["restores"], planned.json()["to_batch"]) == (1, True, KEPT)
    assert len(orders.numbers) == NEWEST - FIRST + 1, "nothing is done without --apply"

    applied = ckpt(*back, "--restore-sink", "--apply", "--grace", 0)

    assert applied.exit_code == 0, applied.stdout
    assert orders.numbers == [*range(FIRST, KEPT + 1)]
    document = ckpt("inspect", checkpoint, "--sink", PLACE, "-o", "json").json()
    assert (document["sink"]["outcome"], document["restart"][0]["batch_id"]) == ("continues", KEPT + 1)
    again = ckpt(*back, "--restore-sink", "--apply", "--grace", 0)
    assert (again.exit_code, orders.numbers) == (0, [*range(FIRST, KEPT + 1)])


def test_commits_of_others_are_named_and_accepted(orders: Orders, checkpoint: Path) -> None:
    orders.write(77)
    how: Any = {"to_sink_version": orders.snapshots[KEPT - FIRST], "sink": PLACE, "restore_sink": True, "grace": 0}
    plan, receipt = library.rewind(checkpoint, apply=True, replay="new", **how)
    assert plan.table is not None
    assert plan.table.others == (f"{orders.snapshots[-1]} (append)",)
    assert "`accept_skip`" in str(receipt.problem)
    assert 77 in orders.numbers
    receipt = library.rewind(checkpoint, apply=True, replay="new", accept_skip=True, **how).receipt
    assert receipt.applied, receipt.problem
    assert orders.numbers == [*range(FIRST, KEPT + 1)]


def test_a_table_with_a_newer_snapshot_is_left_alone(
    orders: Orders, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody commits between the plan and the rollback: neither table nor checkpoint is changed."""
    before = trace(checkpoint)

    def late(uri: str, newest: int, number: int) -> None:
        orders.write(77)
        roll_back(uri, newest, number)

    monkeypatch.setattr("ckpt.changes.rewind.rewind.roll_back", late)
    how: Any = {"to_sink_version": orders.snapshots[KEPT - FIRST], "sink": PLACE, "restore_sink": True, "grace": 0}
    receipt = library.rewind(checkpoint, apply=True, replay="new", **how).receipt
    assert "the table now has" in str(receipt.problem)
    assert trace(checkpoint) == before
    assert len(orders.numbers) == NEWEST - FIRST + 2


def test_a_commit_between_the_look_and_the_rollback_fails_it(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog compares the current snapshot with the one that the rollback was made for."""
    from pyiceberg.table.update.snapshot import ManageSnapshots

    commit = ManageSnapshots.commit

    def late(snapshots: Any) -> None:
        orders.write(77)
        commit(snapshots)

    monkeypatch.setattr(ManageSnapshots, "commit", late)
    with pytest.raises(StorageError, match="branch main has changed"):
        roll_back(PLACE, orders.snapshots[-1], orders.snapshots[KEPT - FIRST])
    assert len(orders.numbers) == NEWEST - FIRST + 2


def test_a_place_alone_does_not_say_which_catalog(orders: Orders, checkpoint: Path) -> None:
    file = str(read_sink(PLACE).read_from)
    snapshot = orders.snapshots[KEPT - FIRST]
    plan = library.rewind(checkpoint, to_sink_version=snapshot, sink=file, restore_sink=True, replay="new").plan
    assert "name it as iceberg://CATALOG/NAMESPACE.TABLE, or run CALL CATALOG.system.rollback_to" in str(plan.refused)


@pytest.mark.parametrize(
    ("place", "error", "why"),
    [
        ("iceberg://ckpttests/db.none", NotFound, "no such table"),
        ("iceberg://ckpttests/orders", StorageError, "cannot be reached"),
        ("iceberg://nowhere/db.orders", StorageError, "check pyiceberg's configuration"),
        ("iceberg://ckpttests", UsageError, "write iceberg://CATALOG/NAMESPACE.TABLE"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(place: str, error: type[Exception], why: str, catalog: Any) -> None:
    with pytest.raises(error, match=why) as raised:
        read_sink(place)
    assert str(raised.value).isprintable()
