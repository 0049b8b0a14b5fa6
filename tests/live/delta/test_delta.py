"""`ckpt inspect --sources` at real Delta tables: what it says, what Spark then does, and what its advice is worth."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ckpt.advice.spelling import list_words
from tests.commands import contract
from tests.conftest import Ckpt
from tests.live.delta import starts
from tests.live.delta.cases import CASES, OPTIONS, Case, Table
from tests.live.delta.judging import disagreements, inspected
from tests.live.delta.record import ask
from tests.live.first_remedy import advised
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


OBEYED: dict[Case, tuple[dict[str, Any], int, int]] = {
    Case("versions", "log-from-3", True): ({"options": {"failOnDataLoss": "false"}}, 10, 0),
    Case("versions", "log-from-3", False): ({"options": {"failOnDataLoss": "false"}}, 10, 10),
    Case("versions", "log-from-5", True): ({"options": {"failOnDataLoss": "false"}}, 10, 20),
    Case("versions", "log-from-5", False): ({"options": {"failOnDataLoss": "false"}}, 10, 30),
    Case("first batch", "log-from-2", True): ({"options": {"startingVersion": "2"}}, 20, 10),
    Case("versions", "created-again", True): ({"checkpoint": "new"}, 20, 0),
    Case("versions", "older-copy", True): ({}, 0, 0),
    Case("versions", "deleted-files", True): ({"options": {"ignoreDeletes": "true"}}, 10, 0),
    Case("versions", "updated", True): ({"options": {"skipChangeCommits": "true"}}, 10, 10),
    Case("versions", "vacuumed", True): ({"conf": OPTIONS["ignoreMissingFiles"]["conf"]}, 0, 20),
    Case("versions", "file-lost", False): ({"conf": OPTIONS["ignoreMissingFiles"]["conf"]}, 10, 10),
}
"""What the remedy says the start needs; rows that are then read, and unread rows that it says are left out."""
CHEAP = [one for one in OBEYED if EVERY_CASE or (one.committed and one.incident in ("log-from-5", "updated"))]


@pytest.mark.parametrize("case", CHEAP, ids=lambda case: case.name)
def test_obeying_the_advice(case: Case, driver: Here, folder: Path, ckpt: Ckpt) -> None:
    made, place = folder / f"made {case.history}", folder / f"obeyed {case.name}"
    if not made.exists():
        driver.ask({"do": "make", "place": str(made), "history": case.history})
    driver.ask({"do": "happen", "place": str(place), "of": str(made), **vars_of(case)})
    how, rows, _ = OBEYED[case]
    asked = ["--sources", "--source-options", f"0.path={place / 'table'}"]
    document = ckpt("inspect", place / "checkpoint", *asked, "-o", "json").json()
    assert contract.disagreements(document) == []
    assert list(contract.contradictions(document)) == []
    obeyed = advised(place / "checkpoint", {"path": str(place / "table")})
    assert (obeyed.options, obeyed.settings) == (how.get("options", {}), how.get("conf", {}))
    assert obeyed.new_checkpoint is ("checkpoint" in how)
    for number, call in enumerate(obeyed.commands()):
        accepted = [] if call.name == "skip" else ["--accept-replay", "--accept-skip"]
        backup = ["--backup", str(place / f"backup-{number}")]
        run = ckpt(*list_words(call)[1:], *accepted, "--apply", "--grace", "0", *backup)
        assert run.exit_code == 0, run.refusal()
    said = driver.ask({"do": "start", "place": str(place), **how})
    assert said["error"] is None
    assert sum(count for _, count in said["batches"]) == rows
    if "checkpoint" not in how:  # it continues, in the end without the option
        for version in (50, 51):
            Table(driver.session, place).append(version)
            again = driver.ask({"do": "start", "place": str(place), **(how if version == 50 else {})})
            assert (again["error"], [count for _, count in again["batches"] if count]) == (None, [10])
