"""``ckpt migrate changelog`` against real Spark: queries that are switched on and off, and their state."""

import json
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests import contract
from tests.places import ROOT

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark is not installed"),
]

QUERIES = ("aggregation", "join", "transform-with-state-event-time", "format2")
SWITCHES = [
    pytest.param(query, place, id=f"{query}-{to}") for query in QUERIES for place, to in enumerate(("on", "off"))
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What was said and found of every query; one JVM runs them all."""
    folder: Path = tmp_path_factory.mktemp("switching")
    command = [sys.executable, "-m", "tests.migrate.switching", str(folder)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1500)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return {file.stem: json.loads(file.read_text()) for file in folder.glob("*.json")}


def views(state: dict[str, Any]) -> list[Any]:
    """Every row of state, key and value, of every store."""
    return [[view["options"], view["rows"]] for one in state["operators"].values() for view in one["views"]]


@pytest.mark.parametrize(("query", "place"), SWITCHES)
def test_before_it_is_made_it_can_be_and_has_not_taken(query: str, place: int, found: dict[str, Any]) -> None:
    one = found[query]["switches"][place]
    assert one["before"]["outcome"] == "ready"
    assert one["too_early"]["outcome"] == "not-yet"
    wanted = {"on": "true", "off": "false"}[one["to"]]
    assert one["before"]["confs"] == {
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": wanted,
    }
    assert contract.disagreements(one["before"], "migrate changelog") == []


@pytest.mark.parametrize(("query", "place"), SWITCHES)
def test_the_first_batch_writes_the_files_that_were_announced(query: str, place: int, found: dict[str, Any]) -> None:
    one = found[query]["switches"][place]
    version, ending = one["before"]["next_version"], {"on": "changelog", "off": "zip"}[one["to"]]
    names = [Path(path).name for path in one["files"] if not Path(path).name.startswith(".")]
    written = Counter(
        name.partition(".")[2] for name in names if name.partition(".")[0].partition("_")[0] == str(version)
    )
    assert written[ending] == len(one["before"]["written"])
    assert set(written) - {f"{ending}.crc"} == {ending}


@pytest.mark.parametrize(("query", "place"), SWITCHES)
def test_after_the_first_batch_and_later_ones_it_took(query: str, place: int, found: dict[str, Any]) -> None:
    one = found[query]["switches"][place]
    for told in (one["after"], one["later"]):
        assert told["outcome"] == "switched"
        assert told["since_version"] == one["before"]["next_version"]
        assert contract.disagreements(told, "migrate changelog") == []
    assert one["again"]["outcome"] == "already"


@pytest.mark.parametrize(("query", "place"), SWITCHES)
def test_state_of_the_batch_before_is_the_same_read_before_and_after(
    query: str, place: int, found: dict[str, Any]
) -> None:
    one = found[query]["switches"][place]
    assert any(rows for _, rows in views(one["state"]))
    assert views(one["state_read_later"]) == views(one["state"])


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_that_was_switched_twice_ends_like_one_that_never_was(query: str, found: dict[str, Any]) -> None:
    assert found[query]["state"]["batch"] == found[query]["control"]["batch"]
    assert any(rows for _, rows in views(found[query]["state"]))
    assert views(found[query]["state"]) == views(found[query]["control"])
