"""The frame of initial state as it is planned, without a JVM: columns, refusals, pages."""

from __future__ import annotations

from typing import Any

import pytest

from ckpt.errors import UsageError
from ckpt.formats.types import struct_of
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.columns import Dropped, Holds, Names
from ckpt.state.reading.initial import InitialColumn, keys_of, plan_initial_state, plan_initial_states, state_of
from ckpt.state.reading.reading import StateRequest
from ckpt.state.reading.units import UnitKind, state_units
from tests.commands import contract
from tests.conftest import Ckpt
from tests.state.export import rows
from tests.support.places import SAMPLES

VARIABLES = [
    ("recent", Holds.LIST),
    ("last", Holds.VALUE),
    ("last_expires_at_ms", Holds.EXPIRY),
    ("recentTtl", Holds.LIST),
    ("parity", Holds.MAP),
    ("parityTtl", Holds.MAP),
    ("rows", Holds.VALUE),
    ("timers", Holds.TIMERS),
]
AGGREGATION = (["key"], [("count", Holds.BUFFER), ("sum", Holds.BUFFER)])
STATE = [("rows", Holds.STATE), ("last", Holds.STATE), ("timeoutTimestamp", Holds.TIMEOUT)]
SHAPES: dict[str, tuple[list[str], list[tuple[str, Holds]]]] = {
    "aggregation": AGGREGATION,
    "real-time-aggregation": (["digit"], [("count", Holds.BUFFER)]),
    "windowed": (["window_start", "window_end", "key"], AGGREGATION[1]),
    "dedup-changelog": (["key"], []),
    "dedup-hdfs": (["key"], []),
    "dedup-within": (["key"], [("expiresAtMicros", Holds.EXPIRY)]),
    "pandas": (["key"], STATE),
    "session": (["key"], [("sessions", Holds.SESSIONS)]),
    "join": (["field0"], [("left", Holds.ROWS), ("right", Holds.ROWS)]),
    "limit": ([], [("value", Holds.BUFFER)]),
    "tws-event-time": (["key"], [("rows", Holds.VALUE), ("timers", Holds.TIMERS)]),
    "tws": (["key"], VARIABLES),
}


def plan(sample: str, **words: Any) -> Any:
    return plan_initial_state(StateRequest(str(SAMPLES / sample), **words))


@pytest.mark.parametrize("sample", [name for name in rows.ANSWERS if name != "dedup-aggregation-hdfs-4.2"])
def test_columns_of_each_kind_of_operator(sample: str) -> None:
    keys, state = next(shape for start, shape in SHAPES.items() if sample.startswith(start))
    shape = plan(sample).shape
    assert [column.name for column in shape.keys] == keys
    assert all(column.holds is Holds.KEY for column in shape.keys)
    assert [(column.name, column.holds) for column in shape.state] == state


@pytest.mark.parametrize("sample", rows.ANSWERS)
def test_key_types_are_those_of_the_state_schema(sample: str) -> None:
    """Never widened: a bigint that meets a string in another query raises no error, and splits the key."""
    for initial in plan_initial_states(StateRequest(str(SAMPLES / sample), all_units=True)):
        for key in initial.shape.keys:
            kind: Any = initial.readings[0].unit.schema
            for name in key.path:
                kind = next(field["type"] for field in kind["fields"] if field["name"] == name)
            assert key.type == kind


def test_what_spark_is_told() -> None:
    """Lists and maps come as one row, rows of a join with their index and match, sessions as they are."""
    variables = plan("tws-changelog-4.0")
    flattened = [reading.options.get("flattenCollectionTypes") for reading in variables.readings]
    kinds = [reading.unit.kind for reading in variables.readings]
    assert [kind in (UnitKind.LIST, UnitKind.MAP) for kind in kinds] == [told == "false" for told in flattened]
    stores = [reading.options["storeName"] for reading in plan("join-v4-changelog-4.3").readings]
    assert stores == ["left-keyWithTsToValues", "right-keyWithTsToValues"]
    assert [dropped.path for dropped in plan("join-v4-changelog-4.3").shape.dropped] == [("key", "__event_time")]
    assert plan("session-window-hdfs-3.5").readings[0].options.keys() == {"operatorId", "batchId"}


@pytest.mark.parametrize(
    ("sample", "grouped"),
    [
        ("aggregation-hdfs-4.2", False),
        ("dedup-hdfs-4.0", False),
        ("pandas-with-state-changelog-4.2", False),
        ("session-window-changelog-4.2", True),
        ("join-hdfs-3.5", True),
        ("tws-event-time-changelog-4.2", True),
    ],
)
def test_rows_are_brought_together_only_where_a_key_has_several(sample: str, grouped: bool) -> None:
    assert plan(sample).grouped is grouped


def columns(schema: Any, **changed: Any) -> tuple[list[str], list[Any]]:
    """Names of keys, and columns of the state of an aggregation with another state schema."""
    from dataclasses import replace

    import ckpt

    (unit,) = state_units(ckpt.open_checkpoint(str(SAMPLES / "aggregation-hdfs-4.2")))
    unit = replace(unit, schema=schema, **changed)
    names = Names()
    keys = [found.name for found in keys_of(unit, names) if isinstance(found, InitialColumn)]
    return keys, [found for found in state_of(unit, names) if not isinstance(found, Dropped)]


WINDOW = struct_of([("start", "timestamp"), ("end", "timestamp")])


def entry(key: list[tuple[str, Any]], value: list[tuple[str, Any]]) -> Any:
    return struct_of([("key", struct_of(key)), ("value", struct_of(value))])


def test_names_are_unique_whatever_they_are() -> None:
    keys, state = columns(
        entry([("Count", "long"), ("a,b", "string")], [("count", "long"), ("sum", "long"), ("sum", "double")])
    )
    assert keys == ["Count", "a_b"]
    assert [(column.name, column.type) for column in state] == [
        ("count_2", "long"),
        ("sum", "long"),
        ("sum_2", "double"),
    ]


def test_a_session_between_two_keys_with_buffers_named_like_keys() -> None:
    """As Spark 4.2 keeps ``groupBy("a", session_window(...), "b").agg(sum("a"), ...)``."""
    key = [("a", "long"), ("b", "long"), ("sessionStartTime", "timestamp")]
    value = [("a", "long"), ("session_window", WINDOW), ("b", "long"), ("sum", "long"), ("sum", "long"), ("a", "long")]
    keys, (sessions,) = columns(entry(key, value))
    assert keys == ["a", "b"]
    assert [(column.name, column.places) for column in sessions.inner] == [
        ("start", (1, 1, 0)),
        ("end", (1, 1, 1)),
        ("sum", (1, 3)),
        ("sum_2", (1, 4)),
        ("a", (1, 5)),
    ]


def test_a_grouping_column_that_is_only_called_like_the_start_of_a_session() -> None:
    keys, state = columns(entry([("sessionStartTime", "timestamp")], [("count", "long")]), operator_name=None)
    assert keys == ["sessionStartTime"]
    assert [(column.name, column.holds) for column in state] == [("count", Holds.BUFFER)]


def test_state_of_scala_that_is_no_struct() -> None:
    value = [("groupState", struct_of([("value", "long")])), ("timeoutTimestamp", "integer")]
    for name in ("flatMapGroupsWithState", None):
        _, state = columns(entry([("value", "string")], value), operator_name=name)
        assert [(column.name, column.holds) for column in state] == [
            ("value_2", Holds.STATE),
            ("timeoutTimestamp", Holds.TIMEOUT),
        ]


def test_an_expiry_beside_a_field_of_that_name() -> None:
    element = struct_of([("value", struct_of([("expires_at_ms", "long")])), ("ttlExpirationMs", "long")])
    schema = struct_of([("key", struct_of([("list", "string")])), ("list_element", element)])
    keys, (found,) = columns(schema, kind=UnitKind.LIST, variable="list", ttl=True)
    assert keys == ["list"]
    assert found.name == "list_2"
    assert [(part.name, part.path) for part in found.inner] == [
        ("expires_at_ms", ("value", "expires_at_ms")),
        ("expires_at_ms_2", ("ttlExpirationMs",)),
    ]


@pytest.mark.parametrize(
    "wanted",
    [
        RequestedPart(store="default"),
        RequestedPart(side="left"),
        RequestedPart(variable="rows"),
        RequestedPart(timers=True),
    ],
)
def test_parts_are_refused(wanted: RequestedPart) -> None:
    with pytest.raises(UsageError, match="all state of an operator: leave out `store`"):
        plan("tws-rocksdb-4.2", wanted=wanted)


def test_one_operator_at_a_time() -> None:
    with pytest.raises(UsageError, match=r"`operator=0` \(stateStoreSave\), `operator=1` \(dedupe\)$"):
        plan("dedup-aggregation-hdfs-4.2")
    assert plan("dedup-aggregation-hdfs-4.2", wanted=RequestedPart(operator=1)).shape.operator_name == "dedupe"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--variable", "rows"), "leave out --store, --side, --variable, --timers and --changes-from"),
        (("--changes-from", "1"), "leave out --store, --side, --variable, --timers and --changes-from"),
        (("--partition-id",), "--partition-id"),
        (("--operator", "3"), "there is no --operator 3"),
        (("--batch", "99"), "99"),
    ],
)
def test_refusals_are_one_line(words: tuple[str, ...], says: str, ckpt: Ckpt) -> None:
    result = ckpt("export-state", "sample_checkpoints/tws-rocksdb-4.2", "--shape", "initial-state", "--plan", *words)
    assert result.exit_code == 2
    assert says in result.refusal()


@pytest.mark.parametrize("sample", rows.ANSWERS)
def test_a_plan_is_told_as_published(sample: str, ckpt: Ckpt) -> None:
    path = f"sample_checkpoints/{sample}"
    result = ckpt("export-state", path, "--shape", "initial-state", "--plan", "--all-units", "-o", "json")
    if result.exit_code == 3:
        assert "Spark can read since" in result.refusal()
        return
    document = result.json()
    assert contract.disagreements(document, "export-state") == []
    for one in document["exports"]:
        assert (one["shape"], one["kind"], one["side"], one["variable"]) == ("initial-state", "key", None, None)
        assert one["options"] == {"operatorId": str(one["operator"]["id"]), "batchId": str(one["batch"])}
        assert all(column["holds"] for column in one["columns"])
