"""``ckpt preflight --fix safe`` in the recorded incidents: no fix that it applied touched a row.

`python -m tests.laws.operator.unattended` records it.
"""

from __future__ import annotations

from collections import Counter

from tests.changes.fixes.unattended import INCIDENTS
from tests.laws.operator import recorder, unattended
from tests.laws.operator.counting import Outcome
from tests.laws.operator.seeds import fingerprint, make_seed
from tests.support.places import ROOT

RECORDED = recorder.read(unattended.FILE)
FIXED = {number: answer for number, answer in RECORDED.items() if answer["fixed"]}


def test_recipes_are_those_that_the_generator_makes() -> None:
    recorded = ({key: answer[key] for key in ("query", "disasters", "started")} for answer in RECORDED.values())
    assert fingerprint(recorded) == fingerprint(make_seed(number).recipe for number in RECORDED)


def test_every_row_came_once_after_a_fix() -> None:
    """Or the operator counts the same without it, because the sink itself was damaged."""
    bare = recorder.read()
    for number, answer in FIXED.items():
        if answer["class"] != Outcome.EXACT:
            assert answer["class"] == bare[number]["bare"]["class"], number
            assert answer["counted"] == bare[number]["bare"]["counted"], number


def test_what_is_applied_starts_and_is_among_the_proven_fixes() -> None:
    assert all(answer["go"] for answer in FIXED.values())
    assert {fix for answer in FIXED.values() for fix in answer["fixed"]} <= {*INCIDENTS}
    assert len(FIXED) >= 10


def test_the_page_of_evidence_has_the_figures() -> None:
    exact = Counter(answer["class"] for answer in FIXED.values())[Outcome.EXACT]
    page = (ROOT / "docs" / "evidence" / "repairs.md").read_text()
    assert f"In {len(RECORDED)} of these incidents it was asked, and applied a fix in {len(FIXED)}." in page
    assert f"After {exact} of the fixes" in page
