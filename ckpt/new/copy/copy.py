"""``ckpt copy`` as one call: what is selected is read, written elsewhere, and checked there."""

import os
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from os import fspath
from typing import Annotated

from ckpt.changes.backup import choose_options
from ckpt.changes.steps import read_files, sidecar
from ckpt.checkpoint.checkpoint import METADATA
from ckpt.checkpoint.points import Point, choose_removed, list_points, parse_rule
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.times import BatchOrTime
from ckpt.errors import NotFound, StorageError, UsageError
from ckpt.formats.metadata import build_metadata, parse_metadata
from ckpt.formats.sidecars import build_hadoop_sidecar
from ckpt.inspection.inspection import Inspection
from ckpt.live.sink.reader import find_kind
from ckpt.model import Location, QueryMetadata
from ckpt.new.comparing import ReadSums
from ckpt.new.copy.selection import CannotCopy, Selection, choose_batch, select_files
from ckpt.new.placing import (
    AT_ONCE,
    FilePieces,
    Placing,
    Watcher,
    check_apart,
    discard_checkpoint,
    find_first_version,
    is_large,
    open_new,
)
from ckpt.new.request import NewCheckpoint, Rewriting
from ckpt.restart.sinks import shared_with_a_copy
from ckpt.storage import ReadRequest, Storage, open_storage
from ckpt.storage.writer import AlreadyThere, Attributes
from ckpt.values import Value

_TRIES = 3  # how often a newer batch is taken because the query deleted files of the one before


class Vanished(StorageError):
    """A file was deleted while it was to be copied."""


@dataclass(frozen=True, slots=True)
class CheckpointCopy(Value):
    """A copy that was made, or is planned."""

    inspection: Inspection  # of the copy
    to: Annotated[str, "as given"]
    batch: int
    query_id: Annotated[str | None, "of the copy"]
    new_id: bool
    files: Annotated[int, "written"]
    bytes: int
    planned: Annotated[bool, "with `--plan`: nothing is written"]
    sinks: Mapping[str, str] = field(default_factory=dict)  # kind: what it does if the original writes there too
    wrong_checksums: Annotated[
        tuple[str, ...], "state files that do not match their checksum file, and were copied unchanged"
    ] = ()
    linked: Annotated[int, "how many of these bytes were taken from an earlier copy"] = 0
    points: Annotated[tuple[str, ...], "with `--keep`: the query's points after the run, oldest first"] = ()
    removed: Annotated[tuple[str, ...], "with `--keep`: the points that are removed"] = ()


def copy(
    checkpoint: Location,
    new: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    to_storage_options: Mapping[str, str] | None = None,
    batch: BatchOrTime | None = None,
    new_id: bool = False,
    plan: bool = False,
    deep: bool = False,
    sink: str | None = None,
    since: Location | None = None,
    keep: str | None = None,
    watcher: Watcher | None = None,
) -> CheckpointCopy:
    """Copy a checkpoint, like ``ckpt copy``. The query may keep running; the original is only read.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        new: A path or URI of a folder that does not exist, or contains no file. A declarative pipeline's flow
            that has never run, ``<storage>/_checkpoints/<catalog>/<schema>/<table>/<flow>``, gets it as version ``0``.
        storage_options: For the file system of the checkpoint, where it is remote; also for that of ``new`` if that is
            storage of the same kind, or the checkpoint is local.
        to_storage_options: For the file system of ``new``, instead of ``storage_options``.
        batch: A committed batch as of which it is copied; by default the newest.
        new_id: Give the copy its own query id.
        plan: Write nothing: only report what would be copied.
        deep: Refuse where a start after the batch would fail by any byte of its state, as ``state_verify`` reads it.
        sink: The query's sink, as for ``inspect``: only that sink is
            described then.
        since: An earlier copy: a file that it has with the same bytes is linked, or copied by the storage.
        keep: A rule such as ``"hourly=24,daily=7,weekly=5,monthly=12,yearly=3,last=2"``: make a point in the folder
            ``new``, and remove points of this query that the rule does not keep.
        watcher: Called with the number of files written so far, and the number of all files.

    Raises:
        NotACheckpoint, NotFound, StorageError: The original cannot be read, or the copy not be written; in that
            case it is removed as far as possible.
        CkptError: There is no such batch, a start after it would fail, the copy is wrong, or the flow
            has run.
        UsageError: A URI or option is wrong, or one place is inside the other.

    >>> copied = ckpt.copy("sample_checkpoints/aggregation-hdfs-4.2", "memory://copy/aggregation")
    >>> copied.batch, copied.new_id, copied.inspection.sound
    (9, False, True)
    """
    uri, new = fspath(checkpoint), fspath(new)
    check_apart(uri, new)
    options = storage_options or {}
    kind = find_kind(sink, uri, options)
    making: Rewriting = {"to_storage_options": to_storage_options, "plan": plan, "watcher": watcher}
    request = NewCheckpoint(uri=new, old=uri, options=options, new_id=new_id, **making)
    if keep is not None and (batch is not None or since is not None or new_id):
        raise UsageError.of("{--keep} makes a point of the newest batch: omit {--batch}, {--new-id} and {--since}")
    storage = open_storage(uri, choose_options(uri, options))
    storage.names_only = True  # all bytes are read once, to be copied, and compared with their checksums
    if deep:
        from ckpt.state.verify.verify import look_at_every_byte

        look_at_every_byte(storage, options)
    if keep is None:
        folder, missing = find_first_version(new, request.own_options)
        placing, request = open_new(folder, request.own_options, missing), replace(request, uri=folder)
        if since is not None:
            older = open_storage(fspath(since), choose_options(fspath(since), request.own_options, new))
            placing.since = older, older.list_tree()
        attempted = partial(copy_selected, storage, placing, request, batch)
    else:
        attempted = partial(_keep_point, storage, request, parse_rule(keep))
    for attempt in range(_TRIES):
        try:
            return replace(attempted(), sinks=shared_with_a_copy(new_id=new_id, only=kind))
        except Vanished as error:
            if batch is not None or attempt == _TRIES - 1:
                raise StorageError(
                    f"{error}: the query deletes old files while it runs; copy a newer batch, or stop it first"
                ) from error
    raise AssertionError


def _keep_point(storage: Storage, new: NewCheckpoint, rule: Mapping[str, int]) -> CheckpointCopy:
    """Remove what interrupted runs left, make a point, and then remove the points that the rule does not keep."""
    folder, writer = open_storage(new.uri, choose_options(new.uri, new.own_options)), new.open().writer
    checkpoint, kept, unfinished = read_checkpoint(storage, batches=0), dict[str, tuple[Point, ...]](), list[str]()
    batch, query_id = choose_batch(checkpoint, None), checkpoint.query_id
    if query_id is None:
        raise CannotCopy(f"{checkpoint.uri}: no file has the id of the query, which identifies its points")

    def remove(names: Iterable[str]) -> None:
        for below in (folder.below(name) for name in names if not new.plan):
            discard_checkpoint(below, open_new(below.uri, new.own_options).writer)

    with ExitStack() as failing:
        if not new.plan:
            with suppress(AlreadyThere):
                writer.make_root()
                failing.callback(writer.remove_folder, "")
        with nullcontext() if new.plan else writer.lock():
            with suppress(NotFound):
                kept, unfinished = list_points(folder)
            remove(unfinished)
            time = (datetime.now(UTC) + timedelta(seconds=1)).replace(microsecond=0)  # after the commit
            points = (*kept.get(query_id, ()), Point(time, batch))
            placing = open_new(folder.below(points[-1].name).uri, new.own_options, (new.uri,) if new.plan else ())
            for older in (folder.below(point.name) for point in points[:-1][-1:]):
                placing.since = older, older.list_tree()
            copied = copy_selected(storage, placing, replace(new, uri=placing.storage.uri), batch)
            gone = [point.name for point in choose_removed(points, rule)]
            remove(gone)
        failing.pop_all()
    left = (point.name for point in points if point.name not in gone)
    return replace(copied, points=tuple(left), removed=tuple(gone))


def copy_selected(
    storage: Storage,
    placing: Placing,
    new: NewCheckpoint,
    batch: BatchOrTime | None,
    check: Callable[[], None] = lambda: None,
) -> CheckpointCopy:
    """Select the files of a checkpoint, and write them to its place; nothing is left of it where that fails.

    Where writing has begun there, files that it has already are not written again. ``check`` is called in the end, and
    raises CkptError where the copy is not to stay.

    Raises as ``copy`` does, and Vanished where the query has deleted a file meanwhile.
    """
    selection = replace(select_files(storage, new.uri, batch), local=placing.storage.local)
    if new.plan:
        return _plan_copy(selection, storage, placing, new)
    placing = placing if placing.begun else placing.make_attempt()
    placing.attributes = partial(_choose_attributes, selection)
    try:
        with placing:
            if not placing.begun:
                placing.begin(selection.newest)
            copied = _copy_files(selection, storage, placing, new)
            check()
            return copied
    except NotFound as error:
        raise Vanished(str(error)) from error


def _list_starts(inspection: Inspection) -> list[tuple[object, ...]]:
    """List the starts that a copy and its original have to have in common."""
    return [(f.spark, f.progress, f.outcome, f.batch_id, f.sources) for f in inspection.forecasts]


def _choose_attributes(selection: Selection, path: str) -> Attributes | None:
    """A local file is its owner's only, and has the time that it has in the original."""
    info = selection.listing.info(path)
    mtime = info.mtime_ms if info and selection.local else None
    return None if mtime is None else Attributes(0o644, os.geteuid(), os.getegid(), mtime * 1_000_000)


def _copy_files(selection: Selection, storage: Storage, placing: Placing, new: NewCheckpoint) -> CheckpointCopy:
    """Read, write and check. Raises NotFound where the query has deleted a file meanwhile, or CkptError."""
    listing, small = selection.listing, _read_small(selection, storage)  # at once
    written = placing.sizes.keys() - {selection.newest}
    gone = ({*selection.list_small()} - small.keys()) | written
    order = [path for path in selection.list_in_order(storage) if path not in gone]
    small |= selection.changed
    if new.new_id:
        data = build_metadata(str(uuid.uuid4()))
        small |= {METADATA: data, sidecar(METADATA): build_hadoop_sidecar(data)}
    sums = ReadSums()
    at_once = 1 if selection.local else AT_ONCE
    for first in range(0, len(order) - 1, at_once):  # files that are read and written together
        group = order[first : min(first + at_once, len(order) - 1)]
        later = {path: listing.info(path) for path in group if path not in small}
        contents: dict[str, bytes | FilePieces] = {path: small[path] for path in group if path in small}
        contents |= read_files(storage, (path for path, info in later.items() if not is_large(info)))
        contents |= {
            path: FilePieces(storage, path, info, sums) for path, info in later.items() if info and is_large(info)
        }
        placing.put({path: contents[path] for path in group})
        if new.watcher is not None:
            new.watcher(len(placing.sizes), len(order) + len(written))
        for path, content in contents.items():
            if isinstance(content, bytes):
                sums.add(path, content)
    placing.finish(small.get(selection.newest) or storage.read(selection.newest))
    starts = _list_starts(selection.inspection)
    placing.check(new.uri, "the copy", "the original", lambda copied: _list_starts(copied) == starts)
    metadata = parse_metadata(METADATA, small[METADATA]) if METADATA in small else None
    query_id = metadata.query_id if isinstance(metadata, QueryMetadata) else None
    made = _describe_copy(selection, new, query_id, placing.sizes.values())
    return replace(made, wrong_checksums=tuple(sums.find_wrong()), linked=sum(placing.linked.values()))


def _plan_copy(selection: Selection, storage: Storage, placing: Placing, new: NewCheckpoint) -> CheckpointCopy:
    """Describe the copy with the sizes of the listing. Raises StorageError, also where NEW is not empty."""
    placing.check_empty()
    paths = selection.list_in_order(storage)
    sizes = [info.size or 0 for info in map(selection.listing.info, paths) if info is not None]
    query_id = None if new.new_id else selection.inspection.checkpoint.query_id
    return _describe_copy(selection, new, query_id, sizes)


def _describe_copy(
    selection: Selection, new: NewCheckpoint, query_id: str | None, sizes: Collection[int]
) -> CheckpointCopy:
    sinks, amount = shared_with_a_copy(new_id=new.new_id), (len(sizes), sum(sizes))
    return CheckpointCopy(
        selection.inspection, new.uri, selection.batch, query_id, new.new_id, *amount, new.plan, sinks
    )


def _read_small(selection: Selection, storage: Storage) -> dict[str, bytes]:
    """Logs and descriptions; without those of old batches that the query has deleted meanwhile, and any before these.

    Large ones, such as a compacted log of a file source, are left for later. Raises NotFound where another one is gone,
    or StorageError.
    """
    paths = [*selection.list_small()]
    contents: dict[str, bytes] = {}
    lost = -1
    for path, answer in zip(paths, storage.read_many([ReadRequest(path) for path in paths]), strict=True):
        old = selection.find_old_batch(path)
        if isinstance(answer, NotFound) and old is not None:
            lost = max(lost, old)
        elif isinstance(answer, StorageError):
            raise answer
        else:
            contents[path] = answer
    return {
        path: data for path, data in contents.items() if (old := selection.find_old_batch(path)) is None or old > lost
    }
