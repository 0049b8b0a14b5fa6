"""Puts together what was found in ``state/`` into one ``StateInventory``."""

from collections.abc import Iterable, Iterator, Mapping

from ckpt.checkpoint.state.collected import CollectedState
from ckpt.checkpoint.state.context import Context
from ckpt.checkpoint.state.damages import find_damages
from ckpt.checkpoint.state.descriptions import Description
from ckpt.checkpoint.state.every_byte import find_usable_names, judge_every_byte
from ckpt.checkpoint.state.folders import LOGS, SSTS, OperatorFolder, StoreNames, StorePartition, lies_elsewhere
from ckpt.checkpoint.state.growth import measure_growth
from ckpt.checkpoint.state.load import Load
from ckpt.checkpoint.state.ranges import Ranges, intersect, ranges_of, shift_ranges
from ckpt.checkpoint.state.space import count_unneeded
from ckpt.formats.operators import OperatorName
from ckpt.formats.schemas import DEFAULT_COLUMN_FAMILY
from ckpt.formats.statefiles import DEFAULT_STORE, JOIN_STORES
from ckpt.model import (
    ColumnFamily,
    Json,
    NewerState,
    Operator,
    PartitionState,
    Provider,
    StateFileKind,
    StateInventory,
    Store,
    Unreadable,
)
from ckpt.storage.base import Listing


def assemble(collected: CollectedState) -> StateInventory:
    """Build the inventory."""
    context = collected.context
    loads = {load.place: load for load in collected.loads.all}
    stores = [store for folder in collected.folders for stores in folder.stores.values() for store in stores.values()]
    format_2 = context.unique_ids or sum(store.names.in_format_2 for store in stores) * 2 > len(stores)
    operators = tuple(_make_operator(collected, folder, loads) for folder in collected.folders)
    damages = tuple(find_damages(collected, operators))
    return StateInventory(
        provider=_choose_provider(context, stores),
        format_version=2 if format_2 else 1,
        codec=context.codec,
        operators=operators,
        needed_version=context.needed_version,
        damages=damages,
        newer=_find_newer(stores, context),
        moved_schemas=tuple(
            path
            for operator in operators
            for path in operator.schema_paths
            if lies_elsewhere(path, operator.id, collected.uri)
        ),
        unverified=collected.loads.unverified,
        unreadable=tuple(file for description in collected.described.values() for file in description.unreadable),
        unneeded=count_unneeded(collected.listing, stores, context.oldest_needed, collected.seen.snapshots),
        strays=tuple(_find_ignored(stores)),
        every_byte=judge_every_byte(collected, damages),
    )


def _find_ignored(stores: list[StorePartition]) -> Iterator[str]:
    """Strays that are no snapshots by their names: no start lists them."""
    for store in stores:
        ending = f".{store.names.snapshot_kind}"
        yield from (f"{store.folder}/{name}" for name in store.names.strays if not name.endswith(ending))


def _choose_provider(context: Context, stores: list[StorePartition]) -> Provider:
    """The provider that the logs name, or else the one whose files are there."""
    if context.provider is not Provider.UNKNOWN:
        return context.provider
    kinds = {store.names.log_kind for store in stores if store.names.newest is not None}
    if len(kinds) != 1:
        return Provider.UNKNOWN
    return Provider.ROCKSDB if StateFileKind.CHANGELOG in kinds else Provider.HDFS


def _make_operator(collected: CollectedState, folder: OperatorFolder, loads: Mapping[StorePartition, Load]) -> Operator:
    description = collected.described[folder.id]
    metadata = description.known
    expected = _expect_partitions(folder, description, collected.context)
    names = sorted({*folder.stores, *expected})
    stored = metadata.stores if metadata else ()
    return Operator(
        id=folder.id,
        name=metadata.name if metadata else None,
        stores=tuple(_make_store(collected, folder, name, expected.get(name), loads) for name in names),
        variables=metadata.variables if metadata else (),
        properties=metadata.properties if metadata else None,
        schema_paths=tuple(path for store in stored for path in store.schema_paths),
        has_metadata=description.metadata is not None,
    )


def _expect_partitions(folder: OperatorFolder, description: Description, context: Context) -> dict[str, int | None]:
    """How many partitions each store should have: as the recorded conf says, or else operator metadata.

    Both name the number of shuffle partitions even for an operator that keeps everything in one partition.
    """
    metadata = description.known
    recorded = {store.name: store.partitions for store in metadata.stores} if metadata else {}
    stores = recorded or dict.fromkeys(folder.stores) or {DEFAULT_STORE: None}
    if not JOIN_STORES.isdisjoint(stores):
        stores |= dict.fromkeys(JOIN_STORES - stores.keys())
    if folder.partitions == (0,) and _keeps_one_partition(description):
        return dict.fromkeys(stores, 1)
    return {name: context.shuffle_partitions or recorded.get(name) for name in stores}


def _keeps_one_partition(description: Description) -> bool:
    """Tell whether rows are not spread by key: a limit, an aggregation without keys, or unknown (Spark 2.x, 3.0)."""
    if description.known is not None and description.known.name == OperatorName.LIMIT:
        return True
    if not description.schemas:
        return description.known is None
    families = [
        family for schema in description.schemas.values() if not isinstance(schema, Unreadable) for family in schema
    ]
    return bool(families) and all(_has_no_key(family.key_schema) for family in families)


def _has_no_key(schema: Json) -> bool:
    """Tell whether a key schema has no fields, only the null of a limit, or only the start of a session window."""
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(fields, list):
        return False
    kinds = [(field.get("name"), field.get("type")) for field in fields if isinstance(field, dict)]
    return not kinds or kinds[0][1] in ("void", "null") or kinds == [("sessionStartTime", "timestamp")]


def _make_store(
    collected: CollectedState,
    folder: OperatorFolder,
    name: str,
    expected: int | None,
    loads: Mapping[StorePartition, Load],
) -> Store:
    listing, context = collected.listing, collected.context
    metadata = collected.described[folder.id].known
    stores = folder.stores.get(name, {})
    families = collected.described[folder.id].schemas.get(name, ())
    families = () if isinstance(families, Unreadable) else families
    plain = next((family for family in families if family.name == DEFAULT_COLUMN_FAMILY), None)
    loaded = [(store, loads.get(store)) for _, store in sorted(stores.items())]
    names = {find_usable_names(collected, store, load) for store, load in loaded}
    prefixes = (
        [described.num_cols_prefix_key for described in metadata.stores if described.name == name] if metadata else []
    )
    everywhere = expected is None or all(partition in stores for partition in range(expected))
    return Store(
        name=name,
        partitions=tuple(_make_partition(listing, store, load) for store, load in loaded),
        expected_partitions=expected,
        changelog=any(described.logs and described.log_kind is StateFileKind.CHANGELOG for described in names),
        readable_batches=_find_readable_batches(names, context) if everywhere else (),
        newest_snapshot_version=_find_newest_snapshot(names) if everywhere else None,
        newest_snapshots=_find_newest_snapshots(names),
        column_families=_name_families(families),
        key_schema=plain.key_schema if plain else None,
        value_schema=plain.value_schema if plain else None,
        growth=measure_growth(stores.values(), loads, collected.oldest_zips),
        prefix_columns=prefixes[0] if prefixes else None,
    )


def _name_families(families: tuple[ColumnFamily, ...]) -> tuple[ColumnFamily, ...]:
    """Return the named column families; a store that has only the default one has none."""
    return () if [family.name for family in families] == [DEFAULT_COLUMN_FAMILY] else families


def _make_partition(listing: Listing, store: StorePartition, load: Load | None) -> PartitionState:
    names, files = store.names, store.files
    sizes = [files[name].size for name in names.all]
    for shared in (SSTS, LOGS):
        extra = listing.in_folder(f"{store.folder}/{shared}")
        sizes += [info.size for name, info in extra.items() if name[0] != "."]
    return PartitionState(
        partition=store.partition,
        bytes=sum(sizes),
        files=len(sizes),
        num_keys=load.num_keys if load else None,
        newest_version=names.newest,
        replay_versions=load.replayed if load else None,
    )


def _find_readable_batches(names: Iterable[StoreNames], context: Context) -> Ranges:
    """Committed batches whose state is there in all partitions: the state of batch B is version B + 1."""
    ranges: Ranges | None = None
    for versions in {store_names.versions for store_names in names}:
        ranges = versions if ranges is None else intersect(ranges, versions)
    batches = shift_ranges(ranges or (), -1)
    return batches if context.committed is None else intersect(batches, ranges_of(context.committed))


def _find_newest_snapshot(names: Iterable[StoreNames]) -> int | None:
    """The newest version of which every partition has a snapshot."""
    shared: set[int] | None = None
    for store_names in names:
        versions = {version for version, _ in store_names.snapshots}
        shared = versions if shared is None else shared & versions
    return max(shared, default=None) if shared else None


def _find_newest_snapshots(names: Iterable[StoreNames]) -> tuple[int | None, int] | None:
    """Between which versions the newest snapshots of the partitions are: see ``Store.newest_snapshots``."""
    newest = [max((version for version, _ in store_names.snapshots), default=None) for store_names in names]
    known = [version for version in newest if version is not None]
    return (None if None in newest else min(known), max(known)) if known else None


def _find_newer(stores: list[StorePartition], context: Context) -> NewerState | None:
    """Files of versions that no batch of the offset log reads or writes: batch L writes version L + 1."""
    if context.latest is None:
        return None
    newer: list[tuple[int, str]] = []
    for store in stores:
        if (store.names.newest or 0) > context.latest + 1:
            for files in (store.names.logs, store.names.snapshots):
                newer += [(i[0], f"{store.folder}/{n}") for i, n in files.items() if i[0] > context.latest + 1]
    if not newer:
        return None
    newer.sort()
    return NewerState(newer[0][0], newer[-1][0], len(newer), newer[0][1])
