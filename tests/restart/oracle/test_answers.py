"""The recorded answers are complete and answer the cases as they stand now."""

from __future__ import annotations

import pytest

from tests.restart.oracle import answers, cases

OUTCOMES = {"resumes", "starts-fresh", "fails-at-start", "fails-in-batch", "fails-at-commit", "refused"}


def test_names_are_unique_and_enough_of_the_cases_are_random():
    names = [case.name for case in cases.CASES]

    assert len(names) == len(set(names))
    assert len(names) >= 150
    assert sum(name.startswith("random-") for name in names) >= 100


@pytest.mark.parametrize("minor", answers.VERSIONS)
def test_answers_are_of_known_kinds_and_say_why_a_start_fails(minor):
    document = answers.read(minor)
    strange = {
        name: answer
        for name, answer in document["answers"].items()
        if answer["outcome"] not in OUTCOMES
        or (answer["error"] is None) != (answer["outcome"] in {"resumes", "starts-fresh"})
    }

    assert document["spark"].startswith(f"{minor}.")
    assert strange == {}
