"""Words that Spark's own messages contain, so that whoever has a stack trace finds the forecast that explains it.

``tests/restart/oracle`` compares each with what Spark said. The words for a file that cannot be read are with the file
(``Unreadable.says``).
"""

from ckpt.versions import Rules

NEWER_VERSION = "UnsupportedLogVersion"
SOURCES_DIFFER = "sources in the checkpoint offsets and now there are"
ASYNC_REFUSES_STATE = "support async progress tracking at this moment"
USED_CONCURRENTLY = "Multiple streaming queries are concurrently using"
NO_SHUFFLE_PARTITIONS = "None.get"
UNFINISHED_REPARTITION = "STREAMING_UNFINISHED_REPARTITION_DETECTED"
ASSERTION_FAILED = "assertion failed"
NOT_EMPTY = "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY"
NO_UUID = "Invalid UUID string"
OPERATORS_DIFFER = "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"
CUT_OFFSET = "Unexpected end-of-input"
CUT_KAFKA_OFFSET = "Expected e.g. {"  # and an example, "got", and the offset as it is
MISSING_METADATA = "STREAMING_CHECKPOINT_MISSING_METADATA_FILE"
TOO_MANY_BATCHES = "More than Int.MaxValue elements"


def does_not_exist(batch_id: int) -> str:
    """``MicroBatchExecution.validateOffsetLogAndGetPrevOffset``."""
    return f"batch {batch_id} doesn't exist"


def previous_not_found(batch_id: int) -> str:
    """``OfflineStateRepartitionUtils.isRepartitionBatch``, Spark 4.2 and later."""
    return f"Previous batch {batch_id} not found in offset log"


def concurrent_update(batch_id: int) -> str:
    """``QueryExecutionErrors.concurrentStreamLogUpdate``."""
    return f"Multiple streaming jobs detected for {batch_id}"


def no_metadata(batch_id: int) -> str:
    """``OfflineStateRepartitionUtils.isRepartitionBatch``, Spark 4.2 and later."""
    return f"atch {batch_id} metadata not found"


def no_such_file(path: str) -> str:
    """Hadoop's words for a log file that was listed and is not there."""
    return f"{path} does not exist"


def no_schema_file(begins: str) -> str:
    """Hadoop's words for a local schema file that operator metadata names; ``begins`` is how its path does."""
    return f"FileNotFoundException: File {begins}"


def offsets_not_found(batch_id: int) -> str:
    """``AsyncProgressTrackingMicroBatchExecution.validateOffsetLogAndGetPrevOffset``."""
    return f"Offset metadata for batch Some({batch_id}) cannot be found"


def gone(path: str) -> str:
    """``CompactibleFileStreamLog.allFiles``."""
    return f"{path} doesn't exist"


def no_join_format(version: int) -> str:
    """``SymmetricHashJoinStateManager`` of Spark 4.2."""
    return f"State format version {version} is under development"


NO_TOPIC = "This server does not host this topic-partition"


def offset_changed(start: int, end: int) -> str:
    """``KafkaExceptions.partitionOffsetChanged``: a Kafka partition ends before the next batch starts."""
    return f"offset was changed from {start} to {end}"


FILES_REVERSED = "assertion failed"
"""``FileStreamSource.getBatch``, which says no more."""


def offsets_reversed(start: int, end: int) -> str:
    """``RatePerMicroBatchStream.planInputPartitions``."""
    return f"startOffset({start}) > endOffset({end})"


def added_partition(topic: str, partition: int, first: int) -> str:
    """``KafkaExceptions.addedPartitionDoesNotStartFromZero``."""
    return f"Added partition {topic}-{partition} starts from {first} instead of 0"


def partitions_deleted(rules: Rules) -> str:
    """``KafkaExceptions.partitionsDeleted``: the query reads fewer partitions than before."""
    return "have been deleted" if rules.names_kafka_loss else "are gone"


def unread(start: int, rules: Rules) -> str:
    """``KafkaExceptions.couldNotReadOffsetRange``: rows from an offset on are not there."""
    return f"Could not read records in offset [{start}, " if rules.names_kafka_loss else "out of range"


def no_position(topic: str, partition: int) -> str:
    """Kafka's consumer, which waits ``default.api.timeout.ms`` for a partition that is not there."""
    return f"before the position for partition {topic}-{partition} could be determined"


OTHER_DELTA_TABLE = "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
DELTA_LOG_CLEANED = "DELTA_MISSING_FILES_UNEXPECTED_VERSION"
DELTA_VERSIONS_MISSING = "DELTA_STREAMING_TRAILING_COMMIT_MISSING"
NO_DELTA_SNAPSHOT = "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE"
DELTA_CHANGES = "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
DELTA_DELETES = "DELTA_SOURCE_IGNORE_DELETE"
DELTA_COLUMNS_CHANGED = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE"
WRONG_BASE_PATH = "Wrong basePath"
WRONG_FILE_SYSTEM = "Wrong FS"
ICEBERG_SNAPSHOT_GONE = "the snapshot was expired or removed"


def iceberg_rolled_back(*, cut: bool, in_batch: bool) -> str:
    """Iceberg looks for the parent of a table's first snapshot, and Spark calls that in a plan an error of its own."""
    if cut:
        return "not an ancestor of table's current snapshot"
    return "INTERNAL_ERROR" if in_batch else "Snapshot.parentId()"


def no_data_file(rules: Rules) -> str:
    """``FileScanRDD``: a data file is gone."""
    return "FAILED_READ_FILE.FILE_NOT_EXIST" if rules.names_kafka_loss else "does not exist"
