"""Compares a query with a checkpoint, as Spark does at a restart.

Sources by number and order (``OffsetSeq.toStreamProgress``), stateful operators by id and name
(``IncrementalExecution.checkOperatorValidWithMetadata``), schemas by ``StateSchemaCompatibilityChecker``: types and
their order count, names do not. What only two descriptions show, Spark does not report: a checkpoint does not have what
the query computes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from ckpt import settings
from ckpt.advice import Option, Words, words
from ckpt.checkpoint import history
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources.connectors import BY_SHAPE
from ckpt.checkpoint.sources.file_logs import find_refused_file, name_folder
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import SourceView
from ckpt.errors import one_line
from ckpt.formats.operators import TIMERS, TRANSFORM_WITH_STATE, OperatorName, micro_batch_name
from ckpt.formats.types import named_fields
from ckpt.model import Json, Operator, Store
from ckpt.query.compare_queries import (
    Knowledge,
    OperatorComparison,
    PartComparison,
    PartKind,
    compare_signatures,
    drops_late_rows,
    pair_sources,
)
from ckpt.query.description import (
    DescribedFamily,
    DescribedOperator,
    DescribedSource,
    QueryDescription,
    list_fields,
    spell_schema,
)
from ckpt.query.reader_options import has_pattern
from ckpt.restart import diagnoses
from ckpt.restart.book import BOOK
from ckpt.restart.findings import Diagnosis, Finding, Severity
from ckpt.restart.recorded_settings import effective_settings
from ckpt.storage.locations import is_inside
from ckpt.texts import instant, plural
from ckpt.versions import Spark

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
    """Spark's answer when it planned the next batch of the query."""

    condition: str | None  # its error condition
    words: str | None  # None: it planned the batch


@dataclass(frozen=True, slots=True)
class QueryComparison:
    """Result of comparing a query with a checkpoint."""

    findings: tuple[Finding, ...] = ()
    unknown: tuple[str | Words, ...] = ()  # what could not be compared, a sentence each


def watermark_of(checkpoint: Checkpoint) -> int:
    """Return the watermark of the newest batch, in milliseconds; 0 where there is none."""
    metadata = None if checkpoint.offsets.newest is None else checkpoint.offsets.newest.metadata
    return 0 if metadata is None else metadata.watermark_ms


def next_watermark_of(checkpoint: Checkpoint) -> int:
    """Return the watermark of the batch after the newest one, which drops rows that are read from now on."""
    commit = checkpoint.commits.newest
    return max(watermark_of(checkpoint), (commit and commit.next_watermark_ms) or 0)


def find_misfit(query: QueryDescription, checkpoint: Checkpoint) -> Finding | None:
    """Find the first reason why a query would not start on a checkpoint, and so did not write it; None if it would."""
    compared = (compare_sources(query, checkpoint), compare_operators(query, checkpoint, query.spark))
    findings = (finding for each in compared for finding in each.findings)
    return next((finding for finding in findings if finding.diagnosis.severity is Severity.ERROR), None)


def compare_query(
    query: QueryDescription,
    checkpoint: Checkpoint,
    spark: Spark,
    old: QueryDescription | None = None,
    answer: SparkAnswer | None = None,
) -> QueryComparison:
    """Compare a query with a checkpoint, and with the query that wrote it: for ``preflight`` and ``evolve`` alike."""
    sources, operators = compare_sources(query, checkpoint), compare_operators(query, checkpoint, spark)
    if answer is not None:
        operators = add_answer(operators, answer, query, checkpoint)
    compared = QueryComparison((*sources.findings, *operators.findings), (*sources.unknown, *operators.unknown))
    return compared if old is None else compare_with_old(compared, query, old, checkpoint)


def compare_operators(query: QueryDescription, checkpoint: Checkpoint, spark: Spark) -> QueryComparison:
    """Compare the stateful operators and their state."""
    if query.unsupported is not None:
        return QueryComparison((Finding(diagnoses.starting.NOT_SUPPORTED, "", query.unsupported),))
    if checkpoint.offsets.latest is None:
        return QueryComparison()
    if query.operators is None:
        return QueryComparison((), (f"Spark could not plan the query where it was described: {query.unplanned}",))
    there = checkpoint.operators
    names = tuple(_compare_names(query.operators, there, ran=checkpoint.commits.latest is not None))
    unknown = () if names else tuple(_explain_incomparable(query, there, checkpoint, spark))
    if names or unknown:
        return QueryComparison(names, unknown)
    findings: list[Finding] = []
    for has, wants in zip(there, query.operators, strict=False):
        findings += _compare_modes(has, wants)
        findings += _compare_families(has, wants, avro=encodes_as_avro(checkpoint, has, spark))
    return QueryComparison(tuple(sorted(findings, key=lambda finding: -finding.diagnosis.severity.rank)))


def encodes_as_avro(checkpoint: Checkpoint, operator: Operator, spark: Spark) -> bool:
    """Tell whether the variables of an operator are Avro, whose fields Spark itself adds, removes and widens."""
    is_avro = effective_settings(checkpoint, spark).get(settings.ENCODING_FORMAT) == "avro"
    return is_avro and operator.name in TRANSFORM_WITH_STATE


def _compare_names(wanted: Sequence[DescribedOperator], there: Sequence[Operator], *, ran: bool) -> Iterator[Finding]:
    if not there:
        if wanted and ran:
            names = ", ".join(operator.name for operator in wanted)
            detail = f"the query is stateful ({names}), but the checkpoint has no state"
            yield Finding(diagnoses.starting.OTHER_OPERATORS, "state", detail)
        return
    has = {operator.id: micro_batch_name(operator.name) for operator in there}
    if not all(operator.has_metadata for operator in there) and len(has) <= len(wanted):
        has = {number: name or wanted[number].name for number, name in has.items() if number < len(wanted)}
    want = {number: operator.name for number, operator in enumerate(wanted)}
    if has.keys() != want.keys() or any(name not in (None, want[number]) for number, name in has.items()):
        detail = f"the query has {_list_names(want)}, the checkpoint {_list_names(has)}"
        silent = len(want) < len(has) and not any(operator.has_metadata for operator in there)
        diagnosis = diagnoses.starting.LEFT_BEHIND if silent else diagnoses.starting.OTHER_OPERATORS
        yield Finding(diagnosis, "state", detail)


def _list_names(names: Mapping[int, str | None]) -> str:
    if not names:
        return "no stateful operator"
    return ", ".join(f"{number} {name or 'of unknown kind'}" for number, name in sorted(names.items()))


def _explain_incomparable(
    query: QueryDescription, there: Sequence[Operator], checkpoint: Checkpoint, spark: Spark
) -> Iterator[str]:
    if not there:
        return
    if query.spark is not spark:
        yield f"the query was described with Spark {query.spark}: Spark {spark} may keep other state for it"
        return
    uses = effective_settings(checkpoint, spark)
    for name in _SHAPING:
        if name in uses and query.settings.get(name, uses[name]) != uses[name]:
            yield (
                f"the query was described with {name}={query.settings[name]}, but a restart uses {uses[name]}: "
                "describe it for this checkpoint"
            )
    if not all(operator.stores for operator in query.operators or ()):
        yield f"Spark {query.spark} does not show a query's state before it runs: its schemas"
    missing = [operator.id for operator in there if not any(map(list_families, operator.stores))]
    if missing:
        yield f"the checkpoint has no schema of operator {missing[0]}"


def _compare_modes(has: Operator, wants: DescribedOperator) -> Iterator[Finding]:
    """Compare modes and variables of transformWithState, which it keeps besides schemas."""
    recorded = has.properties if isinstance(has.properties, dict) else {}
    path = f"state/{has.id}"
    modes = (("timeMode", "time mode", wants.time_mode), ("outputMode", "output mode", wants.output_mode))
    for key, name, value in modes:
        if value is not None and recorded.get(key) not in (None, value):
            detail = f"{name} {value}, but {recorded[key]} in the checkpoint"
            yield Finding(diagnoses.starting.STATE_VARIABLES, path, detail)
    for variable in has.variables:
        kind = wants.variables.get(variable.name, variable.kind)
        if kind != variable.kind:
            detail = f"variable {variable.name} is a {kind}, but a {variable.kind} in the checkpoint"
            yield Finding(diagnoses.starting.STATE_VARIABLES, path, detail)
    for name, kind in wants.variables.items() if has.variables else ():
        gone = [own.name for own in has.variables if own.kind == kind and own.name not in wants.variables]
        if all(own.name != name for own in has.variables) and gone and kind != TIMERS:
            detail = f"variable {name} is new, and {' and '.join(gone)} of the checkpoint gone: each is a {kind}"
            yield Finding(diagnoses.starting.RENAMED_VARIABLE, path, detail)


def _compare_families(has: Operator, wants: DescribedOperator, *, avro: bool = False) -> Iterator[Finding]:
    for store, old, new in pair_families(has, wants):
        if old is not None:
            path = f"state/{has.id}" + ("" if store == "default" else f"/{store}")
            evolves = avro and can_read_avro(new.value, old.value)
            if evolves:
                yield from _find_renamed_fields(old, new, path)
            yield from _compare_family(old, replace(new, value=old.value) if evolves else new, path, wants.name)


_PROMOTED: Mapping[str, tuple[str, ...]] = {
    "integer": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("binary",),
    "binary": ("string",),
}
"""Types as which Avro reads others."""


def can_read_avro(new: Json, old: Json) -> bool:
    """Tell whether Avro reads values of one schema as those of another: fields come and go by name, types widen."""
    if not (isinstance(new, dict) and isinstance(old, dict) and new.get("type") == old.get("type")):
        return new == old or (isinstance(old, str) and new in _PROMOTED.get(old, ()))
    match new["type"]:
        case "struct":
            before = {field.get("name"): field.get("type") for field in list_fields(old)}
            shared = (field for field in list_fields(new) if field.get("name") in before)
            return all(can_read_avro(field.get("type"), before[field.get("name")]) for field in shared)
        case "array":
            return can_read_avro(new.get("elementType"), old.get("elementType"))
        case "map":
            return can_read_avro(new.get("valueType"), old.get("valueType"))
    return new == old


def _find_renamed_fields(has: DescribedFamily, wants: DescribedFamily, path: str) -> Iterator[Finding]:
    before, after = (dict(named_fields(family.value)) for family in (has, wants))
    for name in after.keys() - before.keys():
        gone = [other for other, kind in before.items() if other not in after and kind == after[name]]
        if gone:
            detail = f"field {name} of {wants.name} is new, and {' and '.join(gone)} of the checkpoint gone"
            yield Finding(diagnoses.starting.RENAMED_VARIABLE, path, detail)


def pair_families(
    has: Operator, wants: DescribedOperator
) -> Iterator[tuple[str, DescribedFamily | None, DescribedFamily]]:
    """Pair each family of an operator, by the name of its store, with that of a checkpoint; None: it has none."""
    there = {(store.name, family.name): family for store in has.stores for family in list_families(store)}
    for store in wants.stores:
        yield from ((store.name, there.get((store.name, family.name)), family) for family in store.families)


def list_families(store: Store) -> tuple[DescribedFamily, ...]:
    """List the schemas of a store as a description has them."""
    if store.key_schema is not None:
        return (DescribedFamily("default", store.key_schema, store.value_schema),)
    return tuple(
        DescribedFamily(family.name, family.key_schema, family.value_schema, family.key_encoder, family.user_key_schema)
        for family in store.column_families
    )


def _compare_family(has: DescribedFamily, wants: DescribedFamily, path: str, operator: str) -> Iterator[Finding]:
    parts = (
        ("key", diagnoses.starting.KEY_SCHEMA, has.key, wants.key),
        ("value", diagnoses.starting.VALUE_SCHEMA, has.value, wants.value),
    )
    at = f"{wants.name}, " if wants.name != "default" else ""
    for word, diagnosis, old, new in parts:
        if word == "value" and operator == OperatorName.DEDUPLICATION:
            continue  # Spark does not compare it
        detail = f"{at}{word} {spell_schema(new)}, but {spell_schema(old)} in the checkpoint"
        if not fits_schema(new, old):
            yield Finding(diagnosis, path, detail)
        elif _list_columns(new) != _list_columns(old):
            yield Finding(diagnoses.starting.RENAMED, path, detail)


def fits_schema(new: Json, old: Json) -> bool:
    """Tell whether Spark reads one schema as another; what is stored as never NULL may not become nullable.

    ``DataType.equalsIgnoreNameAndCompatibleNullability``.
    """
    if not (isinstance(new, dict) and isinstance(old, dict) and new.get("type") == old.get("type")):
        return new == old
    match new["type"]:
        case "struct":
            pairs = [*zip(list_fields(new), list_fields(old), strict=False)]
            alike = len(list_fields(new)) == len(list_fields(old))
            return alike and all(
                _fits_null(a, b, "nullable") and fits_schema(a.get("type"), b.get("type")) for a, b in pairs
            )
        case "array":
            return _fits_null(new, old, "containsNull") and fits_schema(new.get("elementType"), old.get("elementType"))
        case "map":
            fits = _fits_null(new, old, "valueContainsNull") and fits_schema(new.get("keyType"), old.get("keyType"))
            return fits and fits_schema(new.get("valueType"), old.get("valueType"))
    return new == old


def _fits_null(new: Mapping[str, Json], old: Mapping[str, Json], key: str) -> bool:
    return old.get(key) is not False or new.get(key) is False


def _list_columns(schema: Json) -> Json:
    if isinstance(schema, dict):
        return [[field.get("name"), _list_columns(field.get("type"))] for field in list_fields(schema)] or [
            _list_columns(schema.get(key)) for key in ("elementType", "keyType", "valueType")
        ]
    return None


_CONDITIONS: Mapping[str, Diagnosis] = {
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE": diagnoses.starting.KEY_SCHEMA,
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE": diagnoses.starting.VALUE_SCHEMA,
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA": diagnoses.starting.OTHER_OPERATORS,
    "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY": diagnoses.starting.OTHER_OPERATORS,
    "STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE": diagnoses.starting.STATE_VARIABLES,
    "STATE_STORE_INVALID_CONFIG_AFTER_RESTART": diagnoses.starting.STATE_VARIABLES,
}


def add_answer(
    compared: QueryComparison, answer: SparkAnswer, query: QueryDescription, checkpoint: Checkpoint
) -> QueryComparison:
    """Add Spark's own answer, which decides: where ckpt found the reason, the words of ckpt name more.

    A plan says nothing of an operator without any state: before Spark 4.2 its first batch finds that out.
    """
    if answer.words is None and len(query.operators or ()) > len(checkpoint.operators):
        return compared
    if answer.words is None:
        refuted = {diagnosis for diagnosis in _CONDITIONS.values() if diagnosis.severity is Severity.ERROR}
        return QueryComparison(tuple(finding for finding in compared.findings if finding.diagnosis not in refuted))
    condition = answer.condition or ""
    known = next((diagnosis for name, diagnosis in _CONDITIONS.items() if condition.startswith(name)), None)
    diagnosis = known or diagnoses.starting.REFUSED
    same = [finding for finding in compared.findings if finding.diagnosis is diagnosis]
    by_spark = Finding(diagnosis, "state" if known else "", answer.words)
    milder = (finding for finding in compared.findings if finding.diagnosis.severity is not Severity.ERROR)
    return QueryComparison((*(same or [by_spark]), *(finding for finding in milder if finding not in same)))


_KNOWN = frozenset(SourceType) - {SourceType.UNKNOWN} - BY_SHAPE


def compare_sources(query: QueryDescription, checkpoint: Checkpoint) -> QueryComparison:
    """Compare the sources of a query with those of a checkpoint."""
    there, newest = history.sources(checkpoint), checkpoint.offsets.newest
    if newest is None or checkpoint.offsets.latest is None or not there:
        return QueryComparison()
    results = [*_compare_all_sources(query, checkpoint, there, newest.version)]
    findings = [each for each in results if isinstance(each, Finding)]
    if not any(finding.diagnosis.severity is Severity.ERROR for finding in findings):
        findings += _find_late_rows(query, there, next_watermark_of(checkpoint))
    return QueryComparison(tuple(findings), tuple(each for each in results if not isinstance(each, Finding)))


def _find_late_rows(query: QueryDescription, there: Sequence[SourceView], watermark_ms: int) -> Iterator[Finding]:
    """Find named sources, and topics, whose rows a start reads from now on, behind the watermark of the others."""
    views = {view.name if is_given_name(view.name) else view.index: view for view in there}
    for number, source in enumerate(query.sources) if drops_late_rows(query, watermark_ms) else ():
        has = views.get(number if source.name is None else source.name)
        more = find_new_topics(source, has)
        if has is None or more:
            what = ", ".join(sorted(more)) if more else str(source.name)
            detail = f"rows of the new {one_line(what)} before {instant(watermark_ms)}, the watermark, are dropped"
            yield Finding(diagnoses.starting.OTHER_ROWS, name_folder(number, source.name), detail)


def find_new_topics(wants: DescribedSource, has: SourceView | None) -> frozenset[str]:
    """Find topics to which a source that has read others subscribes now."""
    known = has is not None and has.topics and wants.kind == has.type and wants.topics is not None
    return frozenset(wants.topics or ()) - has.topics if has is not None and known else frozenset()


def _compare_all_sources(
    query: QueryDescription, checkpoint: Checkpoint, there: Sequence[SourceView], version: int
) -> Iterator[Finding | str]:
    """Compare all sources; a text says what could not be compared."""
    has_names, wants_names = (any(is_given_name(each.name) for each in both) for both in (there, query.sources))
    pairs = list(zip(query.sources, there, strict=False))
    if has_names != wants_names and query.sources:
        detail = f"the sources have {'no ' * (not wants_names)}names, in the checkpoint {'no ' * (not has_names)}names"
        yield Finding(diagnoses.starting.OTHER_NAMING, "sources", detail)
    elif has_names:
        yield from _compare_named(query, there, checkpoint)
    elif len(there) != len(query.sources) and version == 1:
        detail = f"the query has {plural(len(query.sources), 'source')}, the checkpoint {len(there)}"
        yield Finding(diagnoses.starting.NUMBER_OF_SOURCES, "sources", detail)
    else:
        yield from [*_find_moved(pairs)] or _compare_pairs(pairs, checkpoint)


def _compare_pairs(
    pairs: Sequence[tuple[DescribedSource, SourceView]], checkpoint: Checkpoint
) -> Iterator[Finding | str]:
    for wants, has in pairs:
        yield from _compare_source(wants, has, checkpoint)
        if has.record is not None and not _are_known(wants, has):
            yield f"whether source {has.index} of type {wants.kind} continues from its offset"


def is_given_name(name: str | None) -> bool:
    """Tell whether somebody gave a source its name: without names an offset log v2 has numbers."""
    return name is not None and not name.isdecimal()


def _compare_named(
    query: QueryDescription, there: Sequence[SourceView], checkpoint: Checkpoint
) -> Iterator[Finding | str]:
    """Compare sources that have names: Spark adds, removes and reorders them by itself (``OffsetMap``)."""
    views = {view.name: view for view in there}
    pairs = [(source, views[source.name]) for source in query.sources if source.name in views]
    left = [view for view in there if view.name not in [source.name for source in query.sources]]
    for number, source in enumerate(query.sources):
        if source.name in views:
            continue
        path = name_folder(number, source.name)
        alike = [view for view in left if source.kind == view.type]
        before = next((view for view in alike if _has_read(view, source)), None)
        nameless = next((view for view in alike if not (view.topics or view.files)), None)
        if before is None and nameless is not None:
            names = f"{one_line(str(source.name))} is {one_line(str(nameless.name))}"
            yield f"whether source {names} with another name: if so, a start rereads all of it"
        if before is not None:
            detail = f"{one_line(str(source.name))} reads the same input as {one_line(str(before.name))} did"
            yield Finding(diagnoses.starting.RENAMED_SOURCE, path, detail)
        elif checkpoint.listing.in_folder(path):
            detail = f"{one_line(str(source.name))} was read before, but the newest batch has no offset of it"
            yield Finding(diagnoses.starting.SOURCE_AGAIN, path, detail)
    yield from filter(None, (_find_other_kind(source, view) for source, view in pairs))
    yield from _compare_pairs(pairs, checkpoint)


def _find_other_kind(wants: DescribedSource, has: SourceView) -> Finding | None:
    if not _are_known(wants, has) or wants.kind == has.type:
        return None
    detail = f"{wants.kind} in the query, {has.type} in the checkpoint"
    return Finding(diagnoses.starting.OTHER_SOURCE, name_folder(has.index, has.name), detail)


def _are_known(wants: DescribedSource, has: SourceView) -> bool:
    """Tell whether ckpt knows both kinds of source."""
    return wants.kind in _KNOWN and has.type is not SourceType.UNKNOWN


def _has_read(has: SourceView, wants: DescribedSource) -> bool:
    """Tell whether a topic or a file shows that a source reads what one of the checkpoint has read."""
    if has.kind.reads_files:
        return wants.path is not None and bool(has.files) and not _reads_elsewhere(wants, has)
    return bool(has.topics) and wants.topics is not None and has.topics <= {*wants.topics}


def _find_moved(pairs: Sequence[tuple[DescribedSource, SourceView]]) -> Iterator[Finding]:
    """Find sources of another kind, or that read what another one has read."""
    there = [has for _, has in pairs]
    for wants, has in pairs:
        other = _find_other_kind(wants, has)
        if other is not None:
            yield other
        elif _are_known(wants, has) and (_find_missing_topics(wants, has) or _reads_elsewhere(wants, has)):
            others = (view for view in there if view.index != has.index and view.type is has.type)
            index = next((view.index for view in others if _has_read(view, wants)), None)
            if index is not None:
                detail = f"it reads the same input as source {index} of the checkpoint did: have they been swapped?"
                yield Finding(diagnoses.starting.OTHER_SOURCE, name_folder(has.index, has.name), detail)


def _compare_source(wants: DescribedSource, has: SourceView, checkpoint: Checkpoint) -> Iterator[Finding]:
    path, folder = name_folder(has.index, has.name), wants.path
    missing = _find_missing_topics(wants, has)
    if missing:
        skips = "" if wants.fail_on_data_loss else "; with failOnDataLoss=false it runs, and skips unread rows there"
        detail = f"not subscribed to {', '.join(sorted(missing))}{skips}"
        advice = BOOK.advise("no_topic_left")
        if missing != has.topics:
            advice = BOOK.advise("give_up", to=_leave_out(has, missing), source=has.index)
        yield Finding(diagnoses.starting.OTHER_TOPIC, path, detail, advice)
    if folder is None or not has.kind.reads_files:
        return
    outside = None if wants.recursive else find_refused_file(history.batch_files(checkpoint, has.index), folder)
    planned = checkpoint.offsets.latest not in checkpoint.commits
    if outside is not None and (planned or not wants.partitions):
        detail = f"it reads {one_line(folder)}, but the latest batch has read {one_line(outside)}"
        yield Finding(diagnoses.sources.FILES_OUTSIDE, path, detail)
    elif _reads_elsewhere(wants, has):
        detail = f"it reads {folder}, but its last batch read {has.files[0]}"
        yield Finding(diagnoses.starting.OTHER_FOLDER, path, detail)


def _leave_out(source: SourceView, topics: frozenset[str]) -> str:
    """Write the offset of a source without topics, as ``offsets_set`` takes it: null for each of their partitions."""
    ends = source.offset.items() if isinstance(source.offset, dict) else ()
    kept = {topic: dict.fromkeys(each) if topic in topics and isinstance(each, dict) else each for topic, each in ends}
    return json.dumps(kept, separators=(",", ":"), ensure_ascii=False)


def _reads_elsewhere(wants: DescribedSource, has: SourceView) -> bool:
    """Tell whether the files that a source has read are in another folder than the query reads."""
    if wants.path is None or not has.files or has_pattern(wants.path):
        return False
    return not any(is_inside(unquote(path), wants.path) for path in has.files)


def _find_missing_topics(wants: DescribedSource, has: SourceView) -> frozenset[str]:
    """Find topics that a source of the checkpoint has read, and one of the query will not."""
    return has.topics - set(wants.topics) if wants.kind == has.type and wants.topics is not None else frozenset()


_SILENT: dict[PartKind, Diagnosis] = {
    PartKind.KEY: diagnoses.starting.OTHER_KEY,
    PartKind.VALUE: diagnoses.starting.OTHER_VALUE,
    PartKind.WINDOW: diagnoses.starting.OTHER_WINDOW,
    PartKind.ROWS: diagnoses.starting.OTHER_ROWS,
}


def compare_with_old(
    compared: QueryComparison, query: QueryDescription, old: QueryDescription, checkpoint: Checkpoint
) -> QueryComparison:
    """Add what only the description of the query that wrote the checkpoint shows.

    Where Spark refuses an operator anyway, its parts are not compared. Where descriptions show what a column computes,
    the warning about its name is dropped.
    """
    wrong = find_misfit(old, checkpoint)
    if wrong is not None:
        why = words(
            "{from_query} describes a different query from the one that wrote the checkpoint ({wrong}): it is not used",
            from_query=Option("from_query"),
            wrong=wrong.detail,
        )
        return QueryComparison(compared.findings, (*compared.unknown, why))
    errors = (finding for finding in compared.findings if finding.diagnosis.severity is Severity.ERROR)
    refused = {_find_operator(finding.path) for finding in errors}
    if any(path in ("", "state") or path.startswith("sources") for path in refused):
        return compared  # which operators and sources are the same is not known
    if old.operators is None or query.operators is None or checkpoint.offsets.latest is None:
        return compared
    sources = pair_sources(old.sources, query.sources)
    ids = range(min(len(old.operators), len(query.operators)))
    operators = {number: number for number in ids if old.operators[number].name == query.operators[number].name}
    findings: list[Finding] = []
    unknown: list[str | Words] = []
    explained: set[str] = set()
    begins: set[str] = set()  # operators with a column that knows rows from now on only
    for pair in compare_signatures(old, query, sources, operators, watermark_of(checkpoint)):
        path = f"state/{pair.old}"
        if any(part.verdict is Knowledge.FROM_NOW_ON and part.kind is PartKind.VALUE for part in pair.parts):
            begins.add(path)
        if path not in refused:
            findings += _list_findings(pair.parts, path)
        if _explains_names(pair):
            explained.add(path)
        unseen = (part for part in pair.parts if part.kind is PartKind.ROWS and part.verdict is Knowledge.UNKNOWN)
        doubted = dict.fromkeys(
            part.why for part in (*unseen, *(part for part in pair.parts if part.by_another_spark)) if not part.silent
        )
        unknown += [words("operator {id}: {why}", id=pair.old, why=why) for why in doubted]
    kept = [
        replace(finding, advice=BOOK.advise("evolve_from_now_on"))
        if finding.diagnosis is diagnoses.starting.VALUE_SCHEMA and _find_operator(finding.path) in begins
        else finding
        for finding in compared.findings
        if finding.diagnosis is not diagnoses.starting.RENAMED or _find_operator(finding.path) not in explained
    ]
    return QueryComparison((*kept, *findings), (*compared.unknown, *unknown))


def _list_findings(parts: Sequence[PartComparison], path: str) -> Iterator[Finding]:
    of_state = [part for part in parts if part.silent and part.kind is not PartKind.ROWS]
    impossible = any(part.verdict is Knowledge.IMPOSSIBLE for part in of_state)
    unknown = any(part.verdict is Knowledge.UNKNOWN and part.kind is not PartKind.WINDOW for part in of_state)
    for kind, diagnosis in _SILENT.items():
        silent = [part for part in parts if part.kind is kind and part.silent]
        if not silent:
            continue
        verdicts, advice = {part.verdict for part in silent}, None
        if kind is not PartKind.ROWS and (impossible or unknown):  # of any part: then nothing is carried over
            advice = BOOK.advise("not_there" if impossible else "read_otherwise")
        elif kind in (PartKind.VALUE, PartKind.WINDOW) and Knowledge.FROM_NOW_ON in verdicts:
            advice = BOOK.advise("evolve_from_now_on")
        yield Finding(diagnosis, path, "; ".join(str(part.why) for part in silent), advice)


def _explains_names(pair: OperatorComparison) -> bool:
    """Tell whether each column computes what it did, or is reported because it does not."""
    columns = [part for part in pair.parts if part.kind in (PartKind.KEY, PartKind.VALUE)]
    return any(part.silent for part in columns) or (bool(columns) and all(part.old == part.new for part in columns))


def _find_operator(path: str) -> str:
    return "/".join(path.split("/")[:2])
