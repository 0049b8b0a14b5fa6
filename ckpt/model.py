"""What a checkpoint holds, in Spark's words.

Frozen records only: they do not know where they were read from (``ckpt.storage``), how bytes became them
(``ckpt.formats``), what follows from them (``ckpt.restart``, ``ckpt.checks``) or how they are shown.
Paths are relative to the checkpoint, with ``/``; times are ms since the epoch, sizes are bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, Union

Json: TypeAlias = Union[None, bool, int, float, str, list["Json"], dict[str, "Json"]]


class Kind(StrEnum):
    """What lies at the place that was opened."""

    MICRO_BATCH = "micro-batch"
    CONTINUOUS = "continuous"
    EMPTY = "empty"


class Fault(StrEnum):
    """Why a file that is there cannot be read, as far as Spark tells such cases apart."""

    EMPTY = "empty"  # zero bytes, or only line ends where Spark sees no line
    BAD_VERSION = "bad-version"  # the first line is not v<number>
    NEWER_VERSION = "newer-version"  # v<number>, but no Spark up to 4.3 writes that number
    INCOMPLETE = "incomplete"  # a version line and nothing behind it
    TRUNCATED_JSON = "truncated-json"  # JSON that stops before its end
    BAD_JSON = "bad-json"  # not JSON, or JSON of another shape
    BAD_BINARY = "bad-binary"  # a binary file (schema, zip, ...) that cannot be decoded
    VANISHED = "vanished"  # listed, and gone when it was to be read


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that is there and cannot be read; damage is data, so this stands where the record would."""

    path: str
    fault: Fault
    reason: str  # ckpt's own words, one line, no control characters
    version: int | None = None  # of the version line, where it could be read


@dataclass(frozen=True, slots=True)
class QueryMetadata:
    """``metadata``: the identity of the query (Spark class ``StreamMetadata``)."""

    query_id: str


@dataclass(frozen=True, slots=True)
class OffsetMetadata:
    """The second line of an offset file (Spark class ``OffsetSeqMetadata``)."""

    watermark_ms: int
    timestamp_ms: int
    conf: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """Where one source stands at the end of a batch: one line of an offset file behind the second."""

    name: str | None  # offset log v2 names its sources
    text: str | None  # as it stands in the file; None where the file has "-" (no offset yet)
    value: Json  # the parsed text; None where there is none or ``well_formed`` is false
    well_formed: bool = True  # the text is JSON


@dataclass(frozen=True, slots=True)
class OffsetLog:
    """One file of ``offsets/`` (Spark classes ``OffsetSeqLog``, ``OffsetSeq``, ``OffsetMap``)."""

    version: int
    metadata: OffsetMetadata | None  # Spark <= 2.1 may write an empty line
    sources: tuple[SourceOffset, ...]


@dataclass(frozen=True, slots=True)
class SinkCommit:
    """What commit log v3 records of one sink (Spark class ``SinkMetadataInfo``)."""

    name: str
    commit_offset: Json
    provider: str | None
    active: bool | None


@dataclass(frozen=True, slots=True)
class CommitLog:
    """One file of ``commits/`` (Spark class ``CommitLog``)."""

    version: int
    next_watermark_ms: int | None  # None: not recorded (Spark <= 2.3, or a file that ends early)
    state_unique_ids: Mapping[int, tuple[tuple[str, ...], ...]] | None = None  # operator -> [partition][store]
    sinks: tuple[SinkCommit, ...] = ()


OffsetEntry: TypeAlias = OffsetLog | Unreadable
CommitEntry: TypeAlias = CommitLog | Unreadable


class Provider(StrEnum):
    """Which state store wrote the files."""

    HDFS = "hdfs"
    ROCKSDB = "rocksdb"
    UNKNOWN = "unknown"


class StateFileKind(StrEnum):
    """What a state file holds; the value is the ending of its name."""

    DELTA = "delta"  # HDFS-backed: the changes of one version
    SNAPSHOT = "snapshot"  # HDFS-backed: everything at one version
    CHANGELOG = "changelog"  # RocksDB: the changes of one version
    ZIP = "zip"  # RocksDB: a snapshot of one version, naming its SST files


@dataclass(frozen=True, slots=True)
class StateFile:
    """One versioned file of a state store's partition."""

    version: int
    kind: StateFileKind
    size: int  # bytes
    path: str  # relative to the checkpoint
    unique_id: str | None = None  # state store checkpoint format 2


class DamageKind(StrEnum):
    """What is wrong with a state file that a load needs."""

    MISSING = "missing"  # the chain has a hole: this file is not there
    EMPTY = "empty"  # zero bytes
    TRUNCATED = "truncated"  # the tail is not that of a whole file, or it is shorter than recorded
    UNREADABLE = "unreadable"  # a zip or its ``metadata`` entry cannot be decoded
    MISSING_SST = "missing-sst"  # the zip names an SST file that is not there
    MISSING_PARTITION = "missing-partition"  # the folder of a partition or store is not there
    MISSING_STATE = "missing-state"  # the operator, or state/ as a whole, is not there


@dataclass(frozen=True, slots=True)
class StateDamage:
    """Why one version of one store cannot be loaded in one partition."""

    kind: DamageKind
    operator: int
    store: str
    partition: int | None  # None where whole folders are missing
    version: int  # the version that cannot be loaded
    path: str  # the file or folder that is missing or damaged
    file_kind: StateFileKind | None
    detail: str


@dataclass(frozen=True, slots=True)
class StateVariable:
    """A transformWithState variable, from ``operatorPropertiesJson`` (Spark class ``TransformWithStateVariableInfo``)."""

    name: str
    kind: str  # value, list, map
    ttl: bool


@dataclass(frozen=True, slots=True)
class ColumnFamily:
    """One column family of a state store, as its schema file or RocksDB zip names it."""

    name: str
    key_schema: Json
    value_schema: Json


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One store in one partition."""

    partition: int
    bytes: int  # of its state files, SST files included
    files: int
    num_keys: int | None  # where the store records it (RocksDB zip) and no later change is unread
    newest_version: int | None
    replay_versions: int | None  # delta or changelog files that a load of the needed version replays
    readable_versions: tuple[tuple[int, int], ...]  # inclusive ranges, by existence of files


@dataclass(frozen=True, slots=True)
class Store:
    """One state store of an operator, over all its partitions."""

    name: str
    partitions: tuple[PartitionState, ...]
    expected_partitions: int | None  # as operator metadata or the recorded conf says
    changelog: bool
    readable_batches: tuple[tuple[int, int], ...]  # batches whose state loads in every partition
    newest_snapshot_version: int | None  # that every partition has
    column_families: tuple[ColumnFamily, ...]
    key_schema: Json
    value_schema: Json


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


@dataclass(frozen=True, slots=True)
class StateInventory:
    """All that ``state/`` holds, and whether the version that the next start needs can be loaded."""

    provider: Provider
    format_version: int  # state store checkpoint format: 1, or 2 with unique ids
    operators: tuple[Operator, ...]
    needed_version: int | None  # what the next start loads; None where it loads nothing
    damages: tuple[StateDamage, ...]  # of the needed version
    unreadable: tuple[Unreadable, ...]  # operator metadata and schema files that cannot be read
