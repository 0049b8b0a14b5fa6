"""Operator metadata of both versions."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ckpt.formats.operators import parse_operator_metadata
from ckpt.model import Fault, OperatorMetadata, StateVariable, StoreMetadata, Unreadable

INFO = {"operatorId": 0, "operatorName": "transformWithStateExec"}
STORE: dict[str, Any] = {"storeName": "default", "numColsPrefixKey": 0, "numPartitions": 5}
PATH = "file:/q/state/0/_stateSchema/default/0_ab"
PROPERTIES = {
    "timeMode": "ProcessingTime",
    "outputMode": "Append",
    "stateVariables": [
        {"stateName": "counts", "stateVariableType": "MapState", "ttlEnabled": True},
        {"stateName": "$procTimers_keyToTimestamp", "stateVariableType": "TimerState", "ttlEnabled": False},
        {"stateName": 7},
        "nonsense",
    ],
}


def parse(version: str, value: Any) -> OperatorMetadata | Unreadable:
    return parse_operator_metadata("m", version.encode() + b"\n" + json.dumps(value).encode())


def test_version_1() -> None:
    info = {"operatorId": 1, "operatorName": "symmetricHashJoin"}
    stores = [STORE | {"storeName": name} for name in ("left", "right")]
    assert parse("v1", {"operatorInfo": info, "stateStoreInfo": stores}) == OperatorMetadata(
        1, 1, "symmetricHashJoin", (StoreMetadata("left", 0, 5), StoreMetadata("right", 0, 5))
    )


@pytest.mark.parametrize("key", [{"stateSchemaFilePaths": [PATH]}, {"stateSchemaFilePath": PATH}])
def test_version_2_names_variables_and_schema_files(key) -> None:
    found = parse(
        "v2",
        {"operatorInfo": INFO, "stateStoreInfo": [STORE | key], "operatorPropertiesJson": json.dumps(PROPERTIES)},
    )

    assert isinstance(found, OperatorMetadata)
    assert found.stores[0].schema_paths == (PATH,)
    assert found.properties == PROPERTIES
    assert found.variables == (
        StateVariable("counts", "MapState", True),
        StateVariable("$procTimers_keyToTimestamp", "TimerState", False),
    )


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "7", None, 7, []])
def test_properties_that_cannot_be_read_are_none_or_what_they_are(text) -> None:
    found = parse("v2", {"operatorInfo": INFO, "stateStoreInfo": [], "operatorPropertiesJson": text})

    assert isinstance(found, OperatorMetadata)
    assert found.properties == (7 if text == "7" else None)
    assert found.variables == ()


@pytest.mark.parametrize(
    ("data", "fault", "version"),
    [
        (b"", Fault.EMPTY, None),
        (b"\n \n", Fault.EMPTY, None),
        (b"hello", Fault.BAD_VERSION, None),
        (b"v\n{}", Fault.BAD_VERSION, None),
        (b"v0\n{}", Fault.BAD_VERSION, 0),
        (b"v9\n{}", Fault.NEWER_VERSION, 9),
        (b"v1", Fault.INCOMPLETE, 1),
        (b"v1\n", Fault.INCOMPLETE, 1),
        (b'v1\n{"operatorInfo":{"oper', Fault.TRUNCATED_JSON, 1),
        (b'v1\n{"operatorInfo":', Fault.TRUNCATED_JSON, 1),
        (b"v1\n{nonsense}", Fault.BAD_JSON, 1),
        (b"v1\n{}", Fault.BAD_JSON, 1),
        (b"v1\n[]", Fault.BAD_JSON, 1),
        (b"v1\n\xff\xfe", Fault.BAD_JSON, 1),
        (b"v1\n" + b"[" * 200_000, Fault.BAD_JSON, 1),
        (b'v1\n{"operatorInfo":{"operatorId":true,"operatorName":"x"},"stateStoreInfo":[]}', Fault.BAD_JSON, 1),
    ],
)
def test_what_cannot_be_read(data, fault, version) -> None:
    found = parse_operator_metadata("m", data)
    assert isinstance(found, Unreadable)
    assert (found.fault, found.version) == (fault, version)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*STORE, *INFO, "x"]), inner),
    max_leaves=8,
)


@given(json_values, json_values, json_values)
def test_no_shape_raises(info, stores, properties) -> None:
    parse("v2", {"operatorInfo": info, "stateStoreInfo": stores, "operatorPropertiesJson": properties})
    parse("v2", {"operatorInfo": INFO, "stateStoreInfo": [info, stores]})
