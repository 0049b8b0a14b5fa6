"""Findings in the logs that no start trips over: gaps, second writers, sources that went backwards or were replaced."""

from collections.abc import Iterator
from itertools import groupby, pairwise

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.history import Pattern, pattern, unplanned
from ckpt.checkpoint.sources.registry import advances
from ckpt.formats.names import compactible_log
from ckpt.model import OffsetLog, Unreadable
from ckpt.restart import diagnoses
from ckpt.restart.findings import Finding
from ckpt.restart.remedies import repair_offsets, topic_was_recreated


def find_unreadable_files(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find files that cannot be read and that no start reads (the forecast covers the others)."""
    latest = checkpoint.offsets.latest
    read_by_a_start = {
        "offsets": {latest, checkpoint.offsets.before(latest) if latest else None},
        "commits": {checkpoint.commits.latest},
    }
    for log in (checkpoint.offsets, checkpoint.commits):
        for batch_id, entry in sorted(log.entries.items()):
            if isinstance(entry, Unreadable) and batch_id not in read_by_a_start[log.folder]:
                yield Finding(diagnoses.logs.UNREADABLE_LOG_IGNORED, f"{log.folder}/{batch_id}", entry.reason)


def find_ignored_gaps(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find gaps below what a start looks at."""
    offsets, commits = checkpoint.offsets, checkpoint.commits
    latest = offsets.latest
    needed = None if latest is None else (latest - 1, latest - 1)
    gaps = {log.folder: tuple(span for span in log.missing if span != needed) for log in (offsets, commits)}
    if gaps["offsets"] == gaps["commits"] and gaps["offsets"]:
        detail = f"{_describe_batches(gaps['offsets'])} no file here and none in commits"
        yield Finding(diagnoses.logs.GAP_IGNORED, "offsets", detail)
    else:
        for folder, spans in gaps.items():
            if spans:
                yield Finding(diagnoses.logs.GAP_IGNORED, folder, f"{_describe_batches(spans)} no file")
    stray = [i for i in unplanned(checkpoint) if latest is not None and i < latest]
    if stray:
        count = "one committed batch has" if len(stray) == 1 else f"{len(stray)} committed batches have"
        detail = f"{count} no offsets: {stray[0]}" + (" ..." if stray[1:] else "")
        yield Finding(diagnoses.logs.GAP_IGNORED, "commits", detail)


def _describe_batches(spans: tuple[tuple[int, int], ...]) -> str:
    count = sum(last - first + 1 for first, last in spans)
    first, last = spans[0]
    begin = f"{first}" if first == last else f"{first} to {last}"
    more = " and others" if spans[1:] else ""
    return f"{count} {'batch' if count == 1 else 'batches'} ({begin}{more}) {'has' if count == 1 else 'have'}"


def find_two_writers(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find the work of a second writer: one alone plans batches at rising times, and its watermark never falls."""
    entries = sorted(checkpoint.offsets.entries.items())
    with_metadata = [(i, e.metadata) for i, e in entries if isinstance(e, OffsetLog) and e.metadata]
    findings = []
    for (earlier, before), (later, after) in pairwise(with_metadata):
        if after.watermark_ms < before.watermark_ms:
            detail = f"the watermark of batch {later} is lower than that of batch {earlier}"
        elif after.timestamp_ms < before.timestamp_ms:
            detail = f"batch {later} was planned at an earlier time than batch {earlier}"
        else:
            continue
        findings.append(
            Finding(diagnoses.logs.TWO_WRITERS, f"offsets/{later}", detail, minor=checkpoint.is_past(later))
        )
    yield from sorted(findings, key=lambda finding: finding.minor)[:1]


def find_lagging_log(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find asynchronous tracking, which plans and runs batches that it does not log."""
    if pattern(checkpoint) is Pattern.ASYNC_PROGRESS:
        detail = f"rows after the offsets of batch {checkpoint.offsets.latest} may have been written already"
        yield Finding(diagnoses.logs.LOG_LAGS_BEHIND, f"offsets/{checkpoint.offsets.latest}", detail)


def find_cut_commit(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find the newest commit without a watermark, in a checkpoint of a Spark that always writes one (2.4 and later)."""
    commit = checkpoint.commits.newest
    if commit is not None and commit.next_watermark_ms is None and checkpoint.conf:
        path = f"commits/{checkpoint.commits.latest}"
        yield Finding(diagnoses.logs.COMMIT_CUT_SHORT, path, "it records no watermark")


def compare_offsets(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find sources that went backwards, or to another table, in one of the batches that were read."""
    logs = [(i, entry) for i, entry in sorted(checkpoint.offsets.entries.items()) if isinstance(entry, OffsetLog)]
    for (earlier, before), (later, after) in pairwise(logs):
        past = checkpoint.is_past(later)
        for index, advance in enumerate(advances(before, after)):
            where = f"source {index}, from batch {earlier} to batch {later}"
            if advance is not None and advance.replaced:
                detail = f"{where}: the table id differs"
                yield Finding(diagnoses.others.SOURCE_REPLACED, f"offsets/{later}", detail, minor=past)
            elif advance is not None and advance.switched:
                gone, came = advance.switched
                detail = f"{where}: topic {came} instead of {gone}"
                yield Finding(diagnoses.others.TOPIC_SWITCHED, f"offsets/{later}", detail, minor=past)
            elif advance is not None and advance.went_back:
                remedy = topic_was_recreated(earlier) if advance.recreated else None
                detail = f"{where}: {advance.went_back[0]}"
                yield Finding(diagnoses.others.OFFSETS_WENT_BACK, f"offsets/{later}", detail, remedy, past)


def compare_source_counts(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find batches with another number of sources, which a query keeps as long as its checkpoint."""
    logs = [(i, entry) for i, entry in sorted(checkpoint.offsets.entries.items()) if isinstance(entry, OffsetLog)]
    runs = [(n, [i for i, _ in same]) for n, same in groupby(logs, key=lambda log: len(log[1].sources))]
    for (few, earlier), (many, later) in pairwise(runs):
        detail = f"{_describe_files(earlier)} {few}, {_describe_files(later)} {many}"
        past = checkpoint.is_past(later[0])
        yield Finding(diagnoses.logs.SOURCES_DIFFER, f"offsets/{later[0]}", detail, repair_offsets(later), past)


def _describe_files(batch_ids: list[int]) -> str:
    first, last = batch_ids[0], batch_ids[-1]
    return f"offsets/{first} names" if first == last else f"offsets/{first} to offsets/{last} name"


def find_sink_log_holes(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find holes in the log of a file sink that writes below the checkpoint."""
    for folder in checkpoint.listing.folders:
        if folder.rpartition("/")[2] == "_spark_metadata":
            log = compactible_log(checkpoint.listing.in_folder(folder))
            if log.first_missing is not None:
                detail = f"entries {log.first_needed} to {log.latest} are needed, and this one is missing"
                yield Finding(diagnoses.others.SINK_LOG_HOLE, f"{folder}/{log.first_missing}", detail)


CHECKS = (
    find_unreadable_files,
    find_ignored_gaps,
    find_two_writers,
    find_lagging_log,
    find_cut_commit,
    compare_source_counts,
    compare_offsets,
    find_sink_log_holes,
)
