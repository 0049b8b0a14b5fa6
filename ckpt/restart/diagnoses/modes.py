"""Diagnoses of real-time mode, declarative pipelines and other younger modes (CKPT25x)."""

from ckpt.advice import CHECKPOINT, PATH, Code, Do, Hole, Setting, advise, call, do, run, words
from ckpt.restart.diagnoses.common import error, note, warning

_FULL_REFRESH = "spark-pipelines run --full-refresh TABLE"
REAL_TIME_REFUSED = error(
    "CKPT250 real-time-mode-refused",
    words(
        "Spark does not run this query in real-time mode. It has the mode from 4.1 on, for queries without state that "
        "read Kafka; from 4.3 on also for aggregations and dropDuplicates. A start that it refuses writes nothing."
    ),
    do(
        Do.START,
        words("Start the query in micro-batches, without {trigger}.", trigger=Code(".trigger(realTime=...)")),
    ),
)
REAL_TIME_FORMAT = error(
    "CKPT251 real-time-mode-needs-format-2",
    words(
        "Real-time mode of Spark 4.3 continues only after a commit of version 2, which has state store checkpoint "
        "format 2, also without state. It fails at start (CHECKPOINT_FORMAT_V1_NOT_SUPPORTED), and has deleted a "
        "planned batch by then: a later start in micro-batches reads its rows in a new batch, of another range. With "
        "{setting} it starts, and may lose state when it is killed.",
        setting=Setting("spark.sql.streaming.realTimeMode.dangerouslyAllowCheckpointV1.enabled=true"),
    ),
    run(call("migrate_real_time", CHECKPOINT), words("See how the query continues in real-time mode.")).or_(
        do(Do.START, words("Start it in micro-batches."))
    ),
)
PLANNED_DELETED = note(
    "CKPT252 planned-batch-deleted",
    words(
        "A start in real-time mode, or with a continuous trigger, deletes planned batches that are not committed, and "
        "plans the next one from the end of the newest commit to what the sources have then: the id gets another "
        "range. No row is lost; rows that the deleted batch has written are written again. So {rewind} and "
        "{offsets_set} do not hold for such a batch.",
        rewind=call("rewind", replay="same"),
        offsets_set=call("offsets_set"),
    ),
)
NOT_FOR_REAL_TIME = error(
    "CKPT253 start-not-for-real-time-mode",
    words(
        'Real-time mode refuses such a session or query, with any checkpoint (STREAMING_REAL_TIME_MODE, or "is not '
        'compatible with real time mode"). It reads Kafka without maxOffsetsPerTrigger and minPartitions; it runs in '
        "output mode update, without state or, from Spark 4.3 on, with aggregations and dropDuplicates; and the "
        "session sets no other provider of the state store than RocksDB, and no format of state below 2."
    ),
    do(
        Do.CHANGE,
        words(
            "Change the query or the session, or start it in micro-batches, without {trigger}.",
            trigger=Code(".trigger(realTime=...)"),
        ),
    ),
)
CONTINUOUS_REFUSED = error(
    "CKPT255 continuous-trigger-refused",
    words(
        "Spark does not run this query with a continuous trigger: it is for queries without state, and for sources "
        "with a continuous reader, which are Kafka and rate. A start that it refuses writes nothing."
    ),
    do(
        Do.START,
        words("Start the query in micro-batches, without {trigger}.", trigger=Code(".trigger(continuous=...)")),
    ),
)
PROVIDER_OF_SESSION = warning(
    "CKPT254 session-with-another-provider",
    words(
        "The session sets a state store provider that is none of Spark's, and the checkpoint records none. A query "
        "with state takes that of the session. Without that class its batch is planned and then fails, and Spark's "
        "whole message is the class name. A query without state does not notice."
    ),
    do(Do.START, words("Start the query with the library that has this class, or leave the setting out.")),
)
UNFINISHED_VERSION = error(
    "CKPT256 pipeline-version-without-a-batch",
    words(
        "Runs of the pipeline use the version of a flow with the highest number. No batch is committed in this one, "
        "though an earlier version has batches: a full refresh was interrupted, or the folder was made by hand. The "
        "next run reads the sources from their beginning. If the table still has the batches of the earlier version, a "
        "table of files silently drops those with the same ids, and a flow with state fails after them; another table "
        "gets rows twice."
    ),
    do(
        Do.START,
        words(
            "If the table was to be refreshed in full, refresh it again. That empties the table, and reads again what "
            "the sources still have."
        ),
        line=_FULL_REFRESH,
    ).or_(
        do(
            Do.MOVE,
            words(
                "If the table has its rows, rename the folder of this version, before any other run, to a name that is "
                "no number: the flow then continues in the version before it."
            ),
            "",
        )
    ),
)
SUPERSEDED = note(
    "CKPT257 superseded-pipeline-version",
    words(
        "Runs of the pipeline use a version of this flow with a higher number, which a full refresh began, and never "
        "come back to this one: no start is to be repaired here. {prune}, with the folder of the flow, removes such "
        "versions.",
        prune=call("prune", Hole.FLOW, superseded=True),
    ),
)
SHARED_TABLE = warning(
    "CKPT258 flows-share-a-table",
    words(
        "Several flows of the pipeline have checkpoints for one table. In a table of files (parquet is the default) "
        "all write one log of batch ids: each drops the batches whose ids another has written, silently, and the run "
        "ends as COMPLETED. A full refresh loses rows as well. A table that keeps ids by query, such as Delta, loses "
        "none, and no table does once the other flows are no longer in the pipeline."
    ),
    advise(
        do(
            Do.CHANGE,
            words(
                "Let one flow write the table, with the union of the sources, and refresh the table. That reads again "
                "what the sources still have."
            ),
            line=_FULL_REFRESH,
        ),
        do(Do.MOVE, words("Move the folders of the flows that are gone out of _checkpoints.")),
    ),
)
AUTO_LOADER = note(
    "CKPT260 auto-loader-source",
    words(
        "A source of this checkpoint is Auto Loader (cloudFiles), which only Databricks has: its offsets count the "
        "files that it has read, and their names are in a RocksDB database in this folder. ckpt judges the logs, and "
        "reads of the database which files it consists of, not what is in them. No start with Auto Loader was tried."
    ),
)
AUTO_LOADER_INCOMPLETE = warning(
    "CKPT261 auto-loader-files-missing",
    words(
        "Auto Loader keeps the names of the files that it has read in a RocksDB database in the folder of its source. "
        "A part of it is missing or cannot be read. What a start on Databricks does then was not tried; without the "
        "list Auto Loader cannot know which files it has read."
    ),
    do(
        Do.PUT_BACK,
        words(
            "Do not start the query: put {path} back from a copy of the checkpoint as it was after the newest batch, "
            "and then look again."
        ),
        PATH,
    ).or_(
        run(
            call("handoff", CHECKPOINT),
            words(
                "Without a copy, let a new query with a new checkpoint begin at files that this one has not read, and "
                "see what it needs for that."
            ),
        )
    ),
)
