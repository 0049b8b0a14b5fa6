"""The logs that file sources keep in the checkpoint, which a start restores before it looks at anything else."""

from collections.abc import Iterator

from ckpt import findings
from ckpt.checkpoint import SOURCES, Checkpoint
from ckpt.findings import Finding
from ckpt.formats.compaction import CompactibleLog, compactible_log
from ckpt.formats.names import compactible_id
from ckpt.sources import FileOffset, decode, in_order


def hole(checkpoint: Checkpoint) -> tuple[Finding, str] | None:
    """The first entry that ``FileStreamSourceLog.restore`` does not find, and the words it then uses."""
    for folder, log in _file_source_logs(checkpoint):
        if log.first_missing is not None:
            path = f"{folder}/{log.first_missing}"
            detail = f"entries {log.first_needed} to {log.latest} are needed, and this one is not there"
            return Finding(findings.SOURCE_LOG_HOLE, path, detail), f"{path} doesn't exist"
    return None


def _file_source_logs(checkpoint: Checkpoint) -> Iterator[tuple[str, CompactibleLog]]:
    """The logs of file sources: where the offsets say so, or else where there are several entries."""
    offsets = checkpoint.offsets.readable(checkpoint.offsets.latest)
    sources = in_order(offsets) if offsets else ()
    for name in checkpoint.listing.subfolders(SOURCES):
        folder = f"{SOURCES}/{name}"
        names = checkpoint.listing.in_folder(folder)
        entries = [one for one in names if compactible_id(one) is not None]
        known = name.isascii() and name.isdecimal() and int(name) < len(sources)
        if isinstance(decode(sources[int(name)].value), FileOffset) if known else len(entries) > 1:
            yield folder, compactible_log(entries)
