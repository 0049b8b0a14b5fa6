"""Initial state in plain Python: the rows of ``answers.json``, or of Spark's own reader, put together key by key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ckpt.formats.statefiles import SIDES
from ckpt.state.reading.units import StateUnit, UnitKind
from tests.state.export import rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Row = dict[str, Any]
Read = Callable[[StateUnit], list[Row]]
"""The rows of a unit as Spark gives them, those of lists and joins in the order in which they lie."""


def by_key(units: Iterable[StateUnit], read: Read) -> list[Row]:
    """The frame as JSON objects, in no order, from units of one operator."""
    found: dict[str, Row] = {}
    parts = list(units)
    for unit in parts:
        for row in read(unit):
            key = named(row["key"], unit, "key")
            entry = found.setdefault(json.dumps(key), key | {name: _none(kind) for name, kind in _columns(parts)})
            _add(entry, unit, row)
    for entry in found.values():
        for name, value in entry.items():
            if isinstance(value, list) and name in ("timers", "sessions"):
                value.sort(key=lambda one: one["start"] if isinstance(one, dict) else one)
    return list(found.values())


def named(value: Row, unit: StateUnit, top: str) -> Row:
    """The leaves of a struct by their paths, without those that hold nothing, and what only Spark needs."""
    schema: Any = unit.schema
    (kind,) = (field["type"] for field in schema["fields"] if field["name"] == top)
    void = {field["name"] for field in kind["fields"] if field["type"] == "void"}
    hidden = void | {"index", "__event_time", "sessionStartTime"}
    paths = [path for path in rows.all_leaves(value) if path[0] not in hidden]
    return {"_".join(path): rows.leaf(value, path) for path in paths}


def _columns(units: list[StateUnit]) -> list[tuple[str, type]]:
    """Names of the columns that not every key has, and whether one is a list."""
    found: list[tuple[str, type]] = []
    for unit in units:
        match unit.kind:
            case UnitKind.SIDE:
                found.append((str(unit.side), list))
            case UnitKind.TIMERS:
                found.append(("timers", list))
            case UnitKind.LIST | UnitKind.MAP:
                found.append((str(unit.variable), list))
            case UnitKind.VALUE:
                found.append((str(unit.variable), type(None)))
                found += [(f"{unit.variable}_expires_at_ms", type(None))] * unit.ttl
    return found


def _none(kind: type) -> Any:
    return [] if kind is list else None


def _add(entry: Row, unit: StateUnit, row: Row) -> None:
    """Put one row of state where it belongs."""
    match unit.kind:
        case UnitKind.SIDE:
            entry[str(unit.side)].append(row["value"])
        case UnitKind.TIMERS:
            entry["timers"].append(row["expiration_timestamp_ms"])
        case UnitKind.LIST:
            entry[str(unit.variable)].append(_flat_ttl(row["list_element"], unit))
        case UnitKind.MAP:
            value, expiry = _ttl(row["user_map_value"], unit)
            entry[str(unit.variable)].append({"key": row["user_map_key"], "value": value} | expiry)
        case UnitKind.VALUE:
            value, expiry = _ttl(row["value"], unit)
            entry[str(unit.variable)] = value
            entry.update({f"{unit.variable}_{name}": one for name, one in expiry.items()})
        case _ if "sessionStartTime" in row["key"]:
            session = {name: one for name, one in row["value"].items() if name not in row["key"]}
            entry.setdefault("sessions", []).append(session.pop("session_window") | session)
        case _:
            entry.update(
                {name.removeprefix("groupState_"): one for name, one in named(row["value"], unit, "value").items()}
            )


def _ttl(value: Row, unit: StateUnit) -> tuple[Row, Row]:
    return (value["value"], {"expires_at_ms": value["ttlExpirationMs"]}) if unit.ttl else (value, {})


def _flat_ttl(value: Row, unit: StateUnit) -> Row:
    own, expiry = _ttl(value, unit)
    return own | expiry


def as_text(found: Iterable[Row]) -> list[str]:
    """Rows that can be compared; the entries of maps in one order."""
    return sorted(json.dumps(row, sort_keys=True) for row in found)


def wanted_of(sample: str, units: Iterable[StateUnit]) -> list[str]:
    """What ``answers.json`` says of all units of an operator, as text that can be compared with ``found_in``."""
    return _in_no_order(by_key(units, lambda unit: rows.answer(sample, unit)))


def found_in(frame: DataFrame) -> list[str]:
    """A frame as text: without whether rows of a join matched, and with lists in no order: the answers lack both."""
    found = [json.loads(line) for line in rows.content(frame)]
    for entry in found:
        for side in SIDES:
            for row in entry.get(side, ()):
                assert row.pop("matched") in (True, False)
    return _in_no_order(found)


def _in_no_order(found: list[Row]) -> list[str]:
    for row in found:
        for value in row.values():
            if isinstance(value, list):
                value.sort(key=lambda one: json.dumps(one, sort_keys=True))
    return as_text(found)
