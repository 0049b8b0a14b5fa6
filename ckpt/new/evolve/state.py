"""Plans the state of a changed query: operators are renamed, left out, added without rows, or get other columns.

Only descriptions and names of files are planned here; ``ckpt.new.carry_over`` makes the files that hold rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

from ckpt import settings
from ckpt.advice import call, words
from ckpt.changes.plan import NoWay
from ckpt.changes.steps import FileContent, FileStep, plan_unread_removals, sidecar
from ckpt.checkpoint.checkpoint import COMMITS, STATE, Checkpoint
from ckpt.checkpoint.state.chains import context_of
from ckpt.checkpoint.state.rewritable import Form, count_partitions, refuse_rewrite
from ckpt.formats import operators
from ckpt.formats.commits import format_commit_log
from ckpt.formats.schemas import format_state_schema
from ckpt.formats.statefiles import DEFAULT_STORE, JOIN_STORES
from ckpt.formats.types import named_fields, struct_of
from ckpt.model import ColumnFamily, Json, Operator, OperatorMetadata, Provider, Store, StoreMetadata, Unreadable
from ckpt.new.book import BOOK
from ckpt.new.evolve.book import BOOK as EVOLVE
from ckpt.new.evolve.operators import OperatorChange, list_modes
from ckpt.new.evolve.origins import StoreColumns, read_constant
from ckpt.new.evolve.sources import pair_kept
from ckpt.query.description import DescribedFamily, DescribedOperator, DescribedStore, QueryDescription, list_fields
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.reading import ChosenState, StateRequest, choose
from ckpt.storage import Storage


@dataclass(frozen=True, slots=True)
class StatePlan:
    """The state of a new checkpoint: steps for files that are at hand, and the stores whose files have to be made."""

    steps: tuple[FileStep, ...] = ()
    empty: tuple[Operator, ...] = ()  # added without rows
    rows: ChosenState | None = None  # the state whose rows get other columns
    form: Form | None = None  # of it, which stays
    columns: Mapping[tuple[int, str], StoreColumns | None] = field(default_factory=dict)
    """Columns of rows by old operator and store; None: as they are, beside another store of the operator."""
    numbers: Mapping[int, int] = field(default_factory=dict)  # of operators whose rows get other columns: new by old
    ids: Mapping[int, Sequence[Sequence[str]]] = field(default_factory=dict)
    """Format 2: the ids of state files that are made, by new operator: [partition][store]."""

    @property
    def makes_files(self) -> bool:
        """True if files have to be made."""
        return bool(self.empty or self.columns)


def plan_state(
    storage: Storage, checkpoint: Checkpoint, query: QueryDescription, changes: Sequence[OperatorChange]
) -> StatePlan:
    """Plan ``state/`` for the operators of a query in a new checkpoint. Raises NoWay, UsageError, StorageError."""
    kept = pair_kept(changes)
    changed = {new: change for change in changes if (new := change.new) is not None and change.stores}
    renumbered = {old for new, old in kept.items() if new != old}
    if any(operator.schema_paths for operator in checkpoint.operators if operator.id in renumbered):
        raise NoWay("a stateful operator's schema files are named by its number, which would change")
    plan = _plan_rows(storage, checkpoint, query, changed) if changed else StatePlan()
    ids, written, empty = {**plan.ids}, [*plan.steps], []
    restated = {change.new for change in changes if change.restated and not change.stores}
    for new, wants in enumerate(query.operators or ()):
        old = kept.get(new)
        if old is None:
            operator, partitions = _plan_empty(checkpoint, wants, new)
            empty.append(operator)
            written += _describe_operator(wants, new, partitions)
            if checkpoint.state is not None and checkpoint.state.format_version > 1:
                ids[new] = _make_ids(operator, partitions)
        elif new != old and new not in changed:
            written += _move_operator(storage, checkpoint, old, new)
        if new in restated:
            written += _restate(storage, checkpoint, new, wants)
    paths = {step.path for step in written}
    stays = {str(new) for new, old in kept.items() if new == old and new not in changed}
    left = [name for name in checkpoint.listing.subfolders(STATE) if name not in stays]
    removed = [path for name in left for path, _ in checkpoint.listing.walk(f"{STATE}/{name}") if path not in paths]
    removed += [sidecar(path) for path in paths if checkpoint.listing.info(sidecar(path)) is not None]
    steps = {step.path: step for step in plan_unread_removals(checkpoint.listing, removed) if step.path not in paths}
    commits = _renumber_commits(checkpoint, kept, ids, stateless=not query.operators)
    return replace(
        plan, steps=(*steps.values(), *replace_files(checkpoint, written), *commits), empty=tuple(empty), ids=ids
    )


def _restate(storage: Storage, checkpoint: Checkpoint, new: int, wants: DescribedOperator) -> Iterator[FileStep]:
    """Give the metadata of transformWithState another name and other modes; its state stays. Raises StorageError."""
    for path, _ in checkpoint.listing.walk(f"{STATE}/{new}/_metadata"):
        if not path.rpartition("/")[2].startswith("."):
            yield FileStep(path, None, operators.restate_operator(storage.read(path), wants.name, list_modes(wants)))


def replace_files(checkpoint: Checkpoint, steps: Iterable[FileStep]) -> Iterator[FileStep]:
    """Give steps that write a file the size of the one that is there."""
    for step in steps:
        info = checkpoint.listing.info(step.path)
        yield step if info is None else replace(step, before=FileContent(info.size, None))


def _plan_rows(
    storage: Storage, checkpoint: Checkpoint, query: QueryDescription, changed: Mapping[int, OperatorChange]
) -> StatePlan:
    """Plan operators, by their new number, whose rows get other columns. Raises NoWay, UsageError, CkptError."""
    assert query.operators is not None
    from ckpt.state.native.store_files import context_of as context_of_chosen  # not at the top: in place needs none

    chosen = choose(StateRequest(storage.uri, RequestedPart(), all_units=True), storage=storage)
    context = context_of_chosen(chosen)
    if context.shuffle_partitions is None or chosen.moment.batch != checkpoint.commits.latest:
        look = call("inspect", storage.uri)
        raise NoWay(words("the state of the newest committed batch cannot be read: see {inspect}", inspect=look))
    form = Form(context.provider, context.shuffle_partitions, 2 if context.unique_ids else 1)
    for why in refuse_rewrite(chosen.checkpoint.state, chosen.recorded, form, form, of_values=True):
        raise NoWay(why)
    numbers = {change.old: new for new, change in changed.items() if change.old is not None}
    columns: dict[tuple[int, str], StoreColumns | None] = {}
    steps: list[FileStep] = []
    ids: dict[int, list[list[str]]] = {}
    for operator in chosen.checkpoint.operators:
        new = numbers.get(operator.id)
        if new is None:
            continue
        if not operator.has_metadata:
            raise NoWay(f"operator {operator.id} has no metadata (Spark before 4.0): ckpt does not change its columns")
        stores = {store.name: store for store in changed[new].stores}
        for changed_store in stores.values():
            _check_constants(changed_store)
        columns |= {(operator.id, store.name): stores.get(store.name) for store in operator.stores}
        partitions = {store.name: count_partitions(operator, store, form.partitions) for store in operator.stores}
        partitions |= {name: 1 for name, changed_store in stores.items() if changed_store.has_no_key}
        if form.version > 1:
            ids[new] = _make_ids(operator, partitions)
        if operator.schema_paths:
            if operator.variables and chosen.recorded.get(settings.ENCODING_FORMAT) == "avro":
                raise NoWay("state variables are Avro-encoded, and only Spark can change their fields then")
            steps += _describe_variables(storage, checkpoint, operator, changed[new], query.operators[new])
        else:
            steps += _describe_operator(query.operators[new], new, partitions)
    return StatePlan(tuple(steps), rows=chosen, form=form, columns=columns, numbers=numbers, ids=ids)


def _check_constants(columns: StoreColumns) -> None:
    """Raise UsageError for a value that a person gave, and that is none of its column."""
    parts = [(columns.key_schema, columns.key), (columns.value_schema, columns.value)]
    parts += [(family.value_schema, family.value) for family in columns.families]
    while parts:
        schema, origins = parts.pop()
        for (name, kind), origin in zip(named_fields(schema), origins or (), strict=False):
            read_constant(name, kind, origin)
            parts.append((kind, origin.fields))


def _make_ids(operator: Operator, partitions: Mapping[str, int]) -> list[list[str]]:
    return [[str(uuid4()) for _ in operator.stores] for _ in range(max(partitions.values()))]


def _move_operator(storage: Storage, checkpoint: Checkpoint, old: int, new: int) -> Iterator[FileStep]:
    """Give the state of one operator the number of another; its files are not read now."""
    folder, metadata = f"{STATE}/{old}", f"{STATE}/{old}/_metadata/metadata"
    for path, info in checkpoint.listing.walk(folder):
        target = f"{STATE}/{new}{path.removeprefix(folder)}"
        if path == metadata:
            record = operators.parse_operator_metadata(path, storage.read(path))
            if isinstance(record, Unreadable):
                raise NoWay(f"{path} cannot be read: {record.reason}")
            yield FileStep(target, None, operators.format_operator_metadata(record._replace(operator_id=new)))
        elif path != f"{STATE}/{old}/_metadata/.metadata.crc":
            yield FileStep(target, None, FileContent(info.size, None), source=path)


def _plan_empty(checkpoint: Checkpoint, wants: DescribedOperator, new: int) -> tuple[Operator, dict[str, int]]:
    """Plan an operator that has seen no row, and the number of partitions of each store. Raises NoWay."""
    context = context_of(checkpoint.offsets, checkpoint.commits)
    families = [family.name for store in wants.stores for family in store.families]
    if wants.name in operators.TRANSFORM_WITH_STATE or families != [DEFAULT_STORE] * len(wants.stores):
        why = f"operator {new} starts empty, and ckpt does not write the empty state of {wants.name}"
        raise NoWay(why, EVOLVE.advise("evolve_hand_over", uri=checkpoint.uri))
    if context.shuffle_partitions is None or checkpoint.commits.latest is None or context.provider is Provider.UNKNOWN:
        raise NoWay("its offsets do not record how state is stored, or no batch is committed")
    operator = Operator(new, wants.name, tuple(map(_make_store, wants.stores or _list_stores(wants))))
    partitions = context.shuffle_partitions
    return operator, {store.name: count_partitions(operator, store, partitions) for store in operator.stores}


def _list_stores(wants: DescribedOperator) -> Iterator[DescribedStore]:
    """List the stores of an operator of Spark before 4.0, which describes none; of the key only that there is one."""
    key = struct_of(() if wants.keys == () else [("key", None)])
    family = DescribedFamily(DEFAULT_STORE, key, None)
    for name in sorted(JOIN_STORES) if wants.name == operators.OperatorName.JOIN else (DEFAULT_STORE,):
        yield DescribedStore(name, (family,))


def _make_store(wants: DescribedStore) -> Store:
    (family,) = wants.families
    return Store(wants.name, key_schema=family.key, value_schema=family.value, prefix_columns=wants.prefix_columns)


def _describe_operator(wants: DescribedOperator, new: int, partitions: Mapping[str, int]) -> Iterator[FileStep]:
    if not wants.stores:  # Spark before 4.0 keeps no metadata, and writes schemas at its start
        return
    stores = tuple(
        StoreMetadata(store.name, store.prefix_columns or 0, partitions[store.name]) for store in wants.stores
    )
    metadata = OperatorMetadata(1, new, wants.name, stores)
    yield FileStep(f"{STATE}/{new}/_metadata/metadata", None, operators.format_operator_metadata(metadata))
    for store in wants.stores:
        within = "" if store.name == DEFAULT_STORE else f"/{store.name}"
        families = [
            ColumnFamily(
                family.name,
                family.key,
                _let_be_null(family.value) if wants.name == operators.OperatorName.JOIN else family.value,
                family.key_encoder,
                family.user_key,
            )
            for family in store.families
        ]
        schema = format_state_schema(store.schema_version or 2, families)
        yield FileStep(f"{STATE}/{new}/0{within}/_metadata/schema", None, schema)


def _let_be_null(schema: Json) -> Json:
    """Let each column be NULL: in a join Spark infers at each start anew which are not, and reads these as well."""
    return {"type": "struct", "fields": [{**field, "nullable": True} for field in list_fields(schema)]}


def _describe_variables(
    storage: Storage, checkpoint: Checkpoint, operator: Operator, change: OperatorChange, wants: DescribedOperator
) -> Iterator[FileStep]:
    """Describe transformWithState with the new names and fields of its variables. Raises NoWay, StorageError."""
    families = {family.old.name: family for store in change.stores for family in store.families}
    names = {name: family.new_name for name, family in families.items()}
    folder, newest = f"{STATE}/{operator.id}", f"{STATE}/{operator.schema_paths[-1].rpartition(f'/{STATE}/')[2]}"
    in_folder = newest.startswith(f"{folder}/_stateSchema/") and checkpoint.listing.info(newest) is not None
    if len(operator.stores) > 1 or not in_folder:
        raise NoWay(BOOK.text("evolve_schemas", id=operator.id))
    for path, _ in checkpoint.listing.walk(folder):
        inner = path.removeprefix(f"{folder}/")
        if path == newest or path.rpartition("/")[2].startswith("."):
            continue
        if inner.startswith("_metadata/"):
            renamed = operators.rename_variables(storage.read(path), names)
            stated = operators.restate_operator(renamed, wants.name, list_modes(wants)) if change.restated else renamed
            yield FileStep(path, None, stated)
        elif inner.startswith("_stateSchema/"):
            yield FileStep(path, None, storage.read(path))
    schemas = []
    for own in operator.stores[0].column_families:
        family, name = families.get(own.name), names.get(own.name, own.name)
        key = own.key_schema if family is None else family.key_schema or own.key_schema
        value = own.value_schema if family is None else family.value_schema
        if name is not None:
            schemas.append(ColumnFamily(name, key, value, own.key_encoder, own.user_key_schema))
    yield FileStep(newest, None, format_state_schema(3, sorted(schemas, key=lambda family: family.name)))


def _renumber_commits(
    checkpoint: Checkpoint, kept: Mapping[int, int], added: Mapping[int, Sequence[Sequence[str]]], *, stateless: bool
) -> Iterator[FileStep]:
    """Name the state files of each operator under its new number (state store checkpoint format 2).

    Of a query that keeps no state any more there is no watermark either: it would show that state was lost.
    """
    for batch in checkpoint.commits.ids:
        log = checkpoint.commits.readable(batch)
        if log is None or not (log.state_unique_ids or (stateless and log.next_watermark_ms)):
            continue
        there = log.state_unique_ids or {}
        ids = {new: there[old] for new, old in kept.items() if old in there}
        if batch == checkpoint.commits.latest:
            ids |= {new: tuple(map(tuple, names)) for new, names in added.items()}
        changed = replace(log, state_unique_ids=dict(sorted(ids.items())))
        if stateless:  # as Spark writes it where no operator has a watermark
            changed = replace(changed, next_watermark_ms=0)
        if not ids:
            changed = replace(changed, version=max(1, log.version if log.version > 2 else 1), state_unique_ids=None)
        path = f"{COMMITS}/{batch}"
        info = checkpoint.listing.info(path)
        assert info is not None
        yield from plan_unread_removals(checkpoint.listing, [f"{COMMITS}/.{batch}.crc"])
        yield FileStep(path, FileContent(info.size, None), format_commit_log(changed))
