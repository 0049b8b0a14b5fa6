"""What Spark did after each plan is what the query that never broke did, as recorded by `record.py`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.changes.oracle.cases import EXPIRES_LATER, by_name
from tests.changes.oracle.record import SUITE
from tests.restart.oracle import answers as oracle

RECORDED = [
    pytest.param(minor, name, id=f"{minor}-{name}") for minor in oracle.VERSIONS for name in SUITE.recorded(minor)
]


def answer(minor: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = SUITE.recorded(minor)[name]
    return found


@pytest.mark.parametrize(("minor", "name"), RECORDED)
def test_rows_ranges_and_state_are_those_of_a_query_that_never_broke(minor: str, name: str) -> None:
    case, found = by_name()[name], answer(minor, name)
    if case.leaves:
        assert found["expected"]["rows"] != found["found"]["rows"], "state that is left makes rows wrong"
        assert minor == "3.5" or found["expected"]["state"] != found["found"]["state"]
        assert found["expected"]["read"] == found["found"]["read"], "and nothing shows it"
        return
    if case.skips and case.history.query == EXPIRES_LATER:
        assert found["expected"]["read"] == found["found"]["read"]
        return
    assert found["expected"] == found["found"]


@pytest.mark.parametrize(("minor", "name"), RECORDED)
def test_the_next_start_was_the_one_that_was_promised(minor: str, name: str) -> None:
    case, found = by_name()[name], answer(minor, name)
    promised, read = found["promised"], found["found"]["read"]
    first = min(read, key=int)
    assert promised["batch"] == int(first) == case.batch + (2 if case.skips else 1)
    assert promised["again"] == (case.way == "same")
    for (start, end), (began, ended) in zip(promised["sources"], read[first][1], strict=True):
        assert start == began
        assert end in (None, ended)


def test_enough_is_recorded_and_every_answer_shows_something() -> None:
    of_4_2 = SUITE.recorded("4.2")
    assert len(of_4_2) >= 25
    assert {by_name()[name].way for name in of_4_2} >= {"same", "new", "skip-after", "skip-before", "left"}
    for minor, name in (one.values for one in RECORDED):
        found = answer(str(minor), str(name))["found"]
        shown = [*found["rows"].values(), *(found["state"] or {}).values()]
        assert any(not rows.startswith("0 ") for rows in shown), (minor, name)
        if by_name()[str(name)].history.store and minor != "3.5":
            assert found["state"], (minor, name)
