"""State of operators that a changed query has, or has no longer: folders are renamed, removed, or written empty."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from uuid import uuid4

from ckpt.changes.evolve.operators import OperatorChange
from ckpt.changes.plan import NoWay
from ckpt.changes.steps import FileContent, Step, plan_unread_removals
from ckpt.checkpoint.checkpoint import COMMITS, STATE, Checkpoint
from ckpt.checkpoint.state.chains import context_of
from ckpt.copies.rewrite.spreading import count_partitions
from ckpt.copies.rewrite.stored_rows import make_stored
from ckpt.copies.rewrite.stores import Families
from ckpt.copies.rewrite.writing import NewState
from ckpt.formats.commits import format_commit_log
from ckpt.formats.operators import format_operator_metadata, parse_operator_metadata
from ckpt.formats.schemas import format_state_schema
from ckpt.formats.statefiles import DEFAULT_STORE
from ckpt.inspection.query import DescribedOperator, DescribedStore, QueryDescription
from ckpt.model import ColumnFamily, Operator, OperatorMetadata, Provider, Store, StoreMetadata, Unreadable
from ckpt.storage import Storage

Ids = Mapping[int, Sequence[Sequence[str]]]  # of state files: of an operator by partition and store


def plan_state(
    storage: Storage, checkpoint: Checkpoint, query: QueryDescription, changes: Sequence[OperatorChange]
) -> Iterator[Step]:
    """Steps after which ``state/`` has the operators of the query. Raises NoWay, StorageError."""
    kept = {change.new: change.old for change in changes if change.new is not None and change.old is not None}
    if all(change.new == change.old for change in changes):
        return
    listing = checkpoint.listing
    if any(operator.schema_paths for operator in checkpoint.operators if operator.id in kept.values()):
        raise NoWay("an operator that keeps its state names schema files by its number, and would get another")
    written: dict[str, Step] = {}
    for new, old in kept.items():
        if new != old:
            written |= {step.path: step for step in _move_operator(storage, checkpoint, old, new)}
    added = [change.new for change in changes if change.new is not None and change.old is None]
    ids: dict[int, list[list[str]]] = {}
    for new in added:
        assert query.operators is not None
        for path, data in _make_empty(checkpoint, query.operators[new], new, ids).items():
            written[path] = Step(path, None, data)
    stays = {str(new) for new, old in kept.items() if new == old}
    folders = [name for name in listing.subfolders(STATE) if name not in stays]
    removed = [path for name in folders for path, _ in listing.walk(f"{STATE}/{name}") if path not in written]
    yield from {step.path: step for step in plan_unread_removals(listing, removed) if step.path not in written}.values()
    for path, step in written.items():
        info = listing.info(path)
        yield step if info is None else replace(step, before=FileContent(info.size, None))
    yield from _renumber_commits(checkpoint, kept, ids)


def _move_operator(storage: Storage, checkpoint: Checkpoint, old: int, new: int) -> Iterator[Step]:
    """Give the state of one operator the number of another; its files are not read now."""
    folder, metadata = f"{STATE}/{old}", f"{STATE}/{old}/_metadata/metadata"
    for path, info in checkpoint.listing.walk(folder):
        target = f"{STATE}/{new}{path.removeprefix(folder)}"
        if path == metadata:
            record = parse_operator_metadata(path, storage.read(path))
            if isinstance(record, Unreadable):
                raise NoWay(f"{path} cannot be read: {record.reason}")
            yield Step(target, None, format_operator_metadata(replace(record, operator_id=new)))
        elif path != f"{STATE}/{old}/_metadata/.metadata.crc":
            yield Step(target, None, FileContent(info.size, None), source=path)


def _make_empty(
    checkpoint: Checkpoint, wants: DescribedOperator, new: int, ids: dict[int, list[list[str]]]
) -> dict[str, bytes]:
    """The files of an operator that has seen no row. Raises NoWay."""
    context, state = context_of(checkpoint.offsets, checkpoint.commits), checkpoint.state
    partitions, batch = context.shuffle_partitions, checkpoint.commits.latest
    if wants.metadata_version != 1 or not wants.stores:
        raise NoWay(f"ckpt does not write the empty state of {wants.name}: start it in a query of its own")
    if partitions is None or batch is None or context.provider is Provider.UNKNOWN:
        raise NoWay("its offsets do not record how state is kept, or no batch is committed")
    stores = tuple(map(_make_store, wants.stores))
    operator = Operator(new, wants.name, stores)
    counts = {store.name: count_partitions(operator, store, partitions) for store in stores}
    metadata = OperatorMetadata(
        1,
        new,
        wants.name,
        tuple(StoreMetadata(store.name, store.prefix_columns or 0, counts[store.name]) for store in stores),
    )
    files = {f"{STATE}/{new}/_metadata/metadata": format_operator_metadata(metadata)}
    if state is not None and state.format_version > 1:
        ids[new] = [[str(uuid4()) for _ in stores] for _ in range(max(counts.values()))]
    kept = NewState(context.provider, partitions, batch, ids)
    for described, store in zip(wants.stores, stores, strict=True):
        within = "" if store.name == DEFAULT_STORE else f"/{store.name}"
        families = [
            ColumnFamily(family.name, family.key, family.value, family.key_encoder, family.user_key)
            for family in described.families
        ]
        schema = format_state_schema(described.schema_version or 2, families)
        files[f"{STATE}/{new}/0{within}/_metadata/schema"] = schema
        for partition in range(counts[store.name]):
            files |= kept.make_files(operator, store, partition, make_stored([], []), Families())
    return files


def _make_store(wants: DescribedStore) -> Store:
    (family,) = wants.families if len(wants.families) == 1 else (None,)
    if family is None or family.name != DEFAULT_STORE:
        raise NoWay(f"ckpt does not write empty column families: {wants.name}")
    return Store(
        name=wants.name,
        partitions=(),
        expected_partitions=None,
        changelog=False,
        readable_batches=(),
        newest_snapshot_version=None,
        newest_snapshots=None,
        column_families=(),
        key_schema=family.key,
        value_schema=family.value,
        prefix_columns=wants.prefix_columns,
    )


def _renumber_commits(checkpoint: Checkpoint, kept: Mapping[int, int], added: Ids) -> Iterator[Step]:
    """Name the state files of each operator under its new number (state store checkpoint format 2)."""
    for batch in checkpoint.commits.ids:
        log = checkpoint.commits.readable(batch)
        if log is None or not log.state_unique_ids:
            continue
        ids = {new: log.state_unique_ids[old] for new, old in kept.items() if old in log.state_unique_ids}
        if batch == checkpoint.commits.latest:
            ids |= {new: tuple(map(tuple, names)) for new, names in added.items()}
        changed = replace(log, state_unique_ids=dict(sorted(ids.items())))
        if not ids:
            changed = replace(changed, version=max(1, log.version if log.version > 2 else 1), state_unique_ids=None)
        path = f"{COMMITS}/{batch}"
        info = checkpoint.listing.info(path)
        assert info is not None
        yield from plan_unread_removals(checkpoint.listing, [f"{COMMITS}/.{batch}.crc"])
        yield Step(path, FileContent(info.size, None), format_commit_log(changed))
