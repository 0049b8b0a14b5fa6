"""The names of Spark's settings that a checkpoint records or depends on, each spelled once."""

_STREAMING = "spark.sql.streaming."
_STATE_STORE = _STREAMING + "stateStore."

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
SESSION_TIME_ZONE = "spark.sql.session.timeZone"
EXECUTOR_TIME_ZONE = "spark.executorEnv.TZ"

AGGREGATION_FORMAT = _STREAMING + "aggregation.stateFormatVersion"
CHECK_UNFINISHED_REPARTITION = _STREAMING + "checkUnfinishedRepartitionOnRestart"
CHECKPOINT_FILE_MANAGER = _STREAMING + "checkpointFileManagerClass"
EMPTY_BATCHES = _STREAMING + "noDataMicroBatches.enabled"
JOIN_FORMAT = _STREAMING + "join.stateFormatVersion"
MIN_BATCHES_TO_RETAIN = _STREAMING + "minBatchesToRetain"
SOURCE_EVOLUTION = _STREAMING + "queryEvolution.enableSourceEvolution"
WATERMARK_POLICY = _STREAMING + "multipleWatermarkPolicy"

CHANGELOG_CHECKPOINTING = _STATE_STORE + "rocksdb.changelogCheckpointing.enabled"
CHECKPOINT_FORMAT = _STATE_STORE + "checkpointFormatVersion"
COMPRESSION_CODEC = _STATE_STORE + "compression.codec"
ENCODING_FORMAT = _STATE_STORE + "encodingFormat"
FORMAT_VALIDATION = _STATE_STORE + "formatValidation.enabled"
MAINTENANCE_INTERVAL = _STATE_STORE + "maintenanceInterval"
MERGE_OPERATOR = _STATE_STORE + "rocksdb.mergeOperatorVersion"  # how list elements are put together
PROVIDER_CLASS = _STATE_STORE + "providerClass"
STRICT_DISTRIBUTION = "spark.sql.streaming.statefulOperator.useStrictDistribution"
ROW_CHECKSUM = _STATE_STORE + "rowChecksum.enabled"

_STATE_CLASSES = "org.apache.spark.sql.execution.streaming.state."
HDFS_PROVIDER = _STATE_CLASSES + "HDFSBackedStateStoreProvider"
ROCKSDB_PROVIDER = _STATE_CLASSES + "RocksDBStateStoreProvider"
