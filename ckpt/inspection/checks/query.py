"""A query compared with a checkpoint, as Spark compares them at a restart.

Sources by number and order (``OffsetSeq.toStreamProgress``), stateful operators by id and name
(``IncrementalExecution.checkOperatorValidWithMetadata``), schemas by ``StateSchemaCompatibilityChecker``: types and
their order count, names do not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ckpt import settings
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.formats.operators import OperatorName
from ckpt.inspection.query import DescribedFamily, DescribedOperator, QueryDescription
from ckpt.model import ColumnFamily, Json, Operator, Store
from ckpt.restart import diagnoses
from ckpt.restart.findings import Diagnosis, Finding, Severity
from ckpt.restart.recorded_settings import effective_settings
from ckpt.versions import Spark

_DEDUPLICATIONS = (OperatorName.DEDUPLICATION,)
"""Operators whose value schema Spark does not compare."""
_SHAPING = (
    settings.AGGREGATION_FORMAT,
    settings.JOIN_FORMAT,
    settings.GROUPS_FORMAT,
    settings.ENCODING_FORMAT,
    settings.ALWAYS_NULLABLE,
    settings.DISTINCT_KEY_ORDER,
)
"""Settings on which schemas of state depend."""


@dataclass(frozen=True, slots=True)
class SparkAnswer:
    """What Spark said when it planned the next batch of the query."""

    condition: str | None  # its error condition
    words: str | None  # None: it planned the batch


@dataclass(frozen=True, slots=True)
class QueryComparison:
    """What came of comparing a query with a checkpoint."""

    findings: tuple[Finding, ...] = ()
    unknown: tuple[str, ...] = ()  # what could not be compared, a sentence each


def operators_of(query: QueryDescription, checkpoint: Checkpoint, spark: Spark) -> QueryComparison:
    """The stateful operators and their state."""
    if query.unsupported is not None:
        return QueryComparison((Finding(diagnoses.starting.NOT_SUPPORTED, "", query.unsupported),))
    if checkpoint.offsets.latest is None:
        return QueryComparison()
    if query.operators is None:
        return QueryComparison((), (f"Spark could not plan the query where it was described: {query.unplanned}",))
    there = checkpoint.state.operators if checkpoint.state else ()
    names = tuple(_operators(query.operators, there, checkpoint))
    if names:
        return QueryComparison(names)
    unknown = tuple(_incomparable(query, there, checkpoint, spark))
    if unknown:
        return QueryComparison((), unknown)
    found: list[Finding] = []
    for has, wants in zip(there, query.operators, strict=False):
        found += _modes(has, wants)
        found += _families(has, wants)
    return QueryComparison(_worst_first(found))


def _operators(
    wanted: Sequence[DescribedOperator], there: Sequence[Operator], checkpoint: Checkpoint
) -> Iterator[Finding]:
    if not there:
        if wanted and checkpoint.offsets.latest is not None and (checkpoint.commits.latest is not None):
            names = ", ".join(one.name for one in wanted)
            detail = f"the query keeps state ({names}), and the checkpoint has none"
            yield Finding(diagnoses.starting.OTHER_OPERATORS, "state", detail)
        return
    has = {one.id: one.name for one in there}
    if not all(one.has_metadata for one in there) and len(has) <= len(wanted):
        has = {number: name or wanted[number].name for number, name in has.items() if number < len(wanted)}
    want = {number: one.name for number, one in enumerate(wanted)}
    if has.keys() != want.keys() or any(not _same(has[number], want[number]) for number in has):
        detail = f"the query has {_listed(want)}, the checkpoint {_listed(has)}"
        silent = len(want) < len(has) and not any(one.has_metadata for one in there)
        diagnosis = diagnoses.starting.LEFT_BEHIND if silent else diagnoses.starting.OTHER_OPERATORS
        yield Finding(diagnosis, "state", detail)


def _same(has: str | None, wants: str) -> bool:
    return has is None or has == wants


def _listed(names: Mapping[int, str | None]) -> str:
    if not names:
        return "no stateful operator"
    return ", ".join(f"{number} {name or 'of unknown kind'}" for number, name in sorted(names.items()))


def _incomparable(
    query: QueryDescription, there: Sequence[Operator], checkpoint: Checkpoint, spark: Spark
) -> Iterator[str]:
    """Why schemas cannot be compared."""
    if not there:
        return
    if query.spark is not spark:
        yield f"the query was described with Spark {query.spark}: what Spark {spark} keeps for it may differ"
        return
    uses = effective_settings(checkpoint, spark)
    for name in _SHAPING:
        if name in uses and query.settings.get(name, uses[name]) != uses[name]:
            yield (
                f"the query was described with {name}={query.settings[name]}, and a restart uses {uses[name]}: "
                "describe it for this checkpoint"
            )
    if not all(one.stores for one in query.operators or ()):
        yield f"Spark {query.spark} does not say what state a query keeps before it runs: its schemas"
    missing = [one.id for one in there if not any(_of(store) for store in one.stores)]
    if missing:
        yield f"the checkpoint has no schema of operator {missing[0]}"


def _modes(has: Operator, wants: DescribedOperator) -> Iterator[Finding]:
    """What transformWithState keeps besides schemas."""
    recorded = has.properties if isinstance(has.properties, dict) else {}
    path = f"state/{has.id}"
    for key, name, value in (
        ("timeMode", "time mode", wants.time_mode),
        ("outputMode", "output mode", wants.output_mode),
    ):
        if value is not None and recorded.get(key) not in (None, value):
            detail = f"{name} {value}, in the checkpoint {recorded[key]}"
            yield Finding(diagnoses.starting.STATE_VARIABLES, path, detail)
    for one in has.variables:
        kind = wants.variables.get(one.name, one.kind)
        if kind != one.kind:
            detail = f"variable {one.name} is a {kind}, in the checkpoint a {one.kind}"
            yield Finding(diagnoses.starting.STATE_VARIABLES, path, detail)


def _families(has: Operator, wants: DescribedOperator) -> Iterator[Finding]:
    stores = {store.name: _of(store) for store in has.stores}
    for store in wants.stores:
        known = stores.get(store.name, {})
        for family in store.families:
            if family.name in known:
                path = f"state/{has.id}" + ("" if store.name == "default" else f"/{store.name}")
                yield from _family(known[family.name], family, path, has.name or wants.name)


def _of(store: Store) -> dict[str, DescribedFamily]:
    """The schemas that a checkpoint has of a store."""
    return {one.name: one for one in described_families(store)}


def described_families(store: Store) -> tuple[DescribedFamily, ...]:
    """The schemas of a store as a description has them."""

    def of(one: ColumnFamily) -> DescribedFamily:
        return DescribedFamily(one.name, one.key_schema, one.value_schema)

    if store.key_schema is not None:
        return (DescribedFamily("default", store.key_schema, store.value_schema),)
    return tuple(map(of, store.column_families))


def _family(has: DescribedFamily, wants: DescribedFamily, path: str, operator: str) -> Iterator[Finding]:
    parts = (
        ("key", diagnoses.starting.KEY_SCHEMA, has.key, wants.key),
        ("value", diagnoses.starting.VALUE_SCHEMA, has.value, wants.value),
    )
    at = f"{wants.name}, " if wants.name != "default" else ""
    for word, diagnosis, old, new in parts:
        if word == "value" and operator in _DEDUPLICATIONS:
            continue
        if not fits(new, old):
            yield Finding(diagnosis, path, f"{at}{word} {spelled(new)}, in the checkpoint {spelled(old)}")
        elif _names(new) != _names(old):
            yield Finding(
                diagnoses.starting.RENAMED, path, f"{at}{word} {spelled(new)}, in the checkpoint {spelled(old)}"
            )


def fits(new: Json, old: Json) -> bool:
    """``DataType.equalsIgnoreNameAndCompatibleNullability``: what is stored as never null may not become nullable."""
    if not (isinstance(new, dict) and isinstance(old, dict) and new.get("type") == old.get("type")):
        return new == old
    match new["type"]:
        case "struct":
            pairs = [*zip(_fields(new), _fields(old), strict=False)]
            alike = len(_fields(new)) == len(_fields(old))
            return alike and all(_nullable(a, b, "nullable") and fits(a["type"], b["type"]) for a, b in pairs)
        case "array":
            return _nullable(new, old, "containsNull") and fits(new["elementType"], old["elementType"])
        case "map":
            keys = fits(new["keyType"], old["keyType"])
            return keys and _nullable(new, old, "valueContainsNull") and fits(new["valueType"], old["valueType"])
    return new == old


def _nullable(new: Mapping[str, Json], old: Mapping[str, Json], key: str) -> bool:
    return old.get(key) is not False or new.get(key) is False


def _fields(schema: Mapping[str, Json]) -> list[dict[str, Json]]:
    fields = schema.get("fields")
    return [one for one in fields if isinstance(one, dict)] if isinstance(fields, list) else []


def _names(schema: Json) -> Json:
    """Names of columns, at every depth."""
    if isinstance(schema, dict):
        return [[one.get("name"), _names(one.get("type"))] for one in _fields(schema)] or [
            _names(schema.get(key)) for key in ("elementType", "keyType", "valueType")
        ]
    return None


def spelled(schema: Json) -> str:
    """A schema in one line: ``struct<key: long not null, count: long>``."""
    if not isinstance(schema, dict):
        return str(schema)
    match schema.get("type"):
        case "struct":
            columns = (f"{one.get('name')}: {spelled(one.get('type'))}{_never_null(one)}" for one in _fields(schema))
            return f"struct<{', '.join(columns)}>"
        case "array":
            return f"array<{spelled(schema.get('elementType'))}>"
        case "map":
            return f"map<{spelled(schema.get('keyType'))}, {spelled(schema.get('valueType'))}>"
    return str(schema.get("class") or schema.get("type"))


def _never_null(column: Mapping[str, Json]) -> str:
    return " not null" if column.get("nullable") is False else ""


_CONDITIONS: Mapping[str, Diagnosis] = {
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE": diagnoses.starting.KEY_SCHEMA,
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE": diagnoses.starting.VALUE_SCHEMA,
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA": diagnoses.starting.OTHER_OPERATORS,
    "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY": diagnoses.starting.OTHER_OPERATORS,
    "STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE": diagnoses.starting.STATE_VARIABLES,
    "STATE_STORE_INVALID_CONFIG_AFTER_RESTART": diagnoses.starting.STATE_VARIABLES,
}


def as_spark_says(
    compared: QueryComparison, answer: SparkAnswer, query: QueryDescription, checkpoint: Checkpoint
) -> QueryComparison:
    """The same with Spark's own answer, which decides: where ckpt found the reason, its words name more.

    A plan says nothing of an operator without any state: before Spark 4.2 its first batch finds that out.
    """
    there = checkpoint.state.operators if checkpoint.state else ()
    if answer.words is None and len(query.operators or ()) > len(there):
        return compared
    if answer.words is None:
        kept = tuple(
            one
            for one in compared.findings
            if one.diagnosis.severity is not Severity.ERROR or one.diagnosis not in _CONDITIONS.values()
        )
        return QueryComparison(kept)
    known = next((found for name, found in _CONDITIONS.items() if (answer.condition or "").startswith(name)), None)
    diagnosis = known or diagnoses.starting.REFUSED
    same = [one for one in compared.findings if one.diagnosis is diagnosis]
    others = [one for one in compared.findings if one.diagnosis is not diagnosis]
    said = Finding(diagnosis, "state" if known else "", answer.words)
    return QueryComparison(
        (*(same or [said]), *(one for one in others if one.diagnosis.severity is not Severity.ERROR))
    )


def _worst_first(found: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(found, key=lambda one: -one.diagnosis.severity.rank))
