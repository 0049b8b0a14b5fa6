"""What tests of ``ckpt preflight`` share."""

from functools import cache
from typing import Any

import pytest

import ckpt
from tests.inspection.preflight import record


@pytest.fixture(scope="package")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The checkpoint of a base, as one version made it."""
    folder = tmp_path_factory.mktemp("made")
    unpack = cache(lambda minor: record.unpack(minor, folder))
    return cache(lambda minor, base: ckpt.open_checkpoint(str(unpack(minor) / base)))
