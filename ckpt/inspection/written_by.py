"""Find the Spark version that wrote a checkpoint, as far as its files prove it."""

from dataclasses import dataclass

from ckpt import settings
from ckpt.checkpoint.checkpoint import STATE, Checkpoint
from ckpt.formats.statefiles import CHECKSUM, parse_name
from ckpt.model import CommitLog, OffsetLog
from ckpt.restart.logs import join_format, recorded_join_format
from ckpt.versions import NEWEST, RULES, Spark, first_with, newest

_OFFSET_LOG = first_with(lambda rules: rules.newest_offset_log >= 2)
_CHECKSUMS = first_with(lambda rules: rules.state_checksums)
_JOIN_FORMATS_OF_ALL = min(rules.newest_join_format for rules in RULES.values())
_OPERATOR_METADATA = first_with(lambda rules: rules.operator_metadata)
_COMMIT_LOG = {
    2: first_with(lambda rules: rules.newest_commit_log >= 2),
    3: first_with(lambda rules: rules.newest_commit_log >= 3),
}
_JOIN_FORMAT = {
    3: first_with(lambda rules: rules.runs_join_format >= 3),
    4: first_with(lambda rules: rules.runs_join_format >= 4),
}


@dataclass(frozen=True, slots=True)
class WrittenBy:
    """The earliest version that can have written what is there, and why."""

    at_least: Spark | None
    evidence: tuple[str, ...]

    @property
    def may_read_event_hubs(self) -> bool:
        """True if offsets like Kafka's may be of Azure Event Hubs, whose connector exists for Spark up to 3.5 only."""
        return self.at_least is None or not self.at_least.at_least(Spark.V4_0)


def written_by(checkpoint: Checkpoint) -> WrittenBy:
    """Collect the proofs of the Spark version that wrote the files; a checkpoint of 3.x may have none."""
    proofs: dict[str, Spark] = {}
    for offsets in checkpoint.offsets.entries.values():
        if isinstance(offsets, OffsetLog):
            if offsets.version >= 2:
                proofs["offset log v2"] = _OFFSET_LOG
            for key in offsets.metadata.conf if offsets.metadata else ():
                if key in NEWEST.rules.records:
                    proofs[f"{key} is recorded"] = _find_first_to_record(key)
    for commit in checkpoint.commits.entries.values():
        if isinstance(commit, CommitLog) and commit.version >= 2:
            proofs[f"commit log v{commit.version}"] = _COMMIT_LOG[min(commit.version, 3)]
    if any(operator.has_metadata for operator in checkpoint.operators):
        proofs["operator metadata in state/"] = _OPERATOR_METADATA
    if _has_checksums(checkpoint):
        proofs["checksum files of state files"] = _CHECKSUMS
    recorded = recorded_join_format(checkpoint)
    if _JOIN_FORMATS_OF_ALL < recorded <= NEWEST.rules.newest_join_format:
        proofs[f"{settings.JOIN_FORMAT}={recorded} is recorded"] = first_with(
            lambda rules: rules.newest_join_format >= recorded
        )
    format_of_join = join_format(checkpoint)
    if format_of_join >= 3:
        proofs[f"a join with state format {format_of_join}"] = _JOIN_FORMAT[min(format_of_join, 4)]
    since = newest(proofs.values())
    return WrittenBy(since, tuple(sorted(what for what, version in proofs.items() if version is since)))


def _find_first_to_record(key: str) -> Spark:
    return first_with(lambda rules: key in rules.records)


def _has_checksums(checkpoint: Checkpoint) -> bool:
    """Tell whether a state file has Spark's own checksum file (``ChecksumCheckpointFileManager``)."""
    folders = (names for folder, names in checkpoint.listing.folders.items() if folder.startswith(f"{STATE}/"))
    checksums = (name for names in folders for name in names if name.endswith(CHECKSUM))
    return any(parse_name(name.removesuffix(CHECKSUM)) is not None for name in checksums)
