"""The batches of a checkpoint: which are planned and committed, and how far each advanced its sources."""

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from ckpt.checkpoint.checkpoint import SOURCES, Checkpoint
from ckpt.checkpoint.sources.file_logs import source_folder
from ckpt.checkpoint.sources.files import FileOffset, entry_at
from ckpt.checkpoint.sources.kind import Advance
from ckpt.checkpoint.sources.registry import SourceView, advances, offset_of, source_views
from ckpt.model import OffsetLog, Unreadable


class Pattern(StrEnum):
    """The shape that the two logs make together; a shape, not a proof of origin."""

    CONTIGUOUS = "contiguous"
    ASYNC_PROGRESS = "async-progress"
    GAPPED = "gapped"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Batch:
    """One planned batch, from its offset file."""

    batch_id: int
    timestamp_ms: int | None
    watermark_ms: int | None
    committed: bool
    unreadable: str | None  # why its offset file cannot be read
    advanced: tuple[Advance | None, ...]  # per source, from the nearest earlier batch; None: not known


def uncommitted(checkpoint: Checkpoint) -> tuple[int, ...]:
    """Batches with offsets and no commit."""
    committed = frozenset(checkpoint.commits.ids)
    return tuple(i for i in checkpoint.offsets.ids if i not in committed)


def unplanned(checkpoint: Checkpoint) -> tuple[int, ...]:
    """Batches with a commit and no offsets."""
    planned = frozenset(checkpoint.offsets.ids)
    return tuple(i for i in checkpoint.commits.ids if i not in planned)


def pattern(checkpoint: Checkpoint) -> Pattern:
    """The shape of the two logs.

    ``async-progress``: at least one gap, every commit has its offsets, at most the latest batch is uncommitted (batches
    without rows apart, such as ``ckpt repair-async`` writes), and the query is stateless.
    """
    offsets, commits = checkpoint.offsets, checkpoint.commits
    if not offsets.ids and not commits.ids:
        return Pattern.EMPTY
    if not offsets.missing and not commits.missing:
        return Pattern.CONTIGUOUS
    as_asynchronous = (
        bool(offsets.missing)
        and not unplanned(checkpoint)
        and all(i == offsets.latest or is_empty(checkpoint, i) for i in uncommitted(checkpoint))
        and not checkpoint.stateful
    )
    return Pattern.ASYNC_PROGRESS if as_asynchronous else Pattern.GAPPED


def is_empty(checkpoint: Checkpoint, batch_id: int) -> bool:
    """Tell whether a planned batch ends where the one before it in the log does, so that it had no rows."""
    offsets = checkpoint.offsets
    before, end = offsets.readable(offsets.before(batch_id)), offsets.readable(batch_id)
    return before is not None and end is not None and before.sources == end.sources


def batches(checkpoint: Checkpoint, newest: int = 10) -> tuple[Batch, ...]:
    """The newest batches that have offsets, oldest first; 0 gives all. Their files must have been read."""
    offsets = checkpoint.offsets
    shown = offsets.ids[-newest:] if newest else offsets.ids
    committed = frozenset(checkpoint.commits.ids)
    newest_first = []
    for batch_id in shown:
        entry = offsets.entries.get(batch_id)
        log = entry if isinstance(entry, OffsetLog) else None
        earlier = offsets.readable(offsets.before(batch_id))
        newest_first.append(
            Batch(
                batch_id,
                log.metadata.timestamp_ms if log and log.metadata else None,
                log.metadata.watermark_ms if log and log.metadata else None,
                batch_id in committed,
                None if log or entry is None else getattr(entry, "reason", None),
                _count_advances(earlier, log),
            )
        )
    return tuple(newest_first)


def _count_advances(earlier: OffsetLog | None, later: OffsetLog | None) -> tuple[Advance | None, ...]:
    if earlier is None or later is None or len(earlier.sources) != len(later.sources):
        return tuple(None for _ in later.sources) if later else ()
    return advances(earlier, later)


def sources(checkpoint: Checkpoint) -> tuple[SourceView, ...]:
    """The position of each source at the end of the latest batch; a file source with the files of its last entry."""
    latest = checkpoint.offsets.readable(checkpoint.offsets.latest)
    views = []
    for view in source_views(latest, rate_sources(checkpoint)) if latest else ():
        offset = view.record
        if isinstance(offset, FileOffset):
            folder = source_folder(checkpoint.listing, latest, view.index)
            named = dict.fromkeys(
                entry.path
                for path, files in checkpoint.source_entries.items()
                if path.startswith(f"{folder}/") and not isinstance(files, Unreadable)
                for entry in files
                if entry.log_offset == offset.log_offset
            )
            view = replace(view, decoded={**view.decoded, "files": [*named]}, files=tuple(named))
        views.append(view)
    return tuple(views)


def batch_entries(checkpoint: Checkpoint, source: int) -> tuple[int, int]:
    """The newest log entry of a source before the latest batch, and the newest in it."""
    latest = checkpoint.offsets.latest
    before = None if latest is None else latest - 1
    read, planned = (entry_at(offset_of(checkpoint.offsets.readable(batch), source)) for batch in (before, latest))
    return read, planned


def batch_files(checkpoint: Checkpoint, source: int) -> tuple[str, ...]:
    """The files of a source that the latest batch has, as URIs, as far as they were read with the checkpoint."""
    folder = source_folder(checkpoint.listing, checkpoint.offsets.readable(checkpoint.offsets.latest), source)
    after, last = batch_entries(checkpoint, source)
    paths = (
        entry.path
        for path, files in checkpoint.source_entries.items()
        if path.startswith(f"{folder}/") and not isinstance(files, Unreadable)
        for entry in files
        if after < entry.log_offset <= last
    )
    return tuple(dict.fromkeys(paths))


def find_recreated_topics(checkpoint: Checkpoint, batch: int, source: int) -> dict[str, tuple[int, ...]]:
    """Find topics of a source that later batches show to be recreated after a batch, with their newest partitions."""
    logs = [log for i in checkpoint.offsets.ids if i >= batch and (log := checkpoint.offsets.readable(i)) is not None]
    recreated: dict[str, tuple[int, ...]] = {}
    for before, after in pairwise(logs):
        advance = advances(before, after)[source : source + 1]
        recreated |= advance[0].recreated if advance and advance[0] is not None else {}
    return recreated


def rate_sources(checkpoint: Checkpoint) -> tuple[int, ...]:
    """Sources whose folder holds a file ``0`` and nothing else: a bare number is a rate source's offset there."""
    listing = checkpoint.listing
    numbers = []
    for name in listing.subfolders(SOURCES):
        visible = [file for file in listing.in_folder(f"{SOURCES}/{name}") if not file.startswith(".")]
        if visible == ["0"] and name.isdecimal():
            numbers.append(int(name))
    return tuple(numbers)
