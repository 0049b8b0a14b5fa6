"""Remove, or write again, what blocks a start, without a batch that runs again.

Measured: Spark writes a state schema, or operator metadata of version 1, that is not there byte for byte again, misses
no checksum file, and takes any ``metadata`` that holds a UUID.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

from ckpt.changes.book import BOOK
from ckpt.changes.check_fix import Cost, Draft
from ckpt.changes.plan import STOP_FIRST, First, NoWay, Replay
from ckpt.changes.rewind.files_after import state_above
from ckpt.changes.steps import FileStep, plan_removals, plan_unread_removals, plan_writing, read_files, sidecar
from ckpt.checkpoint.checkpoint import COMMITS, METADATA, OFFSETS, Checkpoint
from ckpt.checkpoint.renamed import unpack
from ckpt.checkpoint.sources.registry import source_ranges
from ckpt.checkpoint.state.descriptions import list_descriptions
from ckpt.checkpoint.state.folders import find_nested, list_nested, measure_nested, partition_of
from ckpt.checkpoint.state.space import find_temporary_files
from ckpt.errors import UsageError
from ckpt.formats.limits import LARGEST_CHANGE
from ckpt.formats.metadata import build_metadata, is_query_id
from ckpt.formats.sidecars import shown_name
from ckpt.formats.text import drop_white_space
from ckpt.model import DamageKind, Kind, Unreadable
from ckpt.restart.sinks import BEGINS_ANEW, REUSED, AnySink, Ids, Seen, list_sinks
from ckpt.storage import Storage
from ckpt.texts import plural_of

_SCHEMA = "/_metadata/schema"  # of every operator but transformWithState, and joins from state format 3 on
_OPERATOR_METADATA = "/_metadata/metadata"  # of version 1, which no start needs


@dataclass(frozen=True, slots=True)
class Tidied:
    """Files of one kind that are removed or written."""

    what: str  # "remove orphaned checksum files"
    steps: tuple[FileStep, ...]
    of_later_batches: bool = False  # they show that batches ran which the logs do not have
    proven: bool = False  # that no row is touched: see ``Draft``


def tidy(checkpoint: Checkpoint, storage: Storage, query_id: str | None, *, temporary: bool) -> tuple[Tidied, ...]:
    """Find what blocks a start and costs nothing to remove or write, by kind.

    ``query_id`` goes into a lost ``metadata``; ``temporary`` files of interrupted writes are removed too. Raises
    StorageError, or UsageError where the query id is no UUID, or is there already.
    """
    listing, state, logs = checkpoint.listing, checkpoint.state, (checkpoint.offsets, checkpoint.commits)
    odd_names = (f"{log.folder}/{name}" for log in logs for name in log.names.odd)
    schemas = (
        damage.path
        for damage in (state.damages if state else ())
        if damage.kind is DamageKind.BAD_SCHEMA and damage.path.endswith(_SCHEMA)
    )
    described = (file.path for file in (state.unreadable if state else ()) if file.path.endswith(_OPERATOR_METADATA))
    commits, orphans = checkpoint.commits, tuple(_find_orphans(checkpoint))
    cannot_be_read = isinstance(commits.entries.get(commits.latest or 0), Unreadable)
    kept = sidecar(f"{COMMITS}/{commits.latest}") if cannot_be_read else None  # it may tell what the commit was
    written = None if query_id is None else sidecar(METADATA)  # its checksums stay where they prove the id
    stale = tuple(path for path in checkpoint.stale_sidecars if path not in (kept, written))
    later = find_later_batches(checkpoint)
    # what has another checksum may be damaged, and a batch whose offsets or commit are lost is planned or run again
    lost = (f"{OFFSETS}/", *(sidecar(f"{COMMITS}/{batch}") for batch in find_lost_commits(checkpoint)))
    no_batch_lost = not stale and not any(path.startswith(lost) for path in orphans)
    newer = state_above(listing, state.newer.first_version - 1) if state and state.newer else ()
    leftovers = find_temporary_files(listing) if temporary else ()
    is_proven = query_id is not None and checkpoint.had_id(query_id.lower())
    proven = f" with the id that {sidecar(METADATA)} proves" if is_proven else ""
    removed = {
        "remove names that Spark reads as batches": odd_names,
        "remove unreadable state schemas, which Spark rewrites": schemas,
        "remove unreadable operator metadata, which Spark rewrites": described,
    }
    sidecar_steps = tuple(FileStep(path, storage.read(path), None) for path in (*stale, *orphans))
    respaced = [path for path, added in checkpoint.respaced.items() if added.read or temporary]
    without = (plan_writing(storage, listing, path, drop_white_space(storage.read(path))) for path in respaced)
    every = (
        Tidied(
            "remove white space that Spark did not write",
            tuple(chain.from_iterable(without)),
            proven=all(checkpoint.respaced[path].proven for path in respaced),
        ),
        Tidied(f"write metadata{proven}", tuple(_write_metadata(checkpoint, storage, query_id))),
        *(Tidied(what, tuple(plan_removals(storage, listing, paths))) for what, paths in removed.items()),
        Tidied(
            "remove checksum files that match no file",
            sidecar_steps,
            of_later_batches=later is not None,
            proven=no_batch_lost,
        ),
        Tidied("remove state of later batches", tuple(plan_unread_removals(listing, newer)), of_later_batches=True),
        Tidied("remove temporary files", tuple(plan_unread_removals(listing, leftovers)), proven=True),
    )
    return tuple(tidied for tidied in every if tidied.steps)


def put_back_renamed(checkpoint: Checkpoint, storage: Storage) -> tuple[Tidied, ...]:
    """Write missing files again from those that have their bytes, as the checksums that stayed prove."""
    steps: list[FileStep] = []
    logs = checkpoint.offsets, checkpoint.commits
    odd_names = {f"{log.folder}/{name}" for log in logs for name in log.names.odd}  # which Spark takes for batches
    for path, name in checkpoint.renamed.items():
        data = storage.read(name)
        whole = unpack(name, data)
        steps.append(FileStep(path, None, whole, name if whole == data else None, name))
        steps += plan_removals(storage, checkpoint.listing, odd_names & {name})
    names = ", ".join(f"{path} from {name}" for path, name in checkpoint.renamed.items())
    return (Tidied(f"rewrite {names}, as checksums prove", tuple(steps), proven=True),) if steps else ()


def move_up(checkpoint: Checkpoint, storage: Storage) -> tuple[Tidied, ...]:
    """Move state out of folders that were copied into others; not what has more bytes than a plan may hold.

    Raises NoWay where a file is in the place of another one.
    """
    listing = checkpoint.listing
    lost = {partition_of(damage.path) for damage in (checkpoint.state.damages if checkpoint.state else ())}
    nested = {} if lost.isdisjoint(find_nested(listing)) else list_nested(listing)
    if nested and measure_nested(listing) > LARGEST_CHANGE:
        return ()
    contents = read_files(storage, (*nested.values(), *(target for target in nested if listing.info(target))))
    other = next(
        (target for target, path in nested.items() if contents.get(target, contents[path]) != contents[path]), None
    )
    if other is not None:
        raise NoWay(f"{nested[other]} belongs where {other} is, which is a different file")
    made = (FileStep(at, None, contents[path], path, path) for at, path in nested.items() if at not in contents)
    steps = (*made, *(FileStep(path, contents[path], None) for path in nested.values()))
    what = "move state up out of nested folders, such as"
    return (Tidied(f"{what} {partition_of(min(nested.values()))}", steps),) if steps else ()


def draft_tidying(checkpoint: Checkpoint, tidied: Sequence[Tidied]) -> Draft | None:
    """Draft the steps that cost no batch; None if there is nothing to tidy up."""
    if not tidied:
        return None
    steps = tuple(step for files in tidied for step in files.steps)
    does = "; ".join(f"{files.what} ({len(files.steps)} {plural_of(len(files.steps), 'file')})" for files in tidied)
    latest = checkpoint.offsets.latest
    if any(step.path == sidecar(METADATA) for step in steps) and checkpoint.kind is Kind.EMPTY:
        sinks = AnySink(BEGINS_ANEW, Ids.NEW_QUERY, kinds=list_sinks(Ids.NEW_QUERY))
        return Draft(does, Cost.MAY_LOSE, steps, warnings=(STOP_FIRST, BOOK.text("begins_anew")), any_sink=sinks)
    if not any(files.of_later_batches for files in tidied):
        misnamed = next((name for name, batch in checkpoint.commits.names.odd.items() if batch == latest), None)
        is_lost = latest is not None and latest in find_lost_commits(checkpoint)
        if latest is None or latest in checkpoint.commits or not (misnamed or is_lost):
            return Draft(does, Cost.NOTHING, steps, proven=all(files.proven for files in tidied))
        ranges = source_ranges(checkpoint.offsets.readable(latest - 1), checkpoint.offsets.readable(latest))
        commit = f"{COMMITS}/{latest}"
        name, file = ("misnamed_commit", f"{COMMITS}/{misnamed}") if misnamed else ("lost_commit", sidecar(commit))
        finished = BOOK.text(name, file=file, batch=latest, commit=commit)
        again = (Replay(latest, ranges, finished=True),)
        return Draft(does, Cost.FINISHED_AGAIN, steps, 1, again, (STOP_FIRST, finished))
    newer, later = checkpoint.state.newer if checkpoint.state else None, find_later_batches(checkpoint)
    first = 0 if latest is None else latest + 1
    last_later, finished_later = later or (None, False)
    ids = (newer.last_version - 1 if newer else None, last_later)
    last = max((batch for batch in ids if batch is not None), default=None)
    copied = BOOK.text("copy_of_all") if latest is None else BOOK.text("copy_of_later", latest=latest)
    sinks = AnySink(REUSED, Ids.REUSED, kinds=list_sinks(Ids.REUSED, Seen(first, last)))
    ended = checkpoint.offsets.readable(latest)
    replay = [Replay(first, source_ranges(ended, None), finished=newer is not None or finished_later)]
    if latest is not None and latest not in checkpoint.commits:  # a later batch was planned, so this one was finished
        ranges = source_ranges(checkpoint.offsets.readable(latest - 1), ended)
        replay.insert(0, Replay(latest, ranges, finished=True))
    warnings = (BOOK.text("end_first"), copied)
    return Draft(does, Cost.MAY_LOSE, steps, len(replay), tuple(replay), warnings, First.SINK, any_sink=sinks)


def find_later_batches(checkpoint: Checkpoint) -> tuple[int, bool] | None:
    """Find the last batch that the logs do not have any more, and whether one was finished, by checksum files."""
    newest = max((*checkpoint.offsets.ids[-1:], *checkpoint.commits.ids[-1:]), default=-1)
    later = {log: [i for i in list_sidecar_batches(checkpoint, log) if i > newest] for log in (OFFSETS, COMMITS)}
    last = max((*later[OFFSETS], *later[COMMITS]), default=None)
    # a batch is planned when the one before is finished
    return None if last is None else (last, bool(later[COMMITS]) or last > newest + 1)


def find_lost_commits(checkpoint: Checkpoint) -> Iterator[int]:
    """Find batches after the newest commit that were committed, as the checksum of a commit that is gone shows.

    Hadoop gives a file its name before its checksum (``ChecksumFs.renameInternal``).
    """
    newest = max(checkpoint.commits.ids, default=-1)
    return (batch for batch in list_sidecar_batches(checkpoint, COMMITS) if batch > newest)


def list_sidecar_batches(checkpoint: Checkpoint, folder: str) -> Iterator[int]:
    """The batches whose log file has, or had, a checksum file."""
    for name in checkpoint.listing.in_folder(folder):
        batch = name[1:-4]
        if name[0] == "." and name.endswith(".crc") and batch.isascii() and batch.isdigit():
            yield int(batch)


def refuse_disproved_id(checkpoint: Checkpoint, query_id: str) -> None:
    """Raise UsageError where the checksums of a lost ``metadata`` show that it had another id."""
    if checkpoint.had_id(str(UUID(query_id))) is False:
        raise UsageError(BOOK.text("disproved_id", query_id=query_id, checksums=sidecar(METADATA)))


def _write_metadata(checkpoint: Checkpoint, storage: Storage, query_id: str | None) -> Iterator[FileStep]:
    if query_id is None:
        return
    try:
        text = str(UUID(query_id))
    except ValueError:
        raise UsageError.of("{--query-id=} is not a UUID, but Spark's query ids are", query_id=query_id) from None
    if is_query_id(checkpoint.query_id or ""):
        raise UsageError(BOOK.text("other_id", query_id=query_id, recorded=checkpoint.query_id))
    yield from plan_writing(storage, checkpoint.listing, METADATA, build_metadata(text))


def _find_orphans(checkpoint: Checkpoint) -> Iterator[str]:
    if checkpoint.kind is Kind.EMPTY and checkpoint.listing.info(METADATA) is None:
        yield from (path for path in (sidecar(METADATA),) if checkpoint.listing.info(path))  # else it proves the id
    for log in (checkpoint.offsets, checkpoint.commits):
        names = checkpoint.listing.in_folder(log.folder)
        for name in names:
            if name != (file := shown_name(name)) and file.isdecimal() and file not in names:
                yield f"{log.folder}/{name}"
    for operator in checkpoint.operators:
        for path in list_descriptions(operator):
            if checkpoint.listing.info(sidecar(path)) and not checkpoint.listing.info(path):
                yield sidecar(path)
