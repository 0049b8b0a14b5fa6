"""Recorded pairs of queries at random: where rows differ from the control, none is full, and none starts silently."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.new.evolve.pair_queries import Pair, Query, make_pairs
from tests.new.evolve.pairs import SUITE, Pairs
from tests.record.answers import Document
from tests.support.spark.live import Here

ANSWERS: Document = SUITE.recorded("4.2")
PAIRS = {pair.name: pair for pair in make_pairs() if pair.name in ANSWERS}
JUDGED = {name: answer for name, answer in ANSWERS.items() if "go" in answer}
LIVE = ("6.1", "11.2", "29.1")
"""The output mode, a join of one folder, and a filter over a join with a table: asked again on the installed Spark."""


def find_wrong(pair: Pair, answer: Document) -> list[str]:
    """Find what was said and is not so."""
    plain, evolved = answer["plain"], answer.get("evolved")
    wrong = []
    if answer["refused"] is None and answer["verdict"] == "full" and not (evolved and evolved["same"]):
        wrong.append("full")
    if answer["go"] and not answer["told"] and not plain["same"]:
        wrong.append("start")
    if answer["go"] and plain["error"] is not None:
        wrong.append("start fails")
    if evolved is not None and evolved["error"] is not None:
        wrong.append("evolved fails")
    if not answer["go"] and plain["same"] and pair.old.zone == pair.new.zone:  # texts of times may have no zone
        wrong.append("hold")
    return wrong


def keep_what_decides(query: Query) -> Query:
    """Return a query without what decides neither its state nor which rows that has seen."""
    windowed = query.kind in ("window", "session", "twice")
    if query.kind == "rows":
        query = replace(query, filtered_last=(), generator=query.generator if query.distinct else "")
        if not query.distinct:
            return Query(kind="rows", united=query.united)
    late = query.distinct or query.kind in ("within", "join") or (windowed and query.mode != "complete")
    if not query.distinct and query.kind != "within":  # one filter after the other
        query = replace(query, filters=(*query.filters, *query.filtered_last), filtered_last=())
    implied = {f"{query.time} IS NOT NULL"} if windowed else set()
    both = [{part for text in own for part in text.split(" AND ")} for own in (query.filters, query.filtered_last)]
    implied |= {"v IS NOT NULL"} if "v > 3" in both[0] else set()
    return replace(
        query,
        filters=tuple(sorted(both[0] - implied)),
        filtered_last=tuple(sorted(both[1] - implied)),
        how="inner" if "Outer" in query.how else query.how,
        having="",
        sort="",
        limit=query.limit if query.kind == "limit" else 0,
        zone="UTC" if not any("date_format" in key for key in query.keys) else query.zone,
        mode="update" if query.mode == "append" or not (windowed and query.watermark) else query.mode,
        watermark=query.watermark if late else None,
        marked=query.marked if late else "t",
        values=Query().values if query.kind == "twice" else query.values,
    )


def test_what_was_continued_is_as_it_was_said() -> None:
    continued = {name: answer for name, answer in JUDGED.items() if "plain" in answer}
    assert {name: wrong for name, answer in continued.items() if (wrong := find_wrong(PAIRS[name], answer))} == {}
    assert {answer["verdict"] for answer in continued.values()} >= {"full", "from-now-on"}
    assert len(continued) > 100
    assert sum(not answer["plain"]["same"] for answer in continued.values()) > 50


def test_what_starts_without_a_word_decides_no_rows() -> None:
    silent = [PAIRS[name] for name, answer in JUDGED.items() if answer["go"] and not answer["told"]]
    assert [pair.name for pair in silent if keep_what_decides(pair.old) != keep_what_decides(pair.new)] == []
    assert len(silent) > 50
    assert len(ANSWERS) - len(JUDGED) < len(ANSWERS) / 20


def test_pairs_are_the_same_each_time() -> None:
    assert make_pairs(2, 3) == make_pairs(2, 3)
    assert PAIRS.keys() == ANSWERS.keys()


@pytest.mark.spark
@pytest.mark.parametrize("number", LIVE)
def test_a_pair_is_continued(spark: Any, number: str, tmp_path: Path) -> None:
    pair = next(pair for pair in PAIRS.values() if pair.number == number)
    answer = SUITE.ask(Here(spark, Pairs().answer), pair, tmp_path / "pair")
    assert find_wrong(pair, answer) == []
    assert {name: answer[name] for name in ("go", "told", "verdict", "plain")} == {
        name: ANSWERS[pair.name][name] for name in ("go", "told", "verdict", "plain")
    }
