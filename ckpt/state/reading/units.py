"""Readable state of a checkpoint, apart from who reads it: one ``StateUnit`` for each view of an operator.

A unit says where the rows are (operator, store, column family), what they look like as far as the files say, and for
which batches every file that a reading needs is there. Spark reads units in ``ckpt.spark``.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import reduce
from urllib.parse import quote

from ckpt import settings
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.reader import as_checkpoint
from ckpt.checkpoint.state.folders import OperatorFolder, find_operators
from ckpt.checkpoint.state.ranges import Ranges, intersect, ranges_of, shift_ranges
from ckpt.formats.operators import OperatorName
from ckpt.formats.statefiles import DEFAULT_STORE, JOIN_ROWS, JOIN_STORES, SIDES, TIMED_ROWS
from ckpt.formats.types import fields_of, name_and_type, struct_of, type_named
from ckpt.model import (
    ColumnFamily,
    Json,
    Location,
    Operator,
    Provider,
    StateDamage,
    StateFileKind,
    StateInventory,
    Store,
)
from ckpt.values import Value
from ckpt.versions import Spark, first_with

_JOIN_FORMAT_3 = first_with(lambda rules: rules.runs_join_format >= 3)
_JOIN_FORMAT_4 = first_with(lambda rules: rules.runs_join_format >= 4)
_FORMAT_2 = first_with(lambda rules: rules.reads_format_2)
_MERGED_LISTS = first_with(lambda rules: rules.reads_merged_lists)
_TIMERS = ("$procTimers", "$eventTimers")  # how Spark calls the families of timers (``TimerStateUtils``)


class UnitKind(StrEnum):
    """The kinds of row that a unit has."""

    KEY = "key"  # a key and its value: aggregations, windows, deduplication, limit, mapGroupsWithState and its kin
    DEDUPLICATION = "deduplication"  # only a key: what Spark before 3.5 stored as value is not data
    SIDE = "side"  # a row that one side of a stream-stream join buffers
    STORE = "store"  # an entry of one of the stores that a join keeps its sides in
    VALUE = "value"  # a transformWithState variable: its value for a key
    LIST = "list"  # one element of a key's list
    MAP = "map"  # one entry of a key's map
    TIMERS = "timers"  # a timer that is registered for a key


MOST_BATCHES = 2**63 - 1
_KINDS_OF_VARIABLES = {"ValueState": UnitKind.VALUE, "ListState": UnitKind.LIST, "MapState": UnitKind.MAP}


@dataclass(frozen=True, slots=True)
class Buffer:
    """Where the rows of a join side are stored, and everything that is stored of them."""

    name: str  # of the store, or in join state formats 3 and 4 of the column family
    schema: Json  # key with an index (in format 4 the event time) at its end; value with ``matched`` where it has one


@dataclass(frozen=True, slots=True)
class StateUnit(Value):
    """One view of an operator's state: what Spark's reader gives for one choice of its options.

    ``schema`` is a StructType in Spark's JSON: the columns that Spark gives, without ``partition_id``; None where the
    files do not tell. Ranges are inclusive batch ids.
    """

    operator: int
    operator_name: str | None  # None: Spark before 4.0 does not record it
    kind: UnitKind
    stores: tuple[str, ...]  # whose files a reading needs
    side: str | None  # left or right
    variable: str | None  # of transformWithState; None for timers
    ttl: bool
    provider: Provider
    format_version: int  # state store checkpoint format
    schema: Json
    described: bool  # the state schema, which Spark's reader needs, could be read
    prefix_columns: int | None  # of the key, where Spark's reader cannot know it: see ``_lost_prefix``
    readable_batches: Ranges
    change_batches: Ranges  # whose changes are there as delta or changelog files; empty where Spark reads none
    damages: tuple[StateDamage, ...]  # of the version that the next start loads
    oldest_spark: Spark | None = None  # the first version that reads state of this kind, where not all do
    buffer: Buffer | None = None  # of a join side
    shown_elsewhere: bool = False  # other units show its content already: left out when all are asked for

    @property
    def has_key(self) -> bool:
        """True if each row has a key of its own: not those of lists, timers and sides of joins."""
        return self.kind not in (UnitKind.LIST, UnitKind.TIMERS, UnitKind.SIDE)

    @property
    def row_store(self) -> str | None:
        """The store to be read by its name: of a join side that has stores of its own, the one that holds its rows."""
        if self.kind is UnitKind.SIDE:
            return next((store for store in self.stores if store.endswith(JOIN_ROWS)), None)
        return self.stores[0] if self.kind is UnitKind.STORE else None

    @property
    def label(self) -> str:
        """The unit in words: ``operator 0, left side``."""
        return ", ".join([f"operator {self.operator}", *self._part])

    @property
    def _part(self) -> tuple[str, ...]:
        match self.kind:
            case UnitKind.SIDE:
                return (f"{self.side} side",)
            case UnitKind.STORE:
                return (f"store {self.stores[0]}",)
            case UnitKind.TIMERS:
                return ("timers",)
        return () if self.variable is None else (f"variable {self.variable}",)

    @property
    def folder(self) -> str:
        """A name for a folder that is to hold it, unique among the units of a checkpoint: ``operator-0-left-side``."""
        return quote("-".join([f"operator-{self.operator}", *(part.replace(" ", "-", 1) for part in self._part)]), "$")


def state_units(checkpoint: Location, *, storage_options: Mapping[str, str] | None = None) -> tuple[StateUnit, ...]:
    """List the parts of a checkpoint's state that can be read, by operator; empty for a stateless query.

    Units that are not ``shown_elsewhere`` together hold all of the state once. A damaged unit is listed anyway; see its
    ``readable_batches`` and ``damages``.

    Args:
        checkpoint: A ``Checkpoint``, which is not read again, or a path or URI.
        storage_options: For the file system of the URI.

    Raises:
        NotACheckpoint, NotFound, StorageError, UsageError: The checkpoint cannot be read.

    >>> units = ckpt.state_units("sample_checkpoints/join-hdfs-3.5")
    >>> [unit.label for unit in units if not unit.shown_elsewhere]
    ['operator 0, left side', 'operator 0, right side']
    """
    checkpoint = as_checkpoint(checkpoint, storage_options)
    state = checkpoint.state
    if state is None:
        return ()
    folders = {folder.id: folder for folder in find_operators(checkpoint.listing, state.provider)}
    units: list[StateUnit] = []
    for operator in state.operators:
        units += _Building(checkpoint, state, operator, folders[operator.id]).units()
    return tuple(units)


@dataclass(frozen=True, slots=True)
class _Building:
    checkpoint: Checkpoint
    state: StateInventory
    operator: Operator
    folder: OperatorFolder

    def units(self) -> Iterator[StateUnit]:
        """List all units: first those that together hold everything once."""
        stores = {store.name: store for store in self.operator.stores}
        if self.operator.variables:
            yield from self._variables(stores.get(DEFAULT_STORE))
        elif self.operator.name == OperatorName.JOIN or not JOIN_STORES.isdisjoint(stores):
            yield from self._join(stores)
        else:
            yield from (self._plain(store) for store in self.operator.stores)

    def _plain(self, store: Store) -> StateUnit:
        key, value = fields_of(store.key_schema), fields_of(store.value_schema)
        kind = UnitKind.DEDUPLICATION if self._keeps_only_keys(key, value) else UnitKind.KEY
        schema = _entry(store.key_schema, store.value_schema)
        unit = self._unit(kind, [store], schema if key is not None and value is not None else None)
        return replace(unit, prefix_columns=self._lost_prefix(key))

    def _keeps_only_keys(self, key: list[Json] | None, value: list[Json] | None) -> bool:
        """Recognise a deduplication of Spark before 3.5: its schema repeats the input, its rows do not.

        Spark < 3.5, ``StreamingDeduplicateExec``: the value schema names all columns of the input, the key schema
        some of them, and what is stored is one null. Aggregations repeat the key only in their state format 1.
        """
        if self.operator.has_metadata or not key or not value:
            return False
        repeated = {name_and_type(field) for field in key} <= {name_and_type(field) for field in value}
        return repeated and self.checkpoint.conf.get(settings.AGGREGATION_FORMAT) == "2"

    def _lost_prefix(self, key: list[Json] | None) -> int | None:
        """How many leading columns of a session window's key are its prefix, where no operator metadata says so.

        Spark stores such keys in RocksDB prefix first, and before 4.0 recorded it nowhere: its reader then takes them
        apart wrongly. All columns but the last, ``sessionStartTime``, are the prefix.
        """
        if self.operator.has_metadata or self.state.provider is not Provider.ROCKSDB or not key or len(key) < 2:
            return None
        return len(key) - 1 if name_and_type(key[-1]) == ("sessionStartTime", '"timestamp"') else None

    def _join(self, stores: Mapping[str, Store]) -> Iterator[StateUnit]:
        families = {family.name: family for store in stores.values() for family in store.column_families}
        together = DEFAULT_STORE in stores  # join state formats 3 and 4: column families of one store
        for side in SIDES:
            named = [store for name, store in stores.items() if together or name.startswith(f"{side}-")]
            schema, buffer = self._side(side, stores, families)
            unit = self._unit(UnitKind.SIDE, named, schema)
            if together:
                unit = replace(
                    unit, oldest_spark=_JOIN_FORMAT_4 if f"{side}-{TIMED_ROWS}" in families else _JOIN_FORMAT_3
                )
            yield replace(unit, side=side, change_batches=(), buffer=buffer)
        if not together:
            for store in self.operator.stores:
                schema = _entry(store.key_schema, store.value_schema)
                yield replace(self._unit(UnitKind.STORE, [store], schema), shown_elsewhere=True)

    def _side(
        self, side: str, stores: Mapping[str, Store], families: Mapping[str, ColumnFamily]
    ) -> tuple[Json, Buffer | None]:
        """The rows of one side: as they are stored, and without what Spark adds, an index and whether one matched."""
        entries = {store.name: (store.key_schema, store.value_schema) for store in stores.values()}
        entries |= {family.name: (family.key_schema, family.value_schema) for family in families.values()}
        for name, extra in ((f"{side}-{JOIN_ROWS}", 1), (f"{side}-{TIMED_ROWS}", 0)):
            key, value = entries.get(name, (None, None))
            keys, values = fields_of(key), fields_of(value)
            if keys is not None and values is not None:
                matched = self.checkpoint.conf.get(settings.JOIN_FORMAT, "1") != "1"
                own_key: Json = {"type": "struct", "fields": keys[: len(keys) - extra]}
                own_value: Json = {"type": "struct", "fields": values[: len(values) - matched]}
                return _entry(own_key, own_value), Buffer(name, _entry(key, value))
        return None, None

    def _variables(self, store: Store | None) -> Iterator[StateUnit]:
        families = {family.name: family for family in store.column_families} if store else {}
        for variable in self.operator.variables:
            family = families.get(variable.name)
            kind = UnitKind.TIMERS if variable.name.startswith(_TIMERS) else _KINDS_OF_VARIABLES.get(variable.kind)
            if kind is None:
                continue
            schema = _variable_schema(kind, family) if family else None
            unit = replace(self._unit(kind, [store] if store else [], schema), described=family is not None)
            if kind is UnitKind.TIMERS:
                yield replace(unit, change_batches=())
            else:
                yield replace(unit, variable=variable.name, ttl=variable.ttl)

    def _unit(self, kind: UnitKind, stores: list[Store], schema: Json) -> StateUnit:
        names = tuple(store.name for store in stores)
        readable = reduce(intersect, map(self._read_batches, stores)) if stores else ()
        return StateUnit(
            operator=self.operator.id,
            operator_name=self.operator.name,
            kind=kind,
            stores=names,
            side=None,
            variable=None,
            ttl=False,
            provider=self.state.provider,
            format_version=self.state.format_version,
            schema=schema,
            described=all(map(_is_described, stores)),
            prefix_columns=None,
            readable_batches=readable,
            change_batches=self._change_batches(names),
            damages=tuple(damage for damage in self.state.damages if self._concerns(damage, names)),
            oldest_spark=self._oldest_spark(kind),
        )

    def _read_batches(self, store: Store) -> Ranges:
        """The batches of a store that Spark's reader loads.

        A start goes back to an older snapshot where a RocksDB snapshot is bad, and the reader does not: it fails on
        every version from that snapshot on.
        """
        readable = store.readable_batches
        replayed = {partition.partition: partition.replay_versions or 0 for partition in store.partitions}
        for damage in self.state.damages:
            if only_a_start_gets_round(damage) and self._concerns(damage, (store.name,)):
                snapshot = damage.version - replayed.get(damage.partition or 0, 0)
                readable = intersect(readable, ((0, snapshot - 2), (damage.version, MOST_BATCHES)))
        return readable

    def _oldest_spark(self, kind: UnitKind) -> Spark | None:
        """Return the Spark version that first reads a unit, as recorded by ``tests/state/export/matrix.json``."""
        if kind is UnitKind.LIST and self.checkpoint.conf.get(settings.MERGE_OPERATOR, "1") != "1":
            return _MERGED_LISTS
        return _FORMAT_2 if self.state.format_version == 2 else None

    def _concerns(self, damage: StateDamage, stores: Collection[str]) -> bool:
        same = damage.operator is None or damage.operator == self.operator.id
        return same and (damage.store is None or damage.store in stores)

    def _change_batches(self, stores: Collection[str]) -> Ranges:
        """Committed batches of which every partition has the delta or changelog: that of batch B is version B + 1."""
        ranges = ranges_of(self.checkpoint.commits.ids)
        places = [partition for name in stores for partition in self.folder.stores.get(name, {}).values()]
        for names in {partition.names for partition in places}:
            ranges = intersect(ranges, shift_ranges(ranges_of(sorted({version for version, _ in names.logs})), -1))
        return ranges if places else ()


def only_a_start_gets_round(damage: StateDamage) -> bool:
    """Tell whether a start loads the state without the damaged file, and Spark's reader does not."""
    return damage.fallback and damage.file_kind in (StateFileKind.ZIP, StateFileKind.SST)


def _is_described(store: Store) -> bool:
    return bool(store.column_families) or (store.key_schema is not None and store.value_schema is not None)


def _entry(key: Json, value: Json) -> Json:
    return struct_of([("key", key), ("value", value)])


def _variable_schema(kind: UnitKind, family: ColumnFamily) -> Json:
    """The columns that Spark gives for a transformWithState variable (``SchemaUtil.generateSchemaForStateVar``)."""
    if kind is UnitKind.VALUE:
        return _entry(family.key_schema, family.value_schema)
    if kind is UnitKind.LIST:
        return struct_of([("key", family.key_schema), ("list_element", family.value_schema)])
    key = "key", type_named(family.key_schema, "key")
    if kind is UnitKind.MAP:
        return struct_of([key, ("user_map_key", family.user_key_schema), ("user_map_value", family.value_schema)])
    return struct_of([key, ("expiration_timestamp_ms", "long")])
