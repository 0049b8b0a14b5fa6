"""Which Spark version wrote a checkpoint, as far as its files prove."""

from dataclasses import dataclass

from ckpt import settings
from ckpt.checkpoint import STATE, Checkpoint
from ckpt.formats.statefiles import CHECKSUM, parse_name
from ckpt.model import CommitLog, OffsetLog
from ckpt.restart.logs import join_format, recorded_join_format
from ckpt.restart.versions import RULES, Spark

# Settings that OffsetSeqMetadata records since that version; 3.5.9, 4.0.5 and 4.1.4 were seen not to record later ones.
_CONF_SINCE = {
    settings.ENCODING_FORMAT: Spark.V4_0,
    settings.ROW_CHECKSUM: Spark.V4_2,
    settings.MERGE_OPERATOR: Spark.V4_2,
    settings.SOURCE_EVOLUTION: Spark.V4_2,
}


@dataclass(frozen=True, slots=True)
class WrittenBy:
    """The earliest version that can have written what is there, and why."""

    at_least: Spark | None
    evidence: tuple[str, ...]


def written_by(checkpoint: Checkpoint) -> WrittenBy:
    """What the files prove of the Spark that wrote them; a checkpoint of 3.x may prove nothing."""
    proofs: dict[str, Spark] = {}
    for offsets in checkpoint.offsets.entries.values():
        if isinstance(offsets, OffsetLog):
            if offsets.version >= 2:
                proofs["offset log v2"] = Spark.V4_2
            for key in offsets.metadata.conf if offsets.metadata else ():
                if key in _CONF_SINCE:
                    proofs[f"{key} is recorded"] = _CONF_SINCE[key]
    for commit in checkpoint.commits.entries.values():
        if isinstance(commit, CommitLog) and commit.version >= 2:
            proofs[f"commit log v{commit.version}"] = Spark.V4_0 if commit.version == 2 else Spark.V4_2
    if checkpoint.state is not None and any(op.has_metadata for op in checkpoint.state.operators):
        proofs["operator metadata in state/"] = Spark.V4_0
    if _has_checksums(checkpoint):
        proofs["checksum files of state files"] = Spark.V4_1
    recorded = recorded_join_format(checkpoint)
    accepts = next((spark for spark, rules in RULES.items() if rules.newest_join_format >= recorded), None)
    if accepts is not None and recorded > RULES[Spark.V3_5].newest_join_format:
        proofs[f"{settings.JOIN_FORMAT}={recorded} is recorded"] = accepts
    format_of_join = join_format(checkpoint)
    if format_of_join >= 3:
        proofs[f"a join with state format {format_of_join}"] = Spark.V4_1 if format_of_join == 3 else Spark.V4_3
    newest = max(proofs.values(), default=None, key=list(Spark).index)
    return WrittenBy(newest, tuple(sorted(what for what, since in proofs.items() if since is newest)))


def _has_checksums(checkpoint: Checkpoint) -> bool:
    """Whether a state file has Spark's own checksum file beside it (``ChecksumCheckpointFileManager``)."""
    folders = (names for folder, names in checkpoint.listing.folders.items() if folder.startswith(f"{STATE}/"))
    checksums = (name for names in folders for name in names if name.endswith(CHECKSUM))
    return any(parse_name(name.removesuffix(CHECKSUM)) is not None for name in checksums)
