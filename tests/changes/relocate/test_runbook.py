import pytest

from tests.changes.relocate import runbook


@pytest.mark.slow
def test_the_runbook_shows_what_ckpt_prints() -> None:
    assert runbook.PAGE.read_text(encoding="utf-8") == runbook.page(), "python -m tests.changes.relocate.runbook"
