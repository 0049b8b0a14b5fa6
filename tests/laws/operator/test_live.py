"""Some seeds again, with the Spark that is installed: they end as recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.laws.operator import recorder
from tests.laws.operator.recorder import Incident, Worlds
from tests.laws.operator.seeds import make_seed
from tests.live.kafka.cases import Broker

pytestmark = pytest.mark.spark

SEEDS = (21, 30, 52, 94, 95, 147, 153, 159, 173, 203, 209, 213, 273, 290, 312)
"""Seeds of four kinds of queries, whose starts are quick."""


@pytest.fixture(scope="module")
def worlds(spark: Any, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    return Worlds(spark, tmp_path_factory.mktemp("worlds"), lambda: Broker(request.getfixturevalue("kafka")))


@pytest.mark.parametrize("number", SEEDS)
def test_a_seed_ends_as_recorded(number: int, worlds: Worlds, tmp_path: Path) -> None:
    recorded = recorder.read()[number]["asked"]
    document = Incident(worlds, make_seed(number), tmp_path).follow(asked=True).as_json()
    assert {key: document[key] for key in ("class", "counted")} == {key: recorded[key] for key in ("class", "counted")}
