"""Asks a source for its beginning, its end, or a time: the end of a batch after which a query continues there."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

from ckpt.advice import Words
from ckpt.checkpoint.sources.delta import DeltaOffset, write_offset
from ckpt.checkpoint.sources.ends import RequestedEnd
from ckpt.checkpoint.sources.kafka import KafkaOffset, list_parts, write_sorted
from ckpt.checkpoint.times import parse_time, read_time
from ckpt.errors import SourceError, UsageError, one_line
from ckpt.live.asking import live_kind_of
from ckpt.live.book import BOOK
from ckpt.live.delta.ask import ask_delta
from ckpt.live.kafka.ask import Client
from ckpt.live.kafka.options import translate_options
from ckpt.live.kind import SourceRequest, unusable_option
from ckpt.live.records import FileNow, NotAsked, Part
from ckpt.live.sink.versions import find_version_times
from ckpt.live.tables import describe_counts
from ckpt.model import Json
from ckpt.storage import open_storage

Position: TypeAlias = str | datetime
"""``earliest``, ``latest``, or a time."""


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
    if not isinstance(offset, KafkaOffset | DeltaOffset) or kind is None:
        raise UsageError(BOOK.text("no_place", kind=request.view.type))
    if not request.options:
        example = kind.describe_option(request.checkpoint, request.index)
        raise unusable_option(f"name {kind.place} of source {request.index}: {example}")
    at, spelled = (to, to) if isinstance(to, str) else read_time(to)
    if isinstance(offset, KafkaOffset):
        return _ask_kafka(request, offset.partitions, at, spelled, only)
    if only:
        raise UsageError.of("{--only} is for topics of Kafka")
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
    now = ask_delta(request)
    if isinstance(now, NotAsked):
        raise SourceError(now.reason)
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
