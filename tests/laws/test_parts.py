"""The tests that `make test` runs in part exist: one that was renamed would run whole, unnoticed."""

from tests.support.parts import EACH
from tests.support.places import ROOT


def test_every_test_that_is_run_in_part_is_there() -> None:
    named = [name.partition("::") for name in EACH]
    texts = {file: (ROOT / "tests" / file).read_text() for file, _, _ in named}
    assert [(file, test) for file, _, test in named if test != "*" and f"def {test}(" not in texts[file]] == []
