"""Damage of the state that the next start loads."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from ckpt.checkpoint.state.collected import CollectedState
from ckpt.checkpoint.state.folders import STATE, OperatorFolder, lies_elsewhere
from ckpt.formats.statefiles import DEFAULT_STORE
from ckpt.model import DamageKind, Operator, OperatorMetadata, StateDamage, Unreadable

_NAMED = 1000  # operators, and partitions of a store, that are named where they are missing
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
        detail = "the operator has no folder"
        if number == lost[-1] and more > 0:
            detail += f", nor have {more:,} more"
        path = f"{STATE}/{number}"
        yield StateDamage(DamageKind.MISSING_STATE, number, None, None, version, path, None, detail)
    of_operators: dict[int, list[StateDamage]] = {}
    for load in collected.loads.all:
        of_operators.setdefault(load.place.operator, []).extend(load.damages)
    for folder, operator in zip(collected.folders, operators, strict=True):
        for store, schema in collected.described[folder.id].schemas.items():
            if isinstance(schema, Unreadable):
                yield StateDamage(
                    DamageKind.BAD_SCHEMA,
                    folder.id,
                    store,
                    0,
                    version,
                    schema.path,
                    None,
                    schema.reason,
                    says=schema.says,
                )
        yield from _find_lost_metadata(collected, operator, version)
        yield from _find_lost_schemas(collected, operator, version)
        damages = of_operators.get(folder.id, [])
        damages += _find_absent(folder, operator, version)
        yield from sorted(damages, key=lambda damage: (damage.partition or 0, damage.store or ""))


def _find_lost_metadata(collected: CollectedState, operator: Operator, version: int) -> Iterator[StateDamage]:
    """Only operator metadata leads transformWithState to its schemas (``OperatorStateMetadataV2Reader``)."""
    folder = f"{STATE}/{operator.id}"
    metadata = collected.described[operator.id].metadata
    if not collected.listing.has_folder(f"{folder}/_stateSchema") or isinstance(metadata, OperatorMetadata):
        return
    damage = StateDamage(DamageKind.BAD_SCHEMA, operator.id, None, None, version, f"{folder}/_metadata", None, "")
    if isinstance(metadata, Unreadable):
        yield replace(damage, path=metadata.path, detail=metadata.reason)
    else:
        yield replace(damage, detail="the operator metadata is missing", says=_METADATA_GONE)


def _find_lost_schemas(collected: CollectedState, operator: Operator, version: int) -> Iterator[StateDamage]:
    """Schema files that operator metadata names in this checkpoint, and that are not there (transformWithState)."""
    for recorded in operator.schema_paths:
        path = f"{STATE}/{operator.id}/" + recorded.rpartition(f"/{STATE}/{operator.id}/")[2]
        if collected.listing.info(path) is None and not lies_elsewhere(recorded, operator.id, collected.uri):
            detail = "operator metadata names this schema file, which is missing"
            kind = DamageKind.BAD_SCHEMA
            says = f"{STATE}/{operator.id}/_stateSchema/"
            yield StateDamage(kind, operator.id, None, None, version, path, None, detail, says=says)


def _find_absent(folder: OperatorFolder, operator: Operator, version: int) -> Iterator[StateDamage]:
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
                detail = "there are no state files in it"
                path = path if store.name == DEFAULT_STORE else f"{path}/{store.name}"
            if partition == lost[-1] and more:
                detail += f", nor in {more:,} more partitions" if partition in there else f", nor have {more:,} more"
            kind = DamageKind.MISSING_PARTITION
            yield StateDamage(kind, folder.id, store.name, partition, version, path, None, detail)
