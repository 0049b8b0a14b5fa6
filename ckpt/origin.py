"""Which Spark version wrote a checkpoint, as far as its files prove."""

from dataclasses import dataclass

from ckpt import settings
from ckpt.checkpoint import Checkpoint
from ckpt.model import CommitLog, OffsetLog
from ckpt.restart.logs import join_format
from ckpt.restart.versions import Spark

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
    format_of_join = join_format(checkpoint)
    if format_of_join >= 3:
        proofs[f"a join with state format {format_of_join}"] = Spark.V4_1 if format_of_join == 3 else Spark.V4_3
    newest = max(proofs.values(), default=None, key=list(Spark).index)
    return WrittenBy(newest, tuple(sorted(what for what, since in proofs.items() if since is newest)))
