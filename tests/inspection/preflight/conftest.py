"""What tests of ``ckpt preflight`` share."""

from functools import cache
from typing import Any

import pytest

import ckpt
from tests.inspection.preflight import record


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples of a fresh clone are young, so ckpt would wait before each second look."""
    monkeypatch.setattr("ckpt.inspection.preflight.LOOKS_APART_S", 0)


@pytest.fixture(scope="package")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The checkpoint of a base, as one version made it."""
    folder = tmp_path_factory.mktemp("made")
    unpack = cache(lambda minor: record.unpack(minor, folder))
    return cache(lambda minor, base: ckpt.open_checkpoint(str(unpack(minor) / base)))
