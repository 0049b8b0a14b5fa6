"""The sources of a query compared with those that a checkpoint has offsets of: number, order, kind, topics, folders."""

from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from ckpt import diagnoses, history
from ckpt.checkpoint import Checkpoint
from ckpt.checks.query import Compared
from ckpt.findings import Finding
from ckpt.query import DescribedSource, QueryDescription
from ckpt.sources import KafkaOffset, SourceType, SourceView, decode
from ckpt.storage.locations import is_inside

_KNOWN = frozenset(SourceType) - {SourceType.UNKNOWN}


def sources_of(query: QueryDescription, checkpoint: Checkpoint) -> Compared:
    """What differs, and which sources could not be compared."""
    there = history.sources(checkpoint)
    if checkpoint.offsets.latest is None or not there:
        return Compared()
    if len(there) != len(query.sources):
        detail = f"the query has {len(query.sources)}, the checkpoint {len(there)}"
        return Compared((Finding(diagnoses.starting.NUMBER_OF_SOURCES, "sources", detail),))
    moved = [*_moved(query.sources, there)]
    if moved:
        return Compared(tuple(moved))
    found = [one for wants, has in zip(query.sources, there, strict=True) for one in _source(wants, has)]
    unknown = tuple(
        f"source {has.index}: whether a source of type {wants.kind} continues from its offset"
        for wants, has in zip(query.sources, there, strict=True)
        if wants.kind not in _KNOWN or has.type is SourceType.UNKNOWN
    )
    return Compared(tuple(found), unknown)


def _moved(wanted: Sequence[DescribedSource], there: Sequence[SourceView]) -> Iterator[Finding]:
    """Sources of another kind, or that read what another one has read."""
    for wants, has in zip(wanted, there, strict=True):
        known = wants.kind in _KNOWN and has.type is not SourceType.UNKNOWN
        if known and wants.kind != has.type:
            detail = f"{wants.kind} in the query, {has.type} in the checkpoint"
            yield Finding(diagnoses.starting.OTHER_SOURCE, f"sources/{has.index}", detail)
        elif known and _lacks(wants, has):
            others = (one for one in there if one.index != has.index and one.type is SourceType.KAFKA)
            place = next((one.index for one in others if not _lacks(wants, one)), None)
            if place is not None:
                detail = f"it reads what source {place} of the checkpoint has read: have they changed places?"
                yield Finding(diagnoses.starting.OTHER_SOURCE, f"sources/{has.index}", detail)


def _source(wants: DescribedSource, has: SourceView) -> Iterator[Finding]:
    path = f"sources/{has.index}"
    missing = _lacks(wants, has)
    if missing:
        skips = "" if wants.fail_on_data_loss else "; failOnDataLoss=false lets it run, and leave out what waits there"
        yield Finding(diagnoses.starting.OTHER_TOPIC, path, f"not subscribed to {', '.join(sorted(missing))}{skips}")
    files = has.decoded.get("files") if has.type is SourceType.FILE and isinstance(has.decoded, dict) else None
    if wants.path is not None and isinstance(files, list) and files and not any(c in wants.path for c in "*?[{"):
        folder = wants.path
        if not any(is_inside(unquote(str(one)), folder) for one in files):
            detail = f"it reads {folder}, and its last batch read {files[0]}"
            yield Finding(diagnoses.starting.OTHER_FOLDER, path, detail)


def _lacks(wants: DescribedSource, has: SourceView) -> set[str]:
    """Topics that a source of the checkpoint has read, and one of the query will not."""
    offset = decode(has.offset)
    if not isinstance(offset, KafkaOffset) or wants.kind != SourceType.KAFKA or wants.topics is None:
        return set()
    return {topic for topic, _ in offset.partitions} - set(wants.topics)
