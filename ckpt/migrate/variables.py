"""State of a transformWithState query that holds what another query kept: its variables, and how they are loaded."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from ckpt.formats.types import named_fields
from ckpt.model import Json
from ckpt.state.reading.columns import Holds
from ckpt.state.reading.initial import InitialColumn, InitialShape


class OperatorFamily(StrEnum):
    """The kind of operator that has the state."""

    AGGREGATION = "aggregation"  # also limit, which counts
    WINDOWS = "windowed aggregation"
    SESSIONS = "session windows"
    DEDUPLICATION = "deduplication"
    WITHIN_WATERMARK = "deduplication within watermark"
    GROUP_STATE = "group state"  # mapGroupsWithState and its kin
    TRANSFORM = "transformWithState"
    JOIN = "stream-stream join"


class VariableForm(StrEnum):
    """The kind of a state variable."""

    VALUE = "value"
    LIST = "list"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class Variable:
    """A state variable of the new query."""

    name: str
    form: VariableForm
    fields: tuple[tuple[str, Json], ...]  # of the value, or of an element
    columns: tuple[str, ...]  # of the frame: one for each field, or the one that holds it all
    spread: bool = False  # the fields of the value stand in columns of their own
    key: tuple[tuple[str, Json], ...] = ()  # of a map: the fields of its key
    ttl: bool = False
    expires: str | None = None  # of a value under TTL: the column with its expiry in ms


WINDOW = ("window_start", "window_end")
_OPAQUE = re.compile(r"buf(_[0-9]+)?")


def family_of(shape: InitialShape) -> OperatorFamily:
    """Told from what the columns hold; the name of the operator is not known of Spark before 4.0."""
    holds = {column.holds for column in shape.state}
    if any(column.variable is not None for column in shape.state) or Holds.TIMERS in holds:
        return OperatorFamily.TRANSFORM
    for column_type, family in (
        (Holds.ROWS, OperatorFamily.JOIN),
        (Holds.SESSIONS, OperatorFamily.SESSIONS),
        (Holds.STATE, OperatorFamily.GROUP_STATE),
        (Holds.TIMEOUT, OperatorFamily.GROUP_STATE),
        (Holds.EXPIRY, OperatorFamily.WITHIN_WATERMARK),
    ):
        if column_type in holds:
            return family
    if Holds.BUFFER not in holds:
        return OperatorFamily.DEDUPLICATION
    windowed = {key.name for key in shape.keys if key.type == "timestamp"} >= set(WINDOW)
    return OperatorFamily.WINDOWS if windowed else OperatorFamily.AGGREGATION


def find_opaque(variables: Iterable[Variable]) -> tuple[str, ...]:
    """Buffers of which no schema says what is in them (``TypedImperativeAggregate``, which calls each ``buf``)."""
    fields = (field for variable in variables for field in variable.fields)
    return tuple(name for name, kind in fields if kind == "binary" and _OPAQUE.fullmatch(name))


def variables_of(shape: InitialShape) -> tuple[Variable, ...]:
    """The variables, in the order of the frame."""
    match family_of(shape):
        case OperatorFamily.TRANSFORM:
            return tuple(_find_own(shape))
        case OperatorFamily.DEDUPLICATION:
            return (Variable("seen", VariableForm.VALUE, (("seen", "boolean"),), (), spread=True),)
        case OperatorFamily.WITHIN_WATERMARK:
            return (_spread("seen", shape, Holds.EXPIRY),)
        case OperatorFamily.GROUP_STATE:
            return (_spread("state", shape, Holds.STATE),)
        case OperatorFamily.SESSIONS | OperatorFamily.JOIN:
            return tuple(_make_list(column) for column in shape.state)
    return (_spread("buffers", shape, Holds.BUFFER),)


def _spread(name: str, shape: InitialShape, holds: Holds) -> Variable:
    """One value whose fields are columns of the frame."""
    fields = tuple((column.name, column.type) for column in shape.state if column.holds is holds)
    return Variable(name, VariableForm.VALUE, fields, tuple(name for name, _ in fields), spread=True)


def _make_list(column: InitialColumn) -> Variable:
    fields = tuple((inner.name, inner.type) for inner in column.inner)
    return Variable(column.side or column.name, VariableForm.LIST, fields, (column.name,))


def _find_own(shape: InitialShape) -> Iterator[Variable]:
    expires = {column.variable: column.name for column in shape.state if column.holds is Holds.EXPIRY}
    for column in shape.state:
        name, held = column.variable or column.name, (column.name,)
        match column.holds:
            case Holds.VALUE:
                fields, expiry = tuple(named_fields(column.type)), expires.get(name)
                yield Variable(name, VariableForm.VALUE, fields, held, ttl=column.ttl, expires=expiry)
            case Holds.LIST:
                inner = column.inner[:-1] if column.ttl else column.inner
                fields = tuple((field.name, field.type) for field in inner)
                yield Variable(name, VariableForm.LIST, fields, held, ttl=column.ttl)
            case Holds.MAP:
                key, fields = (tuple(named_fields(part.type)) for part in column.inner[:2])
                yield Variable(name, VariableForm.MAP, fields, held, key=key, ttl=column.ttl)
