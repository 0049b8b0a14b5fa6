"""The two strategies for a gap, as drafts: which files they change, and what is read again.

L is the latest batch with readable offsets. A synchronous start looks for the offsets of L-1 (Spark class
``MicroBatchExecution``, ``populateStartOffsets``): only whether they can be read where L is committed, and for where L
begins where it is not.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.changes.async_gap.plan import Strategy
from ckpt.changes.plan import NoWay, Replay
from ckpt.changes.steps import Step, removals, sidecar, writing
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, Checkpoint
from ckpt.model import OffsetLog
from ckpt.restart.forecast import source_ranges
from ckpt.storage import Storage


@dataclass(frozen=True, slots=True)
class GapDraft:
    """One strategy, not yet checked against a forecast."""

    strategy: Strategy
    steps: tuple[Step, ...]
    reads_after: int  # the batch at whose end the next start begins to read
    logged: int  # the newest batch whose offsets can be read, before anything is changed
    replay: tuple[Replay, ...]
    why: str


def fills(checkpoint: Checkpoint, storage: Storage) -> Iterator[GapDraft]:
    """Give the latest batch the predecessor that a synchronous start looks for.

    If that has to run, these are the offsets of the newest earlier batch that is committed and readable, so that no
    row can be skipped; if it is committed, of the newest that is readable: then nothing is read from them.
    Raises NoWay, or StorageError where a file cannot be read.
    """
    offsets, commits = checkpoint.offsets, checkpoint.commits
    latest = _newest_readable(checkpoint)
    end = offsets.readable(latest)
    assert end is not None
    committed = latest in commits
    above = _reaches_above(checkpoint, latest)
    if checkpoint.stateful and (above or not committed):
        raise NoWay(
            f"the query keeps state, and batch {latest} is not its last committed one: run over other rows than "
            "before, it would count rows twice"
        )
    origin = _origin(checkpoint, latest, end)
    if origin is None and not committed:
        raise NoWay(
            f"batch {latest} is not committed, and no earlier batch is both committed and readable, so its start "
            "is unknown"
        )
    between = [f"{OFFSETS}/{i}" for i in offsets.ids if _or_minus_one(origin) < i < latest - 1 and not committed]
    steps = [*removals(storage, checkpoint.listing, between), *_above(checkpoint, storage, latest)]
    steps += _predecessor(checkpoint, storage, latest, latest if origin is None else origin)
    replay, why = _after_fill(checkpoint, latest, origin, above=above)
    yield GapDraft(Strategy.FILL, tuple(steps), latest if committed else _or_minus_one(origin), latest, replay, why)


def _newest_readable(checkpoint: Checkpoint) -> int:
    found = next((i for i in reversed(checkpoint.offsets.ids) if checkpoint.offsets.readable(i)), None)
    if found is None:
        raise NoWay("no offset file can be read")
    return found


def _reaches_above(checkpoint: Checkpoint, latest: int) -> bool:
    """Whether batches were planned or committed after one, so that their progress is unknown."""
    return any(ids and ids[-1] > latest for ids in (checkpoint.offsets.ids, checkpoint.commits.ids))


def _origin(checkpoint: Checkpoint, latest: int, end: OffsetLog) -> int | None:
    """The newest earlier batch that is committed and readable, and has the same sources.

    Where the latest is committed, all earlier ones are done, whether their commit was logged or not.
    """
    offsets, commits = checkpoint.offsets, checkpoint.commits
    for batch_id in reversed(offsets.ids):
        log, done = offsets.readable(batch_id), batch_id in commits or latest in commits
        if batch_id < latest and done and log and len(log.sources) == len(end.sources):
            return batch_id
    return None


def _or_minus_one(batch_id: int | None) -> int:
    return -1 if batch_id is None else batch_id


def _predecessor(checkpoint: Checkpoint, storage: Storage, latest: int, origin: int) -> Iterator[Step]:
    """Write ``offsets/<latest - 1>``, unless it is there."""
    if not latest or checkpoint.offsets.readable(latest - 1):
        return
    path, listing = f"{OFFSETS}/{latest - 1}", checkpoint.listing
    if listing.has_folder(path) or path in listing.oddities:
        raise NoWay(f"{path} is not a file, and is in the way of one that must be written: move it away first")
    source = f"{OFFSETS}/{origin}"
    yield from writing(storage, listing, path, storage.read(source), source)


def _after_fill(
    checkpoint: Checkpoint, latest: int, origin: int | None, *, above: bool
) -> tuple[tuple[Replay, ...], str]:
    """What is read again, and why that is the least there can be."""
    offsets, commits = checkpoint.offsets, checkpoint.commits
    replay = []
    if latest in commits:
        why = (
            f"batch {latest} is committed, so a start only checks that its predecessor exists, and reads "
            "nothing from it"
        )
    else:
        assert origin is not None
        finished = above or any(origin < i < latest for i in (*offsets.ids, *commits.ids))
        ranges = source_ranges(offsets.readable(origin), offsets.readable(latest))
        replay.append(Replay(latest, ranges, finished))
        why = (
            f"batch {latest} is not committed: it is run again from the end of batch {origin}, the last "
            "that is known to be done"
        )
    if above:
        replay.append(Replay(latest + 1, source_ranges(offsets.readable(latest), None), finished=True))
        why = f"batch {latest} is the newest whose offsets can be read; {why}"
    return tuple(replay), why


def rewinds(checkpoint: Checkpoint, storage: Storage) -> Iterator[GapDraft]:
    """Go back to a pair of consecutive batches, newest pair first.

    Raises NoWay, or StorageError where a file cannot be read.
    """
    if checkpoint.stateful:
        raise NoWay("the query keeps state, and state files of later batches would be loaded later without an error")
    offsets, logged = checkpoint.offsets, _newest_readable(checkpoint)
    end = None if _reaches_above(checkpoint, logged) else offsets.readable(logged)
    for batch_id in reversed(offsets.ids):
        if not offsets.readable(batch_id) or (batch_id and not offsets.readable(batch_id - 1)):
            continue
        begin = batch_id if batch_id in checkpoint.commits else batch_id - 1
        first = batch_id + 1 if begin == batch_id else batch_id
        steps = tuple(_above(checkpoint, storage, batch_id))
        replay = (Replay(first, source_ranges(offsets.readable(begin), end), finished=True),)
        pair = f"batches {batch_id - 1} and {batch_id} are" if batch_id else "batch 0 is"
        yield GapDraft(Strategy.REWIND, steps, begin, logged, replay, f"{pair} the newest to go back to")


def _above(checkpoint: Checkpoint, storage: Storage, batch_id: int) -> Iterator[Step]:
    """Remove everything of the logs that is in the way above a batch: newest first, the commit before the offsets.

    That includes checksum files without a file, which would stop Spark when it comes to write that file. What no start
    looks at while the latest batch is there, and would while its neighbours go, is removed before them, oldest first:
    batches planned after the last commit, which would be skipped, and commits without offsets.
    """
    listing, offsets, commits = checkpoint.listing, checkpoint.offsets, checkpoint.commits
    found: set[tuple[int, str]] = set()
    for log in (offsets, commits):
        hidden = {name[1:-4] for name in listing.in_folder(log.folder) if name[0] == "." and name.endswith(".crc")}
        ids = {*log.ids, *(int(name) for name in hidden if name.isascii() and name.isdigit())}
        found |= {(i, log.folder) for i in ids if i > batch_id}
    if batch_id not in commits and listing.info(sidecar(f"{COMMITS}/{batch_id}")):
        found.add((batch_id, COMMITS))
    aside = [(i, OFFSETS) for i in offsets.ids[:-1] if i > max((batch_id, *commits.ids[-1:]))]
    aside += [(i, COMMITS) for i in commits.ids if i > batch_id and i not in offsets]
    newest_first = sorted(found.difference(aside), key=lambda one: (-one[0], one[1] != COMMITS))
    return removals(storage, listing, [f"{folder}/{above}" for above, folder in (*aside, *newest_first)])
