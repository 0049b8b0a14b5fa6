"""The records of a checkpoint, in Spark's words.

Frozen records only: they do not know where they were read from (``ckpt.storage``), how bytes became them
(``ckpt.formats``), what follows from them (``ckpt.restart``, ``ckpt.inspection.checks``) or how they are shown.
Paths are relative to the checkpoint, with ``/``; times are ms since the epoch, sizes are bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from os import PathLike
from typing import Annotated, NamedTuple, TypeAlias

Location: TypeAlias = str | PathLike[str]
"""A checkpoint's path, its URI, or the ``Checkpoint`` itself."""
Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None


class BatchAt(int):
    """A batch that was named by a time (``ckpt.checkpoint.times``)."""

    says: str  # the time, the batch, and what shows that it is that one


class Kind(StrEnum):
    """The kind of place that was opened."""

    MICRO_BATCH = "micro-batch"
    CONTINUOUS = "continuous"
    EMPTY = "empty"


class Fault(StrEnum):
    """Why an existing file cannot be read, as far as Spark distinguishes such cases."""

    EMPTY = "empty"  # zero bytes, or only line ends where Spark sees no line
    BAD_VERSION = "bad-version"  # the first line is not v<number>
    NEWER_VERSION = "newer-version"  # v<number>, but no known Spark writes that number
    INCOMPLETE = "incomplete"  # a version line and nothing after it
    TRUNCATED_JSON = "truncated-json"  # JSON that stops before its end
    BAD_JSON = "bad-json"  # not JSON, or JSON of another shape
    JAVA_SERIALIZED = "java-serialized"  # offsets as Spark 2.0 wrote them
    BAD_BINARY = "bad-binary"  # a binary file (schema, zip, ...) that cannot be decoded
    TOO_LARGE = "too-large"  # larger than ckpt reads (``ckpt.formats.limits``); what Spark does is unknown
    UNFINISHED = "unfinished"  # what stands for the newest offsets until ckpt has written a new checkpoint as a whole
    UNFINISHED_CHANGE = "unfinished-change"  # what stands for them while ckpt changes a checkpoint in place
    VANISHED = "vanished"  # listed, and gone when it was to be read
    LEADS_OUT = "leads-out"  # a symbolic link out of the checkpoint, which Spark follows and ckpt does not
    REFUSED = "refused"  # the storage does not let ckpt read it (permission, I/O error); whether Spark may is unknown


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that exists and cannot be read; damage is data, so this takes the place of the record."""

    path: str
    fault: Fault
    reason: str  # ckpt's own words, one line, no control characters
    version: int | None = None  # of the version line, where it could be read
    says: str | None = None  # words that the message of every Spark version contains when it reads this file


@dataclass(frozen=True, slots=True)
class QueryMetadata:
    """``metadata``: the identity of the query (Spark class ``StreamMetadata``)."""

    query_id: str


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """A batch as it was planned once: under its id another one may be planned later."""

    batch: int
    planned_ms: int  # when its offsets were planned; 0 where they do not say


@dataclass(frozen=True, slots=True)
class OffsetMetadata:
    """The second line of an offset file (Spark class ``OffsetSeqMetadata``)."""

    watermark_ms: int
    timestamp_ms: int
    conf: Mapping[str, str]
    text: str | None = None  # as in the file; written again unchanged, None writes the fields above


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """The position of one source at the end of a batch: one line of an offset file after the second."""

    name: str | None  # offset log v2 names its sources
    text: str | None  # as in the file; None if the file has "-" (no offset yet)
    value: Json  # the parsed text; None where there is none or ``well_formed`` is false
    well_formed: bool = True  # the text is JSON
    cut: bool = False  # the text is JSON that stops before its end


@dataclass(frozen=True, slots=True)
class OffsetLog:
    """One file of ``offsets/`` (Spark classes ``OffsetSeqLog``, ``OffsetSeq``, ``OffsetMap``)."""

    version: int
    metadata: OffsetMetadata | None  # Spark <= 2.1 may write an empty line
    sources: tuple[SourceOffset, ...]

    @property
    def names_sources(self) -> bool:
        """True if its lines are found by the names of the sources, not by their order."""
        return self.version > 1


class SinkCommit(NamedTuple):
    """One sink in commit log v3 (Spark class ``SinkMetadataInfo``)."""

    name: str
    commit_offset: Json
    provider: str | None
    active: bool | None
    api_version: str | None = None


@dataclass(frozen=True, slots=True)
class CommitLog:
    """One file of ``commits/`` (Spark class ``CommitLog``)."""

    version: int
    next_watermark_ms: int | None  # None: not recorded (Spark <= 2.3, or a file that ends early)
    state_unique_ids: Mapping[int, tuple[tuple[str, ...], ...]] | None = None  # operator -> [partition][store]
    sinks: tuple[SinkCommit, ...] = ()


class Provider(StrEnum):
    """The state store provider that wrote the files."""

    HDFS = "hdfs"
    ROCKSDB = "rocksdb"
    UNKNOWN = "unknown"


class ToProvider(StrEnum):
    """The state store provider that is wanted."""

    ROCKSDB = "rocksdb"
    HDFS = "hdfs"


class StateFileKind(StrEnum):
    """The kinds of state file; the value is the ending of the name."""

    DELTA = "delta"  # HDFS-backed: the changes of one version
    SNAPSHOT = "snapshot"  # HDFS-backed: everything at one version
    CHANGELOG = "changelog"  # RocksDB: the changes of one version
    ZIP = "zip"  # RocksDB: a snapshot of one version, naming its SST files
    SST = "sst"  # RocksDB: a sorted table that snapshots share, in ``SSTs/``


class StateFile(NamedTuple):
    """One versioned file of a state store's partition."""

    version: int
    kind: StateFileKind
    size: int  # bytes
    path: str  # relative to the checkpoint
    unique_id: str | None = None  # state store checkpoint format 2


class DamageKind(StrEnum):
    """The kinds of damage of a state file that a load needs."""

    MISSING = "missing"  # the chain has a hole: this file is not there
    EMPTY = "empty"  # zero bytes
    TRUNCATED = "truncated"  # data is missing at its end, or it is shorter than recorded
    ODD_END = "odd-end"  # all its data is there, but its end mark is not, or Spark's checksum of it is empty
    UNREADABLE = "unreadable"  # it is not a file of its kind, or a zip whose ``metadata`` entry cannot be decoded
    MISSING_SST = "missing-sst"  # the zip names an SST file that is not there
    BAD_SCHEMA = "bad-schema"  # a state schema, or the operator metadata that names it, is gone or cannot be read
    MISSING_PARTITION = "missing-partition"  # the folder of a partition or store is not there
    MISSING_STATE = "missing-state"  # the operator, or all of state/, is missing
    VERSION_2 = "version-2"  # a RocksDB snapshot as only Spark 4.0 writes and reads it
    VERSION_1 = "version-1"  # one of state store checkpoint format 2 that every version but Spark 4.0 reads
    STRAY = "stray"  # among the snapshots is a file whose name is no version: Spark stops where it lists them
    BLOCKED = "blocked"  # a folder is in the place of the file of the next version
    LEADS_OUTSIDE = "leads-outside"  # a block of a stream repeats bytes from before it: Spark 3.5 may read it
    BAD_END = "bad-end"  # a changelog without records whose end mark is damaged: no trouble before Spark 4.0
    BAD_BLOCK = "bad-block"  # a block of an SST file does not match its checksum: seen when it is read
    CHECKSUM_DIFFERS = "checksum-differs"  # Hadoop's hidden checksum is not of this content; nothing else is wrong
    WRONG_PARTITION = "wrong-partition"  # keys in the files of a partition where Spark does not look for them
    OTHER_CODEC = "other-codec"  # it is compressed with LZ4, and the newest offsets record another codec
    BAD_ROW = "bad-row"  # rows of a partition do not fit the state schema: seen when they are read
    MISSING_ROWS = "missing-rows"  # a join counts rows that are not there: seen when it looks for them
    CONTRADICTION = "contradiction"  # what a partition keeps twice differs: rows and their count, or their index
    CHANGED = "changed"  # the same of a state schema or operator metadata: it may say something else now
    FOREIGN = "foreign"  # a snapshot of abandoned batches: it holds other rows than the changes up to its version
    OTHER_SCHEMA = "other-schema"  # no row of an operator fits its schema file here, which no start reads


OF_FOLDERS = frozenset(
    {
        DamageKind.MISSING_PARTITION,
        DamageKind.MISSING_STATE,
        DamageKind.BLOCKED,
        DamageKind.WRONG_PARTITION,
        DamageKind.BAD_ROW,
        DamageKind.MISSING_ROWS,
        DamageKind.CONTRADICTION,
    }
)
"""Kinds whose path is that of a folder."""


@dataclass(frozen=True, slots=True)
class StateDamage:
    """Damage of the files from which one version of one store is loaded in one partition.

    Whether a start fails over it depends on the Spark version: ``ckpt.restart.state_errors``.
    """

    kind: DamageKind
    operator: int | None  # None if all of ``state/`` is missing
    store: str | None
    partition: int | None  # None if entire folders are missing
    version: int  # the version that is to be loaded
    path: str  # the file or folder that is missing or damaged
    file_kind: StateFileKind | None
    detail: str
    fallback: bool = False  # the damaged file is a snapshot, and the state can be rebuilt without it
    all_logs: bool = False  # it cannot, though every log from the first one on is there: one of them is damaged
    changelog: bool = False  # RocksDB: the store has changelog files
    checksummed: bool = False  # the damaged one has a checksum file (Spark >= 4.1)
    format_version: int = 1  # state store checkpoint format
    says: str | None = None  # words that the error of every Spark version, or one of its causes, contains
    missing: tuple[str, ...] = ()  # the other files of the chain that are missing


class FileDamage(NamedTuple):
    """Damage of one file of the state, whether or not the next start loads it."""

    path: str
    kind: DamageKind
    detail: str


@dataclass(frozen=True, slots=True)
class EveryByte:
    """The result of reading every byte of every file that the state of any loadable batch needs."""

    files: int
    bytes: int
    damages: tuple[FileDamage, ...]  # by path
    unknown: tuple[str, ...]  # files that nothing says anything about, or that could not be read
    reasons: Mapping[str, str] = field(default_factory=dict)  # of such files
    partitions: int = 0  # of all operators
    compared: int = 0  # of which rows were compared with their schema and with one another
    rows_unread: bool = False  # no row could be: the state as of the newest committed batch cannot be read


@dataclass(frozen=True, slots=True)
class StateVariable:
    """A transformWithState variable, from ``operatorPropertiesJson`` (Spark ``TransformWithStateVariableInfo``)."""

    name: str
    kind: Annotated[str, "as Spark names it: ValueState, ListState, MapState, TimerState"]
    ttl: bool


class StoreMetadata(NamedTuple):
    """One store in operator metadata (Spark ``StateStoreMetadataV1``, ``StateStoreMetadataV2``)."""

    name: str
    num_cols_prefix_key: int
    partitions: int
    schema_paths: tuple[str, ...] = ()  # absolute, transformWithState only


class OperatorMetadata(NamedTuple):
    """``state/<op>/_metadata/metadata`` or ``_metadata/v2/<batch>`` (Spark ``OperatorStateMetadata``)."""

    version: int
    operator_id: int
    name: str
    stores: tuple[StoreMetadata, ...]
    properties: Json = None  # operatorPropertiesJson, parsed
    variables: tuple[StateVariable, ...] = ()


class ColumnFamily(NamedTuple):
    """One column family of a state store, as its schema file names it (Spark ``StateStoreColFamilySchema``)."""

    name: str
    key_schema: Json  # a StructType as Spark writes it in JSON
    value_schema: Json
    key_encoder: Json = None  # keyStateEncoderSpec, schema file v3
    user_key_schema: Json = None  # of a map variable, schema file v3
    evolved: bool = False  # it is a later generation of a schema than the first
    generation: int = 0  # of the value schema, which Avro rows name
    older: tuple[tuple[int, Json], ...] = ()  # value schemas of earlier generations, of state that is encoded as Avro


@dataclass(frozen=True, slots=True)
class RocksDBSnapshot:
    """The ``metadata`` entry of a RocksDB zip (Spark ``RocksDBCheckpointMetadata``)."""

    ssts: tuple[tuple[str, int], ...]  # name under ``SSTs/`` and size in bytes
    logs: tuple[tuple[str, int], ...]  # archived write-ahead logs: name under ``logs/`` and size in bytes
    num_keys: int | None  # None where the query did not count them
    column_families: Mapping[str, int]  # the number that begins each key of a family
    internal_families: frozenset[str] = frozenset()  # those that Spark keeps for itself: their keys do not count
    version: int = 1  # of the entry: 2 in state store checkpoint format 2 of Spark 4.0
    local_names: Mapping[str, str] = field(default_factory=dict)  # of SST files: in the database -> under ``SSTs/``

    @property
    def bytes(self) -> int:
        """The sizes of the files that it names."""
        return sum(size for _, size in self.ssts + self.logs)


class PartitionState(NamedTuple):
    """One store in one partition."""

    partition: int
    bytes: int  # of its state files, SST files included
    files: int
    num_keys: int | None  # where a RocksDB zip of exactly the needed version records it
    newest_version: int | None
    replay_versions: Annotated[int | None, "how many versions a load of the required one replays"]


@dataclass(frozen=True, slots=True)
class Store:
    """One state store of an operator, over all its partitions."""

    name: str
    partitions: tuple[PartitionState, ...] = ()  # those whose folder is there, sorted
    expected_partitions: int | None = None  # as operator metadata or the recorded conf says
    changelog: bool = False
    readable_batches: tuple[tuple[int, int], ...] = ()  # committed, and loadable everywhere as far as was seen
    newest_snapshot_version: int | None = None  # that every partition has
    newest_snapshots: tuple[int | None, int] | None = None  # lowest (None: one has none) and highest of each newest
    column_families: tuple[ColumnFamily, ...] = ()
    key_schema: Json = None
    value_schema: Json = None
    growth: float | None = None  # bytes a batch by which snapshots grew; None where no partition has two to compare
    prefix_columns: int | None = None  # how many columns of the key are its prefix, as operator metadata says

    @property
    def bytes(self) -> int:
        """The sizes of its files in all partitions together."""
        return sum(partition.bytes for partition in self.partitions)

    @property
    def num_keys(self) -> int | None:
        """How many keys it holds at the needed version, where every partition records it."""
        counts = [partition.num_keys for partition in self.partitions]
        known = [count for count in counts if count is not None]
        return sum(known) if counts and len(known) == len(counts) else None


@dataclass(frozen=True, slots=True)
class Operator:
    """One stateful operator: the folder ``state/<id>``."""

    id: int
    name: str | None  # from operator metadata, Spark >= 4.0
    stores: tuple[Store, ...]
    variables: tuple[StateVariable, ...] = ()
    properties: Json = None  # operatorPropertiesJson, parsed
    schema_paths: tuple[str, ...] = ()  # absolute, as operator metadata v2 records them
    has_metadata: bool = False
    recorded_id: int | None = None  # the number in operator metadata, which is that of its folder
    older: tuple["OperatorMetadata", ...] = ()  # operator metadata v2 of earlier batches, the newest two first


class NewerState(NamedTuple):
    """State files of versions above any in the logs: the remains of an abandoned timeline."""

    first_version: int
    last_version: int
    files: int
    example: str  # path of one of them
    harmful: bool = True  # some are read or cause others to be deleted later; False: each is overwritten before that


@dataclass(frozen=True, slots=True)
class Unneeded:
    """Files of state that no restart needs, judging by names and sizes: bytes; None where these do not say."""

    old_versions: int | None
    orphans: int | None  # SST files that no zip names


@dataclass(frozen=True, slots=True)
class NotRead:
    """State files that the next start loads, known by names, sizes and ends only."""

    files: Annotated[int, "how many"]
    bytes: Annotated[int, "their sizes"]

    def __bool__(self) -> bool:
        """True if there are any."""
        return bool(self.files or self.bytes)


@dataclass(frozen=True, slots=True)
class StateInventory:
    """All that ``state/`` holds, and whether the version that the next start needs can be loaded."""

    provider: Provider
    format_version: int  # state store checkpoint format: 1, or 2 with unique ids
    codec: str | None  # of deltas and changelogs, as recorded; None where it is not
    operators: tuple[Operator, ...]
    needed_version: int | None  # what the next start loads; None where it loads nothing
    damages: tuple[StateDamage, ...]  # of the needed version
    newer: NewerState | None
    moved_schemas: tuple[str, ...]  # recorded schema paths (transformWithState) that are not in this checkpoint
    unreadable: tuple[Unreadable, ...]  # operator metadata and schema files that cannot be read
    unneeded: Unneeded = Unneeded(None, None)
    strays: tuple[str, ...] = ()  # files named nearly as those of a store, in which no start looks
    every_byte: EveryByte | None = None  # None: only what the next start loads was read, up to a bound
    not_read: NotRead = NotRead(0, 0)
    damaged_files: tuple[FileDamage, ...] = ()  # of those that were read completely
