"""A new checkpoint, written: rows of each store come from whoever has them, everything else from the old one.

It has the offsets and the commit of one batch of the old one, and one snapshot of each store in each partition: state
version batch + 1. It lacks what no start looks for.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from uuid import uuid4

from ckpt.change.steps import Changed
from ckpt.checkpoint import COMMITS, OFFSETS
from ckpt.copying import Selection
from ckpt.copying.placing import Placing, incomplete, open_new, options_for
from ckpt.errors import StorageError, UsageError
from ckpt.export.choose import Wanted
from ckpt.export.reading import Chosen, Question, choose
from ckpt.formats.statefiles import DEFAULT_STORE
from ckpt.inspection import inspect
from ckpt.model import Operator, Provider, Store
from ckpt.reader import read_checkpoint
from ckpt.rewrite.plan import Rewrite, RewrittenUnit, SmallFiles, stores_of
from ckpt.rewrite.snapshots import hdfs_snapshot, rocksdb_snapshot
from ckpt.rewrite.stores import Families, Pair
from ckpt.state.folders import STATE
from ckpt.storage.base import one_line
from ckpt.storage.locations import spark_uri

Watcher = Callable[[int, int], None]
"""Called with the number of stores written so far, and the number of all stores."""
Contents = Callable[[Operator, Store, Families], list[list[Pair]]]
"""The rows of a store, of each partition of the new checkpoint; keys with the number of their family."""


def check_form(provider: str | None, partitions: int | None, format_version: int | None) -> None:
    """Raise UsageError where it is none."""
    if partitions is not None and partitions < 1:
        raise UsageError("`partitions`: at least one")
    if format_version not in (None, 1, 2):
        raise UsageError("`format_version`: 1 or 2")
    if provider not in (None, Provider.HDFS, Provider.ROCKSDB):
        raise UsageError(f"`provider={provider!r}`: {Provider.HDFS} or {Provider.ROCKSDB}")


@dataclass(frozen=True, slots=True)
class Making:
    """A new checkpoint that is to be written."""

    chosen: Chosen
    selection: Selection
    found: Rewrite
    options: Mapping[str, str]  # for the file systems, where they are remote
    contents: Contents
    counted: Callable[[Chosen], Iterable[RewrittenUnit]]  # of the new one, read again; raises where rows are others
    watcher: Watcher | None = None

    def made(self) -> Rewrite:
        """Write it, and read it again. Raises CkptError; then nothing is left, as far as it can be removed."""
        found = self.found
        placing = open_new(found.into, self.options)
        placing.make_empty()
        try:
            self._write(SmallFiles(self.chosen, self.selection, found), placing)
            _check(found, placing)
            made = choose(Question(found.into, Wanted(), all_units=True), options_for(found.into, self.options))
            units = tuple(self.counted(made))
            _check_at_rest(self.chosen)
        except BaseException:
            placing.discard()
            raise
        return replace(found, units=units, written=True, files=len(placing.sizes), bytes=sum(placing.sizes.values()))

    def _write(self, small: SmallFiles, placing: Placing) -> None:
        """All files, in the order in which no crash leaves what a start takes for complete. Raises CkptError."""
        placing.put({small.first: small.file(small.first)})
        stores = list(stores_of(self.chosen))
        for done, (operator, store) in enumerate(stores, 1):
            for path, data in self._state(operator, store, small):
                placing.put({path: data})
            if self.watcher is not None:
                self.watcher(done, len(stores))
        for path in (*small.paths(), small.last):
            placing.put({path: small.file(path)})

    def _state(self, operator: Operator, store: Store, small: SmallFiles) -> Iterator[tuple[str, bytes]]:
        """The files of a store. Raises Undecodable, StorageError."""
        new, families = small.found.new, Families()
        parts = self.contents(operator, store, families)
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


def other_rows(into: str) -> StorageError:
    """The new checkpoint is not what it should be."""
    return StorageError(f"{one_line(into)}: the new checkpoint has other rows than it should, and was removed")


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
