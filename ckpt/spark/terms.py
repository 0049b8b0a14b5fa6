"""Expressions of Spark's plans (``TreeNode.toJSON``) as text over the columns of sources, the same on each run.

A reference to a column is replaced by the expression that computes it, down to the sources: what a query calls its
columns in between does not show. No table of functions: a function is its class, its arguments and its parameters.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ckpt.formats.types import fields_of
from ckpt.model import Json
from ckpt.query.description import DescribedWindow, spell_schema
from ckpt.query.reader_options import (
    PARSER,
    ZONE,
    digest,
    keep_options,
    list_affecting,
    list_leaf_types,
    normalize_zone,
)

_LONGEST = 4000
"""Characters of a text that is still kept: references to references can make it grow exponentially."""
_INFIX = {
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "Divide": "/",
    "Remainder": "%",
    "And": "AND",
    "Or": "OR",
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_MIRRORED = {"GreaterThan": "LessThan", "GreaterThanOrEqual": "LessThanOrEqual"}
_RENAMED = {"TimeAdd": "TimestampAddInterval"}  # before Spark 4.1
_COMMUTATIVE = frozenset({"Add", "Multiply", "And", "Or", "EqualTo", "EqualNullSafe"})
_COMPARING = frozenset({"EqualTo", "LessThan", "LessThanOrEqual"})
_TRANSPARENT = frozenset({"Alias", "KnownNullable", "KnownNotNull", "KnownFloatingPointNormalized"})
_HIDDEN = frozenset(
    {
        *("InSet", "ScalaAggregator", "ScalaUDAF", "Invoke", "StaticInvoke", "NewInstance", "MapObjects"),
        *("ScalarSubquery", "InSubqueryExec", "ProtobufDataToCatalyst"),
    }
)
"""Expressions whose JSON leaves out what they compute, besides user-defined functions."""
_UNSPOKEN = frozenset(
    {
        *("class", "num-children", "ansiEnabled", "evalMode", "evalType", "failOnError", "inputAggBufferOffset"),
        *("mutableAggBufferOffset", "nullOnOverflow", "name", "options", "timeParserPolicy", "timeZoneId", "tries"),
        *("udfDeterministic", "nullable", "randomSeed"),
    }
)
"""Parameters that follow from settings or places in a plan, that it makes up, or that are spelled apart."""
_BY_NAME = frozenset({"JsonToStructs", "XmlToStructs"})
"""Readers of texts, which look for each field by its name: others of its schema do not count."""
_TIMES = ("timestamp", "timestamp_ntz", "date")
_OF_THE_RESULT = ("percentageExpression",)
"""Arguments of aggregate functions that Spark reads when it makes a result of a buffer, never when it fills one."""
_OF_THE_SIZE = ("relativeSD",)
"""Parameters of aggregate functions that decide how many columns their buffer has, and nothing else."""
_OF_AN_ORDER = ("direction", "nullOrdering")
"""Parameters of ``SortOrder``."""
_OF_A_STEP = ("limit", "offset", "lowerBound", "upperBound", "withReplacement", "seed")
"""Numbers of a node that decides which rows of a table there are."""
_ZONED = frozenset({"timestamp_ntz", "date", "string"})
"""Types from and to which a time is converted in a time zone."""
_DAY_US = 86_400_000_000
_BOUNDS: Json = {"type": "struct", "fields": [{"name": name, "type": "timestamp"} for name in ("start", "end")]}
"""The type of a window."""


@dataclass(frozen=True, slots=True)
class Term:
    """An expression; ``text`` is its normal form."""

    text: str
    type: Json = None  # where the plan says it
    kind: str = ""  # Spark's class
    children: tuple["Term", ...] = ()
    literal: str | None = None
    window: DescribedWindow | None = None
    gap: str | None = None  # of a session window
    parsed: str | None = None  # of a struct that is read from a text, by the names of its fields: it without its schema
    options: Mapping[str, str] = field(default_factory=dict)  # of the reader of that text


Columns = Mapping[int, Term]
"""The columns of a row of a plan, by the ids of its attributes, in order."""


def read_terms(lists: Any, columns: Columns) -> tuple[Term, ...]:
    """Read a sequence of expressions."""
    return tuple(read_term(nodes, columns) for nodes in lists or ())


def read_term(nodes: list[dict[str, Any]], columns: Columns) -> Term:
    """Read an expression: its nodes, each before its children."""
    return _read_next(iter(_number_variables(nodes)), columns)


def read_kept(nodes: list[dict[str, Any]], columns: Columns, width: int) -> str | None:
    """Read an aggregate function without the arguments that its state does not depend on; None: it has none of those.

    Percentiles keep all values: which percentile is asked for can change. ``width`` is how many columns it keeps.
    """
    term, node = read_term(nodes, columns), nodes[0]
    if any(name in node for name in _OF_THE_SIZE):
        own = {name: value for name, value in node.items() if name not in _OF_THE_SIZE}
        parameters = (*_list_parameters(own), f"columns={width}")
        return _make_term(term.kind.lower(), term.kind, term.children, parameters).text
    numbers = [node[name] for name in _OF_THE_RESULT if isinstance(node.get(name), int)]
    if not numbers or max(numbers) >= len(term.children):
        return None
    kept = tuple(child for number, child in enumerate(term.children) if number not in numbers)
    return _make_term(term.kind.lower(), term.kind, kept, _list_parameters(node)).text


def spell_step(kind: str, fields: Mapping[str, Any], columns: Columns) -> str:
    """Spell a node of a plan by its numbers and expressions."""
    parts = [f"{name}={fields[name]}" for name in _OF_A_STEP if fields.get(name) is not None]
    for name in ("groupingExpressions", "windowExpression", "partitionSpec", "orderSpec", "sortOrder"):
        texts = [term.text for term in read_terms(fields.get(name), columns)]
        if texts:
            parts.append(f"{name}=({', '.join(sorted(texts) if name == 'groupingExpressions' else texts)})")
    return _shorten(f"{kind}({', '.join(parts)})")


def list_expressions(fields: Any, *, copies: bool = True) -> Iterator[dict[str, Any]]:
    """List the expressions in the JSON of a plan's node, each before its children; CASE has copies of its branches."""
    if isinstance(fields, list):
        for each in fields:
            yield from list_expressions(each, copies=copies)
    elif isinstance(fields, dict):
        is_expression = "num-children" in fields and "class" in fields
        if is_expression:
            yield fields
        for value in fields.values() if copies or not is_expression else ():
            yield from list_expressions(value, copies=copies)


def hide_time(node: dict[str, Any]) -> None:
    """Hide a constant time: what was computed of the clock cannot be told from another one."""
    if node["class"].endswith(".Literal") and node.get("dataType") in _TIMES:
        node["value"] = "now?"


def id_of(nodes: list[dict[str, Any]]) -> int:
    """The id of the attribute that an expression makes or is."""
    return int(nodes[0]["exprId"]["id"])


def column_of_source(name: str, source: int | str, data_type: Json) -> Term:
    """A column that a source reads, by its number; the text of a table that is not streamed."""
    at = source if isinstance(source, int) else f"static[{source}]"
    return Term(f"{_escape(name)}@{at}", data_type, "Column")


def split_condition(term: Term) -> Iterator[Term]:
    """The conditions that have to hold together."""
    if term.kind == "And":
        for child in term.children:
            yield from split_condition(child)
    else:
        yield term


def drop_not_null(conditions: Iterable[Term]) -> tuple[str, ...]:
    """Conditions without ``IS NOT NULL``, which Spark adds for what follows."""
    return tuple(term.text for term in conditions if term.kind != "IsNotNull")


def drop_implied(conditions: Sequence[Term]) -> list[str]:
    """Conditions without ``IS NOT NULL`` of what another one compares: that is never true of NULL."""
    compared = {child.text for term in conditions if term.kind in _COMPARING for child in term.children}
    texts = {
        f"{term.children[0].text} IS NOT NULL" if term.kind == "IsNotNull" else term.text
        for term in conditions
        if term.kind != "IsNotNull" or term.children[0].text not in compared
    }
    return sorted(texts)


def unite(branches: list[tuple[tuple[int, ...], Term]]) -> Term:
    """A column of a union: of each branch its sources, and its expression."""
    pairs = " | ".join(f"{','.join(map(str, sources))}: {term.text}" for sources, term in branches)
    windows = [term.window for _, term in branches if term.window is not None]
    times = {(each.length_us, each.slide_us, each.offset_us) for each in windows}
    window = replace(windows[0], column=pairs) if len(windows) == len(branches) and len(times) == 1 else None
    return Term(_shorten(f"{{{pairs}}}"), branches[0][1].type, "Union", window=window)


def choose(terms: tuple[Term, ...]) -> Term:
    """A column of which a row has each of several values in turn (``Expand``)."""
    texts = sorted({term.text for term in terms})
    return terms[0] if len(texts) == 1 else Term(_shorten(f"each({', '.join(texts)})"), terms[0].type, "Expand")


def _number_variables(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Number the variables of lambda functions in the order in which they were made: their names and ids differ."""
    variables = [node for node in nodes if str(node["class"]).endswith(".NamedLambdaVariable")]
    ids = sorted({id_of([node]) for node in variables})
    return [{**node, "number": ids.index(id_of([node]))} if node in variables else node for node in nodes]


def _read_next(nodes: Iterator[dict[str, Any]], columns: Columns) -> Term:
    node = next(nodes)
    term = _read_node(node, nodes, columns)
    return replace(term, text=_shorten(f"try({term.text})")) if node.get("tries") else term


def _read_node(node: dict[str, Any], nodes: Iterator[dict[str, Any]], columns: Columns) -> Term:
    children = tuple(_read_next(nodes, columns) for _ in range(node["num-children"]))
    kind = str(node["class"]).rpartition(".")[2]
    kind = _RENAMED.get(kind, kind)
    match kind:
        case "AttributeReference":
            known = columns.get(int(node["exprId"]["id"]))
            return known or Term(f"{_keep_name(node['name'])}?", node["dataType"], kind)
        case "Literal":
            value = node.get("value")
            return Term(_spell_literal(value, node["dataType"]), node["dataType"], kind, literal=value)
        case "Cast":
            text = f"CAST({children[0].text} AS {spell_schema(node['dataType'])})"
            zoned = _casts_times(children[0].type, node["dataType"])
            zone = _spell_options({ZONE: _read_zone(node).get(ZONE, "")}) if zoned else ""
            return Term(_shorten(f"{text}{zone}"), node["dataType"], kind, children)
        case "PreciseTimestampConversion":  # a time as a number, or back
            return Term(children[0].text, node["toType"], kind, children)
        case "GetStructField":
            return _read_field(children[0], node["ordinal"])
        case "CreateNamedStruct":
            children = children[1::2]  # names do not count
            return _read_window(children) or _make_term("struct", kind, children)
        case _ if kind in _TRANSPARENT and len(children) == 1:
            return children[0]
        case _ if kind in _MIRRORED:
            kind, children = _MIRRORED[kind], children[::-1]
    children = _order(kind, node, children)
    if kind in _INFIX and len(children) == 2:
        return Term(_shorten(f"({children[0].text} {_INFIX[kind]} {children[1].text})"), None, kind, children)
    return _read_call(node, kind, children)


def _order(kind: str, node: Mapping[str, Any], children: tuple[Term, ...]) -> tuple[Term, ...]:
    """The arguments in an order of ours where theirs does not count, without a seed that Spark made up."""
    if node.get("hideSeed") is True:
        return children[1:]
    first = 0 if kind in _COMMUTATIVE else 1 if kind == "In" else len(children)
    return (*children[:first], *sorted(children[first:], key=lambda child: child.text))


def _read_call(node: Mapping[str, Any], kind: str, children: tuple[Term, ...]) -> Term:
    hidden = "UDF" in kind or kind in _HIDDEN
    name = f"{_escape(str(node.get('name') or kind))}?" if hidden else kind.lower()
    term = _make_term(name, kind, children, _list_parameters(node))
    schema, options = node.get("schema"), _list_options(node, kind)
    if not isinstance(schema, dict):
        zone = {} if any(map(_is_short_interval, children)) else _read_zone(node)
        return replace(term, text=_shorten(f"{term.text}{_spell_options({**zone, **options})}"))
    options = {**_read_zone(node), **options}
    own = _spell_options(list_affecting(options, schema, None))
    text = _shorten(f"{term.text}{own} AS {spell_schema(schema)}")
    return replace(term, text=text, type=schema, parsed=term.text if kind in _BY_NAME else None, options=options)


def _list_options(node: Mapping[str, Any], kind: str) -> dict[str, str]:
    strict = kind.startswith(("Avro", "Protobuf"))
    own = node["options"] if isinstance(node.get("options"), dict) else {}
    return keep_options(own, node.get("schema"), default_mode="failfast" if strict else "permissive")


def _read_zone(node: Mapping[str, Any]) -> dict[str, str]:
    """The time zone of an expression, and how it parses times if that is the old way."""
    zone, parser = node.get("timeZoneId"), node.get("timeParserPolicy")
    if not isinstance(zone, str):
        return {}
    return {ZONE: normalize_zone(zone), **({PARSER: str(parser)} if parser else {})}


def _spell_options(options: Mapping[str, str]) -> str:
    own = ", ".join(f"{name}={options[name]}" for name in sorted(options))
    return f"[{own}]" if own else ""


def _casts_times(old: Json, new: Json) -> bool:
    """Tell whether a conversion needs a time zone (``Cast.needsTimeZone``); one of an unknown type may."""
    before, after = set(list_leaf_types(old)), set(list_leaf_types(new))
    if old is None:
        return bool(after & {*_ZONED, "timestamp"})
    times = ("timestamp" in before and after & _ZONED) or ("timestamp" in after and before & _ZONED)
    return bool(times) or "variant" in before


def _is_short_interval(argument: Term) -> bool:
    """Tell whether an argument is a constant interval of less than a day, which no time zone makes longer."""
    if argument.literal is None or not str(argument.type).startswith("interval"):
        return False
    if re.search(r"month|year", str(argument.type)):  # its literal is a number of months
        return False
    if re.fullmatch(r"-?\d+", argument.literal):
        return abs(int(argument.literal)) < _DAY_US
    return re.search(r"day|week|month|year", argument.literal) is None


def read_object(value: Any) -> str:
    """Read an object of Scala in the JSON of a plan, such as a mode or a kind of join: its name."""
    return str(value["object"]).rpartition(".")[2].rstrip("$")


def _make_term(name: str, kind: str, children: tuple[Term, ...], parameters: tuple[str, ...] = ()) -> Term:
    text = f"{name}({', '.join([*(child.text for child in children), *parameters])})"
    return Term(_shorten(text), None, kind, children)


def _list_parameters(node: Mapping[str, Any]) -> tuple[str, ...]:
    """List the parameters of an expression besides its children."""
    left = set(range(node["num-children"]))
    parameters = []
    for name, value in node.items():
        if isinstance(value, int) and not isinstance(value, bool) and value in left:
            left.discard(value)  # the number of a child
        elif name not in _UNSPOKEN and isinstance(value, (bool, int, float, str)):
            plain = not isinstance(value, str) or name.endswith("Type")
            parameters.append(f"{name}={value if plain else digest(value)}")
        elif name in _OF_AN_ORDER and isinstance(value, dict):
            parameters.append(read_object(value))
    return tuple(parameters)


def _read_field(struct: Term, ordinal: int) -> Term:
    fields = fields_of(struct.type)
    if fields is not None and ordinal < len(fields):
        own: Any = fields[ordinal]
        if struct.parsed is not None:
            text = _shorten(f"{struct.parsed}.{_escape(own['name'])}")
            options = _spell_options(list_affecting(struct.options, own["type"], own["name"]))
            typed = _shorten(f"{text}{options} AS {spell_schema(own['type'])}")
            return Term(typed, own["type"], "GetStructField", (struct,), parsed=text, options=struct.options)
        return Term(_shorten(f"{struct.text}.{_escape(own['name'])}"), own["type"], "GetStructField", (struct,))
    if struct.kind == "CreateNamedStruct" and ordinal < len(struct.children):
        return struct.children[ordinal]
    return Term(_shorten(f"{struct.text}.{ordinal}"), None, "GetStructField", (struct,))


def _read_window(bounds: tuple[Term, ...]) -> Term | None:
    """Find the window whose start and end Spark's ``TimeWindowing`` and ``SessionWindowing`` compute; None: another."""
    if len(bounds) != 2 or any(bound.kind != "PreciseTimestampConversion" for bound in bounds):
        return None
    start, end = (bound.children[0] for bound in bounds)
    remainder = next(_find(start, "Remainder"), None)
    if remainder is not None:
        time, slide = remainder.children
        offset = 0
        if time.kind == "Subtract":
            offset, time = _number(time.children[1]), time.children[0]
        length = _sum_constants(end) - _sum_constants(start)
        window = DescribedWindow(_strip(time).text, length, _number(slide), offset)
        text = f"window({window.column}, {window.length_us}, {window.slide_us}, {window.offset_us})"
        return Term(text, _BOUNDS, "TimeWindow", window=window)
    start, end = _strip(start), _strip(end)
    if len(end.children) == 2 and end.children[0].text == start.text:
        gap = end.children[1].text
        return Term(_shorten(f"session_window({start.text}, {gap})"), _BOUNDS, "SessionWindow", gap=gap)
    return None


def _strip(term: Term) -> Term:
    while term.kind in ("PreciseTimestampConversion", "Cast"):
        term = term.children[0]
    return term


def _find(term: Term, kind: str) -> Iterator[Term]:
    if term.kind == kind:
        yield term
    for child in term.children:
        yield from _find(child, kind)


def _sum_constants(term: Term) -> int:
    """The constant that is added to the rest of a sum."""
    if term.kind == "Add":
        return sum(_number(child) if child.literal is not None else _sum_constants(child) for child in term.children)
    if term.kind == "Subtract" and term.children[1].literal is not None:
        return _sum_constants(term.children[0]) - _number(term.children[1])
    return 0


def _number(term: Term) -> int:
    return int(term.literal or 0)


def _spell_literal(value: Any, data_type: Json) -> str:
    if value is None:
        return "NULL"
    if isinstance(data_type, str) and not data_type.startswith(("string", "binary", "char", "varchar", "variant")):
        return str(value)
    return "?" if data_type == "binary" or "@" in str(value) else f"'{digest(value)}'"


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:200]}...{digest(text)}{'?' if '?' in text else ''}"


def _keep_name(name: str) -> str:
    """Keep a name; one that is an expression, as Spark gives it to a column without one, may have literals."""
    return name if re.fullmatch(r"\w+", name) else digest(name)


def _escape(name: str) -> str:
    """A name of letters, digits and ``_``; any other character is its number between ``%``."""
    return re.sub(r"\W", lambda match: f"%{ord(match[0]):X}%", name)
