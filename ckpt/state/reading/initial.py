"""The frame that a new transformWithState query can be started with: one row for each grouping key of an operator.

All state of a key is in its row: first the key, in the types of the state schema, then its buffers, its variables,
its timers ... Everything here is known from the files of the checkpoint; ``ckpt.spark.frames`` makes the frame.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby

from ckpt.advice import Option, Words, join, words
from ckpt.checkpoint.state.ranges import intersect
from ckpt.errors import CkptError, UsageError
from ckpt.formats.operators import TTL, OperatorName
from ckpt.formats.types import array_of, fields_of, map_of, named_fields, struct_of, type_at, type_named
from ckpt.model import Json
from ckpt.state.book import BOOK
from ckpt.state.reading import columns
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.reading import Moment, Reading, StateRequest, plan_readings
from ckpt.state.reading.units import StateUnit, UnitKind
from ckpt.versions import NEWEST, Spark, newest

EXPIRES = "expires_at_ms"
_GROUP_STATE = "groupState"  # of mapGroupsWithState and its kin (``FlatMapGroupsWithStateExecHelper``)
_TIMEOUT = "timeoutTimestamp"
_EXPIRES_MICROS = "expiresAtMicros"  # of dropDuplicatesWithinWatermark
_SESSION_START = "sessionStartTime"  # ends the key of session windows (``StreamingSessionWindowStateManager``)


@dataclass(frozen=True, slots=True)
class InitialColumn(columns.Column):
    """A column of the DataFrame, and where its content is read. Arrays are empty, never NULL, for a key without.

    What is nullable in its type is not settled.
    """

    variable: str | None = None
    side: str | None = None
    ttl: bool = False  # the last field of each struct in the array is the expiry; or the next column is
    reading: int = 0  # which reading of the plan gives it: keys are given by all
    inner: tuple[columns.Column, ...] = ()  # of an array of structs: its fields, placed from the row or the element


@dataclass(frozen=True, slots=True)
class InitialShape:
    """The columns of the frame, keys first. An operator without a grouping key has one row and no key."""

    operator: int
    operator_name: str | None
    keys: tuple[InitialColumn, ...]
    state: tuple[InitialColumn, ...]
    dropped: tuple[columns.Dropped, ...]


@dataclass(frozen=True, slots=True)
class InitialPlan:
    """How to read all state of an operator, and what becomes of it. There is at least one reading."""

    readings: tuple[Reading, ...]
    shape: InitialShape

    @property
    def grouped(self) -> bool:
        """True if rows have to be brought together: otherwise each row that is read is all there is of its key."""
        elements = (columns.Holds.TIMERS, columns.Holds.SESSIONS, columns.Holds.ROWS)  # each row is one of an array
        return len(self.readings) > 1 or any(column.holds in elements for column in self.shape.state)

    @property
    def columns(self) -> columns.Columns:
        """The columns as exports describe them."""
        return columns.Columns((*self.shape.keys, *self.shape.state), self.shape.dropped)

    @property
    def together(self) -> Reading:
        """The readings as if they were one, for telling of them: a row of it is a key."""
        units = [reading.unit for reading in self.readings]
        mounts = [reading.mount for reading in self.readings if reading.mount is not None]
        unit = replace(
            units[0],
            kind=UnitKind.KEY,
            stores=tuple(dict.fromkeys(store for unit in units for store in unit.stores)),
            side=None,
            variable=None,
            ttl=any(unit.ttl for unit in units),
            schema=None,
            readable_batches=reduce(intersect, (unit.readable_batches for unit in units)),
            change_batches=(),
            oldest_spark=newest(unit.oldest_spark for unit in units),
            buffer=None,
        )
        options = [reading.options for reading in self.readings]
        return replace(
            self.readings[0],
            unit=unit,
            options={name: value for name, value in options[0].items() if all(o.get(name) == value for o in options)},
            confs=tuple(dict.fromkeys(conf for reading in self.readings for conf in reading.confs)),
            mount=mounts[0] if mounts else None,
        )

    @property
    def checkpoint(self) -> str:
        """The checkpoint as it was given."""
        return self.readings[0].checkpoint

    @property
    def moment(self) -> Moment:
        """The batch that the state belongs to."""
        return self.readings[0].moment


def plan_initial_state(
    question: StateRequest, storage_options: Mapping[str, str] | None = None, spark: Spark = NEWEST
) -> InitialPlan:
    """Plan the frame of the one operator that there is or that was asked for; raises as ``plan_readings`` does."""
    (plan,) = plan_initial_states(replace(question, all_units=None), storage_options, spark)
    return plan


def plan_initial_states(
    question: StateRequest, storage_options: Mapping[str, str] | None = None, spark: Spark = NEWEST
) -> tuple[InitialPlan, ...]:
    """Plan initial state, for every operator if ``question.all_units`` is set; ``wanted`` may only name one."""
    check_question(question)
    readings = plan_readings(replace(question, all_units=True), storage_options, spark)
    plans = []
    for _, group in groupby(readings, lambda reading: reading.unit.operator):
        own = [*group]
        shape = plan_initial_shape([reading.unit for reading in own], own[0].checkpoint)
        plans.append(InitialPlan(tuple(map(_read_whole, own)), shape))
    if len(plans) > 1 and not question.all_units:
        otherwise = Words() if question.all_units is None else words("; or {--all-units=True}")
        raise ask_which_operator(question, [plan.shape for plan in plans], otherwise)
    return tuple(plans)


def check_question(question: StateRequest) -> None:
    """Raise UsageError for a question that initial state does not answer."""
    wanted = question.wanted
    if wanted != RequestedPart(wanted.operator) or question.changes_from is not None:
        raise UsageError(BOOK.text("initial_all_state"))


def ask_which_operator(
    question: StateRequest, shapes: Sequence[InitialShape], otherwise: str | Words = ""
) -> UsageError:
    """The refusal of a question about more than one operator."""
    names = [f" ({shape.operator_name})" if shape.operator_name else "" for shape in shapes]
    each = (Words((Option("operator", shape.operator), name)) for shape, name in zip(shapes, names, strict=True))
    parts = {"uri": question.checkpoint, "listed": join(each, ", "), "otherwise": otherwise}
    return UsageError.of("{uri}: choose one operator: {listed}{otherwise}", **parts)


def plan_initial_shape(units: Sequence[StateUnit], checkpoint: str) -> InitialShape:
    """The columns of the frame of one operator, which has these units."""
    first, names = units[0], columns.Names()
    keys = list(keys_of(first, names))
    state: list[InitialColumn | columns.Dropped] = []
    for number, unit in enumerate(units):
        if unit.schema is None:
            raise CkptError(f"{checkpoint}: no state schema describes the rows of {unit.label}")
        state += (
            column if isinstance(column, columns.Dropped) else replace(column, reading=number)
            for column in state_of(unit, names)
        )
    return InitialShape(
        first.operator,
        first.operator_name,
        tuple(column for column in keys if isinstance(column, InitialColumn)),
        tuple(column for column in state if isinstance(column, InitialColumn)),
        tuple(column for column in (*keys, *state) if isinstance(column, columns.Dropped)),
    )


def _read_whole(reading: Reading) -> Reading:
    """The reading that gives a list or a map as one row, and a row of a join side with all that is stored of it."""
    unit, options = reading.unit, dict(reading.options)
    if unit.kind is UnitKind.SIDE and unit.buffer is not None:
        options.pop("joinSide", None)
        options["storeName"] = unit.buffer.name
        return replace(reading, unit=replace(unit, schema=unit.buffer.schema), options=options)
    if unit.kind not in (UnitKind.LIST, UnitKind.MAP):
        return reading
    key, *inner = (type_at(unit.schema, (ordinal,)) for ordinal in range(len(fields_of(unit.schema) or ())))
    held = ("list_value", array_of(inner[0])) if unit.kind is UnitKind.LIST else ("map_value", map_of(*inner))
    schema = struct_of([("key", key), held])
    return replace(reading, unit=replace(unit, schema=schema), options=options | {"flattenCollectionTypes": "false"})


def keys_of(unit: StateUnit, names: columns.Names) -> Iterator[InitialColumn | columns.Dropped]:
    """The leaves of the grouping key; of session windows without the session."""
    key = type_at(unit.schema, (0,))
    without = len(fields_of(key) or ()) - 1 if _session_place(unit) is not None else None
    for leaf in columns.list_leaves(key, ("key",), (0,)):
        if isinstance(leaf, columns.Dropped):
            yield leaf
        elif leaf.places[1] != without:
            yield InitialColumn(names.free(leaf.path[1:]), leaf.path, leaf.places, leaf.type, columns.Holds.KEY)


def state_of(unit: StateUnit, names: columns.Names) -> Iterator[InitialColumn | columns.Dropped]:
    """Return what a unit holds for a key, apart from the key."""
    match unit.kind:
        case UnitKind.SIDE:
            yield from _rows(unit, names)
        case UnitKind.VALUE | UnitKind.LIST | UnitKind.MAP:
            yield from _variable(unit, names)
        case UnitKind.TIMERS:
            name = names.free(("timers",))
            yield InitialColumn(name, ("expiration_timestamp_ms",), (1,), array_of("long"), columns.Holds.TIMERS)
        case _ if (session := _session_place(unit)) is not None:
            yield from _sessions(unit, session, names)
        case kind:
            value = type_at(unit.schema, (1,))
            for leaf in columns.list_leaves(value, ("value",), (1,), only_keys=kind is UnitKind.DEDUPLICATION):
                if isinstance(leaf, columns.Dropped):
                    yield leaf
                    continue
                holds, path = _holds(unit, leaf.path), leaf.path
                start = 2 if holds is columns.Holds.STATE and path[1] == _GROUP_STATE and len(path) > 2 else 1
                yield InitialColumn(names.free(path[start:]), path, leaf.places, leaf.type, holds)


def _holds(unit: StateUnit, path: tuple[str, ...]) -> columns.Holds:
    """Return the meaning of a leaf of a value; Spark before 4.0 recorded no name of its operator."""
    name, value = unit.operator_name, type_at(unit.schema, (1,))
    if "WithState" in name if name else type_named(value, _GROUP_STATE) is not None:
        return columns.Holds.TIMEOUT if path == ("value", _TIMEOUT) else columns.Holds.STATE
    deduplicates = name == OperatorName.DEDUPLICATION_WITHIN_WATERMARK if name else len(fields_of(value) or ()) == 1
    return columns.Holds.EXPIRY if deduplicates and path == ("value", _EXPIRES_MICROS) else columns.Holds.BUFFER


def _variable(unit: StateUnit, names: columns.Names) -> Iterator[InitialColumn]:
    """A variable of transformWithState, as Spark gives it: value, list_element, or user_map_key and user_map_value."""
    variable, ttl = unit.variable or "", unit.ttl
    held = type_at(unit.schema, (2 if unit.kind is UnitKind.MAP else 1,))
    own = type_named(held, "value") if ttl else held
    name = names.free((variable,))
    path, places = (("value", "value"), (1, 0)) if ttl else (("value",), (1,))
    expiry = columns.Column(EXPIRES, ("value", TTL), (1, 1), "long")
    if unit.kind is UnitKind.VALUE:
        yield InitialColumn(name, path, places, own, columns.Holds.VALUE, variable, ttl=ttl)
        if ttl:
            free = names.free((f"{variable}_{EXPIRES}",))
            yield InitialColumn(free, expiry.path, expiry.places, expiry.type, columns.Holds.EXPIRY, variable, ttl=True)
        return
    if unit.kind is UnitKind.LIST:
        holds, inner = columns.Holds.LIST, [*columns.top_columns(own, path[1:], (0,) if ttl else ())]
        expiry = columns.Column(columns.Names(column.name for column in inner).free((EXPIRES,)), (TTL,), (1,), "long")
    else:
        key = columns.Column("key", ("key",), (0,), type_at(unit.schema, (1,)))
        holds, inner = columns.Holds.MAP, [key, columns.Column("value", path, places, own)]
    fields = (*inner, expiry) if ttl else tuple(inner)
    yield InitialColumn(name, (f"{holds}_value",), (1,), _array(fields), holds, variable, ttl=ttl, inner=fields)


def _rows(unit: StateUnit, names: columns.Names) -> Iterator[InitialColumn | columns.Dropped]:
    """The rows of a join side, with ``matched`` where that is stored."""
    value = type_at(unit.buffer.schema if unit.buffer else unit.schema, (1,))
    own, inner = columns.Names(), []
    for column in columns.top_columns(value, ("value",), (1,)):
        why = columns.explain_left_out(column)
        if why is None:
            inner.append(replace(column, name=own.free(column.path[1:])))
        else:
            yield columns.Dropped(column.path, why)
    free = names.free((unit.side or "",))
    yield InitialColumn(free, ("value",), (1,), _array(inner), columns.Holds.ROWS, side=unit.side, inner=tuple(inner))


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


def _sessions(unit: StateUnit, session: int, names: columns.Names) -> Iterator[InitialColumn | columns.Dropped]:
    """All sessions of a key: start, end, buffers."""
    value, grouping = type_at(unit.schema, (1,)), len(fields_of(type_at(unit.schema, (0,))) or ())
    own, inner = columns.Names(), []
    for leaf in columns.list_leaves(value, ("value",), (1,)):
        of_session = leaf.places[1] == session
        if isinstance(leaf, columns.Dropped):
            if leaf.places[1] >= grouping:
                yield leaf
        elif of_session or leaf.places[1] >= grouping:
            inner.append(replace(leaf, name=own.free(leaf.path[2:] if of_session else leaf.path[1:])))
    inner.sort(key=lambda column: column.places[1] != session)
    free = names.free(("sessions",))
    yield InitialColumn(free, ("value",), (1,), _array(inner), columns.Holds.SESSIONS, inner=tuple(inner))


def _names(kind: Json) -> list[str]:
    return [name for name, _ in named_fields(kind)]


def _array(inner: Iterable[columns.Column]) -> Json:
    return array_of(struct_of((column.name, column.type) for column in inner))
