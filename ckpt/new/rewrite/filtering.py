"""Rows that are left out of a new checkpoint: ``ckpt rewrite --where`` and ``--drop-keys``.

Rows that belong together go together. Where an operator keeps all of a key in one row, each row is judged alone, by its
key and value. A join keeps rows of two sides and their counts, transformWithState variables, timers and TTL indexes:
there the columns of the grouping key decide about everything that the key has.

A condition in SQL on columns of state is evaluated by DuckDB over batches of Arrow. DuckDB parses it, and ckpt looks at
what it parsed: one expression of columns, literals and functions that give the same for the same row, in every batch
and process. So nothing else is run, and rows of equal keys are judged equally. DuckDB has no access to files or the
network, and its settings are locked.
"""

import atexit
import json
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ckpt.checkpoint.state.rewritable import is_single
from ckpt.errors import CkptError, Undecodable, UsageError
from ckpt.formats.operators import OperatorName
from ckpt.formats.rows.arrow import structs
from ckpt.formats.rows.types import FIXED, arrow_type
from ckpt.formats.types import fields_of, named_fields, struct_of
from ckpt.model import Json, Operator
from ckpt.new.book import BOOK
from ckpt.new.request import Key
from ckpt.new.rewrite.spreading import Column, list_key_columns
from ckpt.new.rewrite.stored_rows import OldRows
from ckpt.state.native.entries import NOT_AS_WRITTEN, flat_schema, flatten_batch, make_raw, pick_field
from ckpt.state.native.lookup import parse_typed
from ckpt.state.native.store_files import UnitLayout, layout_of
from ckpt.state.reading.columns import (
    Column as FlatColumn,
    Columns,
    columns_of as columns_of_unit,
    flat_columns,
    walk_leaves,
)
from ckpt.state.reading.reading import ChosenState
from ckpt.state.reading.units import StateUnit
from ckpt.storage.local import ends
from ckpt.tables.engine import first_line, import_duckdb, lock, open_engine

_CLASSES = {
    *("BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION"),
    *("OPERATOR", "TYPE"),
}
"""Of expressions in DuckDB's parse tree. Others are subqueries, windows, parameters, lambdas and stars."""
_FILE = tomllib.loads(files("ckpt.new.rewrite").joinpath("functions.toml").read_text(encoding="utf-8"))
_FUNCTIONS = frozenset(" ".join(_FILE.values()).split())
"""Functions that depend on nothing but their arguments: no time of the day, random number, setting or sequence."""
_PLAIN = frozenset(
    {"boolean", "string", "binary", *(name for name in FIXED if not name.startswith(("interval", "time(")))}
)
_SHOWN = 20  # columns
_PURPOSE = "a condition in SQL"
_PREFIX = "key_"  # of the flat shape
_NAN, _OTHER = object(), object()


Values: TypeAlias = tuple[Any, ...]


def can_take(kind: Json) -> bool:
    """Tell whether DuckDB compares a Spark type as Spark does: not intervals, times, variants, collations."""
    if fields_of(kind):
        return all(can_take(inner) for _, inner in named_fields(kind))
    match kind:
        case {"type": "array", "elementType": element}:
            return can_take(element)
        case {"type": "map", "keyType": key, "valueType": value}:
            return can_take(key) and can_take(value)
    name = str(kind)
    return (name in _PLAIN and name != "time") or name.startswith(("decimal", "char(", "varchar("))


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was parsed."""

    text: str
    names: tuple[str, ...]  # columns that it uses, as they were typed

    def check(self, label: str, schema: pa.Schema) -> None:
        """Raise UsageError where it is none on these columns, as an Arrow schema; ``label`` says whose they are."""
        try:
            kinds = self._evaluate("typeof(any_value({}))", schema.empty_table())
        except import_duckdb(_PURPOSE).Error as error:
            raise UsageError.of("{--where}: for {label}: {why}", label=label, why=first_line(error)) from None
        if kinds[0] != "BOOLEAN":
            raise UsageError(BOOK.text("where_no_condition", label=label, kinds=kinds[0]))

    def holds(self, batch: pa.RecordBatch) -> np.ndarray:
        """Evaluate the condition for each row of a batch: a boolean array of numpy. Raises CkptError."""
        try:
            results: np.ndarray = self._evaluate("coalesce({}, false)", pa.Table.from_batches([batch]))
        except import_duckdb(_PURPOSE).Error as error:
            raise CkptError(f"the condition {self.text} has no result for a row: {first_line(error)}") from None
        if len(results) != batch.num_rows:
            raise CkptError(f"the condition {self.text} has {len(results)} results for {batch.num_rows} rows")
        return results

    def _evaluate(self, how: str, table: pa.Table) -> Any:
        connection = _connect()
        connection.register("state", table)
        try:
            return connection.execute(f"SELECT {how.format(_bracket(self.text))} AS it FROM state").fetchnumpy()["it"]
        finally:
            connection.unregister("state")


def parse_condition(text: str) -> Condition:
    """A condition from its text. Raises UsageError where it is not one expression on columns; NativeMissing."""
    if not text.strip() or any(char == "\0" or "\ud800" <= char <= "\udfff" for char in text):
        raise UsageError.of("{--where}: it is empty, or has characters that are not valid text")
    duckdb, query = import_duckdb(_PURPOSE), "SELECT json_serialize_sql(?::VARCHAR)"
    shapes = []
    for expression in ("true", text):
        try:
            ((answer,),) = _connect().execute(query, [f"SELECT {_bracket(expression)}"]).fetchall()
            tree = json.loads(answer)
        except RecursionError:
            raise UsageError.of("{--where}: its expressions are nested too deeply") from None
        except (duckdb.Error, ValueError) as error:
            raise UsageError.of("{--where}: {why}", why=first_line(error)) from None
        if tree.get("error"):
            raise UsageError.of("{--where}: {why}", why=first_line(tree.get("error_message")))
        shapes.append(tree)
    expressions = [_take_expression(tree) for tree in shapes]
    if shapes[0] != shapes[1] or expressions[1] is None:
        raise UsageError.of("{--where}: it is not one condition, such as key_user = 'ann' AND value_count > 3")
    names = dict.fromkeys(_find_columns(expressions[1]))
    if not names:
        raise UsageError.of("{--where}: it names no column; in SQL, texts are in 'single quotes', and columns are not")
    return Condition(text, tuple(names))


def join_names(names: Iterable[str]) -> str:
    """Names of columns, some of them."""
    known = [*names]
    return ", ".join(known[:_SHOWN]) + (" ..." if len(known) > _SHOWN else "") if known else "none"


def _bracket(text: str) -> str:
    """In lines of their own, so that no comment takes the last bracket."""
    return f"(\n{text}\n)"


def _take_expression(tree: Any) -> Any:
    """The one expression of a parsed SELECT, taken out of it; None where there are more or others."""
    match tree:
        case {"statements": [{"node": {"select_list": [_] as chosen}}]}:
            return chosen.pop()
    return None


def _find_columns(node: Any) -> Iterator[str]:
    """The columns of an expression. Raises UsageError for what may give another result for the same row."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += reversed(node)
        elif isinstance(node, dict):
            kind, function = node.get("class"), node.get("function_name")
            if kind is not None and kind not in _CLASSES:
                what = str(kind).lower().replace("_", " ")
                raise UsageError(BOOK.text("where_only_columns", what=what))
            if function is not None and function.lower() not in _FUNCTIONS:
                raise UsageError(BOOK.text("where_function", function=function))
            if kind == "COLUMN_REF":
                if len(node["column_names"]) != 1:
                    raise UsageError.of("{--where}: there is no column {node}", node=".".join(node["column_names"]))
                yield node["column_names"][0]
            waiting += reversed(node.values())


@cache
def _connect() -> Any:
    """Of this process, with nothing in it."""
    connection = open_engine(_PURPOSE, {"threads": "1"})
    lock(connection)
    atexit.register(_connect.cache_clear)  # DuckDB complains at the end about a connection that somebody has
    atexit.register(connection.close)
    return connection


@dataclass(frozen=True, slots=True)
class Dropping:
    """The rows of one operator that are left out."""

    values: Mapping[tuple[str, ...], Mapping[Values, Sequence[int]]]
    """By the names of columns, then by their values: the places of the keys that have them."""
    seen: set[int] = field(default_factory=set)  # the places of those keys that a row has had

    @property
    def applies(self) -> bool:
        """True if any key can be one of the operator."""
        return bool(self.values)

    @property
    def of_keys(self) -> bool:
        """True where keys are left out, with everything that is kept for them."""
        return self.applies

    def find_left_out(self, rows: Sized, key: Sequence[Column], partition: int) -> np.ndarray:
        """Tell of each row whether it is left out, as a boolean array of numpy; ``key`` is the grouping key."""
        arrays, kinds = [array for *_, array in key], struct_of((name, kind) for name, kind, _ in key)
        leaves = {"_".join(leaf.path): pick_field(arrays, leaf.places) for leaf in walk_leaves(kinds)}
        is_left_out: np.ndarray = np.zeros(len(rows), bool)
        for names, wanted in self.values.items():
            there = zip(*(_make_comparable(leaves[name]) for name in names), strict=True)
            for row, keys in enumerate(map(wanted.get, there)):
                if keys is not None:
                    is_left_out[row] = True
                    self.seen.update(keys)
        return is_left_out


NOTHING = Dropping({})


def choose_dropping(kinds: Iterable[tuple[str, Json]], keys: Iterable[Key]) -> Dropping:
    """Choose the keys that can be keys of an operator whose grouping key has these columns.

    Raises UsageError for a value that its column cannot have.
    """
    columns = list(list_leaf_types(kinds))
    types = dict(columns)
    numbers: dict[tuple[str, ...], dict[Values, list[int]]] = {}
    for number, key in enumerate(keys):
        named = _match_key(key, types)
        if named is not None:
            values = tuple(_parse_value(name, types[name], text) for name, text in named.items())
            numbers.setdefault(tuple(named), {}).setdefault(values, []).append(number)
    for name in {name for names in numbers for name in names}:
        if sum(name == column for column, _ in columns) > 1:
            raise UsageError.of("{--drop-keys}: two key columns are called {name}", name=name)
    return Dropping(numbers)


def check_known(keys: Iterable[Key], operators: Mapping[str, Sequence[tuple[str, Json]]]) -> None:
    """Raise UsageError for a key that no operator can have; ``operators`` are labels and columns of grouping keys."""
    known = {label: dict(list_leaf_types(kinds)) for label, kinds in operators.items()}
    for key in keys:
        if not key or all(_match_key(key, columns) is None for columns in known.values()):
            there = "; ".join(f"{label}: {join_names(columns)}" for label, columns in known.items())
            raise UsageError(BOOK.text("drop_keys_no_operator", names=join_names(key), there=there))


def _match_key(key: Key, columns: Mapping[str, Json]) -> dict[str, str | None] | None:
    """The columns that are meant, and their values; None where one of them is not there.

    Raises UsageError where one is given with ``key_`` and without.
    """
    texts: dict[str, str | None] = {}
    for name, text in key.items():
        known = next((spelling for spelling in (name, name.removeprefix(_PREFIX)) if spelling in columns), None)
        if known is None:
            return None
        if known in texts:
            raise UsageError.of("{--drop-keys}: a key has two values of {known}", known=known)
        texts[known] = text
    return texts


def list_leaf_types(kinds: Iterable[tuple[str, Json]]) -> Iterator[tuple[str, Json]]:
    """Names and types of columns; those in structs by their path, joined by ``_`` as in the flat shape."""
    return (("_".join(leaf.path), leaf.type) for leaf in walk_leaves(struct_of(kinds)))


def read_keys(path: str) -> list[Key]:
    """Keys from a file of JSON objects, one in a line. Raises UsageError, which names the line."""
    try:
        if not ends(path):
            raise UsageError(f"{path}: it is not a file")
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    keys: list[Key] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            key = json.loads(line, object_pairs_hook=_make_object, parse_float=str, parse_int=str, parse_constant=str)
        except (ValueError, RecursionError):
            key = None
        if not isinstance(key, dict) or not key or any(isinstance(value, dict | list) for value in key.values()):
            raise UsageError(f'{path}: line {number} is not a JSON object of columns and values, such as {{"key": 3}}')
        keys.append({name: str(own).lower() if isinstance(own, bool) else own for name, own in key.items()})
    if not keys:
        raise UsageError(f"{path}: it has no key")
    return keys


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Raises ValueError where it has a name twice, of which JSON would take the last."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError
    return members


def _parse_value(name: str, kind: Json, text: str | None) -> Any:
    return _make_comparable(
        pa.array([None if text is None else parse_typed(name, kind, text, "drop_keys")], arrow_type(kind))
    )[0]


def _make_comparable(array: pa.Array) -> list[Any]:
    """Values that are equal where Spark's are: NaN is, and dates and times may be outside of Python's years."""
    kind = array.type
    if pa.types.is_nested(kind):
        return [None if value else _OTHER for value in array.is_null().to_pylist()]  # none of them can be typed
    if pa.types.is_floating(kind):
        return [_NAN if value is not None and math.isnan(value) else value for value in array.to_pylist()]
    if pa.types.is_temporal(kind) and kind != pa.month_day_nano_interval():
        array = array.view(f"int{kind.bit_width}")
    return list(array.to_pylist())


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows of one operator that are kept."""

    condition: Condition
    columns: Columns  # that it uses
    applies: bool  # the operator has them, so that the condition decides about something; else all rows are kept
    unit: StateUnit | None  # whose rows are judged one by one; None: keys are, with all they have
    layout: UnitLayout | None  # of the unit

    @property
    def of_keys(self) -> bool:
        """True if the condition decides about keys, with everything that is kept for them."""
        return self.applies and self.unit is None

    def find_left_out(self, rows: OldRows, key: Sequence[Column], partition: int) -> np.ndarray:
        """Tell of each row whether it is left out, as a boolean array of numpy; ``key`` is the grouping key.

        Raises Undecodable; CkptError where the condition has no result for a row.
        """
        kept: np.ndarray = np.ones(len(rows), bool)
        if not self.applies:
            return ~kept
        if self.unit is None or self.layout is None:
            keys = structs([name for name, _, _ in key], [array for _, _, array in key], len(rows))
            batch = pa.RecordBatch.from_arrays([keys], names=["key"])
        else:
            try:
                batch = make_raw(self.unit, rows.decode_entries(self.layout, partition))
            except NOT_AS_WRITTEN as error:
                raise error if isinstance(error, Undecodable) else Undecodable(str(error)) from None
        kept = self.condition.holds(flatten_batch(self.columns, batch))
        return ~kept


def _is_time(path: tuple[str, ...]) -> bool:
    """Tell whether a column of a key is a time of a window, which is a struct, or of a session."""
    return path[-1] == "sessionStartTime" or (len(path) > 2 and path[-1] in ("start", "end"))


IN_NONE = "matched by no condition, and so in no new checkpoint"
IN_SEVERAL = "matched by several conditions, and so in several new checkpoints"


@dataclass(frozen=True, slots=True)
class SplitFilter:
    """The rows of one operator that one of several new checkpoints has."""

    filters: tuple[Filter, ...]  # of all new checkpoints, that of this one first

    @property
    def applies(self) -> bool:
        """True if all conditions decide about the operator."""
        return all(each.applies for each in self.filters)

    @property
    def of_keys(self) -> bool:
        """True if the conditions decide about keys, with everything that is kept for them."""
        return any(each.of_keys for each in self.filters)

    @property
    def beyond_sources(self) -> tuple[str, ...]:
        """The columns that rows of a source do not have: values, and times of windows and sessions.

        A new query leaves out by its filter the rows of keys that it does not have; it cannot do so by what state has
        made of several rows.
        """
        columns = {column.name: column.path for each in self.filters for column in each.columns.kept}
        return tuple(sorted(name for name, path in columns.items() if path[0] != "key" or _is_time(path)))

    @property
    def floats(self) -> tuple[str, ...]:
        """The columns of type FLOAT: DuckDB compares one with 0.1 as a FLOAT, Spark as a DOUBLE."""
        return tuple(
            sorted({column.name for each in self.filters for column in each.columns.kept if column.type == "float"})
        )


def find_strays(left_out: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The rows that are not in exactly one of several new checkpoints: a mask of numpy for each reason."""
    kept: np.ndarray = (~np.array(left_out)).sum(axis=0)
    return {IN_NONE: kept == 0, IN_SEVERAL: kept > 1}


Leaving: TypeAlias = Dropping | Filter | SplitFilter
"""Rows that are left out of an operator: those of some keys, or those for which a condition is not true."""


def make_filters(chosen: ChosenState, where: str) -> dict[int, Filter]:
    """Return the filters of a condition, by operator.

    Raises UsageError where it is none, or none on the columns that an operator has; Undecodable where the files do not
    say which columns these are.
    """
    condition = parse_condition(where)
    there = {
        _label(operator): (operator, *_choose_columns(chosen, operator)) for operator in chosen.checkpoint.operators
    }
    filters = {
        operator.id: _make_filter(chosen, condition, label, unit, columns)
        for label, (operator, unit, columns) in there.items()
    }
    if not any(row_filter.applies for row_filter in filters.values()):
        names = (f"{label}: {join_names(column.name for column in columns)}" for label, (*_, columns) in there.items())
        known, wanted = "; ".join(names) or "none", join_names(condition.names)
        raise UsageError(BOOK.text("where_no_operator", names=wanted, there=known))
    return filters


def _label(operator: Operator) -> str:
    return f"operator {operator.id}" + (f" ({operator.name})" if operator.name else "")


def _choose_columns(chosen: ChosenState, operator: Operator) -> tuple[StateUnit | None, tuple[FlatColumn, ...]]:
    """The unit whose rows are judged one by one, if that is so; and the columns to judge by."""
    unnamed = operator.name is None and any(is_single(operator, store) for store in operator.stores)
    if operator.name == OperatorName.LIMIT or unnamed:  # without its count a limit lets as many rows pass anew
        return None, ()
    units = [unit for unit in chosen.units if unit.operator == operator.id and not unit.shown_elsewhere]
    families = [family for store in operator.stores for family in store.column_families]
    if len(units) == len(operator.stores) == 1 and not families and not operator.variables:
        return units[0], columns_of_unit(units[0]).kept
    key = struct_of(list_key_columns(operator, operator.stores[0]))
    return None, flat_columns(struct_of([("key", key)])).kept


def _make_filter(
    chosen: ChosenState, condition: Condition, label: str, unit: StateUnit | None, columns: Sequence[FlatColumn]
) -> Filter:
    """Apply the condition to one operator. Raises UsageError."""
    wanted, known = ({name.lower() for name in names} for names in (condition.names, (own.name for own in columns)))
    used = tuple(column for column in columns if column.name.lower() in wanted)
    applies = wanted <= known
    if applies:
        for column in used:
            if not can_take(column.type):
                own = f"{column.name}, by its type: {column.type}"
                raise UsageError.of("{--where}: for {label}: a condition cannot use {own}", label=label, own=own)
        condition.check(label, flat_schema(Columns(used, ())))
    layout = layout_of(chosen, unit) if unit and applies else None
    return Filter(condition, Columns(used, ()), applies, unit, layout)


def choose_leaving(
    chosen: ChosenState, keys: Sequence[Key], where: str | tuple[str, ...] | None
) -> Mapping[int, Leaving]:
    """Decide what each operator leaves out: keys, or rows that a condition does not keep. Raises UsageError.

    Several conditions are of several new checkpoints, that of the one which is filled first.
    """
    if isinstance(where, tuple):
        filters = [make_filters(chosen, each) for each in where]
        return {operator: SplitFilter(tuple(each[operator] for each in filters)) for operator in filters[0]}
    if where is not None:
        return make_filters(chosen, where)
    if not keys:
        return {}
    columns = {
        operator.id: list_key_columns(operator, store) for operator, store in reversed([*chosen.checkpoint.stores()])
    }
    labels = {unit.operator: f"operator {unit.operator} ({unit.operator_name})" for unit in chosen.units}
    check_known(keys, {labels[operator]: kinds for operator, kinds in sorted(columns.items())})
    return {operator: choose_dropping(kinds, keys) for operator, kinds in columns.items()}
