"""Reading ``state/``: what is there, which version the next start needs, and whether it can be loaded.

``read_state`` is a step (``read_steps``): it reads nothing itself. Whatever the size of the state, it makes a
handful of rounds of requests: metadata, schemas and tails at once, and more only where something looks wrong.
"""

from collections.abc import Iterable, Mapping
from functools import reduce

from ckpt import model
from ckpt.checkpoint.checkpoint import Log, logs_show_state
from ckpt.checkpoint.state import folders
from ckpt.checkpoint.state.chains import Context, context_of
from ckpt.checkpoint.state.damages import count_every_byte, find_damages, find_usable_names, judge_read_files
from ckpt.checkpoint.state.descriptions import Description, describe
from ckpt.checkpoint.state.load import CollectedState, load_stores
from ckpt.checkpoint.state.loaded_files import Allowance, check_descriptions
from ckpt.checkpoint.state.ranges import Ranges, intersect, ranges_of, shift_ranges
from ckpt.checkpoint.state.read_steps import Step, run_together
from ckpt.checkpoint.state.space import count_unneeded, measure_growth, read_oldest_zips
from ckpt.formats.operators import OperatorName
from ckpt.formats.schemas import DEFAULT_COLUMN_FAMILY
from ckpt.formats.statefiles import DEFAULT_STORE, JOIN_STORES, LZ4
from ckpt.formats.types import fields_of, named_fields
from ckpt.storage.base import Listing

MOST_TAILS = 20_000  # how many file ends are read at most: well beyond what a query of a thousand partitions needs

MOST_TAILS_REMOTE = 2_400
"""The bound for storage where each read costs a round trip: 200 partitions, each a snapshot and eleven logs."""

_SOON = 10
"""Batches by which state may be ahead and do no harm: clean-up counts from the newest version, and keeps 100 by default
(``spark.sql.streaming.minBatchesToRetain``)."""

_TAILS_FOR_EACH_ZIP = 20
"""The oldest snapshots only tell by how much state grows: of more than 1,000 partitions, or 120, none is read."""


def read_state(
    listing: Listing,
    offsets: Log[model.OffsetLog],
    commits: Log[model.CommitLog],
    uri: str,
    most_tails: int = MOST_TAILS,
    allowance: Allowance | None = None,
    *,
    whole_files: bool = False,
) -> Step[model.StateInventory | None]:
    """Take stock of ``state/``; None if the checkpoint has none and its logs do not show that it had.

    Of ``offsets`` the latest entry is used, of ``commits`` the one before the version that the next start loads;
    ``uri`` is the checkpoint's current location. At most ``most_tails`` files of the version are read besides their
    names and sizes, the newest of each partition first. Files of the version are read completely as far as the
    ``allowance`` goes, by default none; it has what was found, before and now. ``whole_files`` says that the storage
    has no files in part (``file_ends.written_there``).
    """
    context = context_of(offsets, commits)
    if not listing.has_folder(folders.STATE) and not logs_show_state(offsets, commits):
        return None
    operators = folders.find_operators(listing, context.provider)
    stores = folders.find_store_partitions(listing, context.provider)
    targets = {store: target for store in stores if (target := context.target(store)) is not None}
    allowance = allowance or Allowance()
    deep = not allowance.bytes and bool(allowance.verified.files)
    codec = context.codec or LZ4
    (described, contents), (loads, not_read), oldest = yield from run_together(
        describe(listing, operators),
        load_stores(listing, targets, codec, most_tails, allowance, whole_files=whole_files),
        read_oldest_zips(targets, most_tails // _TAILS_FOR_EACH_ZIP),
    )
    yield from check_descriptions(listing, contents, allowance)
    return _assemble(
        CollectedState(
            listing,
            context,
            operators,
            described,
            {load.place: load for load in loads},
            oldest,
            uri,
            allowance.verified,
            deep,
            not_read,
        )
    )


def _assemble(collected: CollectedState) -> model.StateInventory:
    context = collected.context
    stores = folders.find_store_partitions(collected.listing, context.provider)
    format_2 = context.unique_ids or sum(store.names.in_format_2 for store in stores) * 2 > len(stores)
    operators = tuple(_make_operator(collected, folder) for folder in collected.folders)
    recorded = ((operator.id, path) for operator in operators for path in operator.schema_paths)
    damages = tuple(find_damages(collected, operators))
    in_files = judge_read_files(collected, damages)
    return model.StateInventory(
        provider=_choose_provider(stores) if context.provider is model.Provider.UNKNOWN else context.provider,
        format_version=2 if format_2 else 1,
        codec=context.codec,
        operators=operators,
        needed_version=context.needed_version,
        damages=damages,
        newer=_find_newer(stores, context),
        moved_schemas=tuple(path for number, path in recorded if folders.lies_elsewhere(path, number, collected.uri)),
        unreadable=tuple(file for description in collected.described.values() for file in description.unreadable),
        unneeded=count_unneeded(collected.listing, stores, context.oldest_needed, collected.snapshots),
        strays=tuple(
            f"{store.folder}/{name}"
            for store in stores
            for name in store.names.strays
            if not name.endswith(f".{store.names.snapshot_kind}")  # the others no start lists
        ),
        every_byte=count_every_byte(collected, in_files),
        not_read=collected.not_read,
        damaged_files=in_files,
    )


def _choose_provider(stores: list[folders.StorePartition]) -> model.Provider:
    kinds = {store.names.log_kind for store in stores if store.names.newest is not None}
    if len(kinds) != 1:
        return model.Provider.UNKNOWN
    return model.Provider.ROCKSDB if model.StateFileKind.CHANGELOG in kinds else model.Provider.HDFS


def _make_operator(collected: CollectedState, folder: folders.OperatorFolder) -> model.Operator:
    description = collected.described[folder.id]
    metadata = description.known
    expected = _expect_partitions(folder, description, collected.context)
    names = sorted({*folder.stores, *expected})
    stored = metadata.stores if metadata else ()
    return model.Operator(
        id=folder.id,
        name=metadata.name if metadata else None,
        stores=tuple(_make_store(collected, folder, name, expected.get(name)) for name in names),
        variables=metadata.variables if metadata else (),
        properties=metadata.properties if metadata else None,
        schema_paths=tuple(path for store in stored for path in store.schema_paths),
        has_metadata=description.metadata is not None,
        recorded_id=metadata.operator_id if metadata else None,
        older=description.older,
    )


def _expect_partitions(
    folder: folders.OperatorFolder, description: Description, context: Context
) -> dict[str, int | None]:
    """How many partitions each store should have: as the recorded conf says, or else operator metadata.

    Both name the number of shuffle partitions even for an operator that keeps everything in one partition.
    """
    metadata = description.known
    recorded = {store.name: store.partitions for store in metadata.stores} if metadata else {}
    stores = recorded or dict.fromkeys(folder.stores) or {DEFAULT_STORE: None}
    if len(recorded) == 1 and folder.stores.keys() == {DEFAULT_STORE}:
        recorded = dict.fromkeys(folder.stores, *recorded.values())  # an operator knows its only store, not by its name
        stores = {**recorded}
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
    schemas = (schema for schema in description.schemas.values() if not isinstance(schema, model.Unreadable))
    keyless = [_has_no_key(family.key_schema) for schema in schemas for family in schema]
    return bool(keyless) and all(keyless)


def _has_no_key(schema: model.Json) -> bool:
    """Tell whether a key schema has no fields, only the null of a limit, or only the start of a session window."""
    kinds = list(named_fields(schema))
    if not kinds:
        return fields_of(schema) is not None
    return kinds[0][1] in ("void", "null") or kinds == [("sessionStartTime", "timestamp")]


def _make_store(
    collected: CollectedState, folder: folders.OperatorFolder, name: str, expected: int | None
) -> model.Store:
    described = collected.described[folder.id]
    stores = folder.stores.get(name, {})
    families = described.schemas.get(name, ())
    families = () if isinstance(families, model.Unreadable) else families
    plain = next((family for family in families if family.name == DEFAULT_COLUMN_FAMILY), None)
    names = {find_usable_names(collected, store) for store in stores.values()}
    snapshots = [{version for version, _ in usable.snapshots} for usable in names]
    recorded = described.known.stores if described.known else ()
    everywhere = expected is None or all(partition in stores for partition in range(expected))
    return model.Store(
        name=name,
        partitions=tuple(_make_partition(collected, store) for _, store in sorted(stores.items())),
        expected_partitions=expected,
        changelog=any(usable.logs and usable.log_kind is model.StateFileKind.CHANGELOG for usable in names),
        readable_batches=_find_readable_batches(names, collected.context) if everywhere else (),
        newest_snapshot_version=max(set.intersection(*snapshots), default=None) if everywhere and snapshots else None,
        newest_snapshots=_find_newest_snapshots(snapshots),
        column_families=() if plain and len(families) == 1 else families,
        key_schema=plain.key_schema if plain else None,
        value_schema=plain.value_schema if plain else None,
        growth=measure_growth(stores.values(), collected.loads, collected.oldest_zips),
        prefix_columns=next((store.num_cols_prefix_key for store in recorded if store.name == name), None),
    )


def _make_partition(collected: CollectedState, store: folders.StorePartition) -> model.PartitionState:
    load = collected.loads.get(store)
    sizes = [store.files[name].size for name in store.names.all]
    for shared in (folders.SSTS, folders.LOGS):
        files = collected.listing.in_folder(f"{store.folder}/{shared}")
        sizes += [info.size for name, info in files.items() if name[0] != "."]
    return model.PartitionState(
        partition=store.partition,
        bytes=sum(sizes),
        files=len(sizes),
        num_keys=load.num_keys if load else None,
        newest_version=store.names.newest,
        replay_versions=load.replayed if load else None,
    )


def _find_readable_batches(names: Iterable[folders.StoreNames], context: Context) -> Ranges:
    """Committed batches whose state is there in all partitions: the state of batch B is version B + 1."""
    versions = {store_names.versions for store_names in names}
    batches = shift_ranges(reduce(intersect, versions) if versions else (), -1)
    return batches if context.committed is None else intersect(batches, ranges_of(context.committed))


def _find_newest_snapshots(snapshots: Iterable[set[int]]) -> tuple[int | None, int] | None:
    """Between which versions the newest snapshots of the partitions are: see ``Store.newest_snapshots``."""
    newest = [max(versions, default=None) for versions in snapshots]
    known = [version for version in newest if version is not None]
    return (None if None in newest else min(known), max(known)) if known else None


def _find_newer(stores: list[folders.StorePartition], context: Context) -> model.NewerState | None:
    """Files of versions that no batch of the offset log reads or writes: batch L writes version L + 1."""
    if context.latest is None:
        return None
    last = context.latest + 1
    newer = sorted(
        (version, f"{store.folder}/{name}", _is_overwritten(store, files))
        for store in stores
        if (store.names.newest or 0) > last
        for files in (store.names.logs, store.names.snapshots)
        for (version, _), name in files.items()
        if version > last
    )
    if not newer:
        return None
    harmful = newer[-1][0] - last > _SOON or not all(overwritten for _, _, overwritten in newer)
    return model.NewerState(newer[0][0], newer[-1][0], len(newer), newer[0][1], harmful)


def _is_overwritten(store: folders.StorePartition, files: Mapping[folders.FileId, str]) -> bool:
    """Tell whether every batch writes a file of this kind, and so replaces what is there before anything reads it.

    A snapshot of a store with deltas or changelogs is written now and then only.
    """
    return files is store.names.logs or not store.names.logs
