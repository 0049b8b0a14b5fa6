"""Plans logs as a query with other sources needs them: ``offsets/``, and the folders below ``sources/``.

Measured on 3.5 to 4.3 (Spark classes ``OffsetSeq``, ``OffsetMap``, ``MicroBatchExecution``): the newest offsets and
those before them must have a line for each source of the query, in its order, ``-`` for a new one; and a source finds
its own log in the folder of its number, or of its name. An offset never goes without its log, nor ``-`` with one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ckpt.changes.steps import FileStep, must_fit, plan_unread_removals, plan_writing, read_files, sidecar
from ckpt.checkpoint.checkpoint import OFFSETS, Checkpoint
from ckpt.checkpoint.sources.file_logs import name_folder, source_folder
from ckpt.checkpoint.sources.registry import in_order
from ckpt.formats.offsets import drop_watermark, format_for_names, format_offset_log
from ckpt.model import OffsetLog, SourceOffset
from ckpt.new.evolve.sources import SourceChange, pair_kept
from ckpt.query.description import QueryDescription
from ckpt.storage import Listing, Storage


def has_names(log: OffsetLog) -> bool:
    """Tell whether somebody named the sources of an offset file: without names Spark writes their numbers."""
    return log.version == 2 and not all((source.name or "").isdecimal() for source in log.sources)


def plan_logs(
    storage: Storage, checkpoint: Checkpoint, query: QueryDescription, changes: Sequence[SourceChange]
) -> Iterator[FileStep]:
    """Plan the logs for the query: the folders of sources first, the newest offsets last. Raises StorageError."""
    newest = checkpoint.offsets.newest
    assert newest is not None
    named = any(source.name is not None for source in query.sources)
    yield from _plan_folders(storage, checkpoint, newest, query, changes)
    for batch in checkpoint.offsets.ids:
        log = checkpoint.offsets.readable(batch)
        if log is None or has_names(log) != has_names(newest):
            continue
        if not has_names(log) and len(log.sources) != len(newest.sources):
            continue  # of a query with other sources, further back than a start looks
        after = _change_offsets(log, newest, query, changes, named=named)
        data = format_offset_log(drop_watermark(after) if query.operators == () and checkpoint.operators else after)
        if data != format_offset_log(log):
            yield from plan_writing(storage, checkpoint.listing, f"{OFFSETS}/{batch}", data)


def _change_offsets(
    log: OffsetLog, newest: OffsetLog, query: QueryDescription, changes: Sequence[SourceChange], *, named: bool
) -> OffsetLog:
    """Make an offset file with a line for each source of the query.

    Names: a new source has no line, and one that is no longer read keeps its line, by which it can come back.
    """
    if named and has_names(log):
        return replace(log, sources=tuple(_rename_lines(log, newest, query, changes)))
    ordered = enumerate(in_order(log))
    before = {source.name if has_names(log) else str(number): source for number, source in ordered}
    names = [source.name if has_names(log) else str(number) for number, source in enumerate(in_order(newest))]
    lines = []
    for change in changes:
        if change.new is None:
            continue
        old = None if change.is_new or change.old is None else before.get(names[change.old])
        line = SourceOffset(None, change.start, None) if old is None else old
        name = query.sources[change.new].name if named else str(change.new) if log.version == 2 else None
        if named and line.text is None:
            continue  # a name without a line is a new source
        lines.append(replace(line, name=name))
    changed = replace(log, sources=tuple(lines))
    if named != has_names(log):
        changed = format_for_names(changed, named=named)
        return changed if named else replace(changed, sources=tuple(replace(line, name=None) for line in lines))
    return changed


def _rename_lines(
    log: OffsetLog, newest: OffsetLog, query: QueryDescription, changes: Sequence[SourceChange]
) -> Iterator[SourceOffset]:
    """Yield the lines of an offset file under the names of the query, then those of new sources that have a start."""
    old_names = [source.name for source in in_order(newest)]
    wanted = {source.name for source in query.sources}
    kept = {old_names[old]: query.sources[new].name for new, old in pair_kept(changes).items()}
    for line in log.sources:
        if line.name in kept or line.name not in wanted:
            yield replace(line, name=kept.get(line.name, line.name))
    for change in changes:
        if change.new is not None and change.is_new and change.start is not None:
            yield SourceOffset(query.sources[change.new].name, change.start, None)


def _plan_folders(
    storage: Storage,
    checkpoint: Checkpoint,
    newest: OffsetLog,
    query: QueryDescription,
    changes: Sequence[SourceChange],
) -> Iterator[FileStep]:
    """Plan that each source that continues has its log where it looks for it, and no other has one."""
    listing = checkpoint.listing
    wanted = [name_folder(number, source.name) for number, source in enumerate(query.sources)]
    kept = {wanted[new]: source_folder(listing, newest, old) for new, old in pair_kept(changes).items()}
    kept |= {wanted[each.new]: each.left_log for each in changes if each.new is not None and each.left_log}
    moved = {new: old for new, old in kept.items() if new != old}
    stays = has_names(newest) and all(source.name is not None for source in query.sources)
    left = (change.old for change in changes if change.old is not None and not (stays and change.is_gone))
    gone = {source_folder(listing, newest, old) for old in left}
    gone |= {wanted[change.new] for change in changes if change.new is not None and change.is_new}
    contents: dict[str, str] = {}  # for each path that a file gets, the path where it is
    for new, old in moved.items():
        contents |= {new + path.removeprefix(old): path for path, _ in listing.walk(old) if not is_hidden(path)}
    emptied = [
        path for folder in sorted({*moved, *gone} - (kept.keys() - moved.keys())) for path, _ in listing.walk(folder)
    ]
    replaced = {*contents, *map(sidecar, contents)}
    removed = sorted((path for path in emptied if path not in replaced), key=is_hidden)
    yield from {step.path: step for step in plan_unread_removals(listing, removed)}.values()
    yield from _plan_moves(storage, listing, contents)


def is_hidden(path: str) -> bool:
    """Tell whether a file is a checksum file of Hadoop, or a leftover."""
    return path.rpartition("/")[2].startswith(".")


def _plan_moves(storage: Storage, listing: Listing, contents: Mapping[str, str]) -> Iterator[FileStep]:
    """Give each path the content of another one; checksums go before their file, and come after it."""
    paths = [path for both in contents.items() for path in both]
    there = [path for path in (*paths, *map(sidecar, paths)) if listing.info(path) is not None]
    must_fit(listing, there)
    data = read_files(storage, there)
    for path, old in sorted(contents.items()):
        before, checksums = data.get(path), sidecar(path)
        if before == data[old]:
            continue
        if checksums in data:
            yield FileStep(checksums, data[checksums], None)
        yield FileStep(path, before, data[old], old, old if before is None else path)
        if sidecar(old) in data:
            yield FileStep(checksums, None, data[sidecar(old)], sidecar(old), sidecar(old))
