"""Recorded rows of changed queries that continued on checkpoints of `ckpt evolve`: none is lost, none came twice."""

import pytest

from tests.new.evolve.cases import Case
from tests.new.evolve.columns import ColumnCase
from tests.new.evolve.record import SUITE, check
from tests.new.evolve.tables import SUITE as TABLES

ANSWERS = {minor: SUITE.recorded(minor) for minor in SUITE.answers.minors}
RECORDED = [(minor, case) for minor, answers in ANSWERS.items() for case in SUITE.cases(minor) if case.name in answers]


@pytest.mark.parametrize("minor", ANSWERS)
def test_every_row_came_once(minor: str) -> None:
    """Of each source all rows from its beginning, or its start, in three starts; none lost, none twice."""
    for version, case in RECORDED:
        if version == minor:
            check(case, ANSWERS[version][case.name])


def test_verdicts_are_what_was_measured() -> None:
    """Full where all columns have all history and both queries are known, from now on where one has new rows alone."""
    for version, case in RECORDED:
        if isinstance(case, ColumnCase) and case.refused is None and not case.plain:
            words = {word for _, word in case.expected}
            verdict = case.verdict or ("full" if words == {"full"} else "from-now-on")
            assert ANSWERS[version][case.name]["verdict"] == verdict, case.name


def test_the_answers_are_of_all_kinds() -> None:
    changes = {change for _, case in RECORDED for change in ANSWERS["4.2"].get(case.name, {}).get("changes", ())}
    assert changes == {"same", "added", "removed", "moved", "renamed", "replaced", "changed"}
    assert any(case.refused for _, case in RECORDED)
    assert any(isinstance(case, Case) and case.in_place for _, case in RECORDED)


@pytest.mark.parametrize("minor", TABLES.answers.minors)
def test_every_row_of_tables_came_once(minor: str) -> None:
    """Of tables of Delta or Iceberg, which no file of a checkpoint tells apart: the command says which is which."""
    answers = TABLES.recorded(minor)
    assert len(answers) >= 40
    for case in TABLES.cases(minor):
        if case.name in answers:
            check(case, answers[case.name])
