"""The frame of initial state without Spark: for every operator of every sample what its units say together."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

import ckpt
from ckpt.errors import UsageError
from ckpt.formats.rows.types import arrow_type
from ckpt.formats.statefiles import SIDES
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.initial import plan_initial_state
from ckpt.state.reading.reading import StateRequest
from tests.state.export import grouped, rows
from tests.state.native.values import rows_of
from tests.support.places import SAMPLES


@pytest.mark.parametrize(("sample", "operator"), rows.every_operator())
def test_every_key_has_all_its_state_and_nothing_else(sample: str, operator: int) -> None:
    path = str(SAMPLES / sample)
    units = rows.units_of(path, operator)

    table = ckpt.read_state_arrow(path, shape="initial-state", operator=operator)

    plan = plan_initial_state(StateRequest(path, RequestedPart(operator)))
    columns = [*plan.shape.keys, *plan.shape.state]
    assert table.column_names == [column.name for column in columns]
    assert [field.type for field in table.schema] == [arrow_type(column.type) for column in columns]
    found = [json.loads(row) for row in rows_of(table)]
    for entry in found:  # the answers do not say whether rows of a join matched
        for side in SIDES:
            assert all(row.pop("matched") in (True, False) for row in entry.get(side, ()))
        for value in entry.values():
            if isinstance(value, list):
                value.sort(key=lambda one: json.dumps(one, sort_keys=True))
    assert grouped.as_text(found) == grouped.wanted_of(sample, units)


@pytest.mark.parametrize("sample", ["tws-event-time-changelog-4.2", "tws-rocksdb-4.2"])
def test_arrays_are_in_order(sample: str) -> None:
    table = ckpt.read_state_arrow(str(SAMPLES / sample), shape="initial-state")
    longest = 0
    for row in table.to_pylist():
        for one, other in pairwise(row.get("parity", ())):
            assert str(one["key"]) < str(other["key"])
        timers = row.get("timers", [])
        longest = max(longest, len(timers))
        assert timers == sorted(timers)
    assert longest > 1


def test_one_operator_at_a_time() -> None:
    with pytest.raises(UsageError, match=r"choose one operator: `operator=0` \(stateStoreSave\), `operator=1`"):
        ckpt.read_state_arrow(str(SAMPLES / "dedup-aggregation-hdfs-4.2"), shape="initial-state")
