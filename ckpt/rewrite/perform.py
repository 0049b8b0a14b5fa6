"""``ckpt rewrite`` as one call: a new checkpoint with the same state, kept by another provider or in other partitions.

The new one has the offsets and the commit of the newest committed batch, the offsets of a batch that is planned after
it, and one snapshot of each store in each partition: state version batch + 1. It lacks what no start looks for.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from uuid import uuid4

from ckpt import settings
from ckpt.change.steps import Changed
from ckpt.copying import select
from ckpt.errors import CkptError, StorageError, UsageError
from ckpt.export.choose import Wanted
from ckpt.export.reading import Chosen, Question, choose
from ckpt.formats.statefiles import DEFAULT_STORE
from ckpt.inspection import inspect
from ckpt.model import Operator, Provider, Store
from ckpt.native.files import files_of
from ckpt.native.look import count_state
from ckpt.reader import read_checkpoint
from ckpt.rewrite.plan import Rewrite, SmallFiles, planned, stores_of
from ckpt.rewrite.snapshots import hdfs_snapshot, rocksdb_snapshot
from ckpt.rewrite.spreading import is_single
from ckpt.rewrite.stores import Families, Moving
from ckpt.state.folders import STATE
from ckpt.storage import Storage, open_storage
from ckpt.storage.base import one_line
from ckpt.storage.locations import is_inside, local_path, spark_uri
from ckpt.storage.open_writer import open_writer
from ckpt.storage.writer import AlreadyThere, Writer

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
    if is_inside(into, uri) or is_inside(uri, into):
        raise UsageError(f"{one_line(into)} is inside the checkpoint, or the checkpoint in it: name another folder")
    if partitions is not None and partitions < 1:
        raise UsageError("`partitions`: at least one")
    if format_version not in (None, 1, 2):
        raise UsageError("`format_version`: 1 or 2")
    if provider not in (None, Provider.HDFS, Provider.ROCKSDB):
        raise UsageError(f"`provider={provider!r}`: {Provider.HDFS} or {Provider.ROCKSDB}")
    options = storage_options or {}
    chosen = choose(Question(uri, Wanted(), all_units=True), _for(uri, options))
    selection = select(chosen.storage, into, chosen.moment.batch)
    found = planned(chosen, selection, into, provider, partitions, format_version, new_id=new_id)
    if plan or found.refused:
        return found
    target, writer = open_storage(into, _for(into, options)), open_writer(into, _for(into, options))
    _make_empty(writer, target)
    placing = _Placing(writer)
    try:
        _write(chosen, SmallFiles(chosen, selection, found), placing, watcher)
        _check(found, target, placing)
        rows = _counted(uri, found, options)
    except BaseException:
        placing.discard()
        raise
    units = tuple(replace(one, rows=rows[one.unit.label]) for one in found.units)
    return replace(found, units=units, written=True, files=len(placing.sizes), bytes=sum(placing.sizes.values()))


def _for(place: str, given: Mapping[str, str]) -> Mapping[str, str]:
    """A local folder takes no storage options."""
    return {} if local_path(place) is not None else given


def _make_empty(writer: Writer, target: Storage) -> None:
    """Create the folder; one that holds no file will do. Raises StorageError."""
    try:
        writer.make_root()
    except AlreadyThere:
        if target.list_tree().files:
            raise


@dataclass(slots=True)
class _Placing:
    """The files that were written, so that they can be removed."""

    writer: Writer
    sizes: dict[str, int] = field(default_factory=dict)  # by path
    _folders: set[str] = field(default_factory=set)

    def put(self, path: str, data: bytes) -> None:
        """Write a file, and the folders that it is in. Raises StorageError."""
        self._make_folder(path.rpartition("/")[0])
        self.sizes[path] = len(data)
        try:
            self.writer.create(path, data)
        except AlreadyThere:
            del self.sizes[path]  # somebody else's, and not to be removed
            raise

    def discard(self) -> None:
        """Remove everything, the last first."""
        for path in reversed(self.sizes):
            with suppress(CkptError):
                self.writer.discard_temporary(path)
                self.writer.remove(path)

    def _make_folder(self, path: str) -> None:
        if path and path not in self._folders:
            self._make_folder(path.rpartition("/")[0])
            self.writer.make_folder(path)
            self._folders.add(path)


def _write(chosen: Chosen, small: SmallFiles, placing: _Placing, watcher: Watcher | None) -> None:
    """All files, in the order in which no crash leaves what a start takes for complete. Raises CkptError."""
    placing.put(small.first, small.file(small.first))
    stores = list(stores_of(chosen))
    for done, (operator, store) in enumerate(stores, 1):
        for path, data in _state(chosen, operator, store, small):
            placing.put(path, data)
        if watcher is not None:
            watcher(done, len(stores))
    for path in (*small.paths(), small.last):
        placing.put(path, small.file(path))


def _state(chosen: Chosen, operator: Operator, store: Store, small: SmallFiles) -> Iterator[tuple[str, bytes]]:
    """The files of a store. Raises Undecodable, StorageError."""
    old, new, recorded = small.found.old, small.found.new, chosen.recorded
    moving = Moving(
        operator=operator,
        store=store,
        old=old.provider,
        new=new.provider,
        partitions=None if new.partitions == old.partitions else new.partitions,
        places=1 if is_single(operator, store) else new.partitions,
        avro=recorded.get(settings.ENCODING_FORMAT) == "avro" and bool(operator.variables),
        delimiter=b"," if recorded.get(settings.MERGE_OPERATOR, "1") == "1" else b"",
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


def _check(found: Rewrite, target: Storage, placing: _Placing) -> None:
    """Whether the new checkpoint starts as the old one. Raises StorageError."""
    there = {path: info.size for path, info in target.list_tree().walk()}
    wrong = next(
        (path for path in sorted(there.keys() | placing.sizes) if there.get(path) != placing.sizes.get(path)), None
    )
    problem = None if wrong is None else f"{wrong} is not as it was written: something else is writing there"
    now = inspect(read_checkpoint(Changed(target, target.list_tree(), uri=spark_uri(found.into))))
    before, after = (
        {f.spark: (f.batch_id, f.sources) for f in one.counted if f.outcome.runs} for one in (found.inspection, now)
    )
    same = all(start == before.get(spark, start) and start[0] == found.batch + 1 for spark, start in after.items())
    if problem is None and not (after and same):
        problem = "a start would not continue from it as from the old one"
    if problem is not None:
        raise StorageError(f"{one_line(found.into)}: the new checkpoint is not complete, and was removed: {problem}")


def _counted(uri: str, found: Rewrite, options: Mapping[str, str]) -> dict[str, int]:
    """The rows of each unit in the new checkpoint, read again. Raises StorageError where the old one has others."""
    old = count_state(uri, _for(uri, options), batch=found.batch)
    new = count_state(found.into, _for(found.into, options))
    before, after = ({one.unit.label: one.rows for one in counts.units} for counts in (old, new))
    if before != after:
        raise StorageError(
            f"{one_line(found.into)}: the new checkpoint has other rows than the old one, and was removed"
        )
    return after
