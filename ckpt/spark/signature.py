"""The signature of a query: what its stateful operators compute, from the physical plan of a batch that never runs.

What the plan says is read from its JSON, which is one call. What JSON leaves out (delays of watermarks, conditions of
joins, empty buffers of aggregate functions) is asked of the plan's objects.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from py4j.protocol import Py4JError

from ckpt.model import Json
from ckpt.query import description
from ckpt.query.reader_options import ANSI, digest
from ckpt.spark.planning import Planner
from ckpt.spark.terms import (
    Columns,
    Term,
    choose,
    column_of_source,
    drop_implied,
    drop_not_null,
    hide_time,
    id_of,
    list_expressions,
    read_kept,
    read_object,
    read_term,
    read_terms,
    spell_step,
    split_condition,
    unite,
)

_MERGING = frozenset({"Partial", "PartialMerge"})
_BETWEEN = ("AggregateExec", "Exchange", "SortExec", "Restore", "Sessions", "WholeStageCodegen", "InputAdapter")
"""Parts of the names of nodes that Spark puts between the steps of a streaming aggregation."""

_OF_A_TABLE = frozenset(
    {"CollectLimitExec", "GlobalLimitExec", "LocalLimitExec", "SampleExec", "TakeOrderedAndProjectExec", "WindowExec"}
)
"""Nodes over a table that is not streamed which decide its rows, besides aggregations."""


_UNDERSTOOD = frozenset(
    {
        *("AppendColumnsExec", "CoalesceExec", "CollectMetricsExec", "ColumnarToRowExec", "DeserializeToObjectExec"),
        *("EventTimeWatermarkExec", "ExpandExec", "FilterExec", "GenerateExec", "LocalLimitExec", "MapElementsExec"),
        *("MapPartitionsExec", "ProjectExec", "RowToColumnarExec", "SerializeFromObjectExec", "UnionExec"),
        *("UpdateEventTimeColumnExec", "WindowExec"),
    }
)
"""Nodes that emit each row once, or whose output ckpt reads; any other may drop or repeat rows."""

_HIDDEN_ROWS = "rows?"
"""A table of rows that no plan has, or of a kind that ckpt does not know: whether two are the same cannot be told."""
_OBJECT = re.compile(r"@[0-9a-f]{4,}")  # ``Object.toString``: of an instance, another in each run


@dataclass(slots=True)
class _Node:
    """A node of a physical plan."""

    kind: str  # Spark's class
    fields: Mapping[str, Any]  # of its JSON
    java: Any
    children: list["_Node"] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that a node emits."""

    columns: Columns = field(default_factory=dict)
    sources: tuple[int, ...] = ()
    filters: tuple[str, ...] = ()  # since the last stateful operator, without ``IS NOT NULL``
    conditions: tuple[Term, ...] = ()  # likewise: all that decides which rows there are
    operators: tuple[int, ...] = ()  # the last stateful operators
    tables: tuple[str, ...] = ()  # that are not streamed

    def narrow(self, *conditions: Term) -> "_Rows":
        """Return the rows that fulfil conditions."""
        filters = dict.fromkeys((*self.filters, *drop_not_null(conditions)))
        return replace(self, filters=tuple(filters), conditions=(*self.conditions, *conditions))


@dataclass(frozen=True, slots=True)
class Signature:
    """The operators of a plan by their ids, without their stores, and its watermarks."""

    operators: Mapping[int, description.DescribedOperator]
    watermarks: tuple[description.DescribedWatermark, ...] | None
    infers: bool = False  # there are conditions that may be none of the query


def read_signature(plan: Any, sources: int, planner: Planner) -> Signature:
    """Read the signature of a physical plan over so many sources.

    Where ckpt does not understand the plan, operators have only their names.
    """
    objects = list(_walk(plan))
    reader = _Reader(planner)
    try:
        parsed = json.loads(plan.toJSON())
        clock, policy, wraps = planner.reads_clock, planner.parses_times, planner.session[ANSI].lower() == "false"
        nodes = []
        for fields, node in zip(parsed, objects, strict=True):
            nodes.append(_Node(str(fields["class"]).rpartition(".")[2], fields, node))
            if fields.get("projections", ()) is None:
                fields["projections"] = _read_projections(node)
            _fill_options(fields, node)
            if wraps:
                _fill_modes(fields, node)
            for expression in list_expressions(fields) if clock or policy else ():
                if clock:
                    hide_time(expression)
                if policy and expression.get("timeZoneId"):
                    expression["timeParserPolicy"] = policy
        if sum(node.kind == "StreamingRelationExec" for node in nodes) != sources:
            raise ValueError("another number of sources")
        reader.find_names(nodes)
        reader.read(_build(iter(nodes)))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, StopIteration, Py4JError, RecursionError):
        writers = filter(planner.state_writer.isInstance, objects)
        return Signature({_find_id(node): description.DescribedOperator(node.shortName()) for node in writers}, None)
    watermarks = sorted({*reader.watermarks}, key=lambda watermark: (watermark.column, watermark.delay_ms))
    return Signature(reader.operators, tuple(watermarks), reader.infers)


def read_own_conditions(inferred: Signature, plan: Any, sources: int, planner: Planner) -> Signature:
    """Replace conditions by those of a plan in which Spark inferred none."""
    own = read_signature(plan, sources, planner).operators
    operators = {
        number: replace(operator, conditions=own[number].conditions if number in own else None)
        for number, operator in inferred.operators.items()
    }
    return replace(inferred, operators=operators)


def _find_id(node: Any) -> int:
    return int(node.stateInfo().get().operatorId())


def _walk(plan: Any) -> Iterator[Any]:
    """The nodes of a plan, each before its children, as its JSON has them."""
    yield plan
    yield from _walk_all(plan.children())


def _build(nodes: Iterator[_Node]) -> _Node:
    """Give nodes their children, which follow them; returns the first."""
    node = next(nodes)
    node.children = [_build(nodes) for _ in range(node.fields["num-children"])]
    return node


class _Reader:
    """Reads a plan from its leaves up."""

    def __init__(self, planner: Planner) -> None:
        self.operators: dict[int, description.DescribedOperator] = {}
        self.watermarks: list[description.DescribedWatermark] = []
        self.infers = False
        self._planner = planner
        self._expressions = planner.expressions
        self._writer = planner.state_writer
        self._streams = 0
        self._names: dict[int, str] = {}

    def find_names(self, nodes: Iterable[_Node]) -> None:
        """Note the names of result columns that are an aggregate, by the id of its result."""
        for node in nodes:
            for each in node.fields.get("resultExpressions") or () if node.kind.endswith("AggregateExec") else ():
                if [part["class"].rpartition(".")[2] for part in each] == ["Alias", "AttributeReference"]:
                    self._names[id_of(each[1:])] = str(each[0]["name"])

    def read(self, node: _Node) -> _Rows:
        inputs = [self.read(child) for child in node.children]
        rows = self._combine(node, inputs) if len(inputs) != 1 else inputs[0]
        if self._writer.isInstance(node.java):
            number = _find_id(node.java)
            self.operators[number] = self._read_operator(node, inputs)
            rows = replace(rows, filters=(), conditions=(), operators=(number,))
        if rows.sources and not self._is_understood(node):
            hidden = f"{spell_step(_name_step(node.kind), node.fields, rows.columns)}?"
            rows = replace(rows, conditions=(*rows.conditions, Term(hidden)))
        return self._apply(node, rows)

    def _combine(self, node: _Node, inputs: list[_Rows]) -> _Rows:
        if not inputs:
            source: int | str
            if node.kind == "StreamingRelationExec":
                source, self._streams = self._streams, self._streams + 1
            else:
                source = _identify_table(node.java, node.kind, node.fields, self._planner)
            columns = {
                id_of(nodes): column_of_source(nodes[0]["name"], source, nodes[0]["dataType"])
                for nodes in node.fields.get("output") or ()
            }
            return _Rows(columns, (source,)) if isinstance(source, int) else _Rows(columns, tables=(source,))
        tables = tuple(dict.fromkeys(table for rows in inputs for table in rows.tables))
        sources = tuple(source for rows in inputs for source in rows.sources)
        both = _Rows(
            {number: term for rows in inputs for number, term in rows.columns.items()},
            sources,
            tuple(dict.fromkeys(text for rows in inputs for text in rows.filters)),
            tuple(term for rows in inputs for term in rows.conditions),
            tuple(dict.fromkeys(number for rows in inputs for number in rows.operators)),
            tables,
        )
        if node.kind != "UnionExec":
            joined = len(inputs) == 2 and not all(rows.sources for rows in inputs)
            return both.narrow(Term(_spell_join(node, *inputs))) if joined else both
        places = zip(*(rows.columns.values() for rows in inputs), strict=True)
        united = (unite([(rows.sources, term) for rows, term in zip(inputs, terms, strict=True)]) for terms in places)
        return replace(both, columns=dict(zip(inputs[0].columns, united, strict=True)))

    def _apply(self, node: _Node, rows: _Rows) -> _Rows:
        fields = node.fields
        if not rows.sources and (node.kind in _OF_A_TABLE or node.kind.endswith("AggregateExec")):
            step = f"{spell_step(_name_step(node.kind), fields, rows.columns)} of [{', '.join(rows.tables)}]"
            rows = rows.narrow(Term(step))
        match node.kind:
            case "WindowExec":
                return replace(rows, columns={**rows.columns, **_project(fields["windowExpression"], rows.columns)})
            case "ProjectExec":
                return replace(rows, columns=_project(fields["projectList"], rows.columns))
            case "FilterExec":
                conditions = tuple(split_condition(read_term(fields["condition"], rows.columns)))
                self.infers |= any(term.kind == "IsNotNull" for term in conditions)
                return rows.narrow(*conditions)
            case "ExpandExec":
                projections = zip(*(read_terms(each, rows.columns) for each in fields["projections"]), strict=True)
                ids = [id_of(nodes) for nodes in fields["output"]]
                return replace(rows, columns=dict(zip(ids, map(choose, projections), strict=True)))
            case "GenerateExec":
                generator = read_term(fields["generator"], rows.columns)
                new = {
                    id_of(nodes): Term(f"{generator.text}.{number}", nodes[0]["dataType"], "Generator")
                    for number, nodes in enumerate(fields["generatorOutput"])
                }
                how = Term(f"{generator.text}{' OUTER' * (fields['outer'] is True)}")
                columns = {**_project(fields["requiredChildOutput"], rows.columns), **new}
                return replace(rows, columns=columns, conditions=(*rows.conditions, how))
            case kind if "MapIn" in kind and "func" in fields:  # a function of whole batches of rows
                return rows.narrow(Term(read_term(fields["func"], rows.columns).text))
            case "MapPartitionsExec":
                return rows.narrow(Term("mapPartitions?"))
            case "EventTimeWatermarkExec":
                column = read_term(fields["eventTime"], rows.columns).text
                self.watermarks.append(description.DescribedWatermark(column, int(node.java.delayMs())))
            case kind if kind.endswith("EvalPythonExec"):
                functions = read_terms(fields["udfs"], rows.columns)
                results = dict(zip(map(id_of, fields["resultAttrs"]), functions, strict=True))
                return replace(rows, columns={**rows.columns, **results})
            case kind if kind.endswith("AggregateExec") and _MERGING.isdisjoint(_list_modes(node)):
                functions = fields["aggregateExpressions"]
                results = {_find_result(nodes): read_term(nodes[1:], rows.columns) for nodes in functions}
                return replace(rows, columns=_project(fields["resultExpressions"], {**rows.columns, **results}))
        return rows

    def _is_understood(self, node: _Node) -> bool:
        """Tell whether ckpt knows which of its rows a node emits."""
        if not node.children or node.kind in _UNDERSTOOD or self._writer.isInstance(node.java):
            return True
        if len(node.children) == 2:
            return "Join" in node.kind or node.kind == "CartesianProductExec"
        return any(part in node.kind for part in (*_BETWEEN, "EvalPython", "MapIn"))

    def _read_operator(self, node: _Node, inputs: list[_Rows]) -> description.DescribedOperator:
        fields, rows = node.fields, inputs[0]
        operator = description.DescribedOperator(
            node.java.shortName(),
            filters=tuple(sorted(text for each in inputs for text in each.filters)),
            conditions=tuple(drop_implied([term for each in inputs for term in each.conditions])),
            inputs=tuple(sorted({number for each in inputs for number in each.operators})),
        )
        match node.kind:
            case "StateStoreSaveExec" | "SessionWindowStateStoreSaveExec":
                return self._read_aggregation(node, rows, operator)
            case "StreamingSymmetricHashJoinExec":
                return replace(operator, join=self._read_join(node, *inputs))
            case "StreamingGlobalLimitExec":
                return replace(operator, limit=int(fields["streamLimit"]))
        keys = fields.get("keyExpressions") or fields.get("groupingAttributes")
        return replace(operator, keys=_describe_expressions(keys, rows.columns)) if keys is not None else operator

    def _read_aggregation(
        self, node: _Node, rows: _Rows, operator: description.DescribedOperator
    ) -> description.DescribedOperator:
        partial = _find_first_step(node)
        keys = read_terms(partial.fields["groupingExpressions"], rows.columns)
        functions = partial.java.aggregateExpressions()
        return replace(
            operator,
            keys=_describe_expressions(partial.fields["groupingExpressions"], rows.columns),
            aggregates=tuple(
                description.DescribedAggregate(
                    str(nodes[1]["class"]).rpartition(".")[2],
                    read_term(nodes[1:], rows.columns).text,  # without what ``AggregateExpression`` adds to it
                    nodes[0]["isDistinct"] is True,
                    read_term(nodes[0]["filter"], rows.columns).text if nodes[0].get("filter") else None,
                    _keep_name(self._names.get(_find_result(nodes))),
                    buffers,
                    "DeclarativeAggregate" in _list_kinds(function),
                    read_kept(nodes[1:], rows.columns, len(buffers)),
                    json.loads(function.dataType().json()),
                )
                for number, nodes in enumerate(partial.fields["aggregateExpressions"])
                for function in (functions.apply(number).aggregateFunction(),)
                for buffers in (self._read_buffers(function),)
            ),
            window=next((key.window for key in keys if key.window is not None), None),
            gap=next((key.gap for key in keys if key.gap is not None), None),
        )

    def _read_join(self, node: _Node, left: _Rows, right: _Rows) -> description.DescribedJoin:
        fields, condition = node.fields, None
        with suppress(Py4JError):
            full = node.java.condition().full()
            if full.isDefined():
                condition = read_term(json.loads(full.get().toJSON()), {**left.columns, **right.columns}).text
        sides = (_describe_side(fields["leftKeys"], left), _describe_side(fields["rightKeys"], right))
        return description.DescribedJoin(read_object(fields["joinType"]), *sides, condition)

    def _read_buffers(self, function: Any) -> tuple[description.DescribedBuffer, ...]:
        """The columns of state of a function, with their values before the first row as Spark computes them."""
        columns = json.loads(function.aggBufferSchema().json())["fields"]
        values = self._list_empty_values(function, len(columns))
        return tuple(
            description.DescribedBuffer(column["name"], column["type"], column["nullable"], *value)
            for column, value in zip(columns, values, strict=True)
        )

    def _list_empty_values(self, function: Any, count: int) -> list[tuple[Json, bool]]:
        """The value of each column, and whether it is known."""
        kinds = _list_kinds(function)
        unknown: list[tuple[Json, bool]] = [(None, False)] * count
        with suppress(Py4JError, ValueError):
            if "DeclarativeAggregate" in kinds:
                values = function.initialValues()
                nodes = json.loads(self._expressions.Coalesce(values).toJSON())[1:]
                if [node["num-children"] for node in nodes] != [0] * count:
                    nodes = [self._evaluate(values.apply(number)) for number in range(count)]
                return [_read_literal(node) for node in nodes]
            if "TypedImperativeAggregate" in kinds:
                return [(bytes(function.serialize(function.createAggregationBuffer())).hex(), True)]
            row = self._expressions.SpecificInternalRow(function.aggBufferSchema())
            function.withNewMutableAggBufferOffset(0).initialize(row)
            numbers = str(row.toString()).strip("[]").split(",")
            return [(int(number), True) for number in numbers] if len(numbers) == count else unknown
        return unknown

    def _evaluate(self, expression: Any) -> Mapping[str, Any]:
        literal = getattr(self._expressions, "Literal$").__getattr__("MODULE$")
        value = literal.create(expression.eval(None), expression.dataType())
        node: Mapping[str, Any] = json.loads(value.toJSON())[0]
        return node


def _read_projections(node: Any) -> list[list[Any]]:
    """Read the projections of an ``Expand`` that follows a join, which its JSON leaves out."""
    lists = node.projections()
    each = (lists.apply(number) for number in range(lists.size()))
    return [[json.loads(columns.apply(ordinal).toJSON()) for ordinal in range(columns.size())] for columns in each]


def _fill_options(fields: Mapping[str, Any], node: Any) -> None:
    """Give expressions of a plan's node their options, which its JSON leaves out."""
    for own, java in _pair_expressions(fields, node, "options"):
        pairs = java.options().toSeq()
        own["options"] = {str(pair._1()): str(pair._2()) for pair in map(pairs.apply, range(pairs.size()))}


def _fill_modes(fields: Mapping[str, Any], node: Any) -> None:
    """Note which expressions give NULL for what would wrap around: ``try_add`` and ``+`` have one JSON."""
    for own, java in _pair_expressions(fields, node, "evalMode"):
        own["tries"] = "TRY" in str(java.evalMode())
    for own, java in _pair_expressions(fields, node, "evalContext"):
        own["tries"] = "TRY" in str(java.evalContext().evalMode())


def _pair_expressions(fields: Mapping[str, Any], node: Any, parameter: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """Pair the expressions of a plan's node that have a parameter with Spark's own objects."""
    nodes = [each for each in list_expressions([*fields.values()], copies=False) if parameter in each]
    kinds = {str(each["class"]) for each in nodes}
    objects = [each for each in _walk_all(node.expressions()) if each.getClass().getName() in kinds] if nodes else []
    return zip(nodes, objects, strict=True)


def _walk_all(trees: Any) -> Iterator[Any]:
    for number in range(trees.size()):
        yield from _walk(trees.apply(number))


def _spell_join(node: _Node, left: _Rows, right: _Rows) -> str:
    """A join with a table that is not streamed, which decides how often a row counts; how it is done does not show."""
    fields = node.fields
    keys = [read_terms(fields.get(name), rows.columns) for name, rows in (("leftKeys", left), ("rightKeys", right))]
    conditions = [f"({' = '.join(sorted(term.text for term in pair))})" for pair in zip(*keys, strict=True)]
    if fields.get("condition"):
        conditions += drop_not_null(split_condition(read_term(fields["condition"], {**left.columns, **right.columns})))
    tables = ", ".join(table for rows in (left, right) if not rows.sources for table in rows.tables)
    return f"{read_object(fields['joinType'])} join[{tables}] on {' AND '.join(sorted(conditions)) or 'nothing'}"


def _name_step(kind: str) -> str:
    """Name a node; how an aggregation is done does not show."""
    return "Aggregate" if kind.endswith("AggregateExec") else kind.removesuffix("Exec")


def _project(expressions: Any, columns: Columns) -> dict[int, Term]:
    return {id_of(nodes): read_term(nodes, columns) for nodes in expressions}


def _list_modes(node: _Node) -> set[str]:
    return {read_object(nodes[0]["mode"]) for nodes in node.fields["aggregateExpressions"]}


def _find_result(nodes: list[dict[str, Any]]) -> int:
    return int(nodes[0]["resultId"]["id"])


def _find_first_step(node: _Node) -> _Node:
    """The aggregation of the rows themselves, below what merges it with the state. Raises ValueError."""
    first = None
    while len(node.children) == 1:
        node = node.children[0]
        if not any(part in node.kind for part in _BETWEEN):
            break
        if node.kind.endswith("AggregateExec"):
            first = node
    if first is None:
        raise ValueError("an aggregation in another form")
    return first


def _describe_side(keys: Any, rows: _Rows) -> description.DescribedSide:
    columns = tuple(description.DescribedExpression(term.text, term.type) for term in rows.columns.values())
    return description.DescribedSide(rows.sources, _describe_expressions(keys, rows.columns), columns)


def _describe_expressions(lists: Any, columns: Columns) -> tuple[description.DescribedExpression, ...]:
    expressions = []
    for nodes in lists:
        term = read_term(nodes, columns)
        name = None if term.kind == "Literal" else _keep_name(nodes[0].get("name"))
        expressions.append(description.DescribedExpression(term.text, nodes[0].get("dataType", term.type), name))
    return tuple(expressions)


def _keep_name(name: Any) -> str | None:
    """Keep a name that somebody gave; Spark's own repeat the expression, with its literals."""
    return name if isinstance(name, str) and re.fullmatch(r"\w+", name) and name != "_groupingexpression" else None


def _list_kinds(function: Any) -> set[str]:
    """The names of the class of an object of Java, and of those that it extends."""
    kinds, kind = set(), function.getClass()
    while kind is not None:
        kinds.add(str(kind.getSimpleName()))
        kind = kind.getSuperclass()
    return kinds


def _read_literal(node: Mapping[str, Any]) -> tuple[Json, bool]:
    """A constant as JSON. Raises ValueError where it is no number."""
    value, data_type = node.get("value"), node["dataType"]
    if value is None:
        return None, True
    match data_type:
        case "byte" | "short" | "integer" | "long":
            return int(value), True
        case "float" | "double":
            return float(value), True
        case "boolean":
            return value == "true", True
        case str() if data_type.startswith("decimal"):
            return str(value), True
    return None, False


def _identify_table(leaf: Any, kind: str, fields: Mapping[str, Any], planner: Planner) -> str:
    """Name the table that a leaf of a physical plan reads; with ``?`` where that cannot be told."""
    with suppress(Py4JError, AttributeError):
        match kind:
            case "FileSourceScanExec":
                return _identify_files(leaf, planner)
            case "BatchScanExec":
                return _spell_table(str(leaf.table().name()), "")
            case "RowDataSourceScanExec":
                return _spell_table(str(leaf.relation().toString()), "")
            case "HiveTableScanExec":
                return _spell_table(str(leaf.relation().tableMeta().identifier().unquotedString()), "")
            case "LocalTableScanExec":
                return _spell_table("rows", str(leaf.rows().mkString(" ")))  # the bytes of each
            case "RangeExec":
                own = fields["range"][0]
                return _spell_table("range", f"{own['start']} {own['end']} {own['step']}")
    return _HIDDEN_ROWS


def _identify_files(leaf: Any, planner: Planner) -> str:
    relation, table = leaf.relation(), leaf.tableIdentifier()
    options = planner.read_map(relation.options())
    own = {name.lower(): value for name, value in options.items()}
    if table.isDefined():
        name = str(table.get().unquotedString())
    else:
        roots = relation.location().rootPaths()
        name = own.get("path") or " ".join(str(roots.apply(number)) for number in range(roots.size()))
        name = " ".join(part.removeprefix("file:").rstrip("/") for part in name.split(" "))
    kind = str(relation.fileFormat().getClass().getSimpleName())
    reader = planner.keep_reader(kind, own, json.loads(relation.dataSchema().json()))
    return _spell_table(name, json.dumps(reader, sort_keys=True))


def _spell_table(name: str, details: str) -> str:
    """The last part of a name if it is a plain word, and a digest of all."""
    if _OBJECT.search(name):
        return _HIDDEN_ROWS
    last = re.split(r"[/.]", name)[-1]
    word = last if re.fullmatch(r"\w{1,40}", last) else "table"
    return f"{word} {digest(name + details)}"
