"""Damaged state: what each Spark version does about it, and the words of its error.

Measured by starting real queries on damaged copies of real checkpoints (3.5.9, 4.0.5, 4.1.4, 4.2.0, 4.3.0; HDFS-backed,
RocksDB with and without changelogs, state store checkpoint formats 1 and 2), with the settings that wrote them.
``docs/format-state.md`` has the table.
"""

from dataclasses import dataclass

from ckpt.model import DamageKind, Provider, StateDamage, StateFileKind
from ckpt.versions import ChecksumCheck, Rules

_UNCATEGORIZED = "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED"
_SEEN_WHEN_READ = (DamageKind.BAD_BLOCK, DamageKind.BAD_ROW, DamageKind.MISSING_ROWS)
_CUT_SHORT = (DamageKind.EMPTY, DamageKind.TRUNCATED)


@dataclass(frozen=True, slots=True)
class LoadFailure:
    """How a start ends that meets a damage."""

    words: str | None  # that the error, or one of its causes, contains with class and message; None: not known
    at_start: bool = False  # before any task runs; otherwise while the first batch is executed
    certain: bool = True  # otherwise it fails if the batch reads what is damaged


def load_failure(damage: StateDamage, provider: Provider, rules: Rules) -> LoadFailure | None:
    """How a start ends that meets ``damage``, under the rules of its version; None where it gets round it."""
    if _survives(damage, rules):
        return None
    if damage.kind in _SEEN_WHEN_READ or (damage.kind is DamageKind.LEADS_OUTSIDE and rules.reads_outside):
        return LoadFailure(None, certain=False)
    match damage.kind:
        case DamageKind.MISSING_STATE if damage.operator is None and rules.checks_state_folder:
            return LoadFailure("STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY", at_start=True)
        case DamageKind.MISSING_STATE if damage.operator is not None and rules.operator_metadata:
            return LoadFailure("STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA", at_start=True)
        case DamageKind.VERSION_1:
            return LoadFailure("CANNOT_LOAD_STATE_STORE.CANNOT_READ_CHECKPOINT")
        case DamageKind.VERSION_2 if not rules.repairs_snapshots:
            return LoadFailure("CANNOT_LOAD_STATE_STORE.CANNOT_READ_CHECKPOINT")
        case DamageKind.BAD_SCHEMA | DamageKind.STRAY:
            early = damage.kind is DamageKind.BAD_SCHEMA and rules.checks_schemas_at_start
            return LoadFailure(damage.says, at_start=early)
        case DamageKind.BLOCKED:
            words = "CANNOT_WRITE_STATE_STORE" if rules.names_state_errors else "Error committing version"
            return LoadFailure(words)
        case DamageKind.MISSING | DamageKind.MISSING_PARTITION | DamageKind.MISSING_STATE:
            return LoadFailure(_describe_missing(damage, provider, rules))
    if rules.repairs_snapshots and _replays_from_nothing(damage):
        return LoadFailure(_describe_missing(damage, provider, rules))
    if rules.names_state_errors:
        odd_size = damage.file_kind is StateFileKind.SST and damage.kind in _CUT_SHORT
        return LoadFailure("CANNOT_LOAD_STATE_STORE.UNEXPECTED_FILE_SIZE" if odd_size else _UNCATEGORIZED)
    return LoadFailure(_describe_in_3_5(damage))


def _survives(damage: StateDamage, rules: Rules) -> bool:
    """Tell whether the state is loaded in spite of a damage.

    An odd end is ignored, but a checksum file next to it may be read. A bad snapshot is replaced by an older one and
    its logs where Spark repairs snapshots; for RocksDB that needs changelog checkpointing.
    """
    if damage.kind is (DamageKind.VERSION_2 if rules.version_2_snapshots else DamageKind.VERSION_1):
        return True
    if damage.kind is DamageKind.STRAY and not damage.changelog and not rules.repairs_snapshots:
        return True  # who replays no changelogs onto a snapshot, and repairs none, lists none
    if damage.kind in (DamageKind.CHECKSUM_DIFFERS, *_SEEN_WHEN_READ):
        return damage.kind is DamageKind.CHECKSUM_DIFFERS
    if damage.kind is DamageKind.BAD_END and not rules.looks_for_version:
        return True
    verified = {
        ChecksumCheck.NONE: False,
        ChecksumCheck.ALL_BUT_ZIPS: damage.file_kind is not StateFileKind.ZIP,
        ChecksumCheck.FORMAT_2: damage.format_version == 2,
    }
    if damage.kind is DamageKind.ODD_END and not (damage.checksummed and verified[rules.checksum_check]):
        return True
    return damage.fallback and rules.repairs_snapshots


def _replays_from_nothing(damage: StateDamage) -> bool:
    """Tell whether Spark's repair of a snapshot ends with an empty state and the first log, which is not there."""
    if damage.format_version != 1 or damage.all_logs:
        return False
    if damage.file_kind is StateFileKind.SNAPSHOT:
        return True
    return damage.file_kind in (StateFileKind.ZIP, StateFileKind.SST) and damage.changelog


def _describe_missing(damage: StateDamage, provider: Provider, rules: Rules) -> str | None:
    """A file or folder is not there. Spark names the log that it would replay, even if the loss is a snapshot's."""
    if damage.kind is DamageKind.MISSING and damage.file_kind is StateFileKind.ZIP and damage.changelog:
        # Format 2: the snapshot at which the lineage of the changelogs begins.
        return _UNCATEGORIZED if rules.repairs_snapshots else "CANNOT_FIND_BASE_SNAPSHOT_CHECKPOINT"
    by_provider = {
        Provider.HDFS: ("CANNOT_READ_DELTA_FILE_NOT_EXISTS", "Error reading delta file"),
        Provider.ROCKSDB: ("CANNOT_READ_STREAMING_STATE_FILE", "Error reading streaming state file"),
    }
    named, plain = by_provider.get(provider, (None, None))
    return named if rules.names_state_errors else plain


def _describe_in_3_5(damage: StateDamage) -> str | None:
    """Spark 3.5 shows the bare exception of whatever read the file."""
    match damage.file_kind, damage.kind:
        case _, DamageKind.OTHER_CODEC:
            return None  # what the other codec says
        case StateFileKind.SST, DamageKind.MISSING_SST:
            return "does not exist"
        case StateFileKind.SST, DamageKind.EMPTY | DamageKind.TRUNCATED:
            return "Copied"
        case StateFileKind.SST, _:
            return damage.says
        case StateFileKind.ZIP, kind if kind is not DamageKind.TRUNCATED:
            return damage.says
    return "EOFException" if damage.kind in _CUT_SHORT else "Stream is corrupted"
