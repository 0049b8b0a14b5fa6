"""Earlier versions of a table: which batch of a query one had last, and what takes the table back to it.

Of a Delta table a version is a number of ``_delta_log``, of an Iceberg table the id of a snapshot among the ancestors
of the current one. ``RESTORE`` adds a version and keeps the transactions of Delta, so the table still drops the batches
that it took back (``DeltaSink.addBatch``); a rolled back Iceberg table looks at the ancestors of its current snapshot
alone, and so has forgotten them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from os import path as os_path
from typing import Annotated

from ckpt.advice import Words, words
from ckpt.checkpoint.times import parse_time, read_time
from ckpt.errors import StorageError, UsageError, one_line
from ckpt.formats.deltalog import Commit, read_commit_info, version_of
from ckpt.formats.iceberg import IcebergSnapshot, IcebergTable
from ckpt.formats.text import Damaged
from ckpt.live.sink.delta_files import DELTA_LOG, find_restored_version, read_delta_sink, read_log_lines
from ckpt.live.sink.iceberg import find_batches, read_iceberg
from ckpt.live.sink.reader import read_sink
from ckpt.live.sink.records import SinkKind, SinkLog
from ckpt.storage import FileInfo, ReadRequest, Storage, open_storage
from ckpt.storage.locations import local_path, spark_uri
from ckpt.texts import instant

_HEAD = 1 << 12  # bytes of a version in which its time is looked for
_RESTORE = "RESTORE"
_NO_ROWS = frozenset({"OPTIMIZE", "VACUUM START", "VACUUM END"})
"""Operations of Delta after which a table has the rows that it had."""


@dataclass(frozen=True, slots=True)
class SinkVersion:
    """An earlier version of a table, for a query that goes back to it."""

    number: Annotated[int, "of the version, or the id of the snapshot"]
    newest: Annotated[int, "the current one of the table"]
    log: SinkLog  # of batches, as the table was then
    batch: Annotated[int | None, "the query's newest batch in it; null: none"]
    is_current: Annotated[bool, "the table has the rows of that version now"]
    keeps_ids: bool  # once it is restored, the table still drops later batches of the query
    others: Annotated[tuple[str, ...], "later commits of other writers, which a restore also removes"]
    statement: Annotated[str, "the SQL that restores it"]
    undo: str  # the one that takes that back

    @property
    def name(self) -> str:
        """The version, as a word of a sentence."""
        return f"{'snapshot' if self.log.kind == SinkKind.ICEBERG else 'version'} {self.number}"

    @property
    def restore_first(self) -> str:
        """The statement that has to be run first, as a part of a sentence."""
        return f"the table has later rows than {self.name}: first run {self.statement}"


def read_sink_version(
    uri: str, wanted: str, query_id: str | None, storage_options: Mapping[str, str] | None = None
) -> SinkVersion:
    """Read an earlier version of the Delta or Iceberg table at ``uri``.

    ``wanted`` is its number, or a time in ISO 8601, in UTC where it has no zone: the newest version that is no later.
    Raises NotFound, StorageError, or UsageError where the place is no such table, or it has no such version.
    """
    options = storage_options or {}
    log = read_sink(uri, options)
    if log.unknown is not None:
        raise StorageError(f"{one_line(uri)}: {log.unknown}")
    match log.kind:
        case SinkKind.DELTA:
            return _read_delta(uri, wanted, query_id, open_storage(uri, options), log)
        case SinkKind.ICEBERG:
            return _find_snapshot(uri, wanted, query_id, read_iceberg(uri, options).table, log)
    raise _refuse(
        wanted, words("only a Delta or Iceberg table has versions to go back to: name the batch with {--to-batch}")
    )


def _refuse(wanted: str, why: str | Words) -> UsageError:
    return UsageError.of("{--to-sink-version=}: {why}", to_sink_version=wanted, why=why)


def _choose(wanted: str, times: Mapping[int, int]) -> int:
    """Choose a version by its number, or the newest that is no later than a time; ``times`` in ms since 1970 UTC."""
    if wanted.isascii() and wanted.isdecimal():
        if int(wanted) not in times:
            raise _refuse(wanted, f"the table has no such version; it has {_spell(times)}")
        return int(wanted)
    try:
        until, _ = read_time(parse_time(wanted))
    except UsageError:
        raise _refuse(wanted, "write a number, or a time such as 2026-05-31T07:30:00Z") from None
    earlier = [version for version, time_ms in times.items() if time_ms <= until]
    if not earlier:
        raise _refuse(wanted, f"the table has no version for that time; it has {_spell(times)}")
    return max(earlier, key=lambda version: (times[version], version))


def _spell(times: Mapping[int, int]) -> str:
    in_order = sorted(times, key=lambda version: (times[version], version))
    if not in_order:
        return "none"
    first, last = in_order[0], in_order[-1]
    return f"{first} ({instant(times[first])}) to {last} ({instant(times[last])})"


def _read_delta(uri: str, wanted: str, query_id: str | None, storage: Storage, log: SinkLog) -> SinkVersion:
    files = storage.list_level(DELTA_LOG).files
    versions = {version: name for name in files if (version := version_of(name)) is not None}
    number = _choose(wanted, find_version_times(storage))
    then = read_delta_sink(uri, storage, until=number)
    if then.unknown is not None:
        raise _refuse(wanted, f"that version of the table can no longer be read: {then.unknown}")
    later = tuple(_read_commits(storage, [versions[later] for later in sorted(versions) if later > number], files))
    writer, now = then.writer(query_id), log.writer(query_id)
    batch = writer.last_batch if writer is not None else None
    if writer is not None and writer.taken_back is not None:
        first, last = writer.taken_back
        if last < writer.last_batch:
            raise _refuse(wanted, f"that version lacks batches {first} to {last}: name one before the RESTORE")
        if first and writer.kept is None:
            why = f"a RESTORE removed batches {first} to {last}, and no file shows which batch came before them"
            raise _refuse(wanted, words("{why}: name the batch with {--to-batch}", why=why))
        batch = first - 1 if first else None
    changing = [commit for commit in later if commit.operation not in _NO_ROWS]
    restores = {commit.version: commit for commit in changing if commit.operation == _RESTORE}
    same: int | None = changing[-1].version if changing else number  # a version whose rows the table has
    while same is not None and (restore := restores.get(same)) is not None:
        same = find_restored_version(storage, files, same) if restore.restored is None else restore.restored
    newest = max(versions)
    return SinkVersion(
        number,
        newest,
        then,
        batch,
        is_current=same == number,
        keeps_ids=now is not None and not now.expired and now.last_batch > (-1 if batch is None else batch),
        others=tuple(
            f"{commit.version} ({commit.operation or 'unknown'})"
            for commit in later
            if commit.operation not in {*_NO_ROWS, _RESTORE} and (query_id is None or commit.query_id != query_id)
        ),
        statement=_write_restore(uri, number),
        undo=_write_restore(uri, newest),
    )


def _write_restore(uri: str, version: int) -> str:
    path = local_path(uri)
    table = spark_uri(uri) if path is None else os_path.abspath(path)
    return f"RESTORE TABLE delta.`{table.replace('`', '``')}` TO VERSION AS OF {version}"


def find_version_times(storage: Storage) -> dict[int, int]:
    """Read when each version was written (``DeltaHistoryManager``): as it says, or when its file was modified.

    The times of files are made to grow with the versions.
    """
    files = storage.list_level(DELTA_LOG).files
    versions = sorted((version, name) for name in files if (version := version_of(name)) is not None)
    heads = storage.read_many(ReadRequest(f"{DELTA_LOG}/{name}", 0, _HEAD) for _, name in versions)
    recorded = (_find_time(head) if isinstance(head, bytes) else None for head in heads)
    modified = (files[name].mtime_ms or 0 for _, name in versions)
    growing = accumulate(modified, lambda before, time_ms: max(before + 1, time_ms))
    return {version: own or time_ms for (version, _), time_ms, own in zip(versions, growing, recorded, strict=True)}


def _find_time(head: bytes) -> int | None:
    """Find the time of a version in its first line, where the table keeps it there (``inCommitTimestamp``)."""
    try:
        commit = read_commit_info(-1, head.partition(b"\n")[0])
    except Damaged:  # longer than what was read
        return None
    return None if commit is None else commit.time_ms


def _read_commits(storage: Storage, names: Sequence[str], files: Mapping[str, FileInfo]) -> Iterator[Commit]:
    """Read who wrote each version and how; one that does not say so has the operation ``None``."""
    by_version = {int(name[:20]): Commit(int(name[:20])) for name in names}
    for name, line in read_log_lines(storage, [(name, files[name].size) for name in names]):
        if b'"commitInfo"' in line and (commit := read_commit_info(int(name[:20]), line)) is not None:
            by_version[commit.version] = commit
    yield from by_version.values()


def _find_snapshot(uri: str, wanted: str, query_id: str | None, table: IcebergTable, log: SinkLog) -> SinkVersion:
    ancestors = list(table.ancestors())
    number = _choose(wanted, {snapshot.id: snapshot.written_ms for snapshot in ancestors})
    then = find_batches(uri, replace(table, current=number), log.read_from or "")
    writer = then.writer(query_id)
    return SinkVersion(
        number,
        table.current or number,
        then,
        None if writer is None else writer.last_batch,
        is_current=table.current == number,
        keeps_ids=False,
        others=tuple(_name_others(ancestors, number, query_id)),
        statement=f"CALL CATALOG.system.rollback_to_snapshot('TABLE', {number})",
        undo=f"CALL CATALOG.system.set_current_snapshot('TABLE', {table.current})",
    )


def _name_others(ancestors: Iterable[IcebergSnapshot], number: int, query_id: str | None) -> Iterator[str]:
    """Name the snapshots after one that another than the query wrote, the newest first, but for compactions."""
    for snapshot in takewhile(lambda each: each.id != number, ancestors):
        if snapshot.operation != "replace" and (query_id is None or snapshot.query_id != query_id):
            yield f"{snapshot.id} ({snapshot.operation or 'unknown'})"
