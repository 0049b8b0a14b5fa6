"""What tests of new checkpoints share."""

from typing import Any

import pytest

import ckpt


@pytest.fixture
def by(spark: Any) -> Any:
    return ckpt.types.Executors(ckpt.types.Session(spark))
