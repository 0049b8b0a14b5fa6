"""A part of what is recorded, asked of the installed Spark: plans made from real histories, and really started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.changes.oracle.cases import Case, History, by_name
from tests.changes.oracle.histories import answer
from tests.changes.oracle.plans_followed import ask, tell
from tests.support.spark.live import EVERY_CASE, Here

pytestmark = pytest.mark.spark

LIVE = (
    "aggregation-format2-3/same-10",
    "session-window-changelog-3/skip-after-7",
)
"""A rewind and a skip, in the formats with the most rules; with `CKPT_TEST_ALL=1` all that is recorded."""
_TOLD: dict[History, Path] = {}


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("histories")
    _TOLD.clear()


@pytest.mark.parametrize("name", by_name() if EVERY_CASE else LIVE)
def test_it_continues_as_a_query_that_never_broke(spark: Any, name: str, histories: Path) -> None:
    case: Case = by_name()[name]
    here = Here(spark, answer)
    folder = histories / case.history.name
    if case.history not in _TOLD:
        folder.mkdir()
        tell(here, case.history, folder)
        _TOLD[case.history] = folder

    found = ask(here, case, folder)

    assert found["found"] == found["expected"]
    assert found["promised"]["batch"] == int(min(found["found"]["read"], key=int))
