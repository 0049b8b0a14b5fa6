"""No name that a stranger cannot guess is left: ``python -m tests.laws.names`` lists each that comes."""

import pytest

from tests.laws import names

pytestmark = pytest.mark.slow  # `make check` runs it

RIDDLES, VAGUE_NAMES, CLASSES = 0, 0, 0  # nothing raises them


def test_no_docstring_is_a_new_riddle() -> None:
    assert len([*names.riddles()]) <= RIDDLES


def test_no_new_variable_is_vague() -> None:
    assert len([*names.vague_names()]) <= VAGUE_NAMES


def test_no_new_class_has_the_name_of_another() -> None:
    assert len(names.classes_named_twice()) <= CLASSES


def test_no_constant_is_assigned_twice() -> None:
    assert [*names.constants_assigned_twice()] == []
