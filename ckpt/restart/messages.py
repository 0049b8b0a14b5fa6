"""Words that Spark's own messages contain, so that whoever has a stack trace finds the forecast that explains it.

``tests/restart/oracle`` compares each with what Spark said. The words for a file that cannot be read are with the file
(``Unreadable.says``).
"""

from ckpt.versions import Rules

NEWER_VERSION = "UnsupportedLogVersion"
SOURCES_DIFFER = "sources in the checkpoint offsets and now there are"
ASYNC_REFUSES_STATE = "support async progress tracking at this moment"
USED_CONCURRENTLY = "Multiple streaming queries are concurrently using"
RENAME_DESTINATION = "Rename destination"
NO_SHUFFLE_PARTITIONS = "None.get"
UNFINISHED_REPARTITION = "STREAMING_UNFINISHED_REPARTITION_DETECTED"
ASSERTION_FAILED = "assertion failed"
NOT_EMPTY = "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY"
NO_UUID = "Invalid UUID string"
OPERATORS_DIFFER = "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"
CUT_OFFSET = "Unexpected end-of-input"
CUT_KAFKA_OFFSET = "Expected e.g. {"  # and an example, "got", and the offset as it is
NO_WATERMARK_TRACKER = "MicroBatchExecution.watermarkTracker()"  # which the offsets of continuous processing lack
MISSING_METADATA = "STREAMING_CHECKPOINT_MISSING_METADATA_FILE"
TOO_MANY_BATCHES = "More than Int.MaxValue elements"

# Templates, and who says it.
DOES_NOT_EXIST = "batch {} doesn't exist"  # MicroBatchExecution.validateOffsetLogAndGetPrevOffset
PREVIOUS_NOT_FOUND = "Previous batch {} not found in offset log"  # OfflineStateRepartitionUtils, 4.2 and later
CONCURRENT_UPDATE = "Multiple streaming jobs detected for {}"  # QueryExecutionErrors.concurrentStreamLogUpdate
NO_METADATA = "atch {} metadata not found"  # OfflineStateRepartitionUtils, 4.2 and later
NO_SUCH_FILE = "{} does not exist"  # Hadoop, of a log file that was listed and is not there
NO_SCHEMA_FILE = "FileNotFoundException: File {}"  # Hadoop, of a local schema file: how its path begins
OFFSETS_NOT_FOUND = "Offset metadata for batch Some({}) cannot be found"  # AsyncProgressTrackingMicroBatchExecution
GONE = "{} doesn't exist"  # CompactibleFileStreamLog.allFiles
NO_JOIN_FORMAT = "State format version {} is under development"  # SymmetricHashJoinStateManager of Spark 4.2
OFFSET_CHANGED = "offset was changed from {} to {}"  # KafkaExceptions: a partition ends before the next batch starts
OFFSETS_REVERSED = "startOffset({}) > endOffset({})"  # RatePerMicroBatchStream.planInputPartitions
ADDED_PARTITION = "Added partition {}-{} starts from {} instead of 0"  # KafkaExceptions
NO_POSITION = "before the position for partition {}-{} could be determined"  # Kafka's consumer, in the end

NO_TOPIC = "This server does not host this topic-partition"
FILES_REVERSED = "assertion failed"  # ``FileStreamSource.getBatch``, which says no more


OTHER_BASE_ID = "STATE_STORE_BASE_CHECKPOINT_ID_MISMATCH"  # StateStoreWriter, 4.2 and later
NO_FAMILIES = "STDS_FAILED_TO_READ_OPERATOR_METADATA"  # a join in state format 3 or 4 looks for its schemas
NO_AVRO = "StateSchemaProvider should always be defined"  # RocksDBStateEncoder
NO_TABLE_FORMAT = "Unsupported BlockBasedTable format_version"  # RocksDB
NO_END_OFFSETS = "Batch {} was committed without end epoch offsets"  # ContinuousExecution
# The end of STREAMING_REAL_TIME_MODE:
REAL_TIME_FORMAT_1 = "CHECKPOINT_FORMAT_V1_NOT_SUPPORTED"
REAL_TIME_SOURCE = "INPUT_STREAM_NOT_SUPPORTED"
REAL_TIME_OPERATOR = "OPERATOR_OR_SINK_NOT_IN_ALLOWLIST"
REAL_TIME_IN_PYTHON = "STDS_FAILED_TO_READ_OPERATOR_METADATA"  # transformWithState in Python, on 4.3.0
REAL_TIME_NO_END = "latestPartitionOffsets should be set"  # KafkaMicroBatchStream: batch L is to run, and c is later
SOURCES_UNNAMED = "All sources should be named"  # MicroBatchExecution


def value_schema_differs(rules: Rules) -> str:
    """``StateSchemaCompatibilityChecker``: the query would write other values."""
    return "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE" if rules.names_state_errors else "Provided schema doesn't match"


def partitions_deleted(rules: Rules) -> str:
    """``KafkaExceptions.partitionsDeleted``: the query reads fewer partitions than before."""
    return "have been deleted" if rules.names_kafka_loss else "are gone"


def unread(start: int, rules: Rules) -> str:
    """``KafkaExceptions.couldNotReadOffsetRange``: rows from an offset on are not there."""
    return f"Could not read records in offset [{start}, " if rules.names_kafka_loss else "out of range"


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
