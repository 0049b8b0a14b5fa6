"""The sources of a query compared with those that a checkpoint has offsets of: number, order, kind, topics, folders."""

from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from ckpt.checkpoint import history
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources.file_logs import refused
from ckpt.checkpoint.sources.kafka import KafkaOffset
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import SourceView
from ckpt.inspection.checks.query import QueryComparison
from ckpt.inspection.query import DescribedSource, QueryDescription
from ckpt.restart import diagnoses
from ckpt.restart.findings import Finding
from ckpt.storage.base import one_line
from ckpt.storage.locations import is_inside

_KNOWN = frozenset(SourceType) - {SourceType.UNKNOWN}


def sources_of(query: QueryDescription, checkpoint: Checkpoint) -> QueryComparison:
    """What differs, and which sources could not be compared."""
    there = history.sources(checkpoint)
    if checkpoint.offsets.latest is None or not there:
        return QueryComparison()
    if len(there) != len(query.sources):
        detail = f"the query has {len(query.sources)}, the checkpoint {len(there)}"
        return QueryComparison((Finding(diagnoses.starting.NUMBER_OF_SOURCES, "sources", detail),))
    moved = [*_moved(query.sources, there)]
    if moved:
        return QueryComparison(tuple(moved))
    found = [one for wants, has in zip(query.sources, there, strict=True) for one in _source(wants, has, checkpoint)]
    unknown = tuple(
        f"source {has.index}: whether a source of type {wants.kind} continues from its offset"
        for wants, has in zip(query.sources, there, strict=True)
        if wants.kind not in _KNOWN or has.type is SourceType.UNKNOWN
    )
    return QueryComparison(tuple(found), unknown)


def _moved(wanted: Sequence[DescribedSource], there: Sequence[SourceView]) -> Iterator[Finding]:
    """Sources of another kind, or that read what another one has read."""
    for wants, has in zip(wanted, there, strict=True):
        known = wants.kind in _KNOWN and has.type is not SourceType.UNKNOWN
        if known and wants.kind != has.type:
            detail = f"{wants.kind} in the query, {has.type} in the checkpoint"
            yield Finding(diagnoses.starting.OTHER_SOURCE, f"sources/{has.index}", detail)
        elif known and (_lacks(wants, has) or _elsewhere(wants, has)):
            others = (one for one in there if one.index != has.index and one.type is has.type)
            place = next((one.index for one in others if _fits(wants, one)), None)
            if place is not None:
                detail = f"it reads what source {place} of the checkpoint has read: have they changed places?"
                yield Finding(diagnoses.starting.OTHER_SOURCE, f"sources/{has.index}", detail)


def _source(wants: DescribedSource, has: SourceView, checkpoint: Checkpoint) -> Iterator[Finding]:
    path = f"sources/{has.index}"
    missing = _lacks(wants, has)
    if missing:
        skips = "" if wants.fail_on_data_loss else "; failOnDataLoss=false lets it run, and leave out what waits there"
        yield Finding(diagnoses.starting.OTHER_TOPIC, path, f"not subscribed to {', '.join(sorted(missing))}{skips}")
    if has.type is SourceType.FILE and wants.path is not None:
        yield from _folder(wants, wants.path, has, checkpoint)


def _folder(wants: DescribedSource, folder: str, has: SourceView, checkpoint: Checkpoint) -> Iterator[Finding]:
    path, read = f"sources/{has.index}", _files(has)
    outside = None if wants.recursive else refused(history.batch_files(checkpoint, has.index), folder)
    planned = checkpoint.offsets.latest not in checkpoint.commits
    if outside is not None and (planned or not wants.partitions):
        detail = f"it reads {one_line(folder)}, and the latest batch has read {one_line(outside)}"
        yield Finding(diagnoses.sources.FILES_OUTSIDE, path, detail)
    elif _elsewhere(wants, has):
        yield Finding(diagnoses.starting.OTHER_FOLDER, path, f"it reads {folder}, and its last batch read {read[0]}")


def _files(has: SourceView) -> list[str]:
    """Of the last batch of a file source that had any."""
    files = has.decoded.get("files") if has.type is SourceType.FILE and isinstance(has.decoded, dict) else None
    return [str(one) for one in files] if isinstance(files, list) else []


def _elsewhere(wants: DescribedSource, has: SourceView) -> bool:
    """Whether the files that a source has read are in another folder than the query reads."""
    files = _files(has)
    if wants.path is None or not files or any(c in wants.path for c in "*?[{"):
        return False
    return not any(is_inside(unquote(one), wants.path) for one in files)


def _fits(wants: DescribedSource, has: SourceView) -> bool:
    if has.type is SourceType.FILE:
        return bool(_files(has)) and not _elsewhere(wants, has)
    return not _lacks(wants, has)


def _lacks(wants: DescribedSource, has: SourceView) -> set[str]:
    """Topics that a source of the checkpoint has read, and one of the query will not."""
    offset = has.record
    if not isinstance(offset, KafkaOffset) or wants.kind != SourceType.KAFKA or wants.topics is None:
        return set()
    return {topic for topic, _ in offset.partitions} - set(wants.topics)
