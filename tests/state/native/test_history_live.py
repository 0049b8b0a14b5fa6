"""``ckpt state history`` of twelve real queries whose history is known, and as Spark's own reader has each state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.state.native.history import StateHistory, state_history
from ckpt.versions import Spark
from tests.state.native import lives

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lives.write_script(tmp_path_factory.mktemp("lives") / "script")


@pytest.mark.parametrize("name", lives.LIVES)
def test_a_key_that_comes_goes_and_comes_again(name: str, script: Path, spark: Any, tmp_path: Path) -> None:
    life = lives.LIVES[name]
    if not Spark(spark.version[:3]).at_least(Spark(life.since)):
        pytest.skip(f"Spark {spark.version} has no such query")
    path = str(lives.run(spark, life, script, tmp_path / name))
    for part, known in life.known:
        history = state_history(path, key={_key_column(path, part): "a"}, limit=100, **part)
        assert [(event.batch, event.change, event.cause) for event in history.events] == list(known), part
        assert history.known_after is None
        assert history.unknown == ()
        assert all(event.certain_batch for event in history.events)
        assert not history.first_rows
        newest = max(event.batch for event in history.events)
        assert lives.follow(history, newest) == sorted(
            json.dumps(row, sort_keys=True, default=str) for row in history.rows
        )
        _compare_with_spark(spark, path, part, history)


def _key_column(path: str, part: Mapping[str, Any]) -> str:
    columns = ckpt.state_show(path, **part).columns
    return next(column.name for column in columns if column.type == "string" and column.path[0] == "key")


def _compare_with_spark(spark: Any, path: str, part: Mapping[str, Any], history: StateHistory) -> None:
    """Two states in the middle, as Spark reads them: the key as long as it is there, and gone."""
    for batch in (1, 3):
        frame = ckpt.read_state(path, session=spark, batch=batch, **part)
        name = _key_column(path, part)
        count = frame.where(frame[name] == "a").count()
        assert count == len(lives.follow(history, batch)), (part, batch)
