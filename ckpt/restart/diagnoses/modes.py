"""Diagnoses of real-time mode, declarative pipelines and other younger modes (CKPT25x)."""

from ckpt.restart.diagnoses.common import error, note, warning

REAL_TIME_REFUSED = error(
    "CKPT250 real-time-mode-refused",
    "Spark does not run this query in real-time mode. It has the mode from 4.1 on, for queries without state that read "
    "Kafka; from 4.3 on also for aggregations and dropDuplicates. A start that it refuses writes nothing.",
    "Start the query in micro-batches, without `.trigger(realTime=...)`.",
)
REAL_TIME_FORMAT = error(
    "CKPT251 real-time-mode-needs-format-2",
    "Real-time mode of Spark 4.3 continues only after a commit of version 2, which has state store checkpoint format "
    "2, also without state. It fails at start (CHECKPOINT_FORMAT_V1_NOT_SUPPORTED), and has deleted a planned batch by "
    "then: a later start in micro-batches reads its rows in a new batch, of another range. With "
    "`spark.sql.streaming.realTimeMode.dangerouslyAllowCheckpointV1.enabled=true` it starts, and may lose state when "
    "it is killed.",
    "`ckpt migrate real-time {checkpoint}` says how the query continues in real-time mode. Or start it in "
    "micro-batches.",
)
PLANNED_DELETED = note(
    "CKPT252 planned-batch-deleted",
    "A start in real-time mode, or with a continuous trigger, deletes planned batches that are not committed, and "
    "plans the next one from the end of the newest commit to what the sources have then: the id gets another range. No "
    "row is lost; rows that the deleted batch has written are written again. So `ckpt rewind --replay same` and `ckpt "
    "offsets set` do not hold for such a batch.",
)
NOT_FOR_REAL_TIME = error(
    "CKPT253 start-not-for-real-time-mode",
    "Real-time mode refuses such a session or query, with any checkpoint (STREAMING_REAL_TIME_MODE, or `is not "
    "compatible with real time mode`). It reads Kafka without maxOffsetsPerTrigger and minPartitions; it runs in "
    "output mode update, without state or, from Spark 4.3 on, with aggregations and dropDuplicates; and the session "
    "sets no other provider of the state store than RocksDB, and no format of state below 2.",
    "Change the query or the session, or start it in micro-batches, without `.trigger(realTime=...)`.",
)
CONTINUOUS_REFUSED = error(
    "CKPT255 continuous-trigger-refused",
    "Spark does not run this query with a continuous trigger: it is for queries without state, and for sources with a "
    "continuous reader, which are Kafka and rate. A start that it refuses writes nothing.",
    "Start the query in micro-batches, without `.trigger(continuous=...)`.",
)
PROVIDER_OF_SESSION = warning(
    "CKPT254 session-with-another-provider",
    "The session sets a state store provider that is none of Spark's, and the checkpoint records none. A query with "
    "state takes that of the session. Without that class its batch is planned and then fails, and Spark's whole "
    "message is the class name. A query without state does not notice.",
    "Start the query with the library that has this class, or leave the setting out.",
)
