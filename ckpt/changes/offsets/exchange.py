"""``ckpt offsets export`` and ``import``: where a query stands as one JSON document, for a topic that moved elsewhere.

::

    {"format": "ckpt-offsets", "version": 1, "ckpt": ..., "checkpoint": {"path": ..., "query_id": ...}, "batch": 5,
     "sources": [{"index": 0, "name": null, "type": "kafka", "offset": {"orders": {"0": 51, "1": 49}}}]}

Somebody may edit the offsets in it: a mirrored topic has other ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Unpack

from ckpt.changes.apply import Receipt
from ckpt.changes.offsets.ends import rule_of
from ckpt.changes.offsets.plan import OffsetsPlan, plan_offsets
from ckpt.changes.offsets.requested import RequestedEnd, parse_json, wanted
from ckpt.changes.plan import NoWay
from ckpt.changes.run import How, perform
from ckpt.checkpoint.sources.kafka import KafkaOffset
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import SourceView
from ckpt.errors import UsageError
from ckpt.migrate.handoff.positions import Positions, positions
from ckpt.model import Json
from ckpt.storage import open_storage
from ckpt.storage.base import one_line
from ckpt.versions import Spark, __version__

FORMAT, VERSION = "ckpt-offsets", 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan(OffsetsPlan):
    """The ends that a document has."""

    command: ClassVar[str] = "offsets import"


def export_offsets(uri: str, storage_options: Mapping[str, str] | None = None) -> Positions:
    """Where a query stands after its newest committed batch: ``document_of`` makes the document of it.

    Args:
        uri: A local path, or any URI that ``open_checkpoint`` opens.
        storage_options: For the file system of the URI.

    Raises:
        NotACheckpoint, NotFound, StorageError, UsageError: The checkpoint cannot be read.

    >>> found = ckpt.export_offsets("sample_checkpoints/kafka-4.2")
    >>> found.batch, found.sources[0].view.offset
    (5, {'orders': {'0': 51, '1': 49}})

    """
    storage = open_storage(uri, storage_options or {})
    found = positions(storage)
    committed = found.inspection.checkpoint.commits.latest
    if found.refused or committed == found.batch:
        return found
    if committed is None:
        return replace(found, sources=(), refused="no batch is committed")
    found = positions(storage, committed)
    later = (
        f"batches after {committed} were planned and are not committed: the document says where batch {committed} ends"
    )
    return replace(found, warnings=(*found.warnings, later))


def document_of(found: Positions) -> dict[str, Any]:
    """The document: JSON that ``import_offsets`` takes.

    >>> document = ckpt.document_of(ckpt.export_offsets("sample_checkpoints/kafka-4.2"))
    >>> document["version"], [one["type"].value for one in document["sources"]]
    (1, ['kafka'])

    """
    checkpoint = found.inspection.checkpoint
    views = [one.view for one in found.sources]
    return {
        "format": FORMAT,
        "version": VERSION,
        "ckpt": __version__,
        "checkpoint": {"path": checkpoint.uri, "query_id": checkpoint.query_id},
        "batch": found.batch,
        "sources": [
            {"index": view.index, "name": view.name, "type": view.type, "offset": view.offset} for view in views
        ],
    }


def import_offsets(
    uri: str,
    document: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    *,
    topics: Mapping[str, str] | None = None,
    batch: int | None = None,
    versions: Sequence[Spark] = (),
    **how: Unpack[How],
) -> tuple[ImportPlan, Receipt]:
    """All that ``ckpt offsets import`` does: the plan, and what came of it; without ``apply`` or ``undo`` only a plan.

    Args:
        uri: The checkpoint whose next batch is to begin there: a local path, or any URI that ``open_checkpoint`` opens.
        document: The text of a document of ``export_offsets``; needed without ``undo``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        topics: Topics of Kafka in the document, and what they are called now.
        batch: The batch whose end changes, as a plan has shown it; refused if that is not the latest.
        versions: The Spark versions that the query may be started with; none named is all.
        how: ``apply=True`` performs the plan, ``undo`` takes an earlier change back; see ``How``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, the document is not one, or the backup would be inside the checkpoint.

    >>> import json
    >>> document = json.dumps(ckpt.document_of(ckpt.export_offsets("sample_checkpoints/kafka-4.2")))
    >>> plan, receipt = ckpt.import_offsets("sample_checkpoints/kafka-4.2", document)
    >>> plan.needed, receipt.applied
    (False, False)

    """
    if document is None and how.get("undo") is None:
        raise UsageError("name the file that ckpt offsets export wrote")
    offsets = {} if document is None else _renamed(_parsed(document), topics or {})

    def ask(views: Sequence[SourceView]) -> dict[int, RequestedEnd]:
        return {view.index: _wanted(view, offsets, topics or {}) for view in _matched(views, offsets)}

    planner = partial(plan_offsets, ImportPlan, ask=ask, batch=batch, versions=versions)
    return perform(ImportPlan, planner, uri, storage_options, versions, **how)


@dataclass(frozen=True, slots=True)
class _Imported:
    """One source of a document."""

    name: str | None
    type: str
    offset: Json


def _parsed(text: str) -> dict[int, _Imported]:
    """The sources of a document, by index. Raises UsageError."""
    value = parse_json(text, "the document")
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise UsageError(f'the document is not one of ckpt offsets export: it has no "format": "{FORMAT}"')
    version = value.get("version")
    if type(version) is not int or version != VERSION:  # True is 1 as well
        shown = one_line(str(version))[:40]
        raise UsageError(f"the document has version {shown}, and this ckpt reads version {VERSION}")
    found = {}
    sources = value.get("sources")
    for one in sources if isinstance(sources, list) else ():
        index = one.get("index") if isinstance(one, dict) else None
        if not isinstance(one, dict) or isinstance(index, bool) or not isinstance(index, int) or index in found:
            raise UsageError("each of the sources of the document must have an index of its own")
        name = one.get("name")
        found[index] = _Imported(name if isinstance(name, str) else None, str(one.get("type")), one.get("offset"))
    if not found:
        raise UsageError("the document has no sources")
    return found


def _renamed(found: Mapping[int, _Imported], topics: Mapping[str, str]) -> dict[int, _Imported]:
    """The same with other topics. Raises UsageError."""
    there = {topic for one in found.values() for topic in _topics(one)}
    for old in topics:
        if old not in there:
            raise UsageError(f"`topic` {one_line(old)}: the document has no such topic; it has {_listed(there)}")
    result = {}
    for index, one in found.items():
        names = [topics.get(topic, topic) for topic in _topics(one)]
        if len(set(names)) < len(names):
            raise UsageError(f"`topic` gives two topics of source {index} one name: {_listed(names)}")
        offset = one.offset
        if names and isinstance(offset, dict):
            offset = {topics.get(topic, topic): parts for topic, parts in offset.items()}
        result[index] = replace(one, offset=offset)
    return result


def _topics(one: _Imported) -> list[str]:
    return list(one.offset) if one.type == SourceType.KAFKA and isinstance(one.offset, dict) else []


def _listed(names: Sequence[str] | set[str]) -> str:
    return one_line(", ".join(sorted(names))) or "none"


def _matched(views: Sequence[SourceView], offsets: Mapping[int, _Imported]) -> Sequence[SourceView]:
    """The sources of the checkpoint, if they are those of the document. Raises NoWay."""
    if [view.index for view in views] != sorted(offsets):
        raise NoWay(f"the document has {len(offsets)} sources, and the query has {len(views)}")
    for view in views:
        one = offsets[view.index]
        if (view.type, view.name) != (one.type, one.name):
            here, there = (
                f"{type_} {name or ''}".strip() for type_, name in ((view.type, view.name), (one.type, one.name))
            )
            raise NoWay(f"source {view.index} is {here}, and in the document {one_line(there)}")
    return [view for view in views if offsets[view.index].offset != view.offset]


def _wanted(view: SourceView, offsets: Mapping[int, _Imported], topics: Mapping[str, str]) -> RequestedEnd:
    rule_of(view)
    old = view.record
    assert old is not None
    new = wanted(offsets[view.index].offset, old, f"source {view.index} of the document")
    if not isinstance(old, KafkaOffset):
        return new
    here = {topic for topic, _ in old.partitions}
    return replace(new, renamed={was: now for was, now in topics.items() if was in here})
