"""How queries continue on salvaged state: the suite `rewrite-salvage` of `python -m tests.record`.

A query is killed in a batch whose state is written. Copies of its checkpoint are damaged in one partition and salvaged.
Three kinds of checkpoints continue side by side, and read the same rows: the intact one, one whose state is empty, and
the salvaged ones. These shall have the rows of the intact one for keys of partitions that could be read, and those of
the empty one for keys of the lost one; so shall what they put out.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import ckpt
from tests.new.rewrite import record
from tests.new.rewrite.continuing import frames
from tests.new.rewrite.planned import run_queries
from tests.new.rewrite.record import JOIN_3
from tests.record.answers import Document, Folder
from tests.record.worker import Installed

PLANNED, KILLED = 5, 8
AT_ONCE = 3
"""Queries, each with all of its damages."""


@dataclass(frozen=True)
class Query:
    """A query whose state is kept in one way."""

    query: str
    store: str
    conf: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """Such as `join hdfs`."""
        return f"{self.query} {self.store}" + ("" if not self.conf else ", state format 3")


def _lose_files(partition: Path) -> None:
    for path in _list_files(partition):
        path.unlink()


def _lose_newest(partition: Path) -> None:
    """The state after the newest committed batch: version PLANNED."""
    for path in _list_files(partition):
        if path.name.lstrip(".").partition(".")[0].partition("_")[0] == str(PLANNED):
            path.unlink()


def _flip_bytes(partition: Path) -> None:
    """A bit in the middle of every file."""
    for path in _list_files(partition):
        data = bytearray(path.read_bytes())
        if path.name.startswith(".") or not data:
            path.unlink()
            continue
        data[len(data) // 2] ^= 1
        path.write_bytes(data)


def _list_files(partition: Path) -> list[Path]:
    return [path for path in partition.rglob("*") if path.is_file() and "_metadata" not in path.parts]


DAMAGES: dict[str, tuple[int, Callable[[Path], None], bool]] = {
    "a partition is lost": (1, shutil.rmtree, False),
    "the first partition is lost": (0, _lose_files, False),
    "a partition is lost, another form": (1, shutil.rmtree, True),
    "a byte of each file is flipped": (1, _flip_bytes, False),
    "the newest version is lost": (1, _lose_newest, False),
}
"""The damaged partition, the damage, and whether the state gets another form."""
QUERIES = (
    *(Query(query, "hdfs") for query in ("aggregation", "join")),
    *(Query(query, "rocksdb") for query in ("aggregation", "dedup")),
    *(Query("session-window", store) for store in ("changelog", "hdfs")),
    Query("windowed-aggregation", "format2"),
    Query("join", "changelog", tuple(JOIN_3.items())),
)


def name_of(query: Query, damage: str) -> str:
    return f"{query.name}: {damage}"


def ask(spark: Installed, queries: list[Query], folder: Path) -> Document:
    """Results of every damage of some queries."""
    making = (_run_of(query, query.store, folder / query.name / "made", PLANNED) for query in queries)
    run_queries(spark, folder, [*making])
    answers: Document = {}
    runs: list[dict[str, Any]] = []
    for query in queries:
        parent = folder / query.name
        ckpt.copy(str(parent / "made"), str(parent / "old"))
        empty = {label: table.slice(0, 0) for label, table in frames(parent / "old").items()}
        ckpt.write_state(empty, str(parent / "empty"), like=str(parent / "old"), new_id=True)
        runs += (_run_of(query, query.store, parent / name, KILLED) for name in ("old", "empty"))
        for damage in DAMAGES:
            made, store = salvage(query, damage, parent)
            assert made.salvage is not None
            salvaged = made.salvage
            answers[name_of(query, damage)] = {
                "lost": [[part.operator, part.partition] for part in salvaged.lost],
                "again": salvaged.again,
            }
            runs.append(_run_of(query, store, parent / damage, KILLED))
    ran = run_queries(spark, folder, runs)
    rows = {run["checkpoint"]: answer["rows"] for run, answer in zip(runs, ran, strict=True)}
    assert not any(run["error"] for run in ran), [run["error"] for run in ran]
    for query in queries:
        parent = folder / query.name
        for damage in DAMAGES:
            answer = answers[name_of(query, damage)]
            lost = {partition for _, partition in answer["lost"]}
            own, old, empty = (_list_rows(parent / name) for name in (damage, "old", "empty"))
            answer["state"] = {unit: record._digest(sorted(row for _, row in rows)) for unit, rows in own.items()}
            expected = {
                unit: [row for partition, row in there if partition not in lost]
                + [row for partition, row in empty[unit] if partition in lost]
                for unit, there in old.items()
            }
            answer["expected"] = {unit: record._digest(sorted(rows)) for unit, rows in expected.items()}
            answer["rows"] = compare_rows(rows, *(str(parent / name) for name in ("old", "empty", damage)))
    return answers


def salvage(query: Query, damage: str, parent: Path) -> tuple[ckpt.types.Rewrite, str]:
    """Damage a copy and salvage it: what was made, and how its state is kept."""
    partition, do, changes = DAMAGES[damage]
    damaged = parent / f"damaged, {damage}"
    shutil.copytree(parent / "old", damaged)
    do(damaged / f"state/0/{partition}")
    form: dict[str, Any] = {}
    store = query.store
    if changes and store == "hdfs":
        form, store = {"provider": "rocksdb", "partitions": 3}, "changelog"
    elif changes:
        form = {"partitions": 3}
    made = ckpt.rewrite(str(damaged), str(parent / damage), salvage=True, accept_loss=True, new_id=True, **form)
    assert made.written, made.refused
    return made, store


def compare_rows(rows: dict[str, dict[str, list[str]]], old: str, empty: str, new: str) -> list[int]:
    """How many rows the new one put out; how many of these neither of the others did, and how many of both it did not.

    Of the batches that all of them ran.
    """
    batches = rows[old].keys() & rows[empty].keys() & rows[new].keys()
    put_out, by_old, by_empty = ({(b, row) for b in batches for row in rows[name][b]} for name in (new, old, empty))
    return [len(put_out), len(put_out - by_old - by_empty), len((by_old & by_empty) - put_out)]


def _list_rows(checkpoint: Path) -> dict[str, list[tuple[int, str]]]:
    """The rows of each unit, with their partitions."""
    rows: dict[str, list[tuple[int, str]]] = {}
    for label, table in frames(checkpoint, partition_id=True).items():
        partitions = table.column("partition_id").to_pylist()
        rows[label] = [*zip(partitions, map(str, table.drop(["partition_id"]).to_pylist()), strict=True)]
    return rows


def _run_of(query: Query, store: str, checkpoint: Path, until: int) -> dict[str, Any]:
    case = record.Case(query.query, store, conf=query.conf)
    return record._of(case, store, checkpoint, until)


class Salvaged(record.SideBySide):
    """Queries that continue on salvaged checkpoints, on one version."""

    answers = Folder(Path(__file__).with_name("recorded_salvaged"), key="cases")

    def wanted(self, minor: str) -> Iterator[str]:
        return (name_of(*case) for case in product(QUERIES, DAMAGES) if minor == record.MAIN)

    def record(self, spark: Installed, only: str, *, fresh: bool) -> None:
        missing = {*self.missing(spark.minor, only, fresh=fresh)}
        queries = [query for query in QUERIES if missing & {name_of(query, damage) for damage in DAMAGES}]
        self.record_groups(spark, queries, AT_ONCE, ask)


SUITE = Salvaged()
