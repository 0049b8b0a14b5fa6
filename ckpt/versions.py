"""The version of ckpt, and where Spark versions differ: one row per version, one column per difference.

Measured on 3.5.9, 4.0.5, 4.1.4, 4.2.0 and 4.3.0 (``tests/restart/oracle``, ``tests/state/export/matrix.json``);
``docs/restart.md`` explains the columns of a start.
"""

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from ckpt import settings

__version__ = "0.1.0"


class Spark(StrEnum):
    """A minor version of Spark that ckpt knows."""

    V3_5 = "3.5"
    V4_0 = "4.0"
    V4_1 = "4.1"
    V4_2 = "4.2"
    V4_3 = "4.3"

    @classmethod
    def _missing_(cls, value: object) -> "Spark | None":
        """The version of a release: that of ``4.2.1`` is ``4.2``."""
        minor = re.fullmatch(r"(\d+\.\d+)\.\d.*", str(value))
        return next((version for version in cls if minor and version == minor[1]), None)

    def at_least(self, other: "Spark") -> bool:
        """Tell whether this version is ``other`` or a later one."""
        return self.rank >= other.rank

    @property
    def rank(self) -> int:
        """The version's position among the known ones, oldest first."""
        return _RANKS[self]

    def records(self, name: str) -> bool:
        """Tell whether it records a setting."""
        return any(setting.name == name and setting.known_to(self) for setting in RECORDED)

    @property
    def rules(self) -> "Rules":
        """How it behaves."""
        return RULES[self]


_RANKS = {spark: rank for rank, spark in enumerate(Spark)}  # asked of every batch of every forecast
NEWEST = list(Spark)[-1]


class Progress(StrEnum):
    """How the query logs its progress: by ``asyncProgressTrackingEnabled``, or a trigger with a log of its own."""

    SYNC = "sync"
    ASYNC = "async"
    REALTIME = "realtime"
    CONTINUOUS = "continuous"

    @property
    def in_micro_batches(self) -> bool:
        """False for a mode with a trigger of its own."""
        return self in (Progress.SYNC, Progress.ASYNC)


class ChecksumCheck(StrEnum):
    """The oddly ending state files that are checked against their checksum file when they are loaded."""

    NONE = "none"
    ALL_BUT_ZIPS = "all except zips"
    FORMAT_2 = "those of state store checkpoint format 2"


_STREAMING = "org.apache.spark.sql.execution.streaming."


class Rules(NamedTuple):
    """How one version starts a query, and reads its state; what is not said is as in Spark 3.5."""

    # The logs.
    newest_offset_log: int = 1  # highest version line of offsets/ it reads
    newest_commit_log: int = 1  # highest version line of commits/ it reads
    commit_log_exact: bool = False  # it reads no other version of commits/ than its session writes
    needs_metadata: bool = False  # without ``metadata`` for an existing log it refuses to start
    checks_repartition: bool = False  # looks for an unfinished repartition when the latest batch is uncommitted
    check_needs_partitions: bool = False  # and that check dies where no number of shuffle partitions is recorded
    new_query_needs_empty: bool = False  # it refuses a new query where offsets/, state/ or commits/ hold something
    asserts_no_commits: bool = False  # and trips over left commits before that, with other words
    takes_state_format: bool = False  # it takes the state store checkpoint format from the session, which has to fit

    # The state that a start loads.
    newest_join_format: int = 2  # highest join.stateFormatVersion that it accepts as a setting
    runs_join_format: int = 2  # highest that its joins run with
    describes_join_format_1: bool = True  # it can write the schemas of a join in state format 1
    compares_base_ids: bool = False  # format 2: a batch fails its commit if a store was loaded with another id
    transform_with_state: bool = False  # it has that operator
    real_time: bool = False  # it has real-time mode
    real_time_state: bool = False  # which keeps state, in format 2 only, and logs as asynchronous tracking does
    operator_metadata: bool = False  # it writes operator metadata, and compares it with the query before any task runs
    state_checksums: bool = False  # it writes its own checksum files for state files
    checks_state_folder: bool = False  # it looks for state/ itself before any task runs
    checks_schemas_at_start: bool = False  # it reads state schemas before any task runs, not in the first batch
    reads_outside: bool = True  # its decompressor takes bytes from before a damaged block
    looks_for_version: bool = False  # it reads the version that a changelog begins with
    names_state_errors: bool = False  # errors about state have an error class of their own
    names_kafka_loss: bool = False  # errors about rows that Kafka lost have a condition of their own (KAFKA_DATA_LOSS)
    delta_sees_missing_versions: bool = False  # its Delta refuses a log that lacks versions it has read; 3.3 reads on
    version_2_snapshots: bool = False  # in checkpoint format 2 its RocksDB snapshots begin with v2, and it reads no v1
    repairs_snapshots: bool = False  # it goes back to an older snapshot where one is bad (AutoSnapshotLoader)
    checksum_check: ChecksumCheck = ChecksumCheck.NONE

    # Spark's state reader, and transformWithState in Python.
    state_reader: bool = False  # it has one that ckpt can use
    reads_format_2: bool = False  # state store checkpoint format 2
    reads_merged_lists: bool = False  # lists that RocksDB's merge operator put together
    row_processors: bool = False  # transformWithState on rows, not only on pandas
    file_manager: str = _STREAMING + "FileSystemBasedCheckpointFileManager"  # it renames files as a mount table can


_4_0 = Rules(
    newest_commit_log=2,
    commit_log_exact=True,
    takes_state_format=True,
    transform_with_state=True,
    operator_metadata=True,
    checks_schemas_at_start=True,
    reads_outside=False,
    looks_for_version=True,
    names_state_errors=True,
    names_kafka_loss=True,
    delta_sees_missing_versions=True,
    version_2_snapshots=True,
    state_reader=True,
)
_4_1 = _4_0._replace(
    new_query_needs_empty=True,
    real_time=True,
    newest_join_format=3,
    runs_join_format=3,
    describes_join_format_1=False,
    state_checksums=True,
    version_2_snapshots=False,
    checksum_check=ChecksumCheck.ALL_BUT_ZIPS,
    reads_format_2=True,
    row_processors=True,
    file_manager=_STREAMING + "checkpointing.FileSystemBasedCheckpointFileManager",
)
_4_2 = _4_1._replace(
    newest_offset_log=2,
    newest_commit_log=3,
    commit_log_exact=False,
    needs_metadata=True,
    checks_repartition=True,
    check_needs_partitions=True,
    asserts_no_commits=True,
    newest_join_format=4,
    compares_base_ids=True,
    checks_state_folder=True,
    repairs_snapshots=True,
    checksum_check=ChecksumCheck.FORMAT_2,
    reads_merged_lists=True,
)
_4_3 = _4_2._replace(
    check_needs_partitions=False,
    takes_state_format=False,
    runs_join_format=4,
    real_time_state=True,
)

RULES: dict[Spark, Rules] = {
    Spark.V3_5: Rules(),
    Spark.V4_0: _4_0,
    Spark.V4_1: _4_1,
    Spark.V4_2: _4_2,
    Spark.V4_3: _4_3,
}
"""Each row is the one before it and what changed: a version without a known difference is the row of the last."""


_WORDS_OF_BOOLEANS = ("true", "false")
_LARGEST_INT = 2**31 - 1


MINORS = ("2.0", "2.1", "2.2", "2.3", "2.4", "3.0", "3.1", "3.2", "3.3", "3.4", *(version.value for version in Spark))
"""All minor versions that may have written a checkpoint, oldest first; those before 3.5 have no forecast."""


class Recorded(NamedTuple):
    """A setting that the offset log records, and that a restart takes from there whatever the session has."""

    name: str
    since: str  # the first minor version with a release that records it
    absent: str | None = None  # what a restart takes where the log has none; None: what the session has
    takes: tuple[str, ...] | range | None = None  # words, in any case, or numbers; None: any text
    always: str | None = None  # the first minor version whose releases all record it, if it is a later one

    def known_to(self, spark: Spark) -> bool:
        """Tell whether a version takes it from the log."""
        return MINORS.index(spark) >= MINORS.index(self.since)


RECORDED = (
    Recorded(settings.SHUFFLE_PARTITIONS, "2.2", takes=range(1, _LARGEST_INT + 1)),  # 4.2 may leave it out
    Recorded(settings.PROVIDER_CLASS, "2.3"),
    Recorded(settings.WATERMARK_POLICY, "2.4", absent="min", takes=("min", "max")),
    Recorded(settings.AGGREGATION_FORMAT, "2.4", absent="1", takes=range(1, 3)),
    Recorded(settings.JOIN_FORMAT, "3.0", absent="1", takes=range(1, _LARGEST_INT + 1)),  # at most newest_join_format
    Recorded(settings.GROUPS_FORMAT, "2.4", absent="1", takes=range(1, 3)),
    Recorded(settings.COMPRESSION_CODEC, "3.1", absent="lz4"),
    Recorded(settings.ROCKSDB_FORMAT, "3.2", takes=range(_LARGEST_INT + 1)),
    Recorded(settings.STRICT_DISTRIBUTION, "3.2", absent="false", takes=_WORDS_OF_BOOLEANS, always="3.3"),
    Recorded(settings.PRUNE_FILTERS, "3.5", absent="true", takes=_WORDS_OF_BOOLEANS, always="4.0"),  # since 3.5.5
    Recorded(settings.ENCODING_FORMAT, "4.0", "unsaferow", takes=("unsaferow", "avro")),
    Recorded(settings.MERGE_OPERATOR, "4.2", "1", takes=range(1, 3)),
    Recorded(settings.ROW_CHECKSUM, "4.2", "false", takes=_WORDS_OF_BOOLEANS),
    Recorded(settings.SOURCE_EVOLUTION, "4.2", "false", takes=_WORDS_OF_BOOLEANS),
    Recorded(settings.PROTOBUF_EXTENSIONS, "4.2", "false", takes=_WORDS_OF_BOOLEANS),
    Recorded(settings.ALWAYS_NULLABLE, "4.3", "false", takes=_WORDS_OF_BOOLEANS),
    Recorded(settings.DISTINCT_KEY_ORDER, "4.3", "false", takes=_WORDS_OF_BOOLEANS),
)
"""``OffsetSeqMetadata.relevantSQLConfs`` of the first and the last release of each minor version; every version with a
forecast was asked what it takes (``tests/inspection/preflight/record.py``)."""


def first_with(ability: Callable[[Rules], bool]) -> Spark:
    """The oldest version of which something holds."""
    return next(spark for spark, rules in RULES.items() if ability(rules))


@lru_cache
def known_version(text: str) -> Spark | None:
    """The version that a release (``4.2.1``) is one of, or the newest known one before it; None for one too old."""
    parts = re.match(r"(\d+)\.(\d+)", text)
    release = (int(parts[1]), int(parts[2])) if parts else (0, 0)
    return newest(spark for spark in Spark if tuple(map(int, spark.split("."))) <= release)


def newest(versions: Iterable[Spark | None]) -> Spark | None:
    """The newest of some versions, as far as they are known."""
    return max((version for version in versions if version), key=lambda version: version.rank, default=None)
