"""A rule about recorded settings that can be taken and do not fit the state: another form of it than was written.

The state has no record of the settings that it was written with, but the form of its schemas shows them.
"""

from collections.abc import Iterator, Mapping

from ckpt import settings
from ckpt.checkpoint.checkpoint import OFFSETS, STATE, Checkpoint
from ckpt.checkpoint.state.chains import is_known_provider
from ckpt.formats.names import parse_java_int
from ckpt.formats.operators import AGGREGATIONS, TRANSFORM_WITH_STATE, OperatorName
from ckpt.formats.statefiles import DEFAULT_STORE, JOIN_ROWS, JOIN_STORES
from ckpt.formats.text import quoted
from ckpt.formats.types import named_fields
from ckpt.model import Operator, Provider, Store
from ckpt.restart import diagnoses, messages
from ckpt.restart.findings import Finding, Forecast, Outcome
from ckpt.restart.start import Start

_NEWEST_TABLE = 7  # the newest format of tables that RocksDB has had so far; Spark asks for 5
_IN_AVRO = (OperatorName.JOIN, *TRANSFORM_WITH_STATE)
_WITH_KEY = "the key is not part of the values, unlike in format 1"


def contradicting_settings(start: Start) -> Forecast | None:
    """Find recorded settings with which Spark does not load the state that is there."""
    checkpoint, state = start.checkpoint, start.checkpoint.state
    if state is None or state.needed_version is None:
        return None
    provider = checkpoint.conf.get(settings.PROVIDER_CLASS)
    if provider is not None and not is_known_provider(provider):
        detail = f"it records {settings.PROVIDER_CLASS}={quoted(provider, 80)}, a third-party provider"
        return start.stays_unknown(diagnoses.logs.OTHER_PROVIDER, f"{OFFSETS}/{start.latest}", detail)
    if (astray := _find_store_astray(checkpoint)) is not None:
        early = start.rules.checks_schemas_at_start
        return start.ends(Outcome.FAILS_AT_START if early else Outcome.FAILS_IN_BATCH, astray)
    return next(_find_contradictions(start, checkpoint), None)


def _contradict(start: Start, setting: str, shown: str, outcome: Outcome, words: str | None) -> Forecast:
    """End a start with a recorded setting, and what the state shows."""
    value = start.checkpoint.conf.get(setting)
    recorded = f"does not record {setting}" if value is None else f"records {setting}={quoted(value)}"
    detail = f"it {recorded}, but {shown}"
    finding = Finding(diagnoses.logs.CONTRADICTING_SETTING, f"{OFFSETS}/{start.latest}", detail)
    return start.ends(outcome, finding, error=words)


def _find_store_astray(checkpoint: Checkpoint) -> Finding | None:
    """A join of format 1 or 2 numbers the rows of a key: in one store of a side the last column of the key."""
    for operator, store in checkpoint.stores():
        names = [name for name, _ in named_fields(store.key_schema)] if store.name in JOIN_STORES else []
        if names and (names[-1] == "index") is not store.name.endswith(JOIN_ROWS):
            path, detail = f"{STATE}/{operator.id}/0/{store.name}", f"the key of its rows is {', '.join(names)}"
            return Finding(diagnoses.state.STORE_ASTRAY, path, detail)
    return None


def _find_contradictions(start: Start, checkpoint: Checkpoint) -> Iterator[Forecast]:
    conf = checkpoint.conf
    table = parse_java_int(conf.get(settings.ROCKSDB_FORMAT, ""))
    provider = checkpoint.state.provider if checkpoint.state else Provider.UNKNOWN
    left_out = _find_partition_left_out(checkpoint)
    if left_out is not None:
        shown = f"{left_out} also has state of the newest batch, which no start would load"
        yield _contradict(start, settings.SHUFFLE_PARTITIONS, shown, Outcome.UNKNOWN, None)
    early = start.rules.checks_schemas_at_start
    schema_outcome = Outcome.FAILS_AT_START if early else Outcome.FAILS_IN_BATCH
    for operator in checkpoint.operators:
        recorded = conf.get(settings.JOIN_FORMAT, "1")
        if _differs_in_join_format(operator, recorded):
            shown = f"operator {operator.id} keeps its join in another format"
            apart = recorded in ("3", "4")
            outcome, words = (Outcome.FAILS_AT_START, messages.NO_FAMILIES) if apart else (Outcome.UNKNOWN, None)
            yield _contradict(start, settings.JOIN_FORMAT, shown, outcome, words)
        avro = start.spark.records(settings.ENCODING_FORMAT) and conf.get(settings.ENCODING_FORMAT) == "avro"
        if avro and provider is Provider.ROCKSDB and operator.name not in (None, *_IN_AVRO):
            shown = f"Spark has no Avro encoding for the state of operator {operator.id}"
            yield _contradict(start, settings.ENCODING_FORMAT, shown, Outcome.FAILS_IN_BATCH, messages.NO_AVRO)
        for store in operator.stores:
            words = messages.value_schema_differs(start.rules)
            if conf.get(settings.AGGREGATION_FORMAT, "1") == "1" and _keeps_key_apart(operator, store):
                yield _contradict(start, settings.AGGREGATION_FORMAT, _WITH_KEY, schema_outcome, words)
            if conf.get(settings.GROUPS_FORMAT) == "1" and "groupState" in _names(store.value_schema):
                shown = f"operator {operator.id} keeps its groups in format 2"
                yield _contradict(start, settings.GROUPS_FORMAT, shown, schema_outcome, words)
    if provider is Provider.ROCKSDB and table is not None and table > _NEWEST_TABLE:
        words = messages.NO_TABLE_FORMAT
        yield _contradict(start, settings.ROCKSDB_FORMAT, "RocksDB has no such format", Outcome.FAILS_IN_BATCH, words)


def _find_partition_left_out(checkpoint: Checkpoint) -> str | None:
    """Find the folder of a partition that earlier offsets count and the newest do not, with the version to load."""
    needed = checkpoint.state.needed_version if checkpoint.state else None
    logged = map(checkpoint.offsets.readable, checkpoint.offsets.entries)
    before = [_count_partitions(entry.metadata.conf) for entry in logged if entry and entry.metadata]
    count = _count_partitions(checkpoint.conf)
    if not count or not needed:
        return None
    for operator, store in checkpoint.stores():
        for state in store.partitions:
            if count <= state.partition < max(before, default=0) and (state.newest_version or 0) >= needed:
                return f"{STATE}/{operator.id}/{state.partition}"
    return None


def _count_partitions(conf: Mapping[str, str]) -> int:
    return parse_java_int(conf.get(settings.SHUFFLE_PARTITIONS, "").strip()) or 0


def _keeps_key_apart(operator: Operator, store: Store) -> bool:
    """Tell whether an aggregation has values without their key: state format 2."""
    if operator.name not in (None, *AGGREGATIONS) or store.name != DEFAULT_STORE:
        return False
    key, value = _names(store.key_schema), _names(store.value_schema)
    if operator.name is None and (not value or value & _OF_OTHERS or "sessionStartTime" in key):
        return False
    return bool(key and value) and not key <= value


_OF_OTHERS = {"__dummy__", "groupState", "expiresAtMicros"}
"""Columns of operators that are no aggregations, where no operator metadata says so."""


def _differs_in_join_format(operator: Operator, recorded: str) -> bool:
    """Tell whether the stores of a join are not those of the recorded format.

    Formats 1 and 2 have four stores, and 2 has a last column ``matched``; 3 and 4 have column families in one store.
    """
    stores = {store.name: store for store in operator.stores}
    if not JOIN_STORES.isdisjoint(stores):
        matched = any(_names(store.value_schema) & {"matched"} for store in operator.stores)
        return recorded in ("3", "4") or (recorded == "1" and matched)
    if operator.name != OperatorName.JOIN or DEFAULT_STORE not in stores:
        return False
    families = {family.name for family in stores[DEFAULT_STORE].column_families}
    if not families:
        return recorded not in ("3", "4")
    return recorded != ("4" if any("TsToValues" in name for name in families) else "3")


def _names(schema: object) -> set[str]:
    return {name for name, _ in named_fields(schema)} if isinstance(schema, dict) else set()
