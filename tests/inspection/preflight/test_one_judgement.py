"""``ckpt evolve`` says what ``ckpt preflight`` says of the same start, and its verdict never contradicts that."""

from functools import cache
from typing import Any

import pytest

import ckpt
from ckpt.inspection.preflight import Readiness
from ckpt.new.evolve.plan import EvolvePlan
from ckpt.query.compare_queries import Knowledge
from ckpt.restart.findings import Severity
from tests.inspection.preflight import signatures
from tests.inspection.preflight.test_signatures import archive, checkpoints, described, judged
from tests.support.spark.live import EVERY_CASE

__all__ = ("checkpoints",)


def list_contradictions(plan: EvolvePlan, readiness: Readiness) -> list[str]:
    """Find what one says and the other one does not."""
    codes = {finding.diagnosis.code for finding in plan.findings}
    stops = any(finding.diagnosis.severity is Severity.ERROR for finding in plan.findings)
    told = {(rated.code, rated.finding.detail) for rated in readiness.inspection.findings}
    checks = {
        "a finding of its own": {(each.diagnosis.code, each.detail) for each in plan.findings} <= told,
        "START without a word": not (readiness.go and plan.verdict is Knowledge.FROM_NOW_ON and not codes),
        "full, and rows from now on": not (
            "CKPT481" in codes and plan.refused is None and plan.verdict is Knowledge.FULL
        ),
        "nothing to change, and HOLD": not stops or bool(plan.steps or plan.refused),
        "START, and no way": readiness.holds != () or plan.refused is None or plan.needs_acceptance or bool(codes),
    }
    return [name for name, holds in checks.items() if not holds]


def compare(minor: str, changes: tuple[signatures.Changed, ...], checkpoints: Any) -> dict[str, list[str]]:
    """What is contradicted, by change."""
    wrong = {}
    for change in changes:
        checkpoint = checkpoints(minor, change.base)
        old, new = described(minor, change.base), described(minor, change.id)
        plan, _ = ckpt.evolve(checkpoint, "memory://one-judgement", to=new, from_query=old, plan=True)
        if contradicted := list_contradictions(plan, judged(minor, change, checkpoints)):
            wrong[change.id] = contradicted
    return wrong


def test_the_verdicts_never_contradict_each_other(checkpoints: Any) -> None:
    assert compare("4.2", tuple(signatures.changes("4.2"))[::18], checkpoints) == {}


@pytest.mark.slow
@pytest.mark.parametrize("minor", ["3.5", "4.2"])
def test_nor_do_those_of_any_recorded_change(minor: str, checkpoints: Any) -> None:
    changes = tuple(each for each in signatures.changes(minor) if f"bases/{each.base}/metadata" in list_names(minor))
    assert compare(minor, changes[:: 1 if EVERY_CASE else 5], checkpoints) == {}


@cache
def list_names(minor: str) -> set[str]:
    return {*archive(minor).namelist()}


def test_the_page_and_the_document_have_the_findings(checkpoints: Any) -> None:
    (change,) = (each for each in signatures.changes("4.2") if each.id == "window: delay")
    old, new = described("4.2", change.base), described("4.2", change.id)
    result = ckpt.evolve(checkpoints("4.2", change.base), "memory://told", to=new, from_query=old, plan=True)
    document: Any = result.to_dict()
    assert [each["code"] for each in document["findings"]] == ["CKPT481"]
    assert "CKPT481" in str(result)
