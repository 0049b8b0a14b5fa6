"""The files that belong to batches after a given one: without them a query stands as after that batch.

Batch B reads state version B and writes version B + 1. Spark never refuses a name that is there: a file that an
abandoned batch left behind is loaded later instead of the one that belongs there, or maintenance counts from it which
files are old enough to be deleted (measured on 3.5.9 and 4.2.0, all providers and formats). SST files, schemas and
``_metadata/metadata`` belong to no single batch and stay.

Order matters, because a removal may be interrupted and the query started. First goes the predecessor of the latest
offsets, without which no synchronous start begins; then commits, state, operator metadata and source logs; the latest
offsets go last. Where that predecessor stays, each moment is one in which Spark runs the latest batch again over its
range, or fails because a version of state is missing.
"""

from collections.abc import Iterator
from itertools import chain

from ckpt.checkpoint.checkpoint import SKIPPED, STATE, Checkpoint, Log
from ckpt.checkpoint.sources.file_logs import FileSourceLog, file_source_logs
from ckpt.checkpoint.sources.files import FileOffset
from ckpt.checkpoint.sources.registry import offset_of
from ckpt.checkpoint.state.folders import sort_numbers, stores_of
from ckpt.formats.names import compactible_id, compactible_log, parse_java_long
from ckpt.formats.sidecars import shown_name
from ckpt.formats.statefiles import version_of
from ckpt.model import CommitLog, OffsetLog
from ckpt.storage import Listing


def find_files_after(checkpoint: Checkpoint, batch: int, *, keep_planned: bool = False) -> tuple[str, ...]:
    """Find the files that go so that the query stands as after ``batch``, in the order in which they may go.

    Paths of files, there or not: the hidden checksum file of each goes with it (``plan_unread_removals``), also where
    it alone is left. ``keep_planned``: the offsets of the batch after it stay, so that it runs again over its range.
    """
    listing, last_planned = checkpoint.listing, batch + 1 if keep_planned else batch
    planned = _find_later_batches(checkpoint.offsets, listing, last_planned)
    latest = checkpoint.offsets.latest
    first = [] if latest is None else planned.pop(latest - 1, [])
    last = [] if latest is None else planned.pop(latest, [])
    return (
        *first,
        *chain.from_iterable(map(sorted, _find_later_batches(checkpoint.commits, listing, batch).values())),
        *state_above(listing, batch + 1),
        *_find_later_operator_metadata(listing, batch),
        *_find_later_source_entries(checkpoint, last_planned),
        *chain.from_iterable(map(sorted, planned.values())),
        *([SKIPPED] if any(each.batch > batch for each in checkpoint.marked_skipped) else []),
        *last,
    )


def state_above(listing: Listing, version: int) -> tuple[str, ...]:
    """Every file of state of a later version: of all operators, partitions and stores, newest first."""
    paths: set[tuple[int, str]] = set()
    for operator in sort_numbers(listing.subfolders(STATE)):
        for partition in sort_numbers(listing.subfolders(f"{STATE}/{operator}")):
            for _, folder in stores_of(listing, f"{STATE}/{operator}/{partition}"):
                for name in listing.in_folder(folder):
                    of = version_of(name)
                    if of is not None and of > version:
                        paths.add((of, f"{folder}/{shown_name(name)}"))
    return tuple(path for _, path in sorted(paths, key=lambda pair: (-pair[0], pair[1])))


def _find_later_batches(log: Log[OffsetLog] | Log[CommitLog], listing: Listing, batch: int) -> dict[int, list[str]]:
    """Files of later batches in one of the logs, newest first, with those that Spark only takes for one (``007``)."""
    paths: dict[int, list[str]] = {}
    for name in {shown_name(name) for name in listing.in_folder(log.folder)}:
        number = parse_java_long(name)
        if number is not None and number > batch:
            paths.setdefault(number, []).append(f"{log.folder}/{name}")
    return dict(sorted(paths.items(), reverse=True))


def _find_later_operator_metadata(listing: Listing, batch: int) -> Iterator[str]:
    """``_metadata/v2/<batch>`` of every operator (``OperatorStateMetadataV2``)."""
    for operator in sort_numbers(listing.subfolders(STATE)):
        folder = f"{STATE}/{operator}/_metadata/v2"
        for number in reversed(sort_numbers({shown_name(name) for name in listing.in_folder(folder)})):
            if number > batch:
                yield f"{folder}/{number}"


def _find_later_source_entries(checkpoint: Checkpoint, batch: int) -> Iterator[str]:
    """Entries of file source logs that no batch up to this one has read.

    Only where what is left is complete: the plain entries below a compacted file are deleted after a while. A log that
    is left whole is right as well: the files of its entries are read in one batch then.
    """
    ends = checkpoint.offsets.readable(batch)
    for log in file_source_logs(checkpoint.listing, ends) if ends else ():
        end = offset_of(ends, log.source)
        if isinstance(end, FileOffset):
            yield from _cut(checkpoint.listing, log, end.log_offset)


def _cut(listing: Listing, log: FileSourceLog, entry: int) -> Iterator[str]:
    names = listing.in_folder(log.folder)
    ids = {name: number for name in map(shown_name, names) if (number := compactible_id(name)) is not None}
    left = compactible_log(name for name, number in ids.items() if number <= entry and name in names)
    if left.missing or left.interval <= 0 or (left.latest if left.latest is not None else -1) != entry:
        return
    for name, number in sorted(ids.items(), key=lambda one: (-one[1], one[0])):
        if number > entry:
            yield f"{log.folder}/{name}"
