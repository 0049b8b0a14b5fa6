"""Recorded pairs of queries at random: none is full, or starts without a word, whose rows differ from the control."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.new.evolve.pairs import SUITE, Pairs, make_pairs
from tests.record.answers import Document
from tests.support.spark.live import Here

ANSWERS: Document = SUITE.recorded("4.2")
LIVE = (0, 8)
"""A changed watermark, and a filter more: asked again on the Spark that is installed."""


def find_wrong(answer: Document) -> list[str]:
    """Find what was said and is not so."""
    plain, evolved = answer["plain"], answer.get("evolved")
    wrong = []
    if answer["refused"] is None and answer["verdict"] == "full" and not (evolved and evolved["same"]):
        wrong.append("full")
    if answer["go"] and not answer["told"] and not plain["same"]:
        wrong.append("start")
    if answer["verdict"] == "full" and answer["refused"] is None and "CKPT481" in answer["told"]:
        wrong.append("full, and preflight has a word")
    if answer["verdict"] == "from-now-on" and answer["go"] and not answer["told"]:
        wrong.append("START without the word of evolve")
    if answer["go"] and plain["error"] is not None:
        wrong.append("start fails")
    if evolved is not None and evolved["error"] is not None:
        wrong.append("evolved fails")
    return wrong


def test_each_pair_is_recorded_and_none_is_wrong() -> None:
    assert [*ANSWERS] == sorted(pair.name for pair in SUITE.cases("4.2"))
    judged = {name: answer for name, answer in ANSWERS.items() if "go" in answer}
    assert {name: wrong for name, answer in judged.items() if (wrong := find_wrong(answer))} == {}
    verdicts = {answer["verdict"] for answer in judged.values()}
    assert verdicts >= {"full", "from-now-on"}
    assert any(not answer["plain"]["same"] for answer in judged.values())


def test_pairs_are_the_same_each_time() -> None:
    assert make_pairs(9) == make_pairs(9)


@pytest.mark.spark
@pytest.mark.parametrize("number", LIVE)
def test_a_pair_is_continued(spark: Any, number: int, tmp_path: Path) -> None:
    pair = make_pairs(number + 1)[number]
    answer = SUITE.ask(Here(spark, Pairs().answer), pair, tmp_path / "pair")
    assert find_wrong(answer) == []
    assert {name: answer[name] for name in ("go", "told", "verdict", "plain")} == {
        name: ANSWERS[pair.name][name] for name in ("go", "told", "verdict", "plain")
    }
