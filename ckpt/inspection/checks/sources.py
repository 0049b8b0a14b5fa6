"""Findings about sources: offsets that went backwards, replaced tables."""

from collections.abc import Iterator
from itertools import groupby, pairwise

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources.registry import advances
from ckpt.formats.compaction import compactible_log
from ckpt.model import OffsetLog
from ckpt.restart import diagnoses
from ckpt.restart.findings import Finding
from ckpt.restart.remedies import repair_offsets, topic_was_recreated


def compare_offsets(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find sources that went backwards, or to another table, in one of the batches that were read."""
    logs = [(i, entry) for i, entry in sorted(checkpoint.offsets.entries.items()) if isinstance(entry, OffsetLog)]
    for (earlier, before), (later, after) in pairwise(logs):
        past = checkpoint.is_past(later)
        for index, advance in enumerate(advances(before, after)):
            where = f"source {index}, from batch {earlier} to batch {later}"
            if advance is not None and advance.replaced:
                detail = f"{where}: the table id differs"
                yield Finding(diagnoses.others.SOURCE_REPLACED, f"offsets/{later}", detail, past=past)
            elif advance is not None and advance.switched:
                gone, came = advance.switched
                detail = f"{where}: topic {came} instead of {gone}"
                yield Finding(diagnoses.others.TOPIC_SWITCHED, f"offsets/{later}", detail, past=past)
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


CHECKS = (compare_source_counts, compare_offsets, find_sink_log_holes)
