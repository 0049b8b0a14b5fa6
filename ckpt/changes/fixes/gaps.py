"""Closes a gap that asynchronous progress tracking leaves: writes the missing offsets, or goes back below it.

L is the latest batch with readable offsets. A synchronous start looks for the offsets of L-1 (Spark class
``MicroBatchExecution``, ``populateStartOffsets``): only whether they can be read where L is committed, and for where L
begins where it is not.
"""

from collections.abc import Iterator

from ckpt.changes.book import BOOK
from ckpt.changes.check_fix import Cost, Draft
from ckpt.changes.fixes.tidy import list_sidecar_batches
from ckpt.changes.plan import STOP_FIRST, NoWay, Replay
from ckpt.changes.rewind.plan import find_origin, name_sink, write_predecessor
from ckpt.changes.steps import FileStep, plan_removals, sidecar
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, Checkpoint
from ckpt.checkpoint.history import Pattern, pattern
from ckpt.checkpoint.sources.registry import source_ranges
from ckpt.inspection.inspection import Inspection
from ckpt.model import Kind
from ckpt.restart.remedies import pair_below
from ckpt.restart.sinks import REUSED, AnySink, Ids, Seen, list_sinks
from ckpt.storage import Storage


def has_gap(checkpoint: Checkpoint) -> bool:
    """Tell whether a synchronous start looks for offsets that are not there, or not readable."""
    latest = checkpoint.offsets.latest
    if not latest or latest not in checkpoint.offsets or checkpoint.kind is not Kind.MICRO_BATCH:
        return False
    if checkpoint.offsets.readable(latest) is None:
        return not pair_below(checkpoint, latest)
    return checkpoint.offsets.readable(latest - 1) is None


def draft_fill(storage: Storage, inspection: Inspection) -> Iterator[Draft]:
    """Give the latest batch the predecessor that a synchronous start looks for.

    If that has to run, these are the offsets of the newest earlier batch that is committed and readable, so that no
    row can be skipped; if it is committed, of the newest that is readable: then nothing is read from them.
    Raises NoWay, or StorageError where a file cannot be read.
    """
    checkpoint = inspection.checkpoint
    if not has_gap(checkpoint):
        return
    offsets, latest = checkpoint.offsets, _find_newest_readable(checkpoint)
    committed = latest in checkpoint.commits
    above = _has_batches_above(checkpoint, latest)
    if checkpoint.stateful and (above or not committed):
        raise NoWay(BOOK.text("counts_twice", latest=latest))
    origin = find_origin(checkpoint, latest)
    if origin is None and not committed:
        raise NoWay(BOOK.text("unknown_start", latest=latest))
    begin = -1 if origin is None else origin
    between = [f"{OFFSETS}/{i}" for i in offsets.ids if begin < i < latest - 1 and not committed]
    steps = [*plan_removals(storage, checkpoint.listing, between), *_remove_above(checkpoint, storage, latest)]
    steps += write_predecessor(checkpoint, storage, latest, origin)
    replay, why = _explain_fill(checkpoint, latest, origin, above=above)
    reads_after = latest if committed else begin
    yield _build(checkpoint, why, steps, reads_after, replay, reused_after=latest if above else None)


def draft_rewinds(storage: Storage, inspection: Inspection) -> Iterator[Draft]:
    """Go back to a pair of consecutive batches, newest pair first.

    Raises NoWay, or StorageError where a file cannot be read.
    """
    checkpoint = inspection.checkpoint
    if checkpoint.stateful:
        raise NoWay("the query is stateful, and state files of later batches would later be loaded without an error")
    offsets, logged = checkpoint.offsets, _find_newest_readable(checkpoint)
    end = None if _has_batches_above(checkpoint, logged) else offsets.readable(logged)
    for batch_id in reversed(offsets.ids):
        if not offsets.readable(batch_id) or (batch_id and not offsets.readable(batch_id - 1)):
            continue
        begin = batch_id if batch_id in checkpoint.commits else batch_id - 1
        first = batch_id + 1 if begin == batch_id else batch_id
        steps = list(_remove_above(checkpoint, storage, batch_id))
        replay = (Replay(first, source_ranges(offsets.readable(begin), end), finished=True),)
        pair = f"batches {batch_id - 1} and {batch_id} are" if batch_id else "batch 0 is"
        why = f"{pair} the newest to go back to"
        yield _build(checkpoint, why, steps, begin, replay, reused_after=first - 1)


def _build(
    checkpoint: Checkpoint,
    why: str,
    steps: list[FileStep],
    reads_after: int,
    replay: tuple[Replay, ...],
    reused_after: int | None,
) -> Draft:
    """Build the draft of a fix; ids above ``reused_after`` get other rows than before."""
    cost, warnings, sinks = Cost.UNFINISHED_AGAIN if replay else Cost.NOTHING, [STOP_FIRST], None
    by_design = pattern(checkpoint) is Pattern.ASYNC_PROGRESS
    if not checkpoint.stateful:
        which = "Rows" if by_design else "If the query ran with asynchronous progress tracking, rows"
        warnings.append(BOOK.text("not_logged", which=which, logged=_find_newest_readable(checkpoint)))
    if any(again.finished for again in replay):
        cost, remembered = Cost.FINISHED_AGAIN, None
        if reused_after is not None and not by_design:
            newest = max(*checkpoint.offsets.ids[-1:], *checkpoint.commits.ids[-1:], reused_after)
            cost, remembered = Cost.MAY_LOSE, Seen(reused_after + 1, newest)
        text = BOOK.text("async_sinks") if by_design else REUSED  # Spark allows that tracking for some sinks only
        sinks = AnySink(text, Ids.REUSED, kinds=list_sinks(Ids.REUSED, remembered), named=name_sink(checkpoint))
    return Draft(
        why,
        cost,
        tuple(steps),
        len(replay),
        replay,
        tuple(warnings),
        reads_after=reads_after,
        any_sink=sinks,
        proven=not replay and reused_after is None,
    )


def _find_newest_readable(checkpoint: Checkpoint) -> int:
    if not checkpoint.offsets.records:
        raise NoWay("no offset file can be read")
    return max(checkpoint.offsets.records)


def _has_batches_above(checkpoint: Checkpoint, latest: int) -> bool:
    """Tell whether batches were planned or committed after one, so that their progress is unknown."""
    return any(ids and ids[-1] > latest for ids in (checkpoint.offsets.ids, checkpoint.commits.ids))


def _explain_fill(
    checkpoint: Checkpoint, latest: int, origin: int | None, *, above: bool
) -> tuple[tuple[Replay, ...], str]:
    """List what is read again, and say why that is the least there can be."""
    offsets, commits = checkpoint.offsets, checkpoint.commits
    replay = []
    if latest in commits:
        why = str(BOOK.text("only_looked_at", latest=latest))
    else:
        assert origin is not None
        finished = above or any(origin < i < latest for i in (*offsets.ids, *commits.ids))
        ranges = source_ranges(offsets.readable(origin), offsets.readable(latest))
        replay.append(Replay(latest, ranges, finished))
        why = str(BOOK.text("run_from_origin", latest=latest, origin=origin))
    if above:
        replay.append(Replay(latest + 1, source_ranges(offsets.readable(latest), None), finished=True))
        why = f"batch {latest} is the newest with readable offsets; {why}"
    return tuple(replay), why


def _remove_above(checkpoint: Checkpoint, storage: Storage, batch_id: int) -> Iterator[FileStep]:
    """Remove everything of the logs that is in the way above a batch: newest first, the commit before the offsets.

    That includes checksum files without a file, which would stop Spark when it comes to write that file. What no start
    looks at while the latest batch is there, and would while its neighbours go, is removed before them, oldest first:
    batches planned after the last commit, which would be skipped, and commits without offsets.
    """
    listing, offsets, commits = checkpoint.listing, checkpoint.offsets, checkpoint.commits
    in_the_way: set[tuple[int, str]] = set()
    for log in (offsets, commits):
        ids = {*log.ids, *list_sidecar_batches(checkpoint, log.folder)}
        in_the_way |= {(i, log.folder) for i in ids if i > batch_id}
    if batch_id not in commits and listing.info(sidecar(f"{COMMITS}/{batch_id}")):
        in_the_way.add((batch_id, COMMITS))
    aside = [(i, OFFSETS) for i in offsets.ids[:-1] if i > max((batch_id, *commits.ids[-1:]))]
    aside += [(i, COMMITS) for i in commits.ids if i > batch_id and i not in offsets]
    newest_first = sorted(in_the_way.difference(aside), key=lambda file: (-file[0], file[1] != COMMITS))
    return plan_removals(storage, listing, [f"{folder}/{above}" for above, folder in (*aside, *newest_first)])
