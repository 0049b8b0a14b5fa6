"""A watch over checkpoints that an export reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.spark.live import Trace, trace


@pytest.fixture
def untouched() -> Iterator[Callable[[Path], None]]:
    """Watch checkpoints: at the end of the test nothing below them may have changed."""
    watched: dict[Path, Trace] = {}

    def watch(root: Path) -> None:
        watched[root] = trace(root)

    yield watch
    for root, before in watched.items():
        assert trace(root) == before, root
