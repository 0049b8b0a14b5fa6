"""State of operators that a changed query has, or has no longer: folders are renamed, removed, or written anew.

Of a new operator state is empty. Where columns change, each partition is read and written as ``ckpt rewrite`` does it,
by processes of this machine or by Spark's executors: to the new checkpoint itself, which the mark of ``Placing.begin``
keeps every start from, or for a plan to a temporary folder.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

from ckpt import settings
from ckpt.advice import call, words
from ckpt.changes.plan import NoWay
from ckpt.changes.steps import FileContent, FileStep, plan_unread_removals
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, STATE, Checkpoint
from ckpt.checkpoint.state.chains import context_of
from ckpt.checkpoint.state.rewritable import Form, count_partitions, refuse_rewrite
from ckpt.formats.commits import format_commit_log
from ckpt.formats.operators import format_operator_metadata, parse_operator_metadata, rename_variables
from ckpt.formats.schemas import format_state_schema
from ckpt.formats.statefiles import DEFAULT_STORE
from ckpt.formats.types import named_fields
from ckpt.model import ColumnFamily, Operator, OperatorMetadata, Provider, Store, StoreMetadata, Unreadable
from ckpt.new.book import BOOK
from ckpt.new.evolve.operators import OperatorChange
from ckpt.new.evolved.reshaping import ColumnReshaping
from ckpt.new.evolved.spool import Spool
from ckpt.new.exchange import Exchange
from ckpt.new.rewrite.move import Move, run_move
from ckpt.new.rewrite.snapshots import read_file_form
from ckpt.new.rewrite.stored_rows import make_stored
from ckpt.new.rewrite.stores import Families, Reshaping
from ckpt.new.rewrite.writing import NewState
from ckpt.query.description import DescribedOperator, DescribedStore, QueryDescription
from ckpt.state.native.store_files import context_of as context_of_chosen
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.reading import Question, choose
from ckpt.storage import Storage

Ids = Mapping[int, Sequence[Sequence[str]]]  # of state files: of an operator by partition and store


@dataclass(frozen=True, slots=True)
class StateWork:
    """How state is read, and written anew."""

    options: Mapping[str, str] = field(default_factory=dict)  # for the file system of the checkpoint
    jobs: int | None = None  # processes at a time; None: as many as are worth it
    by: Exchange | None = None  # who does it, if not processes of this machine
    into: str = ""  # where tasks write themselves, for ``by``
    new_options: Mapping[str, str] = field(default_factory=dict)  # for the file system of ``into``


def plan_state(
    storage: Storage,
    checkpoint: Checkpoint,
    query: QueryDescription,
    changes: Sequence[OperatorChange],
    work: StateWork,
) -> Iterator[FileStep]:
    """Steps after which ``state/`` has the operators of the query. Raises NoWay, CkptError."""
    kept = {change.new: change.old for change in changes if change.new is not None and change.old is not None}
    changed = {change.new: change for change in changes if change.new is not None and change.stores}
    if all(change.new == change.old and not change.stores for change in changes):
        return
    listing = checkpoint.listing
    renumbered = [old for new, old in kept.items() if new != old]
    if any(operator.schema_paths for operator in checkpoint.operators if operator.id in renumbered):
        raise NoWay("an operator that keeps its state names schema files by its number, and would get another")
    written: dict[str, FileStep] = {}
    for new, old in kept.items():
        if new != old and new not in changed:
            written |= {step.path: step for step in _move_operator(storage, checkpoint, old, new)}
    added = [change.new for change in changes if change.new is not None and change.old is None]
    ids: dict[int, list[list[str]]] = {}
    for new in added:
        assert query.operators is not None
        for path, data in _make_empty(checkpoint, query.operators[new], new, ids).items():
            written[path] = FileStep(path, None, data)
    if changed:
        assert isinstance(storage, Spool)
        written |= {step.path: step for step in _reshape(storage, checkpoint, query, changed, work, ids)}
    stays = {str(new) for new, old in kept.items() if new == old and new not in changed}
    folders = [name for name in listing.subfolders(STATE) if name not in stays]
    removed = [path for name in folders for path, _ in listing.walk(f"{STATE}/{name}") if path not in written]
    yield from {step.path: step for step in plan_unread_removals(listing, removed) if step.path not in written}.values()
    for path, step in written.items():
        info = listing.info(path)
        yield step if info is None else replace(step, before=FileContent(info.size, None))
    yield from _renumber_commits(checkpoint, kept, ids)


def _move_operator(storage: Storage, checkpoint: Checkpoint, old: int, new: int) -> Iterator[FileStep]:
    """Give the state of one operator the number of another; its files are not read now."""
    folder, metadata = f"{STATE}/{old}", f"{STATE}/{old}/_metadata/metadata"
    for path, info in checkpoint.listing.walk(folder):
        target = f"{STATE}/{new}{path.removeprefix(folder)}"
        if path == metadata:
            record = parse_operator_metadata(path, storage.read(path))
            if isinstance(record, Unreadable):
                raise NoWay(f"{path} cannot be read: {record.reason}")
            yield FileStep(target, None, format_operator_metadata(replace(record, operator_id=new)))
        elif path != f"{STATE}/{old}/_metadata/.metadata.crc":
            yield FileStep(target, None, FileContent(info.size, None), source=path)


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
    files = _describe_operator(wants, new, counts)
    if state is not None and state.format_version > 1:
        ids[new] = [[str(uuid4()) for _ in stores] for _ in range(max(counts.values()))]
    kept = NewState(context.provider, partitions, batch, ids, read_file_form(context))
    for store in stores:
        for partition in range(counts[store.name]):
            files |= kept.make_files(operator, store, partition, make_stored([], []), Families())
    return files


def _describe_operator(wants: DescribedOperator, new: int, partitions: Mapping[str, int]) -> dict[str, bytes]:
    """Operator metadata, and the schemas of stores; ``partitions`` is their number by store."""
    metadata = OperatorMetadata(
        1,
        new,
        wants.name,
        tuple(StoreMetadata(store.name, store.prefix_columns or 0, partitions[store.name]) for store in wants.stores),
    )
    files = {f"{STATE}/{new}/_metadata/metadata": format_operator_metadata(metadata)}
    for store in wants.stores:
        within = "" if store.name == DEFAULT_STORE else f"/{store.name}"
        families = [
            ColumnFamily(family.name, family.key, family.value, family.key_encoder, family.user_key)
            for family in store.families
        ]
        schema = format_state_schema(store.schema_version or 2, families)
        files[f"{STATE}/{new}/0{within}/_metadata/schema"] = schema
    return files


def _describe_variables(
    storage: Storage, checkpoint: Checkpoint, operator: Operator, change: OperatorChange
) -> dict[str, bytes]:
    """Operator metadata and schemas of transformWithState, with the new names and fields of variables. Raises NoWay."""
    families = {family.name: family for store in change.stores for family in store.families}
    names = {name: family.new_name for name, family in families.items()}
    files = {}
    folder = f"{STATE}/{operator.id}"
    for path, _ in checkpoint.listing.walk(folder):
        inner, name = path.removeprefix(f"{folder}/"), path.rpartition("/")[2]
        if name.startswith(".") or not inner.startswith(("_metadata/", "_stateSchema/")):
            continue
        data = storage.read(path)
        files[path] = rename_variables(data, names) if inner.startswith("_metadata/") else data
    for store in operator.stores:
        schemas = [
            ColumnFamily(
                names.get(own.name) or own.name,
                families[own.name].key_schema or own.key_schema if own.name in families else own.key_schema,
                families[own.name].value_schema if own.name in families else own.value_schema,
                own.key_encoder,
                own.user_key_schema,
            )
            for own in store.column_families
            if names.get(own.name, own.name) is not None
        ]
        newest = operator.schema_paths[-1].rpartition(f"/{STATE}/")[2]
        path = f"{STATE}/{newest}"
        if path not in files or len(operator.stores) > 1:
            raise NoWay(BOOK.text("evolve_schemas", id=operator.id))
        files[path] = format_state_schema(3, sorted(schemas, key=lambda family: family.name))
    return files


def _reshape(
    storage: Spool,
    checkpoint: Checkpoint,
    query: QueryDescription,
    changed: Mapping[int, OperatorChange],
    work: StateWork,
    ids: dict[int, list[list[str]]],
) -> Iterator[FileStep]:
    """Write the state of operators in other columns. Raises NoWay, CkptError."""
    assert query.operators is not None
    question = Question(storage.uri, RequestedPart(), all_units=True)
    chosen = choose(question, work.options, storage=storage.storage)
    context = context_of_chosen(chosen)
    if context.shuffle_partitions is None or chosen.moment.batch != checkpoint.commits.latest:
        look = call("inspect", storage.uri)
        raise NoWay(words("the state of the newest committed batch cannot be read: see {inspect}", inspect=look))
    form = Form(context.provider, context.shuffle_partitions, 2 if context.unique_ids else 1)
    for why in refuse_rewrite(chosen.checkpoint.state, chosen.recorded, form, form, of_values=True):
        raise NoWay(why)
    numbers = {change.old: new for new, change in changed.items() if change.old is not None}
    operators = {operator.id: operator for operator in chosen.checkpoint.operators if operator.id in numbers}
    reshapings: dict[tuple[int, str], Reshaping | None] = {}
    own_ids: dict[int, list[list[str]]] = {}
    for old, operator in operators.items():
        _refuse_operator(operator)
        columns = {store.name: store for store in changed[numbers[old]].stores}
        for store in operator.stores:
            own = columns.get(store.name)
            reshaping = None if own is None else ColumnReshaping(own, form.provider)
            if reshaping is not None:
                reshaping.check()
            reshapings[old, store.name] = reshaping
        counts = {store.name: count_partitions(operator, store, form.partitions) for store in operator.stores}
        counts |= {
            name: 1 for name, own in columns.items() if not own.families and not list(named_fields(own.key_schema))
        }
        if form.version > 1:
            own_ids[old] = [[str(uuid4()) for _ in operator.stores] for _ in range(max(counts.values()))]
            ids[numbers[old]] = own_ids[old]
        if operator.schema_paths:
            if operator.variables and chosen.recorded.get(settings.ENCODING_FORMAT) == "avro":
                raise NoWay("state variables are encoded as Avro, and only Spark changes their fields then")
            files = _describe_variables(storage, checkpoint, operator, changed[numbers[old]])
        else:
            files = _describe_operator(query.operators[numbers[old]], numbers[old], counts)
        yield from (FileStep(path, None, data) for path, data in files.items())
    file_form = read_file_form(context)
    state = NewState(form.provider, form.partitions, chosen.moment.batch, own_ids, file_form, numbers=numbers)
    storage.new.begin(f"{OFFSETS}/{checkpoint.offsets.latest}")
    writes = work.by is not None and work.by.writes
    move = Move(chosen, form, state, (), None, work.into, work.new_options, writes, reshapings)
    for _, outcome in run_move(move, work.by, work.jobs):
        for path, data in (outcome.files or {}).items():
            size = data if isinstance(data, int) else len(data)
            yield FileStep(path, None, FileContent(size, None), source=storage.keep(path, data))


def _refuse_operator(operator: Operator) -> None:
    """Raise NoWay where ckpt does not change the columns of an operator."""
    if not operator.has_metadata:
        raise NoWay(f"operator {operator.id} has no metadata (Spark before 4.0): ckpt does not change its columns")


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


def _renumber_commits(checkpoint: Checkpoint, kept: Mapping[int, int], added: Ids) -> Iterator[FileStep]:
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
        yield FileStep(path, FileContent(info.size, None), format_commit_log(changed))
