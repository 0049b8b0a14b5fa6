"""The frame that a new transformWithState query can be started with: one row for each grouping key of an operator.

All state of a key is in its row: first the key, in the types of the state schema, then its buffers, its variables,
its timers ... Everything here is known from the files of the checkpoint; ``ckpt.spark.frames`` makes the frame.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby

from ckpt.checkpoint.state.ranges import intersect
from ckpt.errors import CkptError, UsageError, argument
from ckpt.formats.types import array_of, fields_of, map_of, struct_of, type_at
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.columns import Columns, Dropped, Names
from ckpt.state.reading.initial_columns import InitialColumn, keys_of, state_of
from ckpt.state.reading.reading import Moment, Question, Reading, plan_readings
from ckpt.state.reading.units import StateUnit, UnitKind
from ckpt.versions import NEWEST, Spark, newest


@dataclass(frozen=True, slots=True)
class InitialShape:
    """The columns of the frame, keys first. An operator without a grouping key has one row and no key."""

    operator: int
    operator_name: str | None
    keys: tuple[InitialColumn, ...]
    state: tuple[InitialColumn, ...]
    dropped: tuple[Dropped, ...]


@dataclass(frozen=True, slots=True)
class InitialPlan:
    """How to read all state of an operator, and what becomes of it. There is at least one reading."""

    readings: tuple[Reading, ...]
    shape: InitialShape

    @property
    def grouped(self) -> bool:
        """True if rows have to be brought together: otherwise each row that is read is all there is of its key."""
        return len(self.readings) > 1 or any(column.gathered for column in self.shape.state)

    @property
    def columns(self) -> Columns:
        """The columns as exports describe them."""
        return Columns((*self.shape.keys, *self.shape.state), self.shape.dropped)

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
    question: Question, storage_options: Mapping[str, str] | None = None, spark: Spark = NEWEST
) -> InitialPlan:
    """Plan the frame of the one operator that there is or that was asked for; raises as ``plan_readings`` does."""
    (plan,) = plan_initial_states(replace(question, all_units=None), storage_options, spark)
    return plan


def plan_initial_states(
    question: Question, storage_options: Mapping[str, str] | None = None, spark: Spark = NEWEST
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
        otherwise = "" if question.all_units is None else f"; or {argument('all_units', True)}"
        raise ask_which_operator(question, [plan.shape for plan in plans], otherwise)
    return tuple(plans)


def check_question(question: Question) -> None:
    """Raise UsageError for a question that initial state does not answer."""
    wanted = question.wanted
    if wanted != RequestedPart(wanted.operator) or question.changes_from is not None:
        raise UsageError(
            "initial state is all state of an operator: leave out `store`, `side`, `variable`, `timers` "
            'and `changes_from`, or use `shape="flat"`'
        )


def ask_which_operator(question: Question, shapes: Sequence[InitialShape], otherwise: str = "") -> UsageError:
    """The refusal of a question about more than one operator."""
    names = [f" ({shape.operator_name})" if shape.operator_name else "" for shape in shapes]
    listed = ", ".join(argument("operator", shape.operator) + name for shape, name in zip(shapes, names, strict=True))
    return UsageError(f"{question.checkpoint}: one operator at a time: {listed}{otherwise}")


def plan_initial_shape(units: Sequence[StateUnit], checkpoint: str) -> InitialShape:
    """The columns of the frame of one operator, which has these units."""
    first, names = units[0], Names()
    keys = list(keys_of(first, names))
    state: list[InitialColumn | Dropped] = []
    for number, unit in enumerate(units):
        if unit.schema is None:
            raise CkptError(f"{checkpoint}: no state schema describes the rows of {unit.label}")
        state += (
            column if isinstance(column, Dropped) else replace(column, reading=number)
            for column in state_of(unit, names)
        )
    return InitialShape(
        first.operator,
        first.operator_name,
        tuple(column for column in keys if isinstance(column, InitialColumn)),
        tuple(column for column in state if isinstance(column, InitialColumn)),
        tuple(column for column in (*keys, *state) if isinstance(column, Dropped)),
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
