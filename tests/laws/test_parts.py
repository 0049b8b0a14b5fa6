"""The tests that `make test` runs in part exist: one that was renamed would run whole, unnoticed."""

from tests.support.parts import EACH
from tests.support.places import ROOT


def test_every_test_that_is_run_in_part_is_there() -> None:
    named = [name.partition("::") for name in EACH]
    assert [(file, test) for file, _, test in named if f"def {test}(" not in (ROOT / "tests" / file).read_text()] == []
