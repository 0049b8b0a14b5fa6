"""What starts with every ``ckpt inspect`` is known: ``python -m tests.laws.imports`` writes the list anew."""

from tests.laws.imports import LIST, imported


def test_a_plain_look_imports_what_is_listed_and_nothing_else():
    assert imported() == LIST.read_text().splitlines()
