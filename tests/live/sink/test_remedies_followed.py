"""Remedies obeyed by the letter, with sinks that remember batch ids: every row of source and sink is counted.

All are recorded (`python -m tests.support.spark.recording sink-remedies`), and some are run.
"""

from importlib.util import find_spec
from typing import Any

import pytest

from tests.conftest import Ckpt, CopyOf
from tests.live.sink import remedies_followed
from tests.restart.oracle.cases.model import delete
from tests.support.spark import recording
from tests.support.spark.live import EVERY_CASE

needs_delta = pytest.mark.skipif(find_spec("delta") is None, reason="delta-spark is not installed")

SINKS = ("parquet", "delta")
AGAIN = {
    "empty_latest": range(50, 60),
    "empty_latest_uncommitted": range(50, 60),
    "commits_ahead": range(40, 60),
    "commits_behind": range(30, 60),
}
"""Rows that are in the sink twice afterwards: those of the batches that the remedy says are written again.

Of a file source none is, where its log tells the offsets that were lost.
"""


@pytest.fixture(
    scope="module",
    params=["recorded", pytest.param("live", marks=[pytest.mark.spark, needs_delta])],
)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of damages, by damage and sink."""
    if request.param == "recorded":
        return recording.read("sink-remedies")
    asked = {sink: list(remedies_followed.DAMAGES) for sink in SINKS} if EVERY_CASE else remedies_followed.LIVE
    return remedies_followed.found(request.getfixturevalue("spark"), tmp_path_factory.mktemp("obeying"), asked)


def times(one: dict[str, Any]) -> dict[int, int]:
    return {int(row): count for row, count in one["times"].items()}


def test_every_damage_is_recorded() -> None:
    found = recording.read("sink-remedies")
    assert {f"{damage}/{sink}" for damage in remedies_followed.DAMAGES for sink in SINKS} < found.keys()
    assert found["ways"].keys() == set(remedies_followed.DAMAGES)


@pytest.mark.parametrize("sink", SINKS)
def test_no_row_is_lost_and_those_written_again_are_named(sink: str, found: dict[str, Any]) -> None:
    damages = [damage for damage in AGAIN if f"{damage}/{sink}" in found]
    assert damages
    for damage in damages:
        told = found[f"{damage}/{sink}"]
        assert told["error"] == ""
        again = () if sink == "delta" and damage != "commits_behind" else AGAIN[damage]
        assert times(told) == {row: 1 + (row in again) for row in range(80)}, damage


def test_each_way_does_to_rows_what_it_was_to_cost(found: dict[str, Any]) -> None:
    damages = [damage for damage in AGAIN if damage in found["ways"]]
    assert damages
    for damage in damages:
        ways = found["ways"][damage]
        assert {"read-again", "plan-again"} <= ways.keys()
        for name, way in ways.items():
            assert way["error"] == "", name
            counts = [times(way).get(row, 0) for row in range(80)]
            assert (0 in counts) == (way["cost"] == "MAY_LOSE"), name
            assert max(counts) == (1 if way["cost"] == "MAY_LOSE" else 2), name


@pytest.mark.parametrize("sink", SINKS)
def test_a_sink_that_is_taken_back_as_the_page_says_loses_no_row_and_doubles_none(
    sink: str, found: dict[str, Any]
) -> None:
    told = found[f"cured/{sink}"]
    assert told["error"] == ""
    assert times(told) == dict.fromkeys(range(80), 1)


@pytest.mark.parametrize("sink", SINKS)
def test_without_its_logs_a_query_lost_rows_and_the_page_said_so(sink: str) -> None:
    told = recording.read("sink-remedies")[f"logs_deleted/{sink}"]
    assert set(times(told)) == set(range(60)), "the rows that were new are dropped"
    assert "Start the query only if it has never written a row" in told["remedies"][0]


def test_a_lost_query_id_is_found_in_the_delta_table_by_the_command_of_the_page(found: dict[str, Any]) -> None:
    told = found["named again"]
    assert told["found"]["newest"]["version"] == remedies_followed.BATCHES - 1
    assert [one["error"] for one in told.values()] == ["", ""]
    assert times(told["found"]) == dict.fromkeys(range(80), 1)
    assert times(told["other"]) == {row: 1 + (50 <= row < 60) for row in range(80)}, "the table does not know this id"


def test_a_query_id_without_batches_that_were_there_is_an_error(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("delta-4.2", *delete("offsets/[0-9]*", "commits/[0-9]*"))
    run = ckpt("inspect", checkpoint, "-o", "json")
    assert run.exit_code == 1
    assert [one["code"] for one in run.json()["findings"] if one["severity"] == "error"] == ["CKPT127"]
