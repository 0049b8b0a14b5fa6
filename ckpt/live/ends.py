"""Asks a source for its beginning, its end, or a time: the end of a batch after which a query continues there."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import takewhile
from typing import TypeAlias, TypeVar

from ckpt.advice import Words
from ckpt.checkpoint.sources.delta import DeltaOffset, write_offset
from ckpt.checkpoint.sources.ends import RequestedEnd
from ckpt.checkpoint.sources.files import FileOffset
from ckpt.checkpoint.sources.iceberg import IcebergOffset, write_offset as write_snapshot
from ckpt.checkpoint.sources.kafka import KafkaOffset, list_parts, write_sorted
from ckpt.checkpoint.sources.registry import parse_offset
from ckpt.checkpoint.times import parse_time, read_time
from ckpt.errors import SourceError, UsageError, one_line
from ckpt.formats.iceberg import IcebergSnapshot
from ckpt.live.asking import live_kind_of
from ckpt.live.book import BOOK
from ckpt.live.delta.ask import ask_delta
from ckpt.live.files.ask import read_log
from ckpt.live.iceberg.ask import ask_iceberg
from ckpt.live.iceberg.outlook import APPENDS, bars, count_after, count_files, end_of, name_option, resolve
from ckpt.live.kafka.ask import Client
from ckpt.live.kafka.options import translate_options
from ckpt.live.kind import SourceRequest, unusable_option
from ckpt.live.records import DeltaNow, FileNow, IcebergNow, NotAsked, Part
from ckpt.live.sink.versions import find_version_times
from ckpt.live.tables import Counts, describe_counts, sum_counts
from ckpt.model import Json
from ckpt.storage import open_storage
from ckpt.texts import plural

Position: TypeAlias = str | datetime
"""``earliest``, ``latest``, or a time."""
AnyNow = TypeVar("AnyNow", DeltaNow, IcebergNow)


def find_position(to: Json | datetime) -> Position | None:
    """Find the position that somebody typed; None: it is none, but an offset."""
    if not isinstance(to, str):
        return to if isinstance(to, datetime) else None
    with suppress(UsageError):
        return to if to in ("earliest", "latest") else parse_time(to)
    return None


def ask_end(request: SourceRequest, to: Position, only: Sequence[str] = ()) -> RequestedEnd:
    """Ask a source where a position is; with ``only``, other topics or partitions of Kafka end where they did.

    At a time begins what is not older. Raises UsageError, SourceError, StorageError.
    """
    kind, offset = live_kind_of(request.view), request.view.record
    if not isinstance(offset, KafkaOffset | DeltaOffset | IcebergOffset | FileOffset) or kind is None:
        raise UsageError(BOOK.text("no_place", kind=request.view.type))
    if not request.options and not isinstance(offset, FileOffset):
        example = kind.describe_option(request.checkpoint, request.index)
        raise unusable_option(f"name {kind.place} of source {request.index}: {example}")
    at, spelled = (to, to) if isinstance(to, str) else read_time(to)
    if isinstance(offset, KafkaOffset):
        return _ask_kafka(request, offset.partitions, at, spelled, only)
    if only:
        raise UsageError.of("{--only} is for topics of Kafka")
    if isinstance(offset, FileOffset):
        return _ask_files(request, offset, at, spelled)
    if isinstance(offset, IcebergOffset):
        return _ask_iceberg(request, offset, at, spelled)
    return _ask_delta(request, offset, at, spelled)


def _ask_kafka(
    request: SourceRequest, now: Mapping[Part, int], at: str | int, spelled: str, only: Sequence[str]
) -> RequestedEnd:
    names = {part: {part[0], f"{part[0]}/{part[1]}"} for part in now}
    if unknown := next(iter({*only} - set().union(*names.values())), None):
        raise UsageError.of("{--only=}: the query reads {names}", only=one_line(unknown), names=list_parts(now))
    parts = [part for part in now if not only or names[part] & {*only}]
    client = Client(translate_options(request.options))
    latest = client.find_offsets(parts, "latest")  # first: no row that comes meanwhile is passed over
    there = client.find_offsets(parts, at)
    late = [part for part in parts if there[part] < 0]
    shorter = [part for part in parts if now[part] > latest[part]]
    remarks = [BOOK.text("kafka_asked", at=spelled)]
    remarks += [BOOK.text("kafka_none_since", names=list_parts(late), at=spelled)] if late else []
    remarks += [BOOK.text("kafka_shorter", names=list_parts(shorter))] if shorter else []
    return RequestedEnd(write_sorted({**now, **there, **{part: latest[part] for part in late}}), said=tuple(remarks))


def _ask_delta(request: SourceRequest, offset: DeltaOffset, at: str | int, spelled: str) -> RequestedEnd:
    now = _must_answer(ask_delta(request))
    version, remarks = now.first if at == "earliest" else now.latest + 1, list[Words]()
    if isinstance(at, int):
        path = request.with_path()
        times = find_version_times(open_storage(path.path, path.path_storage_options))
        since = [number for number, ms in times.items() if ms >= at]
        version = min(since, default=version)
        remarks = [] if since else [BOOK.text("delta_none_since", at=spelled, latest=now.latest)]
    read, files = max(offset.index, -1) + 1, list[FileNow]()
    for each in now.versions:  # those that are read again, or left out
        if each.version == offset.version:
            files += each.files[read:] if version > offset.version else each.files[:read]
        elif min(version, offset.version) <= each.version < max(version, offset.version):
            files += each.files
    counts = describe_counts((1, file.rows) for file in files)
    end = replace(offset, table_id=now.table_id, version=version, index=offset.base_index, initial_snapshot=False)
    answer = BOOK.text("delta_asked", at=spelled, version=version, counts=counts)
    return RequestedEnd(write_offset(end), said=(answer, *remarks))


def compare_end(request: SourceRequest, end: RequestedEnd) -> RequestedEnd:
    """Ask an Iceberg table which is later, the old end of a source or another one; other offsets show that.

    Raises UsageError, SourceError, StorageError.
    """
    old, new = request.view.record, parse_offset(end.text.encode())
    if not isinstance(old, IcebergOffset) or not isinstance(new, IcebergOffset) or not request.options:
        return end
    return _compare_iceberg(_must_answer(ask_iceberg(request)), old, new, [])


def _must_answer(now: AnyNow | NotAsked) -> AnyNow:
    if isinstance(now, NotAsked):
        raise SourceError(now.reason)
    return now


def _ask_iceberg(request: SourceRequest, offset: IcebergOffset, at: str | int, spelled: str) -> RequestedEnd:
    now = _must_answer(ask_iceberg(request))
    chain, first = now.chain, 0
    if at != "earliest":  # back from the current one, as ``SnapshotUtil.oldestAncestorAfter``
        since = takewhile(lambda each: isinstance(at, int) and each.written_ms >= at, reversed(chain))
        first = len(chain) - sum(1 for _ in since)
    fits = next((number for number in range(first, len(chain)) if chain[number].operation in APPENDS), None)
    begin = _find_iceberg_end(now) if fits is None else fits
    whole = fits is None or chain[begin].operation != "append"  # old releases count the files of a compaction
    end = end_of(chain[begin]) if whole else IcebergOffset(chain[begin].id, 0, all_files=False)
    begins = BOOK.text("iceberg_behind" if whole else "iceberg_at", snapshot=end.snapshot)
    remarks = [BOOK.text("iceberg_asked", at=spelled, place=begins)]
    if isinstance(at, int) and first == len(chain):
        remarks.append(BOOK.text("iceberg_none_since", at=spelled))
    if first == 0 and now.cut_after is not None:
        remarks.append(BOOK.text("iceberg_expired"))
    return _compare_iceberg(now, offset, end, remarks, first=first)


def _compare_iceberg(
    now: IcebergNow, offset: IcebergOffset, end: IcebergOffset, remarks: list[Words], first: int | None = None
) -> RequestedEnd:
    """Say what is between the old end and another one. ``first`` is the snapshot that was asked for, by its number."""
    chain, old = now.chain, resolve(now, offset)
    numbers: dict[int | None, int] = {each.id: number for number, each in enumerate(chain)}
    known, begin = numbers.get(old.snapshot), numbers.get(end.snapshot)
    files, rows = _count_between(count_after(now, old), count_after(now, end))
    counts = "an unknown number of files" if files is None else describe_counts([(files, rows)])
    remarks.append(BOOK.text("iceberg_between", counts=counts))
    if begin is None:
        raise SourceError(BOOK.text("iceberg_not_there", snapshot=end.snapshot))
    if known is None:
        remarks.append(BOOK.text("iceberg_check_path" if now.younger and now.cut_after is None else "iceberg_lost"))
    else:
        first = known + 1 if first is None else min(first, known + 1)
    passed = [each for each in chain[first : begin + 1] if each.operation not in APPENDS] if first is not None else []
    if left_out := [each for each in passed if each.added_files]:
        remarks.append(BOOK.text("iceberg_changes_left_out", count=count_files(left_out)))
    if stop := next((each for each in chain[begin:] if bars(now, each)), None):
        remarks.append(_say_stop("iceberg_stops", stop))
    if files == 0 and not any(bars(now, each) for each in chain[known:begin]):
        end = offset  # the same place, by another snapshot
    ahead = None if known is None else (begin, end.position) > (known, old.position)
    return RequestedEnd(write_snapshot(end), said=tuple(remarks), ahead=ahead)


def _find_iceberg_end(now: IcebergNow) -> int:
    """Find the number of the newest snapshot behind which a query can go on. Raises SourceError where there is none."""
    for number, snapshot in reversed([*enumerate(now.chain)]):
        if bars(now, snapshot):
            raise SourceError(_say_stop("iceberg_no_end", snapshot))
        if snapshot.operation in APPENDS:
            return number
    raise SourceError(BOOK.text("iceberg_empty"))


def _say_stop(name: str, snapshot: IcebergSnapshot) -> Words:
    option = name_option(snapshot)
    unless = BOOK.text(f"{name}_unless", option=option) if option else ""
    return BOOK.text(name, snapshot=snapshot.id, operation=snapshot.operation or "unknown operation", unless=unless)


def _count_between(*unread: Iterable[Counts]) -> Counts:
    columns = zip(*map(sum_counts, unread), strict=True)
    files, rows = (None if old is None or new is None else abs(old - new) for old, new in columns)
    return files, rows


def _ask_files(request: SourceRequest, offset: FileOffset, at: str | int, spelled: str) -> RequestedEnd:
    """Ask the log of a file source, which names each file with the time at which it was modified."""
    log = read_log(request)
    newest = max((file.log_offset for file in log), default=-1)
    since = [file.log_offset for file in log if at == "earliest" or (isinstance(at, int) and file.timestamp_ms >= at)]
    end = min(since, default=newest + 1) - 1
    low, high = sorted((end, offset.log_offset))
    between = sum(low < file.log_offset <= high for file in log)
    older = sum(file.log_offset > end and isinstance(at, int) and file.timestamp_ms < at for file in log)
    remarks = [BOOK.text("files_asked", at=spelled, end=end, count=plural(between, "file"))]
    remarks += [BOOK.text("files_older", count=plural(older, "file"))] if older else []
    remarks += [BOOK.text("files_not_in_log")] if end == newest else []
    return RequestedEnd({"logOffset": end}, said=tuple(remarks))
