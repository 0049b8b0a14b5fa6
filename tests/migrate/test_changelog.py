"""``ckpt migrate changelog`` against real Spark: queries that are switched on and off, and their state.

All are recorded (`python -m tests.support.spark.recording changelog`), and one is run.
"""

import re
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from tests.commands import contract
from tests.migrate import runbook, switching
from tests.migrate.switching import RUNS
from tests.support.spark import recording
from tests.support.spark.live import EVERY_CASE

SWITCHES = [pytest.param(0, id="on"), pytest.param(1, id="off")]


LIVE = [pytest.param((name, True), id=f"{name}-live", marks=pytest.mark.spark) for name in RUNS]


@pytest.fixture(
    scope="module",
    params=[*(pytest.param((name, False), id=name) for name in RUNS), *(LIVE if EVERY_CASE else LIVE[:1])],
)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    name, live = request.param
    if not live:
        return cast(dict[str, Any], recording.read("changelog")[name])
    return switching.found(request.getfixturevalue("spark"), tmp_path_factory.mktemp(name), name)


def _differences(told: dict[str, Any]) -> list[str]:
    document = {"next": []} | {key: value for key, value in told.items() if key != "exit"}
    # recorded before there were such keys
    written = {"at_most": None, "newer": [], "platform": None} | told["checkpoint"]["written_by"]
    document["checkpoint"] = {"pipeline": None} | told["checkpoint"] | {"written_by": written}
    return contract.disagreements(document, "migrate changelog")


def views(state: dict[str, Any]) -> list[Any]:
    """Every row of state, key and value, of every store."""
    return [[view["options"], view["rows"]] for one in state["operators"].values() for view in one["views"]]


@pytest.mark.parametrize("place", SWITCHES)
def test_before_it_is_made_it_can_be_and_has_not_taken(place: int, found: dict[str, Any]) -> None:
    one = found["switches"][place]
    assert one["before"]["outcome"] == "ready"
    assert one["too_early"]["outcome"] == "not-yet"
    wanted = {"on": "true", "off": "false"}[one["to"]]
    assert one["before"]["confs"] == {
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": wanted,
    }
    assert one["before"]["exit"] == one["too_early"]["exit"] == 1
    assert _differences(one["before"]) == []


@pytest.mark.parametrize("place", SWITCHES)
def test_the_first_batch_writes_the_files_that_were_announced(place: int, found: dict[str, Any]) -> None:
    one = found["switches"][place]
    version, ending = one["before"]["next_version"], {"on": "changelog", "off": "zip"}[one["to"]]
    names = [Path(path).name for path in one["files"] if not Path(path).name.startswith(".")]
    written = Counter(
        name.partition(".")[2] for name in names if name.partition(".")[0].partition("_")[0] == str(version)
    )
    assert written[ending] == len(one["before"]["written"])
    assert set(written) - {f"{ending}.crc"} == {ending}


@pytest.mark.parametrize("place", SWITCHES)
def test_after_the_first_batch_and_later_ones_it_took(place: int, found: dict[str, Any]) -> None:
    one = found["switches"][place]
    for told in (one["after"], one["later"]):
        assert told["outcome"] == "switched"
        assert told["since_version"] == one["before"]["next_version"]
        assert _differences(told) == []
    assert one["again"]["outcome"] == "already"
    assert one["batches"] > 10


@pytest.mark.parametrize("place", SWITCHES)
def test_state_read_in_two_ways_is_the_same(place: int, found: dict[str, Any]) -> None:
    one = found["switches"][place]
    compared = one["later"]["state_compared"]
    assert one["later"]["exit"] == 0
    assert compared["verdict"] == "same"
    assert compared["one_way"] == []
    assert {"operator": 0, "different": [], "only_direct": 0, "only_replayed": 0}.items() <= compared["two_ways"][
        0
    ].items()
    for entries in (compared["two_ways"], compared["carried"]):
        assert all(entry["rows"] > 0 for entry in entries)
        assert {place for entry in entries for place in entry["partitions"]} == {0, 1}
    last = one["before"]["next_version"] - 1
    for entry in compared["two_ways"]:
        assert entry["older_snapshot"] == last if one["to"] == "on" else entry["version"] <= last
    assert {entry["last_version"] for entry in compared["carried"]} == {last}


def test_a_changelog_that_says_something_else_is_found(found: dict[str, Any]) -> None:
    if "tampered" not in found:
        pytest.skip("in state format 2 Spark itself refuses a changelog that is not the one it wrote")
    compared = found["tampered"]["state_compared"]
    assert found["tampered"]["exit"] == 1
    assert compared["verdict"] == "different"
    assert {place for entry in compared["two_ways"] for place in entry["different"]} == {0}


@pytest.mark.parametrize("place", SWITCHES)
def test_state_of_the_batch_before_is_the_same_read_before_and_after(place: int, found: dict[str, Any]) -> None:
    one = found["switches"][place]
    assert any(rows for _, rows in views(one["state"]))
    assert views(one["state_read_later"]) == views(one["state"])


def test_a_query_that_was_switched_twice_ends_like_one_that_never_was(found: dict[str, Any]) -> None:
    assert found["state"]["batch"] == found["control"]["batch"]
    assert any(rows for _, rows in views(found["state"]))
    assert views(found["state"]) == views(found["control"])


@pytest.mark.spark
@pytest.mark.skipif(not EVERY_CASE, reason="the others show the same: CKPT_TEST_ALL=1")
def test_the_runbook_shows_what_ckpt_prints_with_spark() -> None:
    told = re.sub(r"Spark [0-9.]+,", "Spark X,", runbook.page())
    assert re.sub(r"Spark [0-9.]+,", "Spark X,", runbook.PAGE.read_text(encoding="utf-8")) == told, runbook.__name__
