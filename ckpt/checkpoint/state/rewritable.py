"""Tell which state ckpt can write in another form: by another provider, in other partitions, in the other format."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ckpt import settings
from ckpt.model import ColumnFamily, Operator, Provider, StateInventory

_MOST_PARTITIONS = 100_000  # each is a folder, and in memory


@dataclass(frozen=True, slots=True)
class Form:
    """How state is kept."""

    provider: Provider
    partitions: int
    version: int  # state store checkpoint format: 1, or 2 with unique ids


def refuse_rewrite(
    state: StateInventory | None,
    recorded: Mapping[str, str],
    old: Form,
    new: Form,
    *,
    of_values: bool = False,
    of_columns: bool = False,
) -> Iterator[str]:
    """Why state is not written in a new form; nothing where it can be. ``recorded`` are the settings of the offsets.

    ``of_values``: rows are made of values, and not bytes that are there moved. ``of_columns``: of rows that are there.
    """
    respread = of_values or new.partitions != old.partitions
    if new.partitions > _MOST_PARTITIONS:
        yield f"{new.partitions:,} partitions: ckpt writes at most {_MOST_PARTITIONS:,}"
    if recorded.get(settings.ROW_CHECKSUM, "false") == "true":
        yield f"{settings.ROW_CHECKSUM} is on, and ckpt writes no such checksums"
    if new.provider is Provider.HDFS and new.version != 1:
        yield "state store checkpoint format 2 is one of RocksDB only"
    if respread and recorded.get(settings.STRICT_DISTRIBUTION) != "true":
        yield (
            "the query began before Spark 3.3, which may spread rows by a part of their key; so ckpt leaves them in "
            "their partitions"
        )
    for operator in state.operators if state else ():
        timed = any("Ts" in own.name and own.name.endswith("ToValues") for own in _list_families(operator))
        if timed and not of_columns:
            yield f"operator {operator.id} is a join of state format 4, which ckpt does not write"
        yield from _refuse_operator(operator, new, as_it_is=old == new and not of_values)


def _list_families(operator: Operator) -> list[ColumnFamily]:
    return [family for store in operator.stores for family in store.column_families]


def _refuse_operator(operator: Operator, new: Form, *, as_it_is: bool) -> Iterator[str]:
    if _list_families(operator) and new.provider is Provider.HDFS:
        yield f"operator {operator.id} ({operator.name}) keeps column families, which only RocksDB has"
    if operator.name is None and not as_it_is:
        yield f"operator {operator.id} has no metadata (Spark before 4.0): ckpt cannot tell how its rows are kept"
