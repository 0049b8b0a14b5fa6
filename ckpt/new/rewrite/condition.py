"""A condition in SQL on columns of state, evaluated by DuckDB over batches of Arrow.

DuckDB parses it, and ckpt looks at what it parsed: one expression of columns, literals and functions that give the same
for the same row, in every batch and process. So nothing else is run, and rows of equal keys are judged equally. DuckDB
has no access to files or the network, and its settings are locked.
"""

import atexit
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from ckpt.errors import CkptError, UsageError
from ckpt.formats.rows.types import FIXED
from ckpt.formats.types import fields_of, named_fields
from ckpt.model import Json
from ckpt.new.book import BOOK
from ckpt.tables.engine import first_line, import_duckdb, lock, open_engine

_CLASSES = {
    *("BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION"),
    *("OPERATOR", "TYPE"),
}
"""Of expressions in DuckDB's parse tree. Others are subqueries, windows, parameters, lambdas and stars."""
_SYMBOLS = "+ - * / // % ** ^ & | ~ << >> || ~~ !~~ ~~* !~~* ~~~ ^@ -> ->>"
_LIKE = "like_escape not_like_escape ilike_escape not_ilike_escape"
_NUMBERS = """abs ceil ceiling exp floor greatest isfinite isinf isnan least ln log log10 log2 mod pow power round sign
    sqrt trunc"""
_TEXTS = """ascii base64 chr concat concat_ws contains decode encode ends_with from_base64 from_hex hex instr lcase left
    length lower lpad ltrim md5 octet_length overlay position prefix regexp_extract regexp_full_match regexp_matches
    regexp_replace repeat replace reverse right rpad rtrim sha256 split split_part starts_with str_split string_split
    strlen strpos substr substring suffix to_base64 to_hex translate trim ucase unhex upper"""
_TIMES = """date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayofmonth
    dayofweek dayofyear epoch epoch_ms epoch_us hour isodow isoyear last_day make_date make_timestamp make_timestamptz
    microsecond millisecond minute month quarter second strftime strptime timezone to_days to_hours to_microseconds
    to_milliseconds to_minutes to_months to_seconds to_timestamp to_weeks to_years try_strptime week weekofyear year"""
_OTHERS = """array_contains array_extract array_has array_length cardinality element_at if json_extract
    json_extract_string len list_contains list_extract list_has list_has_all list_has_any list_value map_contains
    map_extract map_extract_value map_keys map_values nullif struct_extract"""
_FUNCTIONS = frozenset(" ".join((_SYMBOLS, _LIKE, _NUMBERS, _TEXTS, _TIMES, _OTHERS)).split())
"""Functions that depend on nothing but their arguments: no time of the day, random number, setting or sequence."""
_PLAIN = frozenset(
    {"boolean", "string", "binary", *(name for name in FIXED if not name.startswith(("interval", "time(")))}
)
_SHOWN = 20  # columns
_PURPOSE = "a condition in SQL"


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

    def check(self, label: str, schema: Any) -> None:
        """Raise UsageError where it is none on these columns, as an Arrow schema; ``label`` says whose they are."""
        try:
            kinds = self._evaluate("typeof(any_value({}))", schema.empty_table())
        except import_duckdb(_PURPOSE).Error as error:
            raise UsageError.of("{--where}: for {label}: {why}", label=label, why=first_line(error)) from None
        if kinds[0] != "BOOLEAN":
            raise UsageError(BOOK.text("where_no_condition", label=label, kinds=kinds[0]))

    def holds(self, batch: Any) -> Any:
        """Evaluate the condition for each row of a batch: a boolean array of numpy. Raises CkptError."""
        try:
            results = self._evaluate("coalesce({}, false)", pa.Table.from_batches([batch]))
        except import_duckdb(_PURPOSE).Error as error:
            raise CkptError(f"the condition {self.text} has no result for a row: {first_line(error)}") from None
        if len(results) != batch.num_rows:
            raise CkptError(f"the condition {self.text} has {len(results)} results for {batch.num_rows} rows")
        return results

    def _evaluate(self, how: str, table: Any) -> Any:
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


def match_columns(names: Collection[str], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that have one of the names, whatever its case."""
    wanted = {name.lower() for name in names}
    return {name: column for name, column in columns.items() if name.lower() in wanted}


def _bracket(text: str) -> str:
    """In lines of their own, so that no comment takes the last bracket."""
    return f"(\n{text}\n)"


def _take_expression(tree: Any) -> Any:
    """The one expression of a parsed SELECT, taken out of it; None where there are more or others."""
    for statement in tree["statements"]:
        chosen = statement.get("node", {}).get("select_list") or []
        if len(tree["statements"]) == len(chosen) == 1:
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
