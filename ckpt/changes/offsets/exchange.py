"""``ckpt offsets export`` and ``import``: the offsets of a query as a JSON document, for a topic that moved elsewhere.

::

    {"format": "ckpt-offsets", "version": 1, "ckpt": ..., "checkpoint": {"path": ..., "query_id": ...}, "batch": 5,
     "sources": [{"index": 0, "name": null, "type": "kafka", "offset": {"orders": {"0": 51, "1": 49}}}]}

Somebody may edit the offsets in it: a mirrored topic has other ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import fspath
from typing import Any, ClassVar, Unpack

from ckpt.changes.apply import ChangeResult, How, run_change
from ckpt.changes.offsets.ends import check_settable
from ckpt.changes.offsets.plan import OffsetsPlan, plan_offsets
from ckpt.changes.offsets.positions import FORMAT, VERSION, Positions, find_positions
from ckpt.changes.plan import NoWay
from ckpt.checkpoint.sources.ends import RequestedEnd, parse_json
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import SourceView
from ckpt.errors import UsageError, one_line, parse_choices
from ckpt.model import Json, Location
from ckpt.storage import open_storage
from ckpt.versions import Spark


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan(OffsetsPlan):
    """The ends that a document has."""

    command: ClassVar[str] = "offsets import"


def offsets_export(checkpoint: Location, storage_options: Mapping[str, str] | None = None) -> Positions:
    """Find the offsets after the newest committed batch, whose ``document`` is what ``offsets_import`` takes.

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
    later = (
        f"batches after {committed} were planned and are not committed: the document says where batch {committed} ends"
    )
    return replace(positions, warnings=(*positions.warnings, later))


def offsets_import(
    checkpoint: Location,
    document: str | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
    *,
    topics: Mapping[str, str] | None = None,
    expect_batch: int | None = None,
    versions: Sequence[Spark | str] = (),
    **how: Unpack[How],
) -> ChangeResult[ImportPlan]:
    """All that ``ckpt offsets import`` does: the plan, and what came of it; without ``apply`` or ``undo`` only a plan.

    Args:
        checkpoint: The one whose next batch is to begin there: a path, any URI that ``open_checkpoint`` opens, or a
            ``Checkpoint``.
        document: The ``document`` of ``offsets_export``, or its text as JSON; needed without ``undo``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        topics: Topics of Kafka in the document, and what they are called now.
        expect_batch: The batch whose end changes, as a plan has shown it; refused if that is not the latest.
        versions: The Spark versions that the query may be started with; none named is all.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier change; see ``How``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, the document is not one, or the backup would be inside the checkpoint.

    >>> document = ckpt.offsets_export("sample_checkpoints/kafka-4.2").document
    >>> plan, receipt = ckpt.offsets_import("sample_checkpoints/kafka-4.2", document)
    >>> plan.needed, receipt.applied
    (False, False)

    """
    uri, sparks = fspath(checkpoint), parse_choices(Spark, versions, "versions")
    if document is None and how.get("undo") is None:
        raise UsageError("name the file that ckpt offsets export wrote")
    offsets = {} if document is None else _rename_topics(_parse_document(document), topics or {})

    def ask(views: Sequence[SourceView]) -> dict[int, RequestedEnd]:
        ends = {}
        for view in _match_sources(views, offsets):
            check_settable(view)
            new = view.kind.parse_end(offsets[view.index].offset, f"source {view.index} of the document")
            own = {old: name for old, name in (topics or {}).items() if old in view.topics}
            ends[view.index] = replace(new, renamed=own)
        return ends

    planner = partial(plan_offsets, ImportPlan, ask=ask, batch=expect_batch, versions=sparks)
    return run_change(ImportPlan, planner, uri, storage_options, sparks, **how)


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
        raise UsageError(f'the document is not one of ckpt offsets export: it has no "format": "{FORMAT}"')
    version = value.get("version")
    if type(version) is not int or version != VERSION:  # True is 1 as well
        shown = one_line(str(version))[:40]
        raise UsageError(f"the document has version {shown}, and this ckpt reads version {VERSION}")
    sources: dict[int, _Imported] = {}
    entries = value.get("sources")
    for entry in entries if isinstance(entries, list) else ():
        index = entry.get("index") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or isinstance(index, bool) or not isinstance(index, int) or index in sources:
            raise UsageError("each of the sources of the document must have an index of its own")
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
            raise UsageError(f"`topic` {one_line(old)}: the document has no such topic; it has {_join_names(known)}")
    renamed = {}
    for index, source in sources.items():
        names = [topics.get(topic, topic) for topic in _topics_of(source)]
        if len(set(names)) < len(names):
            raise UsageError(f"`topic` gives two topics of source {index} one name: {_join_names(names)}")
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
        raise NoWay(f"the document has {len(offsets)} sources, and the query has {len(views)}")
    for view in views:
        source = offsets[view.index]
        if (view.type, view.name) != (source.type, source.name):
            here, there = (f"{either.type} {either.name or ''}".strip() for either in (view, source))
            raise NoWay(f"source {view.index} is {here}, and in the document {one_line(there)}")
    return [view for view in views if offsets[view.index].offset != view.offset]
