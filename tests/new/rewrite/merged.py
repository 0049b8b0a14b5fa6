"""How queries continue that became one, or several: the suite `rewrite-merge` of `python -m tests.record`.

Each case has a query that reads all sources from the beginning and never changes. What the others put out, before
`ckpt rewrite` and after it, is in the end what that one did, every row once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import ckpt
from ckpt.query.description import parse_query
from tests.new.evolve.running import NAMED
from tests.new.rewrite.merged_queries import SHAPES
from tests.record.answers import Document, Folder
from tests.record.suite import Cases
from tests.record.worker import Session
from tests.support.spark.queries import STATE_STORES

MAIN = "4.2"
KEYS = {"a": (1, 2, 3), "b": (11, 12, 13, 14), "c": (2, 3, 4), "m": (1, 2, 11, 12), "n": (3, 13, 14)}
"""The keys of each source: those of `c` are also keys of `a`; of `m` and `n` both parts of a split have some.

A source without rows that pass the condition would hold the watermark back.
"""
BEHIND_S = {"a": 0, "b": 3, "c": 1, "m": 0, "n": 3}
ROUNDS, MERGED = 4, 3
"""Rounds of new files, after how many of them the query changes; then one that ends windows and sessions."""
CONDITIONS = ("key_key < 10", "key_key >= 10")


class Asks(Protocol):
    """Whoever runs the jobs."""

    def ask(self, job: dict[str, Any], /) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Case:
    """Queries over different sources that become one, or one that becomes several."""

    shape: str
    how: str = "merge"  # "split", "combine", "reorder", or "merge named", where sources have names
    stores: tuple[str, str] = ("hdfs", "hdfs")  # of both, or of the old one and the new ones
    partitions: tuple[int, int] = (2, 2)  # likewise
    since: str = "3.5"

    @property
    def name(self) -> str:
        """Such as `merge windows, hdfs and changelog, 2 and 3`."""
        stores, partitions = (" and ".join(map(str, dict.fromkeys(each))) for each in (self.stores, self.partitions))
        return f"{self.how} {self.shape}, {stores}, {partitions}"

    def conf(self, which: int) -> dict[str, str]:
        """Settings of the first or the second of the queries."""
        named = NAMED if self.named else {}
        return {
            **STATE_STORES[self.stores[which]],
            "spark.sql.shuffle.partitions": str(self.partitions[which]),
            **named,
        }

    @property
    def named(self) -> bool:
        """True if sources have names."""
        return self.how == "merge named"


_SHAPES = tuple(shape for shape in SHAPES if shape not in ("global", "first", "limit", "transform", "windows complete"))
_ALL = ("hdfs", "changelog", "rocksdb")
_FORMS = (
    (("hdfs", "hdfs"), (2, 2)),
    (("hdfs", "changelog"), (2, 3)),
    (("rocksdb", "hdfs"), (3, 2)),
    (("changelog", "rocksdb"), (2, 2)),
)
CASES = (
    *(
        Case(shape, how, stores, partitions)
        for how in ("merge", "split")
        for number, shape in enumerate(_SHAPES)
        for stores, partitions in (_FORMS[number % 4], _FORMS[(number + 1) % 4])
    ),
    *(
        Case(shape, "combine", *_FORMS[number % 4], since="4.0")
        for number, shape in enumerate(("aggregation", "windows complete", "sessions complete", "dedup", "global"))
    ),
    *(Case("aggregation", "combine", *form, since="4.0") for form in _FORMS[1:3]),
    *(Case(shape, "reorder") for shape in ("aggregation", "windows")),
    Case("aggregation", "merge named", since="4.2"),
    *(Case("transform", how, ("changelog", "rocksdb"), (2, 3), since="4.0") for how in ("merge", "split")),
    *(
        Case(shape, how, ("format2", "format2"), (2, 3), since="4.2")
        for how in ("merge", "split")
        for shape in ("aggregation", "windows")
    ),
)


def put(inputs: Path, tag: str, number: int, *, last: bool = False, within: bool = False) -> None:
    """Give a source the file of a round. Some values come twice, in one round and in the next.

    ``within``: they come twice within the delay of the watermark only; whether a later one is a duplicate depends on
    when Spark evicts, and so on how rows are divided into batches.
    """
    start = (1000 if last else 10 * number) - BEHIND_S[tag]
    rows: list[dict[str, Any]] = []
    for place, key in enumerate(KEYS[tag]):
        for value in range(number + place + 1):
            second = start + (value * 2 + place) % 8 if not last else start
            at = f"2026-01-01T00:{second // 60 + 5:02}:{second % 60:02}Z"
            rows.append({"key": key, "value": value * 2 + (number if value % 2 else 0), "timestamp": at})
        if within:
            own = [{**row, "value": 100 * number + row["value"], "key": key} for row in rows if row["key"] == key]
            rows = [row for row in rows if row["key"] != key] + [*own, own[-1]]
            if number and not last:  # a second after the same value came in the round before
                at = f"2026-01-01T00:{(start - 1) // 60 + 5:02}:{(start - 1) % 60:02}Z"
                rows.append({"key": key, "value": 100 * number - 1, "timestamp": at})
            if not last:
                at = f"2026-01-01T00:{(start + 8) // 60 + 5:02}:{(start + 8) % 60:02}Z"
                rows.append({"key": key, "value": 100 * number + 99, "timestamp": at})
    folder = inputs / tag
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{number:03}.json"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(file, (1.7e9 + number, 1.7e9 + number))


def ask(session: Asks, case: Case, folder: Path) -> Document:
    """Run the queries of a case, and say what differs from the one that never changed."""
    folder.mkdir(parents=True)
    inputs, split = folder / "inputs", case.how == "split"
    tags = ["m", "n"] if split else ["a", "c" if case.how == "combine" else "b"]
    rows: dict[str, list[list[str]]] = {"changed": [], "control": []}
    newest: Document = {}

    def run(name: str, own: list[str], conf: dict[str, str], filter: str = "") -> None:
        job = {
            "do": "run",
            "named": case.named,
            "shape": case.shape,
            "tags": own,
            "conf": conf,
            "filter": filter,
            "inputs": str(inputs),
        }
        answer = session.ask({**job, "checkpoint": str(folder / name)})
        assert answer["error"] is None, answer["error"]
        rows["control" if name == "control" else "changed"] += answer["rows"]
        newest[name] = answer["rows"]

    for number in range(ROUNDS + 1):
        for tag in tags:
            put(inputs, tag, number, last=number == ROUNDS, within=case.shape == "dedup within")
        if number < MERGED:
            if split:
                run("old", tags, case.conf(0))
            else:
                run("old", tags[:1], case.conf(0))
                if number != 1:
                    run("other", tags[1:], case.conf(1))
        elif split:
            if number == MERGED:
                _split(case, folder)
            run("new", tags, case.conf(1), "key < 10")
            run("rest", tags, case.conf(1), "key >= 10")
        else:
            order = tags[::-1] if case.how == "reorder" else tags
            if number == MERGED:
                _merge(session, case, folder, order, inputs)
            run("new", order, case.conf(0))
        run("control", tags, case.conf(0))
    if SHAPES[case.shape].mode == "complete":  # the last batch has all
        rows = {"changed": [*newest["new"], *newest.get("rest", ())], "control": newest["control"]}
    return {"wrong": _compare(case, rows["changed"], rows["control"]), "rows": len(rows["control"])}


def _merge(session: Asks, case: Case, folder: Path, order: list[str], inputs: Path) -> None:
    query = None
    if case.how in ("combine", "reorder"):
        job = {"do": "describe", "shape": case.shape, "tags": order, "conf": case.conf(0), "inputs": str(inputs)}
        query = parse_query(session.ask(job))
    both = [str(folder / "old"), str(folder / "other")]
    made = ckpt.merge(both, str(folder / "new"), expect=query, combine=case.how == "combine")
    assert made.written, made.refused


def _split(case: Case, folder: Path) -> None:
    new = [str(folder / "new"), str(folder / "rest")]
    store = case.stores[1]
    made = ckpt.split(
        str(folder / "old"),
        new,
        where=CONDITIONS,
        provider="hdfs" if store == "hdfs" else "rocksdb",
        partitions=case.partitions[1],
    )
    assert made.written, made.refused


def _compare(case: Case, changed: list[list[str]], control: list[list[str]]) -> list[str]:
    """Rows that one has and the other has not, or not as often."""
    keys = SHAPES[case.shape].keys
    if case.how == "combine" and keys is None:  # what both had emitted before stays twice
        keys = 2
    if keys is not None:  # a later row replaces an earlier one
        changed, control = ([*{tuple(row[:keys]): row for row in each}.values()] for each in (changed, control))
    both = (sorted(map(str, each)) for each in (changed, control))
    has, wants = both
    return [f"- {row}" for row in wants if wants.count(row) != has.count(row)] + [
        f"+ {row}" for row in has if wants.count(row) != has.count(row)
    ]


class Merged(Cases[Case]):
    """Queries that become one, or several."""

    answers = Folder(Path(__file__).with_name("recorded_merged"))
    role = "merge"

    def cases(self, minor: str) -> Iterator[Case]:
        within = [case for case in CASES if case.since <= minor]
        chosen = within if minor == MAIN else within[::5]
        yield from (case for case in chosen if (minor, case.shape) != ("3.5", "pandas"))  # whose workers fail there

    def ask(self, session: Session, case: Case, folder: Path) -> Document:
        return ask(session, case, folder)


SUITE = Merged()
