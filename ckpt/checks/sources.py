"""Findings about sources: offsets that went backwards, replaced tables."""

from collections.abc import Iterator
from itertools import pairwise

from ckpt import findings
from ckpt.checkpoint import Checkpoint
from ckpt.findings import Finding
from ckpt.model import OffsetLog
from ckpt.sources import advances


def offsets_between_batches(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Sources that one batch took backwards, or to another table, among the batches that were read."""
    logs = [(i, entry) for i, entry in sorted(checkpoint.offsets.entries.items()) if isinstance(entry, OffsetLog)]
    for (earlier, before), (later, after) in pairwise(logs):
        for index, advance in enumerate(advances(before, after)):
            where = f"source {index}, from batch {earlier} to batch {later}"
            if advance is not None and advance.replaced:
                yield Finding(findings.SOURCE_REPLACED, f"offsets/{later}", f"{where}: the table id is another")
            elif advance is not None and advance.went_back:
                yield Finding(findings.OFFSETS_WENT_BACK, f"offsets/{later}", f"{where}: {advance.went_back[0]}")


CHECKS = (offsets_between_batches,)
