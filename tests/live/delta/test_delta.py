"""`ckpt inspect --sources` at real Delta tables: what it says, what Spark then does, and what its advice is worth."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.live.delta import starts
from tests.live.delta.cases import CASES, Case, Table
from tests.live.delta.judging import disagreements
from tests.live.delta.record import ask
from tests.live.first_remedy import LATER, advised, done
from tests.live.judging import inspected
from tests.support.services.kafka import SPARK
from tests.support.spark.live import EVERY_CASE, Here

pytestmark = [pytest.mark.spark, pytest.mark.skipif(find_spec("delta") is None, reason="delta-spark is not installed")]

SHOWN = ("log-from-3", "deleted-files", "column-renamed")
LIVE = [
    case
    for case in CASES
    if EVERY_CASE or (case.incident in SHOWN and case.history == "versions" and case.committed and not case.options)
]


@pytest.fixture(scope="module")
def driver(spark: Any) -> Here:
    return Here(spark, starts.answer)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.mark.parametrize("case", LIVE, ids=lambda case: case.name)
def test_what_is_said_is_what_happens(case: Case, driver: Here, folder: Path) -> None:
    place = folder / case.name.replace("=", "-")
    _, now, _ = told = ask(driver, case, place)
    shutil.rmtree(place)
    # the checkpoint as it was before the start
    driver.ask({"do": "happen", "place": str(place), "of": str(folder / f"made {case.history}"), **vars_of(case)})
    assert list(disagreements(case, inspected(place / "checkpoint", now, SPARK), told[2])) == []


def vars_of(case: Case) -> dict[str, Any]:
    return {"history": case.history, "incident": case.incident, "committed": case.committed}


def test_a_first_batch_goes_on_at_the_first_version_that_is_left(driver: Here, folder: Path) -> None:
    """The advice on other incidents is obeyed in `tests/live/remedies_followed.py`."""
    case, place = Case("first batch", "log-from-2", True), folder / "obeyed"
    driver.ask({"do": "make", "place": str(folder / "made again"), "history": case.history})
    driver.ask({"do": "happen", "place": str(place), "of": str(folder / "made again"), **vars_of(case)})
    obeyed = advised(place / "checkpoint", {"path": str(place / "table")})
    assert (obeyed.options, obeyed.settings, obeyed.new_checkpoint) == ({"startingVersion": "2"}, {}, False)
    for number, call in enumerate(obeyed.commands()):
        done(call, number, place)
    ends = []
    for version, options in ((None, obeyed.options), (LATER[0], obeyed.options), (LATER[1], {})):
        if version is not None:
            Table(driver.session, place).append(version)
        said = driver.ask({"do": "start", "place": str(place), "options": options})
        ends.append((said["error"], sum(count for _, count in said["batches"])))
    assert ends == [(None, 20), (None, 10), (None, 10)]
