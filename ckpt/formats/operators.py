"""Operator metadata: ``state/<op>/_metadata/metadata`` (v1) and ``state/<op>/_metadata/v2/<batch>`` (v2).

Spark >= 4.0, ``OperatorStateMetadataV1`` and ``V2``: a version line, then JSON. Version 2 is written for
transformWithState and adds ``operatorPropertiesJson`` and the absolute paths of the schema files.
"""

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from ckpt.model import Fault, Json, OperatorMetadata, StateVariable, StoreMetadata, Unreadable

NEWEST_VERSION = 2
"""The highest version line that a known Spark writes."""

_Value = TypeVar("_Value")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.S)


class OperatorName(StrEnum):
    """The names of stateful operators of the known Spark versions (``StatefulOperator.shortName``)."""

    AGGREGATION = "stateStoreSave"
    REAL_TIME_AGGREGATION = "StatefulStreamlineAggregate"  # what real-time mode calls it, with the same state
    SESSIONS = "sessionWindowStateStoreSaveExec"
    DEDUPLICATION = "dedupe"
    DEDUPLICATION_WITHIN_WATERMARK = "dedupeWithinWatermark"
    JOIN = "symmetricHashJoin"
    LIMIT = "globalLimit"
    GROUPS = "flatMapGroupsWithState"  # and mapGroupsWithState
    GROUPS_IN_PANDAS = "applyInPandasWithState"
    TRANSFORM = "transformWithStateExec"
    TRANSFORM_IN_PANDAS = "transformWithStateInPandasExec"
    TRANSFORM_IN_PYTHON = "transformWithStateInPySparkExec"
    OTHER = "defaultName"


TTL = "ttlExpirationMs"  # Spark wraps a value that has a time to live: {value, ttlExpirationMs}
TIMERS = "TimerState"  # the kind under which Spark names the timers among the state variables
OPERATORS = frozenset(OperatorName)
AGGREGATIONS = frozenset({OperatorName.AGGREGATION, OperatorName.REAL_TIME_AGGREGATION})
TRANSFORM_WITH_STATE = frozenset(name for name in OperatorName if name.startswith("transformWithState"))
IN_PYTHON = frozenset({OperatorName.TRANSFORM_IN_PANDAS, OperatorName.TRANSFORM_IN_PYTHON})
"""Operators with one form of state, whose functions get pandas frames or rows."""
RUN_FUNCTIONS = TRANSFORM_WITH_STATE | {OperatorName.GROUPS, OperatorName.GROUPS_IN_PANDAS}
"""Operators whose state is what code of users makes of it."""
BY_WHOLE_KEY = frozenset(
    {
        *AGGREGATIONS,
        OperatorName.DEDUPLICATION,
        OperatorName.DEDUPLICATION_WITHIN_WATERMARK,
        OperatorName.GROUPS,
        OperatorName.GROUPS_IN_PANDAS,
    }
)
"""Operators whose rows are spread over partitions by all of the key that is stored."""


def micro_batch_name(name: str | None) -> str | None:
    """The name that micro-batches give an operator: Spark 4.3 takes that of real-time mode for it."""
    return OperatorName.AGGREGATION if name == OperatorName.REAL_TIME_AGGREGATION else name


def parse_operator_metadata(path: str, data: bytes) -> OperatorMetadata | Unreadable:
    """Read one file of operator metadata."""
    if not data.strip():
        return Unreadable(path, Fault.EMPTY, "the file is empty")
    line, separator, body = data.partition(b"\n")
    line = line.strip()
    if not (line[:1] == b"v" and line[1:].isdigit() and len(line) < 10):
        return Unreadable(path, Fault.BAD_VERSION, "its first line is not a version")
    version = int(line[1:])
    if not 1 <= version <= NEWEST_VERSION:
        fault = Fault.NEWER_VERSION if version else Fault.BAD_VERSION
        return Unreadable(path, fault, f"its version line is v{version}", version)
    if not separator or not body.strip():
        return Unreadable(path, Fault.INCOMPLETE, "nothing follows its version line", version)
    try:
        return _record(version, json.loads(body.decode()))
    except (KeyError, TypeError):
        return Unreadable(path, Fault.BAD_JSON, "its JSON is not what Spark writes", version)
    except json.JSONDecodeError as error:
        if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string"):
            return Unreadable(path, Fault.TRUNCATED_JSON, "its JSON stops before its end", version)
        return Unreadable(path, Fault.BAD_JSON, "its second line is not JSON", version)
    except (ValueError, RecursionError):
        return Unreadable(path, Fault.BAD_JSON, "its second line is not JSON", version)


def format_operator_metadata(metadata: OperatorMetadata) -> bytes:
    """The bytes of ``_metadata/metadata`` (v1): those that Spark writes."""
    value = {
        "operatorInfo": {"operatorId": metadata.operator_id, "operatorName": metadata.name},
        "stateStoreInfo": [
            {
                "storeName": store.name,
                "numColsPrefixKey": store.num_cols_prefix_key,
                "numPartitions": store.partitions,
            }
            for store in metadata.stores
        ],
    }
    return f"v1\n{json.dumps(value, separators=(',', ':'), ensure_ascii=False)}".encode()


def replace_schema_paths(data: bytes, paths: Mapping[str, str]) -> bytes:
    """Return a file of operator metadata with other schema paths, and otherwise unchanged byte for byte.

    ``paths`` has the new path of each recorded one that changes. Spark reads a path as Hadoop's ``Path`` takes it,
    without percent-decoding, and writes it as Jackson does: everything but quotes, backslashes and controls as it is.
    Raises UnicodeEncodeError for a new path that is no Unicode text: Spark could not write it either.
    """

    def changed(string: re.Match[str]) -> str:
        new = paths.get(json.loads(string[0]))
        return string[0] if new is None else json.dumps(new, ensure_ascii=False)

    return _STRING.sub(changed, data.decode()).encode()


def rename_variables(data: bytes, names: Mapping[str, str | None]) -> bytes:
    """A file of operator metadata whose state variables have other names; one that has None is left out.

    Raises ValueError where it is no JSON of operator metadata.
    """
    line, _, body = data.partition(b"\n")
    record = json.loads(body)
    if not record.get("operatorPropertiesJson"):
        return data
    properties = json.loads(record["operatorPropertiesJson"])
    variables = properties.get("stateVariables", [])
    renamed = ({**each, "stateName": names.get(each["stateName"], each["stateName"])} for each in variables)
    properties["stateVariables"] = [each for each in renamed if each["stateName"] is not None]
    record["operatorPropertiesJson"] = json.dumps(properties, separators=(",", ":"), ensure_ascii=False)
    return line + b"\n" + json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


def restate_operator(data: bytes, name: str, modes: Mapping[str, str]) -> bytes:
    """A file of operator metadata with another name and other modes, such as ``timeMode``. Raises as above."""
    line, _, body = data.partition(b"\n")
    record = json.loads(body)
    record["operatorInfo"]["operatorName"] = name
    properties = {**json.loads(record.get("operatorPropertiesJson") or "{}"), **modes}
    record["operatorPropertiesJson"] = json.dumps(properties, separators=(",", ":"), ensure_ascii=False)
    return line + b"\n" + json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


def _record(version: int, value: Json) -> OperatorMetadata:
    """Build the record. Raises KeyError or TypeError where the JSON is of another shape."""
    value = expect_type(dict, value)
    operator = expect_type(dict, value["operatorInfo"])
    properties = _properties(value.get("operatorPropertiesJson"))
    return OperatorMetadata(
        version=version,
        operator_id=expect_type(int, operator["operatorId"]),
        name=expect_type(str, operator["operatorName"]),
        stores=tuple(_store(store) for store in expect_type(list, value["stateStoreInfo"])),
        properties=properties,
        variables=list_variables(properties),
    )


def _store(value: Json) -> StoreMetadata:
    """Read one entry of ``stateStoreInfo``; before Spark 4.0.0 was released it named one schema file only."""
    value = expect_type(dict, value)
    paths = value.get("stateSchemaFilePaths")
    if paths is None and "stateSchemaFilePath" in value:
        paths = [value["stateSchemaFilePath"]]
    return StoreMetadata(
        name=expect_type(str, value["storeName"]),
        num_cols_prefix_key=expect_type(int, value["numColsPrefixKey"]),
        partitions=expect_type(int, value["numPartitions"]),
        schema_paths=tuple(expect_type(str, path) for path in expect_type(list, paths or [])),
    )


def _properties(text: Json) -> Json:
    """Read ``operatorPropertiesJson``, which is JSON in a string; None where it says nothing readable."""
    if not isinstance(text, str) or not text:
        return None
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def list_variables(properties: Json) -> tuple[StateVariable, ...]:
    """Read the state variables of a transformWithState operator (Spark ``TransformWithStateVariableInfo``)."""
    listed = properties.get("stateVariables") if isinstance(properties, dict) else None
    variables = []
    for item in listed if isinstance(listed, list) else ():
        if not isinstance(item, dict):
            continue
        name, kind = item.get("stateName"), item.get("stateVariableType")
        if isinstance(name, str) and isinstance(kind, str):
            variables.append(StateVariable(name, kind, item.get("ttlEnabled") is True))
    return tuple(variables)


def expect_type(kind: type[_Value], value: Json) -> _Value:
    """Return ``value`` if it is of that type. Raises TypeError."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError
    return value
