"""Tell which state ckpt can write in another form: by another provider, in other partitions, in the other format."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ckpt import settings
from ckpt.advice import Words, call, words
from ckpt.formats.operators import OperatorName
from ckpt.formats.statefiles import JOIN_STORES
from ckpt.formats.types import fields_of, name_and_type, named_fields
from ckpt.model import Operator, Provider, StateInventory, Store

_MOST_PARTITIONS = 100_000  # each is a folder, and in memory


class Form(NamedTuple):
    """How state is kept."""

    provider: Provider
    partitions: int
    version: int  # state store checkpoint format: 1, or 2 with unique ids


def refuse_rewrite(
    state: StateInventory | None, recorded: Mapping[str, str], old: Form, new: Form, *, of_values: bool = False
) -> Iterator[str | Words]:
    """Why state is not written in a new form; nothing where it can be. ``recorded`` are the settings of the offsets.

    ``of_values``: rows are made of values, and not bytes that are there moved.
    """
    respread = of_values or new.partitions != old.partitions
    if new.partitions > _MOST_PARTITIONS:
        yield f"{new.partitions:,} partitions: ckpt writes at most {_MOST_PARTITIONS:,}"
    if new.provider is Provider.HDFS and new.version != 1:
        yield "only RocksDB supports state store checkpoint format 2"
    if respread and recorded.get(settings.STRICT_DISTRIBUTION) != "true":
        yield (
            "the query began before Spark 3.3, which may partition rows by a part of their key, so ckpt leaves them in "
            "their partitions"
        )
    for operator in state.operators if state else ():
        yield from _refuse_operator(operator, new)
        repeated = recorded.get(settings.AGGREGATION_FORMAT) == "1" and recognise_operator(operator) is None
        if of_values and repeated and fields_of(operator.stores[0].key_schema):
            what = "an aggregation (in state format 1, its values repeat the key) or another operator"
            yield f"operator {operator.id} has no metadata (Spark before 4.0): ckpt cannot tell whether it is {what}"


def recognise_operator(operator: Operator) -> str | None:
    """The name of an operator; before Spark 4.0, which recorded none, as far as its state schema says it.

    None: an aggregation or a deduplication. Spark partitions both by the whole key.
    """
    if operator.name is not None or operator.has_metadata:
        return operator.name
    if any(store.name in JOIN_STORES for store in operator.stores):
        return OperatorName.JOIN
    keys = [list(map(name_and_type, fields_of(store.key_schema) or ())) for store in operator.stores]
    if keys in ([[("key", '"void"')]], [[("key", '"null"')]]):  # ``StreamingGlobalLimitExec``: in partition 0
        return OperatorName.LIMIT
    values = [name for store in operator.stores for name, _ in named_fields(store.value_schema)]
    if values and values[0] == "groupState":
        return OperatorName.GROUPS
    return OperatorName.SESSIONS if any(map(count_session_columns, operator.stores)) else None


def count_session_columns(store: Store) -> int:
    """By how many columns a session window is grouped, if its state schema is that of one; else 0.

    ``StreamingSessionWindowStateManagerImplV1``: the key is these and ``sessionStartTime``, the value begins with the
    session and repeats them. They are the prefix of its keys in RocksDB, which Spark before 4.0 recorded nowhere.
    """
    key, value = (list(map(name_and_type, fields_of(kind) or ())) for kind in (store.key_schema, store.value_schema))
    if len(key) < 2 or key[-1] != ("sessionStartTime", '"timestamp"') or value[1 : len(key)] != key[:-1]:
        return 0
    session = next(kind for _, kind in named_fields(store.value_schema))
    times = [("start", "timestamp"), ("end", "timestamp")]
    return len(key) - 1 if list(named_fields(session)) == times else 0


def is_single(operator: Operator, store: Store) -> bool:
    """Tell whether all rows are in partition 0, however many there are: of a limit, or an aggregation without keys."""
    limits = recognise_operator(operator) == OperatorName.LIMIT
    return limits or not (store.column_families or fields_of(store.key_schema))


def count_partitions(operator: Operator, store: Store, partitions: int) -> int:
    """Return the number of partitions in which a store has files: 1, or all that the query has."""
    return 1 if is_single(operator, store) else partitions


def _refuse_operator(operator: Operator, new: Form) -> Iterator[str | Words]:
    families = [family.name for store in operator.stores for family in store.column_families]
    if not families and any(store.key_schema is None for store in operator.stores):
        yield words(
            "operator {id} has no state schema: {rewrite} {--schema=FILE} provides the schema of old state",
            id=operator.id,
            rewrite=call("rewrite"),
        )
    if families and new.provider is Provider.HDFS:
        yield f"operator {operator.id} ({operator.name}) uses column families, which only RocksDB supports"
