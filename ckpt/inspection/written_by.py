"""Find the Spark version that wrote a checkpoint, as far as its files prove it."""

import re
from dataclasses import dataclass

from ckpt import settings
from ckpt.checkpoint.checkpoint import STATE, Checkpoint
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import offsets_of, source_type
from ckpt.formats.statefiles import CHECKSUM, parse_name
from ckpt.restart.logs import join_format, recorded_join_format
from ckpt.restart.newer import find_newer
from ckpt.restart.recorded_settings import bound_writer, name_versions, recorded_settings_of
from ckpt.versions import MINORS, NEWEST, RECORDED, RULES, Spark, first_with, known_version

_JOIN_FORMATS_OF_ALL = min(rules.newest_join_format for rules in RULES.values())


@dataclass(frozen=True, slots=True)
class WrittenBy:
    """The minor versions of Spark that can have written the newest offsets, and what says so."""

    at_least: str | None  # also where only older batches, or the state, prove it
    at_most: str | None
    evidence: tuple[str, ...]
    platform: str | None = None  # Databricks, whose features are of no version of Apache's Spark
    newer: tuple[str, ...] = ()  # what no known version writes, such as ``commits/2 has version line v4``

    @property
    def oldest(self) -> Spark | None:
        """The oldest version with a forecast that it excludes all before; None where it excludes none."""
        return known_version(self.at_least or "")

    @property
    def versions(self) -> str:
        """Name them: ``Spark 3.3 to 3.5``; empty where nothing is known."""
        if self.newer and not self.platform:
            return f"perhaps a Spark after {NEWEST}, on which the query continues"
        return self.platform or name_versions(self.at_least, self.at_most)

    @property
    def may_read_event_hubs(self) -> bool:
        """True if offsets like Kafka's may be of Azure Event Hubs, whose connector exists for Spark up to 3.5 only."""
        return self.oldest is None or not self.oldest.at_least(Spark.V4_0)


def written_by(checkpoint: Checkpoint) -> WrittenBy:
    """Find the oldest version by what any file proves, and the newest by what the newest offsets do not record."""
    if (databricks := _find_databricks(checkpoint)) is not None:
        return databricks
    proofs = _find_proofs(checkpoint)
    conf = recorded_settings_of(checkpoint)
    oldest, at_most = (None, None) if conf is None else bound_writer(conf)
    if oldest is not None and not proofs:
        proofs["offsets with metadata"] = oldest
    at_least = max(proofs.values(), key=MINORS.index, default=None)
    evidence = sorted(what for what, version in proofs.items() if version == at_least)
    if at_least is not None and at_most is not None and MINORS.index(at_most) < MINORS.index(at_least):
        at_most = None  # a preview of the next version, or older batches are of a newer one
    return WrittenBy(at_least, at_most, tuple(evidence), newer=tuple(find_newer(checkpoint)))


def _find_databricks(checkpoint: Checkpoint) -> WrittenBy | None:
    """Find it by what the newest offsets name: its runtime, a class of it, or Auto Loader."""
    log = checkpoint.offsets.newest
    conf = {key: value or "" for key, value in log.metadata.conf.items()} if log and log.metadata else {}
    if version := re.match(r"(\d+\.\d+)\.x-", conf.get("sparkVersion", "")):
        return WrittenBy(None, None, ("sparkVersion is recorded",), f"Databricks Runtime {version[1]}")
    evidence = [f"{key}={value} is recorded" for key, value in conf.items() if value.startswith("com.databricks.")]
    evidence += {source_type(offset) for offset in (offsets_of(log) if log else ())} & {SourceType.CLOUD_FILES}
    return WrittenBy(None, None, tuple(evidence), "Databricks") if evidence else None


def _find_proofs(checkpoint: Checkpoint) -> dict[str, str]:
    """Find what proves a version, and the first one that wrote it."""
    proofs: dict[str, str] = {}
    for offsets in checkpoint.offsets.records.values():
        if offsets.version >= 2:
            proofs["offset log v2"] = first_with(lambda rules: rules.newest_offset_log >= 2)
        for setting in RECORDED:
            if offsets.metadata and setting.name in offsets.metadata.conf:
                proofs[f"{setting.name} is recorded"] = setting.since
    commits = max((commit.version for commit in checkpoint.commits.records.values()), default=1)
    if commits >= 2:
        proofs[f"commit log v{commits}"] = first_with(lambda rules: rules.newest_commit_log >= commits)
    if any(operator.has_metadata for operator in checkpoint.operators):
        proofs["operator metadata in state/"] = first_with(lambda rules: rules.operator_metadata)
    if _has_checksums(checkpoint):
        proofs["checksum files of state files"] = first_with(lambda rules: rules.state_checksums)
    recorded = recorded_join_format(checkpoint)
    if _JOIN_FORMATS_OF_ALL < recorded <= NEWEST.rules.newest_join_format:
        proofs[f"{settings.JOIN_FORMAT}={recorded} is recorded"] = first_with(
            lambda rules: rules.newest_join_format >= recorded
        )
    format_of_join = join_format(checkpoint)
    if format_of_join >= 3:
        known_format = min(format_of_join, NEWEST.rules.runs_join_format)
        proofs[f"a join with state format {format_of_join}"] = first_with(
            lambda rules: rules.runs_join_format >= known_format
        )
    return proofs


def _has_checksums(checkpoint: Checkpoint) -> bool:
    """Tell whether a state file has Spark's own checksum file (``ChecksumCheckpointFileManager``)."""
    folders = (names for folder, names in checkpoint.listing.folders.items() if folder.startswith(f"{STATE}/"))
    checksums = (name for names in folders for name in names if name.endswith(CHECKSUM))
    return any(parse_name(name.removesuffix(CHECKSUM)) is not None for name in checksums)
