"""``ckpt offsets show``, and ``export`` and ``import``: the offsets of a query, also as a JSON document.

The document is for a topic that moved elsewhere.

::

    {"format": "ckpt-offsets", "version": 1, "ckpt": ..., "checkpoint": {"path": ..., "query_id": ...}, "batch": 5,
     "sources": [{"index": 0, "name": null, "type": "kafka", "offset": {"orders": {"0": 51, "1": 49}}}]}

Somebody may edit the offsets in it: a mirrored topic has other ones.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import fspath
from typing import Annotated, Any, ClassVar, Unpack

from ckpt.advice import call
from ckpt.changes.apply import ApplyOptions, ChangeResult, run_change
from ckpt.changes.book import BOOK
from ckpt.changes.offsets.plan import OffsetsPlan, check_settable, plan_offsets
from ckpt.changes.plan import OF_EPOCHS, NoWay, name_log_problem
from ckpt.checkpoint.checkpoint import OFFSETS, Checkpoint
from ckpt.checkpoint.history import find_recreated_topics, rate_sources
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.sources.ends import RequestedEnd, parse_json
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import SourceRange, SourceView, kind_of, source_ranges, source_views
from ckpt.checkpoint.sources.starts import NOT_READ, StartFacts
from ckpt.checkpoint.times import BatchOrTime, find_batch
from ckpt.errors import UsageError, one_line, parse_choices
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.model import Json, Kind, Location
from ckpt.restart import diagnoses
from ckpt.storage import Storage, open_storage
from ckpt.values import Value
from ckpt.versions import Spark, __version__

FORMAT, VERSION = "ckpt-offsets", 1
"""The name and version of a document of offsets."""


@dataclass(frozen=True, slots=True)
class Position:
    """One source in one batch: what the batch reads, and how a reader begins at its end."""

    view: SourceView  # at the end of the batch
    range: SourceRange  # that the batch reads; its start is None at the beginning of the source, or if not known
    rows: Annotated[
        int | None,
        "how many rows the batch reads, if certain: Kafka offsets have gaps, versions and log entries have any number "
        "of rows",
    ]
    options: Mapping[str, str] = field(default_factory=dict)  # of ``DataStreamReader``; empty where none says it
    conditions: tuple[str, ...] = ()  # what must hold besides, and ckpt cannot see
    refused: str | None = None  # why no option says it
    begins_known: bool = True  # the log has where the batch begins
    begins_anew: bool = True  # a new query can begin at its end, by an option or otherwise


@dataclass(frozen=True, slots=True)
class Positions(Value):
    """All sources in one batch."""

    inspection: Inspection
    batch: Annotated[int | None, "the one shown; null if there is none"]
    committed: bool = False
    sources: tuple[Position, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: Annotated[str | None, "why nothing can be shown"] = None

    @property
    def document(self) -> dict[str, Any]:
        """The offsets as the JSON document that ``offsets_import`` takes."""
        checkpoint = self.inspection.checkpoint
        views = [position.view for position in self.sources]
        return {
            "format": FORMAT,
            "version": VERSION,
            "ckpt": __version__,
            "checkpoint": {"path": checkpoint.uri, "query_id": checkpoint.query_id},
            "batch": self.batch,
            "sources": [
                {"index": view.index, "name": view.name, "type": view.type, "offset": view.offset} for view in views
            ],
        }


def offsets_show(
    checkpoint: Location, *, storage_options: Mapping[str, str] | None = None, batch: BatchOrTime | None = None
) -> Positions:
    """Show the offsets of each source in a batch, as ``ckpt offsets show`` does.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI.
        batch: The batch; by default the newest with readable offsets.

    Raises:
        NotACheckpoint, NotFound, StorageError, UsageError: The checkpoint cannot be read.

    >>> positions = ckpt.offsets_show("sample_checkpoints/kafka-4.2")
    >>> positions.batch, positions.committed, dict(positions.sources[0].options)
    (5, True, {'startingOffsets': '{"orders":{"0":51,"1":49}}'})

    """
    uri = fspath(checkpoint)
    return find_positions(open_storage(uri, storage_options or {}), batch)


def find_positions(storage: Storage, batch: BatchOrTime | None = None) -> Positions:
    """Find the positions in an open storage; reads the complete offset and commit logs, and writes nothing."""
    checkpoint = read_checkpoint(storage, batches=0)
    inspection = inspect(checkpoint)
    offsets = checkpoint.offsets
    chosen = find_batch(checkpoint, batch)
    if chosen is None:
        chosen = next((i for i in reversed(offsets.ids) if offsets.readable(i)), None)
    refused = _refuse(checkpoint, chosen)
    if chosen is None or refused is not None:
        return Positions(inspection, chosen, refused=refused)
    committed = chosen in checkpoint.commits
    return Positions(
        inspection,
        chosen,
        committed,
        tuple(_list_positions(inspection, chosen)),
        tuple(_warn(inspection, chosen, newest=batch is None, committed=committed)),
    )


def _refuse(checkpoint: Checkpoint, batch: int | None) -> str | None:
    offsets = checkpoint.offsets
    if checkpoint.kind is Kind.CONTINUOUS:
        return OF_EPOCHS
    if batch is None:
        return "offsets/ has no readable file" if offsets.ids else "no batch was ever planned"
    if batch not in offsets:
        there = f"; the oldest batch there is {offsets.ids[0]}, the newest {offsets.ids[-1]}" if offsets.ids else ""
        return f"there is no {OFFSETS}/{batch}{there}"
    if (problem := name_log_problem(offsets, batch)) is not None:
        return problem
    log = offsets.readable(batch)
    broken = [str(index) for index, source in enumerate(log.sources if log else ()) if not source.well_formed]
    return f"{OFFSETS}/{batch}, source {', '.join(broken)}: {NOT_READ}" if broken else None


def _list_positions(inspection: Inspection, batch: int) -> Iterator[Position]:
    checkpoint, diagnosed = inspection.checkpoint, {rated.finding.diagnosis for rated in inspection.findings}
    log_damaged = not diagnosed.isdisjoint(diagnoses.others.SOURCE_LOG_DAMAGED)
    log, before = checkpoint.offsets.readable(batch), checkpoint.offsets.readable(batch - 1)
    assert log is not None
    known = before is not None or batch == 0
    for number, view in enumerate(source_views(log, rate_sources(checkpoint))):
        reads = source_ranges(before, log)[number]
        reads = replace(reads, start=checkpoint.initial_offsets.get(number)) if before is None else reads
        start = view.start_after(StartFacts(recreated=find_recreated_topics(checkpoint, batch, number)))
        refused = start.refused or (None if start.options else " ".join(start.conditions))
        conditions = start.conditions if start.options else ()
        rows = _count_rows(reads, first=batch == 0)
        files = "its log is damaged" if log_damaged else ()  # handoff reads there which files were read
        anew = not view.start_after(StartFacts(seen=files)).refused
        yield Position(view, reads, rows, start.options, conditions, refused, known, anew)


def _count_rows(reads: SourceRange, *, first: bool) -> int | None:
    """Count the rows of a range, where that is certain.

    Offsets of Kafka have gaps where records were compacted, or belong to transactions; versions, entries and seconds
    do not say how many rows they hold.
    """
    start, end = reads.start_offset, reads.end_offset
    if end is None or not (kind_of(start) is kind_of(end) or (first and start is None)):
        return None
    return kind_of(end).count_rows(start, end)


def _warn(inspection: Inspection, batch: int, *, newest: bool, committed: bool) -> Iterator[str]:
    checkpoint = inspection.checkpoint
    latest = checkpoint.offsets.latest
    if newest and latest is not None and latest != batch:
        yield f"{OFFSETS}/{latest} cannot be read: this is batch {batch}, the newest readable one"
    if batch and checkpoint.offsets.readable(batch - 1) is None:
        yield f"the log does not say where batch {batch} begins: {OFFSETS}/{batch - 1} is missing or cannot be read"
    if not committed and batch == latest:
        yield str(BOOK.text("reader_after", batch=batch))
    if inspection.written_by.may_read_event_hubs and any(view.kind.like_event_hubs for view in inspection.sources):
        yield "offsets of Azure Event Hubs look like those of Kafka, but its reader takes other options"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan(OffsetsPlan):
    """The ends that a document has."""

    command: ClassVar[str] = "offsets import"


def offsets_export(checkpoint: Location, *, storage_options: Mapping[str, str] | None = None) -> Positions:
    """Find the offsets after the newest committed batch; their ``document`` is the input of ``offsets_import``.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI.

    Raises:
        NotACheckpoint, NotFound, StorageError, UsageError: The checkpoint cannot be read.

    >>> positions = ckpt.offsets_export("sample_checkpoints/kafka-4.2")
    >>> positions.batch, positions.sources[0].view.offset
    (5, {'orders': {'0': 51, '1': 49}})

    """
    storage = open_storage(fspath(checkpoint), storage_options or {})
    positions = find_positions(storage)
    committed = positions.inspection.checkpoint.commits.latest
    if positions.refused or committed == positions.batch:
        return positions
    if committed is None:
        return replace(positions, sources=(), refused="no batch is committed")
    positions = find_positions(storage, committed)
    later = f"batches after {committed} were planned but not committed: the document gives the end of batch {committed}"
    return replace(positions, warnings=(*positions.warnings, later))


def offsets_import(
    checkpoint: Location,
    document: str | Mapping[str, Json] | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    topic: Mapping[str, str] | None = None,
    expect_batch: int | None = None,
    spark: Sequence[Spark | str] = (),
    **how: Unpack[ApplyOptions],
) -> ChangeResult[ImportPlan]:
    """Do what ``ckpt offsets import`` does; return the plan and its receipt. By default it only plans.

    Args:
        checkpoint: The checkpoint to change: a path, any URI that ``open_checkpoint`` opens, or a
            ``Checkpoint``.
        document: The ``document`` of ``offsets_export``, or its text as JSON; needed without ``undo``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        topic: Kafka topics in the document, with their new names.
        expect_batch: The batch whose end changes, as shown by a plan; refused if it is not the latest.
        spark: The Spark versions that the query may be started with; none named is all.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier change; see ``ApplyOptions``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, the document is not one, or the backup would be inside the checkpoint.

    >>> document = ckpt.offsets_export("sample_checkpoints/kafka-4.2").document
    >>> plan, receipt = ckpt.offsets_import("sample_checkpoints/kafka-4.2", document)
    >>> plan.needed, receipt.applied
    (False, False)

    """
    uri, sparks = fspath(checkpoint), parse_choices(Spark, spark, "spark")
    if document is None and how.get("undo") is None:
        raise UsageError.of("name the file that {export} wrote", export=call("offsets_export"))
    offsets = {} if document is None else _rename_topics(_parse_document(document), topic or {})

    def ask(_: Checkpoint, views: Sequence[SourceView]) -> dict[int, RequestedEnd]:
        ends = {}
        for view in _match_sources(views, offsets):
            check_settable(view)
            new = view.kind.parse_end(offsets[view.index].offset, f"source {view.index} of the document")
            own = {old: name for old, name in (topic or {}).items() if old in view.topics}
            ends[view.index] = replace(new, renamed=own)
        return ends

    text = document if isinstance(document, str) else json.dumps(document)
    request = call("offsets_import", text).but(topic=dict(topic) if topic else None)

    def plan(storage: Storage) -> ImportPlan:
        return plan_offsets(ImportPlan, storage, request, ask=ask, batch=expect_batch, versions=sparks)

    return run_change(ImportPlan, plan, uri, storage_options, sparks, **how)


@dataclass(frozen=True, slots=True)
class _Imported:
    """One source of a document."""

    name: str | None
    type: str
    offset: Json


def _parse_document(document: str | Mapping[str, Any]) -> dict[int, _Imported]:
    """Parse the sources of a document, by index. Raises UsageError."""
    value = parse_json(document, "the document") if isinstance(document, str) else {**document}
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise UsageError(BOOK.text("other_format", format=FORMAT))
    version = value.get("version")
    if type(version) is not int or version != VERSION:  # True is 1 as well
        shown = one_line(str(version))[:40]
        raise UsageError(f"the document has version {shown}, but this ckpt reads version {VERSION}")
    sources: dict[int, _Imported] = {}
    entries = value.get("sources")
    for entry in entries if isinstance(entries, list) else ():
        index = entry.get("index") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or isinstance(index, bool) or not isinstance(index, int) or index in sources:
            raise UsageError("each source in the document must have its own index")
        name = entry.get("name")
        sources[index] = _Imported(name if isinstance(name, str) else None, str(entry.get("type")), entry.get("offset"))
    if not sources:
        raise UsageError("the document has no sources")
    return sources


def _rename_topics(sources: Mapping[int, _Imported], topics: Mapping[str, str]) -> dict[int, _Imported]:
    """Give topics of the document other names. Raises UsageError."""
    known = {topic for source in sources.values() for topic in _topics_of(source)}
    for old in topics:
        if old not in known:
            raise UsageError(BOOK.text("no_such_topic", old=one_line(old), names=_join_names(known)))
    renamed = {}
    for index, source in sources.items():
        names = [topics.get(topic, topic) for topic in _topics_of(source)]
        if len(set(names)) < len(names):
            raise UsageError(BOOK.text("same_topic", index=index, names=_join_names(names)))
        offset = source.offset
        if names and isinstance(offset, dict):
            offset = {topics.get(topic, topic): parts for topic, parts in offset.items()}
        renamed[index] = replace(source, offset=offset)
    return renamed


def _topics_of(source: _Imported) -> list[str]:
    return list(source.offset) if source.type == SourceType.KAFKA and isinstance(source.offset, dict) else []


def _join_names(names: Sequence[str] | set[str]) -> str:
    return one_line(", ".join(sorted(names))) or "none"


def _match_sources(views: Sequence[SourceView], offsets: Mapping[int, _Imported]) -> Sequence[SourceView]:
    """Choose the sources whose offset in the document is another. Raises NoWay where the sources are not the same."""
    if [view.index for view in views] != sorted(offsets):
        raise NoWay(f"the document has {len(offsets)} sources, but the query has {len(views)}")
    for view in views:
        source = offsets[view.index]
        if (view.type, view.name) != (source.type, source.name):
            here, there = (f"{either.type} {either.name or ''}".strip() for either in (view, source))
            raise NoWay(f"source {view.index} is {here}, but {one_line(there)} in the document")
    return [view for view in views if offsets[view.index].offset != view.offset]
