"""The sources of a query compared with those that a checkpoint has offsets of: number, order, kind, topics, folders."""

from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from ckpt.checkpoint import history
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources.file_logs import find_refused_file
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import SourceView
from ckpt.inspection.checks.query import QueryComparison
from ckpt.inspection.query import DescribedSource, QueryDescription
from ckpt.restart import diagnoses
from ckpt.restart.findings import Finding
from ckpt.storage.base import one_line
from ckpt.storage.locations import is_inside

_KNOWN = frozenset(SourceType) - {SourceType.UNKNOWN}


def compare_sources(query: QueryDescription, checkpoint: Checkpoint) -> QueryComparison:
    """Compare the sources of a query with those of a checkpoint."""
    there = history.sources(checkpoint)
    if checkpoint.offsets.latest is None or not there:
        return QueryComparison()
    if len(there) != len(query.sources):
        detail = f"the query has {len(query.sources)}, the checkpoint {len(there)}"
        return QueryComparison((Finding(diagnoses.starting.NUMBER_OF_SOURCES, "sources", detail),))
    pairs = list(zip(query.sources, there, strict=True))
    moved = tuple(_find_moved(pairs))
    if moved:
        return QueryComparison(moved)
    findings = tuple(finding for wants, has in pairs for finding in _compare_source(wants, has, checkpoint))
    unknown = tuple(
        f"source {has.index}: whether a source of type {wants.kind} continues from its offset"
        for wants, has in pairs
        if wants.kind not in _KNOWN or has.type is SourceType.UNKNOWN
    )
    return QueryComparison(findings, unknown)


def _find_moved(pairs: Sequence[tuple[DescribedSource, SourceView]]) -> Iterator[Finding]:
    """Find sources of another kind, or that read what another one has read."""
    there = [has for _, has in pairs]
    for wants, has in pairs:
        known = wants.kind in _KNOWN and has.type is not SourceType.UNKNOWN
        if known and wants.kind != has.type:
            detail = f"{wants.kind} in the query, {has.type} in the checkpoint"
            yield Finding(diagnoses.starting.OTHER_SOURCE, f"sources/{has.index}", detail)
        elif known and (_find_missing_topics(wants, has) or _reads_elsewhere(wants, has)):
            others = (view for view in there if view.index != has.index and view.type is has.type)
            index = next((view.index for view in others if _fits(wants, view)), None)
            if index is not None:
                detail = f"it reads what source {index} of the checkpoint has read: have they changed places?"
                yield Finding(diagnoses.starting.OTHER_SOURCE, f"sources/{has.index}", detail)


def _compare_source(wants: DescribedSource, has: SourceView, checkpoint: Checkpoint) -> Iterator[Finding]:
    path, folder = f"sources/{has.index}", wants.path
    missing = _find_missing_topics(wants, has)
    if missing:
        skips = "" if wants.fail_on_data_loss else "; failOnDataLoss=false lets it run, and leave out what waits there"
        yield Finding(diagnoses.starting.OTHER_TOPIC, path, f"not subscribed to {', '.join(sorted(missing))}{skips}")
    if folder is None or not has.kind.reads_files:
        return
    outside = None if wants.recursive else find_refused_file(history.batch_files(checkpoint, has.index), folder)
    planned = checkpoint.offsets.latest not in checkpoint.commits
    if outside is not None and (planned or not wants.partitions):
        detail = f"it reads {one_line(folder)}, and the latest batch has read {one_line(outside)}"
        yield Finding(diagnoses.sources.FILES_OUTSIDE, path, detail)
    elif _reads_elsewhere(wants, has):
        detail = f"it reads {folder}, and its last batch read {has.files[0]}"
        yield Finding(diagnoses.starting.OTHER_FOLDER, path, detail)


def _reads_elsewhere(wants: DescribedSource, has: SourceView) -> bool:
    """Tell whether the files that a source has read are in another folder than the query reads."""
    if wants.path is None or not has.files or any(c in wants.path for c in "*?[{"):
        return False
    return not any(is_inside(unquote(path), wants.path) for path in has.files)


def _fits(wants: DescribedSource, has: SourceView) -> bool:
    if has.kind.reads_files:
        return bool(has.files) and not _reads_elsewhere(wants, has)
    return not _find_missing_topics(wants, has)


def _find_missing_topics(wants: DescribedSource, has: SourceView) -> frozenset[str]:
    """Find topics that a source of the checkpoint has read, and one of the query will not."""
    return has.topics - set(wants.topics) if wants.kind == has.type and wants.topics is not None else frozenset()
