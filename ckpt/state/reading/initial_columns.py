"""The columns of the frame of initial state: what each holds, and where Spark's reader gives it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ckpt.formats.operators import OperatorName
from ckpt.formats.types import array_of, fields_of, name_and_type, struct_of, type_at, type_named
from ckpt.model import Json
from ckpt.state.reading.columns import (
    BLURRED,
    TTL,
    Column,
    Dropped,
    Holds,
    Names,
    explain_left_out,
    find_blurred,
    walk_leaves,
)
from ckpt.state.reading.units import StateUnit, UnitKind

EXPIRES = "expires_at_ms"
_GROUP_STATE = "groupState"  # of mapGroupsWithState and its kin (``FlatMapGroupsWithStateExecHelper``)
_TIMEOUT = "timeoutTimestamp"
_EXPIRES_MICROS = "expiresAtMicros"  # of dropDuplicatesWithinWatermark
_SESSION_START = "sessionStartTime"  # ends the key of session windows (``StreamingSessionWindowStateManager``)


@dataclass(frozen=True, slots=True)
class InitialColumn:
    """A column of the DataFrame, and where its content is read. Arrays are empty, never NULL, for a key without."""

    name: str
    holds: Holds
    type: Json  # of the column, in Spark's JSON; what is nullable in it is not settled
    path: tuple[str, ...]  # where Spark gives it
    places: tuple[int, ...]  # the same by position
    variable: str | None = None
    side: str | None = None
    ttl: bool = False  # the last field of each struct in the array is the expiry; or the next column is
    reading: int = 0  # which reading of the plan gives it: keys are given by all
    inner: tuple[Column, ...] = ()  # of an array of structs: its fields, placed from the row or the element

    @property
    def column(self) -> Column:
        """The column as exports describe it."""
        return Column(self.name, self.path, self.places, self.type, self.holds)

    @property
    def gathered(self) -> bool:
        """True if each row that is read is one element of the array."""
        return self.holds in (Holds.TIMERS, Holds.SESSIONS, Holds.ROWS)


def keys_of(unit: StateUnit, names: Names) -> Iterator[InitialColumn | Dropped]:
    """The leaves of the grouping key; of session windows without the session."""
    key = type_at(unit.schema, (0,))
    without = len(fields_of(key) or ()) - 1 if _session_place(unit) is not None else None
    for path, places, kind in walk_leaves(key, ("key",), (0,)):
        why = explain_left_out(path, kind)
        if why is not None:
            yield Dropped(path, why)
        elif places[1] != without:
            yield InitialColumn(names.free(path[1:]), Holds.KEY, kind, path, places)
    yield from (Dropped(path, BLURRED) for path, _ in find_blurred(key, ("key",), (0,)))


def state_of(unit: StateUnit, names: Names) -> Iterator[InitialColumn | Dropped]:
    """Return what a unit holds for a key, apart from the key."""
    match unit.kind:
        case UnitKind.SIDE:
            yield from _rows(unit, names)
        case UnitKind.VALUE | UnitKind.LIST | UnitKind.MAP:
            yield from _variable(unit, names)
        case UnitKind.TIMERS:
            name = names.free(("timers",))
            yield InitialColumn(name, Holds.TIMERS, array_of("long"), ("expiration_timestamp_ms",), (1,))
        case _ if (session := _session_place(unit)) is not None:
            yield from _sessions(unit, session, names)
        case _:
            for path, places, kind in walk_leaves(type_at(unit.schema, (1,)), ("value",), (1,)):
                why = explain_left_out(path, kind, only_keys=unit.kind is UnitKind.DEDUPLICATION)
                holds = _holds(unit, path)
                start = 2 if holds is Holds.STATE and path[1] == _GROUP_STATE and len(path) > 2 else 1
                yield (
                    InitialColumn(names.free(path[start:]), holds, kind, path, places)
                    if why is None
                    else Dropped(path, why)
                )
            if unit.kind is not UnitKind.DEDUPLICATION:
                yield from (
                    Dropped(path, BLURRED) for path, _ in find_blurred(type_at(unit.schema, (1,)), ("value",), (1,))
                )


def _holds(unit: StateUnit, path: tuple[str, ...]) -> Holds:
    """Return the meaning of a leaf of a value; Spark before 4.0 recorded no name of its operator."""
    name, fields = unit.operator_name, fields_of(type_at(unit.schema, (1,))) or []
    with_state = "WithState" in name if name else type_named(type_at(unit.schema, (1,)), _GROUP_STATE) is not None
    if with_state:
        return Holds.TIMEOUT if path == ("value", _TIMEOUT) else Holds.STATE
    deduplicates = name == OperatorName.DEDUPLICATION_WITHIN_WATERMARK if name else len(fields) == 1
    return Holds.EXPIRY if deduplicates and path == ("value", _EXPIRES_MICROS) else Holds.BUFFER


def _variable(unit: StateUnit, names: Names) -> Iterator[InitialColumn]:
    """A variable of transformWithState, as Spark gives it: value, list_element, or user_map_key and user_map_value."""
    variable, ttl = unit.variable or "", unit.ttl
    held = type_at(unit.schema, (2 if unit.kind is UnitKind.MAP else 1,))
    own = type_named(held, "value") if ttl else held
    name = names.free((variable,))
    if unit.kind is UnitKind.VALUE:
        path = ("value", "value") if ttl else ("value",)
        yield InitialColumn(name, Holds.VALUE, own, path, (1, 0)[: len(path)], variable, ttl=ttl)
        if ttl:
            free = names.free((f"{variable}_{EXPIRES}",))
            yield InitialColumn(free, Holds.EXPIRY, "long", ("value", TTL), (1, 1), variable, ttl=True)
    elif unit.kind is UnitKind.LIST:
        inner = _fields(own, ("value",) if ttl else (), (0,) if ttl else ())
        if ttl:
            taken = Names(column.name for column in inner)
            inner.append(Column(taken.free((EXPIRES,)), (TTL,), (1,), "long"))
        yield InitialColumn(
            name, Holds.LIST, _array(inner), ("list_value",), (1,), variable, None, ttl, 0, tuple(inner)
        )
    else:
        inner = [Column("key", ("key",), (0,), type_at(unit.schema, (1,)))]
        inner.append(Column("value", ("value", "value") if ttl else ("value",), (1, 0) if ttl else (1,), own))
        if ttl:
            inner.append(Column(EXPIRES, ("value", TTL), (1, 1), "long"))
        yield InitialColumn(name, Holds.MAP, _array(inner), ("map_value",), (1,), variable, None, ttl, 0, tuple(inner))


def _rows(unit: StateUnit, names: Names) -> Iterator[InitialColumn | Dropped]:
    """The rows of a join side, with ``matched`` where that is stored."""
    value = type_at(unit.buffer.schema if unit.buffer else unit.schema, (1,))
    own, inner = Names(), []
    for column in _fields(value, ("value",), (1,)):
        why = explain_left_out(column.path, column.type)
        if why is None:
            inner.append(replace(column, name=own.free(column.path[1:])))
        else:
            yield Dropped(column.path, why)
    free = names.free((unit.side or "",))
    yield InitialColumn(free, Holds.ROWS, _array(inner), ("value",), (1,), side=unit.side, inner=tuple(inner))


def _session_place(unit: StateUnit) -> int | None:
    """The position of a session window among the grouping columns, with which its value begins; None for no session."""
    if unit.kind is not UnitKind.KEY:
        return None
    value = type_at(unit.schema, (1,))
    keys, values = _names(type_at(unit.schema, (0,))), _names(value)
    if not keys or keys[-1] != _SESSION_START:
        return None
    for ordinal in range(len(keys)):
        others = values[:ordinal] + values[ordinal + 1 : len(keys)]
        if others == keys[:-1] and _names(type_at(value, (ordinal,))) == ["start", "end"]:
            return ordinal
    return None


def _sessions(unit: StateUnit, session: int, names: Names) -> Iterator[InitialColumn | Dropped]:
    """All sessions of a key: start, end, buffers."""
    value, grouping = type_at(unit.schema, (1,)), len(fields_of(type_at(unit.schema, (0,))) or ())
    own, inner = Names(), []
    for path, places, kind in walk_leaves(value, ("value",), (1,)):
        why = explain_left_out(path, kind)
        if places[1] < grouping and places[1] != session:
            continue
        if why is not None:
            yield Dropped(path, why)
        else:
            inner.append(Column(own.free(path[2:] if places[1] == session else path[1:]), path, places, kind))
    yield from (Dropped(path, BLURRED) for path, at in find_blurred(value, ("value",), (1,)) if at[1] >= grouping)
    inner.sort(key=lambda column: column.places[1] != session)
    yield InitialColumn(names.free(("sessions",)), Holds.SESSIONS, _array(inner), ("value",), (1,), inner=tuple(inner))


def _names(kind: Json) -> list[str]:
    return [name_and_type(field)[0] for field in fields_of(kind) or ()]


def _fields(kind: Json, path: tuple[str, ...], places: tuple[int, ...]) -> list[Column]:
    """The fields of a struct, each as it is."""
    columns = []
    for ordinal, field in enumerate(fields_of(kind) or ()):
        name = name_and_type(field)[0]
        columns.append(Column(name, (*path, name), (*places, ordinal), type_at(kind, (ordinal,))))
    return columns


def _array(inner: list[Column]) -> Json:
    return array_of(struct_of((column.name, column.type) for column in inner))
