"""``ckpt rewrite`` as one call: a new checkpoint with the same state, kept by another provider or in other partitions.

The new one has the offsets and the commit of the newest committed batch, and one snapshot of each store in each
partition: state version batch + 1. It lacks what no start looks for. A batch that is planned and not committed is
refused: a sink that has its rows passes over it, and its state would be missing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from uuid import uuid4

from ckpt import settings
from ckpt.change.steps import Changed
from ckpt.checkpoint import COMMITS, OFFSETS
from ckpt.copying import select
from ckpt.copying.placing import Placing, check_apart, incomplete, open_new, options_for
from ckpt.errors import StorageError, UsageError
from ckpt.export.choose import Wanted
from ckpt.export.reading import Chosen, Question, choose
from ckpt.formats.statefiles import DEFAULT_STORE
from ckpt.formats.types import named_fields, type_named
from ckpt.inspection import inspect
from ckpt.model import Operator, Provider, Store
from ckpt.native.batches import raw_batches
from ckpt.native.files import files_of
from ckpt.native.spread import rows_in
from ckpt.reader import read_checkpoint
from ckpt.rewrite.dropping import NOTHING, Dropping, Key, read_keys
from ckpt.rewrite.plan import Rewrite, RewrittenUnit, SmallFiles, planned, stores_of
from ckpt.rewrite.snapshots import hdfs_snapshot, rocksdb_snapshot
from ckpt.rewrite.spreading import is_single
from ckpt.rewrite.stores import Families, Moving
from ckpt.state.folders import STATE
from ckpt.state.units import StateUnit
from ckpt.storage.base import one_line
from ckpt.storage.locations import spark_uri

Watcher = Callable[[int, int], None]
"""Called with the number of stores written so far, and the number of all stores."""


def rewrite_checkpoint(
    uri: str,
    into: str,
    storage_options: Mapping[str, str] | None = None,
    *,
    provider: str | None = None,
    partitions: int | None = None,
    format_version: int | None = None,
    drop_keys: str | Iterable[Key] = (),
    new_id: bool = False,
    plan: bool = False,
    watcher: Watcher | None = None,
) -> Rewrite:
    """Write a new checkpoint with the state of this one, which is only read; without Spark.

    A query continues on the new one as it would on the old one, which is not to be started again. The rows of one store
    are in memory at once.

    Args:
        uri: The checkpoint: a local path, or any URI that ``open_checkpoint`` opens.
        into: A folder that does not exist, or holds no file: likewise.
        storage_options: For the file systems of both, where they are remote.
        provider: ``hdfs`` or ``rocksdb``; by default as it is.
        partitions: The new number of shuffle partitions; by default as it is.
        format_version: The state store checkpoint format, 1 or 2; by default as it is. Sessions must be set to it.
        drop_keys: Keys that are left out, with everything that operators keep for them: columns of the grouping key and
            their values as text, as of ``show_state``, None for NULL; or the path of a file of such JSON objects, one
            in a line. Operators that have no such columns keep all.
        new_id: Give the new checkpoint a query id of its own.
        plan: Only say what would be written.
        watcher: Called with the number of stores written so far, and the number of all stores.

    Raises:
        NotACheckpoint, NotFound, StorageError: The old one cannot be read, or the new one not be written; nothing is
            left of it then, as far as it can be removed.
        StateDamaged: Files of that state are missing or damaged.
        CkptError: The bytes are not understood, or the new checkpoint is not what it should be.
        UsageError: A URI or option is wrong, or one place is inside the other.

    >>> made = ckpt.rewrite_checkpoint("sample_checkpoints/aggregation-hdfs-4.2", "memory://new", partitions=5)
    >>> made.batch, made.new.partitions, [one.rows for one in made.units]
    (9, 5, [7])

    """
    check_apart(uri, into)
    _check_form(provider, partitions, format_version)
    options = storage_options or {}
    keys = read_keys(drop_keys) if isinstance(drop_keys, str) else [*drop_keys]
    chosen = choose(Question(uri, Wanted(), all_units=True), options_for(uri, options))
    selection = select(chosen.storage, into, chosen.moment.batch)
    found = planned(chosen, selection, into, provider, partitions, format_version, keys, new_id=new_id)
    if plan or found.refused:
        return found
    placing = open_new(into, options)
    placing.make_empty()
    try:
        _write(chosen, SmallFiles(chosen, selection, found), placing, watcher)
        _check(found, placing)
        units = tuple(_counted(chosen, found, options))
        _check_at_rest(chosen)
    except BaseException:
        placing.discard()
        raise
    return replace(found, units=units, written=True, files=len(placing.sizes), bytes=sum(placing.sizes.values()))


def _check_form(provider: str | None, partitions: int | None, format_version: int | None) -> None:
    """Raise UsageError where it is none."""
    if partitions is not None and partitions < 1:
        raise UsageError("`partitions`: at least one")
    if format_version not in (None, 1, 2):
        raise UsageError("`format_version`: 1 or 2")
    if provider not in (None, Provider.HDFS, Provider.ROCKSDB):
        raise UsageError(f"`provider={provider!r}`: {Provider.HDFS} or {Provider.ROCKSDB}")


def _write(chosen: Chosen, small: SmallFiles, placing: Placing, watcher: Watcher | None) -> None:
    """All files, in the order in which no crash leaves what a start takes for complete. Raises CkptError."""
    placing.put({small.first: small.file(small.first)})
    stores = list(stores_of(chosen))
    for done, (operator, store) in enumerate(stores, 1):
        for path, data in _state(chosen, operator, store, small):
            placing.put({path: data})
        if watcher is not None:
            watcher(done, len(stores))
    for path in (*small.paths(), small.last):
        placing.put({path: small.file(path)})


def _state(chosen: Chosen, operator: Operator, store: Store, small: SmallFiles) -> Iterator[tuple[str, bytes]]:
    """The files of a store. Raises Undecodable, StorageError."""
    old, new, recorded = small.found.old, small.found.new, chosen.recorded
    moving = Moving(
        operator=operator,
        store=store,
        old=old.provider,
        new=new.provider,
        before=old.partitions,
        partitions=None if new.partitions == old.partitions else new.partitions,
        places=1 if is_single(operator, store) else new.partitions,
        avro=recorded.get(settings.ENCODING_FORMAT) == "avro" and bool(operator.variables),
        delimiter=b"," if recorded.get(settings.MERGE_OPERATOR, "1") == "1" else b"",
        dropping=small.found.droppings.get(operator.id, NOTHING),
    )
    families = Families()
    parts = moving.moved(files_of(chosen, operator.id, store.name), families)
    stem = str(small.selection.batch + 1)
    for partition, pairs in enumerate(parts):
        folder = f"{STATE}/{operator.id}/{partition}" + ("" if store.name == DEFAULT_STORE else f"/{store.name}")
        name = stem
        if new.version > 1:
            ids = small.ids.setdefault(operator.id, [[] for _ in parts])[partition]
            ids.append(str(uuid4()))
            name = f"{stem}_{ids[-1]}"
        if new.provider is Provider.HDFS:
            yield f"{folder}/{name}.snapshot", hdfs_snapshot(pairs)
        else:
            yield from rocksdb_snapshot(pairs, families).below(folder, name).items()


def _check(found: Rewrite, placing: Placing) -> None:
    """Whether the new checkpoint starts as the old one. Raises StorageError."""
    target = placing.storage
    now = inspect(read_checkpoint(Changed(target, target.list_tree(), uri=spark_uri(found.into))))
    before, after = (
        {f.spark: (f.batch_id, f.sources) for f in one.counted if f.outcome.runs} for one in (found.inspection, now)
    )
    same = all(start == before.get(spark, start) and start[0] == found.batch + 1 for spark, start in after.items())
    problem = placing.problem()
    if problem is None and not (after and same):
        problem = "a start would not continue from it as from the old one"
    if problem is not None:
        raise incomplete(found.into, "the new checkpoint", problem)


def _check_at_rest(chosen: Chosen) -> None:
    """Raise StorageError where the query has run meanwhile: a sink has batches then that the new one would run anew."""
    logs = [chosen.checkpoint.listing.in_folder(folder) for folder in (OFFSETS, COMMITS)]
    now = [chosen.storage.list_level(folder).files for folder in (OFFSETS, COMMITS)]
    if [set(names) for names in logs] != [set(names) for names in now]:
        raise StorageError(
            f"{chosen.checkpoint.uri}: the query runs, and has planned a batch meanwhile: stop it, and write again"
        )


def _counted(chosen: Chosen, found: Rewrite, options: Mapping[str, str]) -> Iterator[RewrittenUnit]:
    """The rows of each unit in both checkpoints, read again. Raises StorageError where the new one has others."""
    made = choose(Question(found.into, Wanted(), all_units=True), options_for(found.into, options))
    there = {unit.label: unit for unit in made.units}
    for one in found.units:
        dropping = found.droppings.get(one.unit.operator)
        before, dropped = _rows(chosen, one.unit, dropping)
        after, forgotten = _rows(made, there[one.unit.label], dropping)
        if after != before - dropped or forgotten:
            raise StorageError(
                f"{one_line(found.into)}: the new checkpoint has other rows than it should, and was removed"
            )
        yield replace(one, rows=after, dropped=dropped if dropping and dropping.values else None)


def _rows(chosen: Chosen, unit: StateUnit, dropping: Dropping | None) -> tuple[int, int]:
    """How many there are, and how many of them have keys that are left out."""
    if dropping is None or not dropping.values:
        return rows_in(chosen, unit), 0
    rows = dropped = 0
    for batch in raw_batches(chosen, unit):
        key = batch.column("key")
        columns = [
            (name, kind, part)
            for (name, kind), part in zip(named_fields(type_named(unit.schema, "key")), key.flatten(), strict=True)
        ]
        rows += batch.num_rows
        dropped += int(dropping.dropped(columns, batch.num_rows).sum())
    return rows, dropped
