"""What each Spark version does about damaged state, and the words of its error.

Measured by starting real queries on damaged copies of real checkpoints (3.5.9, 4.0.5, 4.1.4, 4.2.0, 4.3.0; HDFS-backed,
RocksDB with and without changelogs, state store checkpoint formats 1 and 2), with the settings that wrote them.
``docs/format-state.md`` has the table.
"""

from dataclasses import dataclass

from ckpt.model import DamageKind, Provider, StateDamage, StateFileKind
from ckpt.versions import Spark

_UNCATEGORIZED = "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED"
_CUT_SHORT = (DamageKind.EMPTY, DamageKind.TRUNCATED)


@dataclass(frozen=True, slots=True)
class LoadFailure:
    """How a start ends that meets a damage."""

    words: str | None  # that the error, or one of its causes, contains with class and message; None: not known
    at_start: bool = False  # before any task runs; otherwise while the first batch is executed


def load_failure(damage: StateDamage, provider: Provider, spark: Spark) -> LoadFailure | None:
    """How a start of this Spark version ends that meets ``damage``; None where it gets round it."""
    if _survives(damage, spark):
        return None
    match damage.kind:
        case DamageKind.MISSING_STATE if damage.operator is None and spark.at_least(Spark.V4_2):
            return LoadFailure("STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY", at_start=True)
        case DamageKind.MISSING_STATE if damage.operator is not None and spark.at_least(Spark.V4_0):
            return LoadFailure("STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA", at_start=True)
        case DamageKind.BAD_SCHEMA:
            return LoadFailure(damage.says, at_start=spark.at_least(Spark.V4_0))
        case DamageKind.BLOCKED:
            words = "CANNOT_WRITE_STATE_STORE" if spark.at_least(Spark.V4_0) else "Error committing version"
            return LoadFailure(words)
        case DamageKind.MISSING | DamageKind.MISSING_PARTITION | DamageKind.MISSING_STATE:
            return LoadFailure(_missing_words(damage, provider, spark))
    if spark.at_least(Spark.V4_2) and _replays_from_nothing(damage):
        return LoadFailure(_missing_words(damage, provider, spark))
    if spark.at_least(Spark.V4_0):
        odd_size = damage.file_kind is StateFileKind.SST and damage.kind in _CUT_SHORT
        return LoadFailure("CANNOT_LOAD_STATE_STORE.UNEXPECTED_FILE_SIZE" if odd_size else _UNCATEGORIZED)
    return LoadFailure(_plain_words(damage))


def _survives(damage: StateDamage, spark: Spark) -> bool:
    """Whether this version loads the state all the same.

    An odd end is not looked at, but a checksum file beside it is: by 4.1 for all files but zips, later for all files
    of format 2 and for none of format 1. A bad snapshot is replaced by an older one and its logs since 4.2 (Spark's
    ``AutoSnapshotLoader``); for RocksDB that needs changelog checkpointing.
    """
    if damage.kind is DamageKind.ODD_END:
        verifies = {
            Spark.V4_1: damage.file_kind is not StateFileKind.ZIP,
            Spark.V4_2: damage.format_version == 2,
            Spark.V4_3: damage.format_version == 2,
        }
        if not (damage.checksummed and verifies.get(spark, False)):
            return True
    return damage.fallback and spark.at_least(Spark.V4_2)


def _replays_from_nothing(damage: StateDamage) -> bool:
    """Whether the automatic repair of a snapshot ends with an empty state and the first log, which is not there."""
    if damage.format_version != 1:
        return False
    if damage.file_kind is StateFileKind.SNAPSHOT:
        return True
    return damage.file_kind in (StateFileKind.ZIP, StateFileKind.SST) and damage.changelog


def _missing_words(damage: StateDamage, provider: Provider, spark: Spark) -> str | None:
    """A file or folder is not there. Spark names the log that it would replay, even if the loss is a snapshot's."""
    if damage.kind is DamageKind.MISSING and damage.file_kind is StateFileKind.ZIP and damage.changelog:
        # Format 2: the snapshot at which the lineage of the changelogs begins.
        return _UNCATEGORIZED if spark.at_least(Spark.V4_2) else "CANNOT_FIND_BASE_SNAPSHOT_CHECKPOINT"
    by_provider = {
        Provider.HDFS: ("CANNOT_READ_DELTA_FILE_NOT_EXISTS", "Error reading delta file"),
        Provider.ROCKSDB: ("CANNOT_READ_STREAMING_STATE_FILE", "Error reading streaming state file"),
    }
    if provider not in by_provider:
        return None
    since_4_0, before = by_provider[provider]
    return since_4_0 if spark.at_least(Spark.V4_0) else before


def _plain_words(damage: StateDamage) -> str | None:
    """Spark 3.5 shows the bare exception of whatever read the file."""
    match damage.file_kind, damage.kind:
        case StateFileKind.SST, DamageKind.MISSING_SST:
            return "does not exist"
        case StateFileKind.SST, _:
            return "Copied"
        case StateFileKind.ZIP, DamageKind.TRUNCATED:
            return "EOFException"
        case StateFileKind.ZIP, _:
            return damage.says
        case _, DamageKind.EMPTY | DamageKind.TRUNCATED:
            return "EOFException"
        case _:
            return "Stream is corrupted"
