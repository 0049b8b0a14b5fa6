"""An operator who does exactly what ckpt prints loses no row and doubles none that no page had named.

`python -m tests.laws.operator.recorder` records how each seed ends.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.laws.operator import recorder
from tests.laws.operator.counting import BAD
from tests.laws.operator.disasters import MENU
from tests.laws.operator.known import KNOWN
from tests.laws.operator.queries import BY_NAME
from tests.laws.operator.recorder import MODES
from tests.laws.operator.seeds import fingerprint, make_seed
from tests.support.places import ROOT

RECORDED = recorder.read()
ENDS = [(answer["seed"], mode, answer[mode]) for answer in RECORDED.values() for mode in MODES]


def test_recipes_are_those_that_the_generator_makes() -> None:
    assert len(RECORDED) >= 300
    recorded = ({key: answer[key] for key in ("query", "disasters", "started")} for answer in RECORDED.values())
    assert fingerprint(recorded) == fingerprint(make_seed(number).recipe for number in RECORDED)


def test_every_kind_of_query_and_every_disaster_is_recorded() -> None:
    disasters = Counter(name for answer in RECORDED.values() for name in answer["disasters"])
    assert len(MENU) >= 80
    assert {*disasters} == {*MENU}
    kinds = [BY_NAME[name] for name in {answer["query"] for answer in RECORDED.values()}]
    assert {kind.source for kind in kinds} == {"files", "delta", "rate", "kafka"}
    assert {kind.operator for kind in kinds} == {"none", "dedup", "aggregation", "window", "join", "transform"}
    assert {kind.store for kind in kinds} == {"", "hdfs", "rocksdb", "changelog", "format2"}
    assert {kind.sink for kind in kinds} == {"delta", "txn", "merge", "files", "append"}
    assert sum(len(answer["disasters"]) == 2 for answer in RECORDED.values()) >= 60
    assert sum(answer["started"] for answer in RECORDED.values()) >= 60


def test_no_seed_ends_badly_but_those_that_are_known() -> None:
    bad = {(seed, mode): end["class"] for seed, mode, end in ENDS if end["class"] in BAD or _is_wrong_stop(end)}
    known = {(seed, each.mode): each.outcome for each in KNOWN for seed in each.seeds}
    assert bad == {case: outcome for case, outcome in known.items() if case[0] in RECORDED}
    assert all(each.reason and each.seeds for each in KNOWN)


def _is_wrong_stop(end: dict[str, Any]) -> bool:
    """Only a copy helps, said the page, and a sequence of commands ended well."""
    return bool(end["class"] == "stop" and "ended well" in end)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_counted_was_announced(mode: str) -> None:
    for seed, _, end in (end for end in ENDS if end[1] == mode):
        counted, announced = end["counted"], end["announced"]
        if end["class"] == "exact":
            assert counted == {"lost": "", "doubled": ""}, seed
        elif end["class"] == "as announced":
            assert any(counted.values()), seed
            assert all(announced[harm] for harm in ("lost", "doubled") if counted[harm]), seed


def test_the_page_of_evidence_has_the_figures() -> None:
    page = (ROOT / "docs" / "evidence" / "repairs.md").read_text()
    assert f"{len(RECORDED)} incidents" in page
    for row in recorder.tabulate():
        assert row in page
