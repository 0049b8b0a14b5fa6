"""Choose the files of a checkpoint as of batch B: the logs up to B, and the chain to state version B + 1.

If B is the newest committed batch and the next one is planned, the copy has its offsets, and its state as far as it is
there: a sink may have its rows.

A query that runs meanwhile adds files of later batches, which are left out, and deletes old ones. Files of a later
state version would be loaded later instead of the right ones (see ``ckpt.changes.rewind.files_after``).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ckpt.advice import plain
from ckpt.changes.plan import NEVER_FINISHED, name_lost_part
from ckpt.changes.relocate.plan import plan_relocation
from ckpt.changes.rewind.files_after import find_files_after
from ckpt.changes.steps import plan_unread_removals, read_files, sidecar, view_changed
from ckpt.checkpoint.checkpoint import COMMITS, FIRST_START, METADATA, OFFSETS, SKIPPED, SOURCES, STATE, Checkpoint
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.state.chains import context_of
from ckpt.checkpoint.state.folders import LOGS, SSTS, find_store_partitions
from ckpt.checkpoint.state.load import load_stores
from ckpt.checkpoint.state.read_steps import run
from ckpt.checkpoint.times import BatchOrTime, find_batch
from ckpt.errors import CkptError
from ckpt.formats.rocksdb import parse_zip_tail
from ckpt.formats.sidecars import shown_name
from ckpt.formats.statefiles import CHECKSUM, LZ4
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.model import Kind, RocksDBSnapshot, StateFile, StateFileKind
from ckpt.new.book import BOOK
from ckpt.new.placing import is_large
from ckpt.restart.diagnoses.state import JOIN_OF_FORMAT_1, STATE_OF_OLD_SPARK
from ckpt.restart.findings import Outcome
from ckpt.storage import Listing, Storage
from ckpt.storage.locations import spark_uri
from ckpt.versions import Progress

_DESCRIBING = ("_metadata", "_stateSchema")  # folders whose files describe state


class CannotCopy(CkptError):
    """There is no batch as of which this checkpoint can be copied; the text says why."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The files that a copy consists of."""

    batch: int
    listing: Listing  # of the checkpoint as if nothing had run after the batch
    inspection: Inspection  # of the copy, as it is to be
    changed: Mapping[str, bytes]  # operator metadata, which names schemas by absolute path: as it is in the copy
    first: tuple[str, ...]  # small files, the newest offsets first: the query may delete them soon
    chain: tuple[StateFile, ...]  # that lead to state version batch + 1, and those of batch + 2 if that one is planned
    local: bool = False  # the copy is: then Hadoop's hidden checksum files come along, where there are any

    @property
    def newest(self) -> str:
        """The newest offsets, which are written last (``Placing.begin``)."""
        return self.first[0]

    def list_small(self) -> Iterator[str]:
        """``first`` and its checksum files, without those that are read in pieces."""
        paths = (path for own in self.first for path in self._with_sidecar(own))
        return (path for path in paths if not is_large(self.listing.info(path)))

    def find_old_batch(self, path: str) -> int | None:
        """The batch of a log file, or of its checksums, that no start looks at; None for any other file."""
        folder, _, name = path.rpartition("/")
        number = shown_name(name)
        if folder not in (OFFSETS, COMMITS) or not number.isdecimal():
            return None
        return int(number) if int(number) < self.batch - (folder == OFFSETS) else None

    def _with_sidecar(self, path: str) -> Sequence[str]:
        hidden = sidecar(path)
        return (path, hidden) if self.local and self.listing.info(hidden) is not None else (path,)

    def list_in_order(self, storage: Storage) -> list[str]:
        """Every file, in the order in which it is written: state, then the others, and ``newest`` last of all.

        Zips are read now, to see which SST files they name. Raises StorageError.
        """
        listing, state = self.listing, [file.path for file in self.chain]
        zips = read_files(storage, (file.path for file in self.chain if file.kind is StateFileKind.ZIP))
        for path, data in zips.items():
            snapshot, folder = parse_zip_tail(path, data, len(data)), path.rpartition("/")[0]
            if isinstance(snapshot, RocksDBSnapshot):
                state += (f"{folder}/{SSTS}/{name}" for name, _ in snapshot.ssts)
                state += (f"{folder}/{LOGS}/{name}" for name, _ in snapshot.logs)
        paths: list[str] = []
        for path in dict.fromkeys((*state, *self.first[1:])):
            paths += self._with_sidecar(path)
            if listing.info(path + CHECKSUM) is not None:
                paths += self._with_sidecar(path + CHECKSUM)
        return [*paths, *reversed(self._with_sidecar(self.newest))]


def select_files(
    storage: Storage, to: str, batch: BatchOrTime | None = None, *, damaged: bool = False, stated: bool = False
) -> Selection:
    """Choose the batch and its files; nothing is written, and of state only what names other files is read.

    ``to`` is the URI of the copy, ``batch`` a committed one, by default the newest. Raises NotACheckpoint, NotFound,
    StorageError, or CannotCopy where there is no such batch, or, unless the state is known to be ``damaged``, a start
    after it would fail. ``stated``: state of old Spark keeps no schema, so that no start is forecast.
    """
    checkpoint = read_checkpoint(storage, batches=0)
    chosen = choose_batch(checkpoint, find_batch(checkpoint, batch))
    if (lost := name_lost_part(checkpoint, chosen)) is not None:
        raise CannotCopy(f"{checkpoint.uri}: a copy as of batch {chosen} would differ from the query then: {lost}")
    offsets = checkpoint.offsets
    planned = offsets.latest == chosen + 1 and checkpoint.commits.latest == chosen
    top = chosen + (planned and offsets.readable(chosen + 1) is not None)  # that batch keeps its range
    gone = plan_unread_removals(checkpoint.listing, find_files_after(checkpoint, top))
    view = view_changed(storage, checkpoint.listing, gone)
    checkpoint = read_checkpoint(view, batches=0)
    promised, changed = _inspect_relocated(view, checkpoint, to)
    if not damaged and not (stated and is_undescribed(promised)):
        _check_start(promised, chosen)
    small = tuple(_list_small(checkpoint, chosen, top))
    return Selection(chosen, checkpoint.listing, promised, changed, small, _list_chain(checkpoint, view))


def _inspect_relocated(view: Storage, checkpoint: Checkpoint, to: str) -> tuple[Inspection, dict[str, bytes]]:
    """The copy as it will be where it goes, and the files that differ there. Raises CannotCopy, UsageError."""
    if not any(operator.schema_paths for operator in checkpoint.operators):
        return inspect(checkpoint), {}
    moved = plan_relocation(view, to=spark_uri(to))
    if moved.inspection_after is None:
        why = plain(moved.refused or "")
        raise CannotCopy.of("{uri}: the copy would not find its schemas: {why}", uri=checkpoint.uri, why=why)
    changed = {step.path: step.after for step in moved.steps if isinstance(step.after, bytes)}
    return moved.inspection_after, changed


def choose_batch(checkpoint: Checkpoint, batch: int | None) -> int:
    """The batch, if it is there. Raises CannotCopy."""
    offsets, commits = checkpoint.offsets, checkpoint.commits
    possible = [i for i in commits.ids if offsets.readable(i) is not None and commits.readable(i) is not None]
    if checkpoint.kind is Kind.EMPTY:
        raise CannotCopy(f"{checkpoint.uri}: the checkpoint is empty, and has no committed batch to copy")
    if checkpoint.unfinished:
        raise CannotCopy(f"{checkpoint.uri}: {NEVER_FINISHED}")
    if not possible:
        raise CannotCopy(f"{checkpoint.uri}: no batch is committed and has readable offsets")
    if batch is None:
        return possible[-1]
    if batch not in possible:
        why = "is not committed" if batch in offsets and batch not in commits else "has no readable offsets or commit"
        ends = {"oldest": possible[0], "newest": possible[-1]}
        raise CannotCopy(BOOK.text("copy_no_batch", uri=checkpoint.uri, batch=batch, why=why, **ends))
    return batch


def has_run_since(checkpoint: Checkpoint, storage: Storage) -> bool:
    """Tell whether the query has run since the checkpoint was read: its logs have other files now."""
    now = {log: storage.list_level(log).files.keys() for log in (OFFSETS, COMMITS)}
    return any(names != checkpoint.listing.in_folder(log).keys() for log, names in now.items())


def is_undescribed(inspection: Inspection) -> bool:
    """Tell whether a start is unknown only because Spark before 3.1 wrote the state, without a schema."""
    because = {finding.diagnosis for f in inspection.counted if f.outcome is Outcome.UNKNOWN for finding in f.because}
    return bool(because) and because <= {STATE_OF_OLD_SPARK, JOIN_OF_FORMAT_1}


def _check_start(inspection: Inspection, batch: int) -> None:
    """Raise CannotCopy where no start would continue from the copy: one as the original was started last."""
    starts = inspection.counted
    if inspection.checkpoint.kind is Kind.CONTINUOUS:
        starts = tuple(f for f in inspection.forecasts if f.progress is Progress.CONTINUOUS)
    if any(f.outcome.runs and f.batch_id == batch + 1 for f in starts):
        return
    forecast = next(iter(starts), None)
    because = forecast.because[0] if forecast and forecast.because else None
    error = f' ("{forecast.error}")' if forecast and forecast.error else ""
    where = f": {because.path}: {because.detail} ({because.diagnosis.code})" if because else ""
    uri = inspection.checkpoint.uri
    raise CannotCopy(BOOK.text("copy_no_start", uri=uri, batch=batch, error=error, where=where))


def _list_small(checkpoint: Checkpoint, batch: int, top: int) -> Iterator[str]:
    """Logs and descriptions, what a running query deletes soonest first; ``offsets/<top>`` is the first of all."""
    listing = checkpoint.listing
    order = [f"{OFFSETS}/{top}", f"{OFFSETS}/{top - 1}", f"{OFFSETS}/{batch}", f"{COMMITS}/{batch}"]
    for folder in (COMMITS, OFFSETS):
        log = checkpoint.commits if folder == COMMITS else checkpoint.offsets
        order += [f"{folder}/{i}" for i in reversed(log.ids)]
    order += [METADATA, FIRST_START, SKIPPED]
    order += [path for path, _ in listing.walk(STATE) if set(_DESCRIBING) & set(path.split("/"))]
    order += [path for path, _ in listing.walk(SOURCES)]
    for path in dict.fromkeys(order):
        name = path.rpartition("/")[2]  # neither Hadoop's checksum file of another, nor a leftover of a write
        if listing.info(path) and not name.startswith(".") and shown_name(name) == name:
            yield path


def _list_chain(checkpoint: Checkpoint, view: Storage) -> tuple[StateFile, ...]:
    """The state files that a start after the batch reads, snapshots first, and those that a planned batch has written.

    A sink that has the planned batch skips it (``ckpt.restart.sinks``): its state is not computed again, and the
    batch after it reads what is there.
    """
    context = context_of(checkpoint.offsets, checkpoint.commits)
    stores = find_store_partitions(checkpoint.listing, context.provider)
    targets = {store: target for store in stores if (target := context.target(store)) is not None}
    loads, _ = run(load_stores(checkpoint.listing, targets, context.codec or LZ4, 0), view.read_many)
    files: list[StateFile] = []
    for load in loads:
        if load.chain.snapshot is not None:
            files.append(load.place.snapshot(load.chain.snapshot))
        files += map(load.place.log, load.chain.logs)
        names, version = load.place.names, load.target.version
        files += (load.place.snapshot(file_id) for file_id in names.snapshots if file_id[0] > version)
        files += (load.place.log(file_id) for file_id in names.logs if file_id[0] > version)
    return tuple(sorted(files, key=lambda file: (file.kind is not StateFileKind.ZIP, file.version)))
