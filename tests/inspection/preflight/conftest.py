"""What tests of ``ckpt preflight`` share."""

import pytest


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples of a fresh clone are young, so ckpt would wait before each second look."""
    monkeypatch.setattr("ckpt.inspection.preflight.LOOKS_APART_S", 0)
