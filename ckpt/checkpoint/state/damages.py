"""Damage of the state: of what the next start loads, and where every byte was read, of all files."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice

from ckpt.checkpoint.state.file_ends import Verdict
from ckpt.checkpoint.state.folders import SSTS, STATE, OperatorFolder, StoreNames, StorePartition, lies_elsewhere
from ckpt.checkpoint.state.load import CollectedState, is_serious, judge_ssts
from ckpt.formats.keyhash import partition_of
from ckpt.formats.operators import BY_WHOLE_KEY, OperatorName
from ckpt.formats.statefiles import DEFAULT_STORE, JOIN_COUNTS
from ckpt.formats.types import named_fields
from ckpt.model import DamageKind, EveryByte, FileDamage, Operator, Provider, StateDamage, StateFileKind, Unreadable
from ckpt.settings import ENCODING_FORMAT, ROW_CHECKSUM, STRICT_DISTRIBUTION

_NAMED = 1000  # operators, and partitions of a store, that are named where they are missing
_AS_WRITTEN = (DamageKind.VERSION_1, DamageKind.VERSION_2, DamageKind.BLOCKED)  # the bytes are what they were
_METADATA_GONE = "STDS_FAILED_TO_READ_OPERATOR_METADATA"


def find_damages(collected: CollectedState, operators: tuple[Operator, ...]) -> Iterator[StateDamage]:
    """List the damages of the needed version, in the order in which Spark comes to them."""
    context = collected.context
    version = context.needed_version
    if version is None:
        return
    ids = {folder.id for folder in collected.folders}
    if not ids:
        detail = "there is no state of any operator"
        yield StateDamage(DamageKind.MISSING_STATE, None, None, None, version, STATE, None, detail)
        return
    absent = (number for number in range(max(ids)) if number not in ids)
    lost = sorted({*islice(absent, _NAMED), *(context.unique_ids.keys() - ids)})
    more = max(ids) + 1 - len(ids) - _NAMED
    for number in lost:
        others = f", nor have {more:,} more" if number == lost[-1] and more > 0 else ""
        path, detail = f"{STATE}/{number}", f"the operator has no folder{others}"
        yield StateDamage(DamageKind.MISSING_STATE, number, None, None, version, path, None, detail)
    of_operators: dict[int, list[StateDamage]] = {}
    for load in collected.loads.values():
        of_operators.setdefault(load.place.operator, []).extend(load.damages)
    for folder, operator in zip(collected.folders, operators, strict=True):
        for store, schema in collected.described[folder.id].schemas.items():
            if isinstance(schema, Unreadable) and not _writes_schemas_again(collected, operator):
                address = folder.id, store, 0, version, schema.path, None
                yield StateDamage(DamageKind.BAD_SCHEMA, *address, schema.reason, says=schema.says)
        yield from _find_lost_metadata(collected, operator, version)
        yield from _find_lost_schemas(collected, operator, version)
        damages = of_operators.get(folder.id, [])
        damages += _find_absent(folder, operator, version, collected)
        yield from sorted(damages, key=lambda damage: (damage.partition or 0, damage.store or ""))


def _writes_schemas_again(collected: CollectedState, operator: Operator) -> bool:
    """Tell whether a start reads no schema here: a join whose metadata names them elsewhere writes them there again."""
    paths = operator.schema_paths
    return bool(paths) and not operator.variables and all(lies_elsewhere(p, operator.id, collected.uri) for p in paths)


def _find_lost_metadata(collected: CollectedState, operator: Operator, version: int) -> Iterator[StateDamage]:
    """Only operator metadata leads transformWithState to its schemas (``OperatorStateMetadataV2Reader``)."""
    folder = f"{STATE}/{operator.id}"
    description = collected.described[operator.id]
    if description.known is not None or not collected.listing.has_folder(f"{folder}/_stateSchema"):
        return
    damage = StateDamage(DamageKind.BAD_SCHEMA, operator.id, None, None, version, f"{folder}/_metadata", None, "")
    if isinstance(description.metadata, Unreadable):
        yield replace(damage, path=description.metadata.path, detail=description.metadata.reason)
    else:
        yield replace(damage, detail="the operator metadata is missing", says=_METADATA_GONE)


def _find_lost_schemas(collected: CollectedState, operator: Operator, version: int) -> Iterator[StateDamage]:
    """Schema files that operator metadata names in this checkpoint, and that are not there (transformWithState)."""
    for recorded in operator.schema_paths:
        path = f"{STATE}/{operator.id}/" + recorded.rpartition(f"/{STATE}/{operator.id}/")[2]
        if collected.listing.info(path) is None and not lies_elsewhere(recorded, operator.id, collected.uri):
            detail = "operator metadata names this schema file, but it is missing"
            address = operator.id, None, None, version, path, None
            yield StateDamage(DamageKind.BAD_SCHEMA, *address, detail, says=f"{STATE}/{operator.id}/_stateSchema/")


def _find_absent(
    folder: OperatorFolder, operator: Operator, version: int, collected: CollectedState
) -> Iterator[StateDamage]:
    """Partitions and stores that should be there and are not; of very many, the first of each store by name."""
    there = set(folder.partitions)
    for store in operator.stores:
        expected, kept = store.expected_partitions or 0, folder.stores.get(store.name, {})
        lost = list(islice((partition for partition in range(expected) if partition not in kept), _NAMED))
        more = expected - sum(partition < expected for partition in kept) - len(lost)
        for partition in lost:
            path = f"{folder.path}/{partition}"
            detail = "the partition has no folder"
            if partition in there:
                path = path if store.name == DEFAULT_STORE else f"{path}/{store.name}"
                ssts = collected.listing.has_folder(f"{path}/{SSTS}")
                detail = "there is no zip in it, only SST files" if ssts else "there are no state files in it"
            if partition == lost[-1] and more:
                detail += f", nor in {more:,} more partitions" if partition in there else f", nor have {more:,} more"
            address = folder.id, store.name, partition, version, path, None
            yield StateDamage(DamageKind.MISSING_PARTITION, *address, detail)


def find_usable_names(collected: CollectedState, store: StorePartition) -> StoreNames:
    """The names in a store's folder, without those of files that were seen to be damaged."""
    names = collected.loads[store].usable if store in collected.loads else store.names
    if not collected.seen.files:
        return names
    verdicts = ((name, collected.seen.wrong.get(f"{store.folder}/{name}")) for name in names.all)
    bad = {
        name
        for name, verdict in verdicts
        if verdict and is_serious(verdict.kind, checksummed=store.checksum_size(name) is not None)
    }
    for file_id, name in names.snapshots.items():
        if name in bad or any(judge_ssts(collected.listing, store, name, collected.seen)):
            bad.add(name)
            if names.snapshot_kind is StateFileKind.ZIP and file_id in names.logs:
                bad.add(names.logs[file_id])  # Spark's reader does not go back to the snapshot before
    return names.without(bad) if bad else names


def judge_read_files(collected: CollectedState, damages: tuple[StateDamage, ...]) -> tuple[FileDamage, ...]:
    """All damage in files, as far as they were read completely, by path."""
    if not collected.seen.files:
        return ()
    by_path = {path: FileDamage(path, verdict.kind, verdict.detail) for path, verdict in _judge_other_files(collected)}
    of_load = (damage for damage in damages if damage.kind not in _AS_WRITTEN)
    by_path |= {damage.path: FileDamage(damage.path, damage.kind, damage.detail) for damage in of_load}
    by_path |= {damage.path: damage for damage in _find_misplaced_keys(collected)}
    return tuple(by_path[path] for path in sorted(by_path))


def count_every_byte(collected: CollectedState, damages: tuple[FileDamage, ...]) -> EveryByte | None:
    """Count what was read, where every byte was."""
    if not collected.deep:
        return None
    fully_read = collected.seen
    sizes = [info.size for path in fully_read.files if (info := collected.listing.info(path))]
    return EveryByte(
        files=len(sizes),
        bytes=sum(sizes),
        damages=damages,
        unknown=tuple(sorted(path for path in fully_read.unknown if collected.listing.info(path))),
        reasons=fully_read.reasons,
    )


def _judge_other_files(collected: CollectedState) -> Iterator[tuple[str, Verdict]]:
    """List the damages of files, whether the next start loads them or not."""
    yield from ((path, verdict) for path, verdict in collected.seen.wrong.items() if collected.listing.info(path))
    for folder in collected.folders:
        for store in folder.list_stores():
            for name in store.names.snapshots.values():
                for sst, verdict in judge_ssts(collected.listing, store, name, collected.seen):
                    yield f"{store.folder}/{SSTS}/{sst}", verdict
    for description in collected.described.values():
        for file in description.unreadable:
            yield file.path, Verdict(DamageKind.UNREADABLE, file.reason)


def _find_misplaced_keys(collected: CollectedState) -> Iterator[FileDamage]:
    """The folders of partitions whose first keys belong to others, by files that were read; ``--deep`` sees more.

    Whatever keys are, none is in two partitions.
    """
    for folder in collected.folders:
        for name, partitions in folder.stores.items():
            keys = {store: _list_first_keys(collected, store) for store in partitions.values()}
            count = collected.context.shuffle_partitions or 0
            all_there = len(partitions) == count and sorted(partitions) == [*range(count)]
            owner = _make_partitioner(collected, folder.id, name) if all_there else None  # else the number may be wrong
            details = {
                store: _describe_misplaced(store.partition, of_files, *owner)
                for store, of_files in keys.items()
                if owner
            }
            if not any(details.values()):
                details = dict(_describe_copies(keys))
            for store, detail in details.items():
                if detail is not None:
                    yield FileDamage(store.folder, DamageKind.WRONG_PARTITION, detail)


def _list_first_keys(collected: CollectedState, store: StorePartition) -> list[tuple[bytes, ...]]:
    """The first keys of each file of a store that was read and has any."""
    tables = (f"{SSTS}/{file}" for file in collected.listing.in_folder(f"{store.folder}/{SSTS}"))
    return [keys for file in (*store.names.all, *tables) if (keys := collected.seen.keys.get(f"{store.folder}/{file}"))]


def _make_partitioner(
    collected: CollectedState, operator: int, store: str
) -> tuple[Callable[[bytes], int | None], bool] | None:
    """Tell which partition a key of a store belongs to, and whether that is sure; None where it is not known.

    Without operator metadata, which Spark before 4.0 does not write, it is sure only if all keys of a file agree.
    """
    conf, count = collected.context.conf, collected.context.shuffle_partitions
    described = collected.described[operator]
    families, name = described.schemas.get(store, ()), described.known.name if described.known else None
    counts = store.endswith(JOIN_COUNTS) and name in (None, OperatorName.JOIN)
    whole_key = counts or (store == DEFAULT_STORE and (name is None or name in BY_WHOLE_KEY))
    plain = conf.get(ENCODING_FORMAT, "unsaferow") == "unsaferow" and conf.get(ROW_CHECKSUM, "false") == "false"
    if isinstance(families, Unreadable) or len(families) != 1 or conf.get(STRICT_DISTRIBUTION) != "true":
        return None
    key = families[0].key_schema
    if not (count and plain and whole_key) or "sessionStartTime" in dict(named_fields(key)):
        return None
    version = 0 if collected.context.provider is Provider.HDFS else 1  # bytes before the row
    return lambda stored: partition_of(key, stored[version:], count), name is not None


def _describe_misplaced(
    partition: int, of_files: list[tuple[bytes, ...]], find_owner: Callable[[bytes], int | None], sure: bool
) -> str | None:
    owners = [[find_owner(key) for key in keys] for keys in of_files]
    known = [owner for of_file in owners for owner in of_file if owner is not None]
    wrong = [owner for owner in known if owner != partition]
    elsewhere = (len(of_file) > 1 and not {None, partition} & {*of_file} for of_file in owners)
    if not wrong or not (sure or any(elsewhere)):
        return None
    return f"{len(wrong)} of {len(known)} keys belong to other partitions, such as {wrong[0]}"


def _describe_copies(
    keys: Mapping[StorePartition, list[tuple[bytes, ...]]],
) -> Iterator[tuple[StorePartition, str]]:
    """Partitions that have a key of another one, by their first keys."""
    holders: dict[bytes, set[str]] = {}
    for store, of_files in keys.items():
        for key in chain.from_iterable(of_files):
            holders.setdefault(key, set()).add(store.folder)
    for store, of_files in keys.items():
        others = sorted({folder for key in chain(*of_files) for folder in holders[key]} - {store.folder})
        if others:
            yield store, f"{others[0]} has the same keys, so one of the two is a copy"
