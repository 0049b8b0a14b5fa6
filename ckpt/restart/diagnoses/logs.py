"""Diagnoses of the offset and commit logs, of ``metadata``, and of what a start makes of them (CKPT1xx, CKPT2xx)."""

from ckpt import settings
from ckpt.advice import CHECKPOINT, Code, Do, Hole, Name, Setting, advise, call, do, run, words
from ckpt.restart.diagnoses.common import (
    NEW_CHECKPOINT,
    REPAIR,
    REPAIR_ASYNC,
    error,
    note,
    or_put_back,
    repair,
    warning,
)
from ckpt.restart.findings import Asked, Severity
from ckpt.restart.sinks import Ids, OnSinks

ASYNCHRONOUS = do(
    Do.START,
    words(
        "Start the query with {tracking}, which Spark allows for stateless queries into Kafka (not through "
        "foreachBatch) without a once or availableNow trigger. Once it has run two batches with {interval} as well, "
        "leave both out.",
        tracking=Code('.writeStream.option("asyncProgressTrackingEnabled", "true")'),
        interval=Code('.option("asyncProgressTrackingCheckpointIntervalMs", "0")'),
    ),
)
QUERY_ID = words(
    "The old id is in the driver log, in the query's progress events and, for a Delta sink, in the log of the table: "
    "{grep} prints who wrote last, and its batch. With another id, a Delta or Iceberg table gets the rows of a batch "
    "that runs again twice. No other sink knows the id: for them, any new UUID will do.",
    grep=Code('grep -ho \'"appId":"[^"]*","version":[0-9]*\' TABLE/_delta_log/*.json | tail -n 3'),
)
_WRITE_METADATA = run(
    call("repair", CHECKPOINT, query_id=Hole.ID),
    words("{where} Before the start, write the file again, with that id for ID.", where=QUERY_ID),
)
OTHER_VERSION = do(Do.START, words("Start the query with a Spark version for which the forecast is a restart."))
UNREADABLE_LOG = error(
    "CKPT101 unreadable-log-file",
    words(
        "A file of the offset or commit log that every start reads cannot be read, so the query fails at start. "
        "Spark's own message often names no file."
    ),
    REPAIR,
)
UNREADABLE_LOG_IGNORED = note(
    "CKPT102 unreadable-log-file-ignored",
    words("A log file that no start reads is unreadable. Spark only notices if you go back to that batch by hand."),
)
MISSING_METADATA = error(
    "CKPT103 missing-metadata",
    words(
        "The file metadata, which contains the query id, is missing. Spark 4.2 and later refuse to start; earlier "
        "versions start under a new query id, so sinks that remember the id (Delta's txnAppId) treat old batches as "
        "new."
    ),
    _WRITE_METADATA,
)
UNREADABLE_METADATA = error(
    "CKPT104 unreadable-metadata",
    words("The file metadata cannot be read, so no Spark version starts the query."),
    _WRITE_METADATA,
)
NEWER_LOG_VERSION = error(
    "CKPT105 log-version-not-supported",
    words("A log file that a start reads has a version line that this Spark version cannot read."),
    OTHER_VERSION.or_(
        run(call("repair", CHECKPOINT), words("If there is none, see the fixes, and what each costs.")),
    ),
)
SOURCES_DIFFER = error(
    "CKPT106 number-of-sources-changed",
    words(
        "Offset files name different numbers of sources. A query must keep its number of sources as long as it keeps "
        "its checkpoint. A start reads the newest two files, and refuses a query with a different number: "
        '"There are [1] sources in the checkpoint offsets and now there are [2]".'
    ),
    REPAIR,
)
SOURCE_LEFT_OUT = error(
    "CKPT119 source-without-newest-offset",
    words(
        "The newest offsets (offset log v2, which names its sources) lack the offset of a source that those of the "
        "batch before have. Spark does not fail: it continues this source from the end of the batch before, and reads "
        "all rows of this source again that the newest batch has read."
    ),
    REPAIR,
)
MALFORMED_OFFSET = error(
    "CKPT107 malformed-source-offset",
    words(
        "The offset of a source, in an offset file that a start reads, is not JSON, or is the largest number possible. "
        "Spark reads the log and then fails when it passes the offset to the source, or when the source counts on."
    ),
    REPAIR,
)
NEW_QUERY_ID = warning(
    "CKPT108 new-query-id",
    words(
        "The file metadata is missing, and this Spark version starts anyway, under a new query id. Sinks that remember "
        "the id (Delta's txnAppId) treat the batch that runs next as new, even if they have it already."
    ),
    _WRITE_METADATA,
)
NEWER_SETTING = error(
    "CKPT109 recorded-setting-not-supported",
    words(
        "The offsets record a setting, which a restart restores, with a value that this Spark version does not know."
    ),
    OTHER_VERSION,
)
REFUSED_SETTING = error(
    "CKPT115 recorded-setting-refused",
    words(
        "The newest offsets record a setting with a value that Spark refuses. A restart takes it from there, whatever "
        "the session has, and fails before it writes anything."
    ),
    REPAIR,
)
CONTRADICTING_SETTING = error(
    "CKPT116 recorded-setting-contradicts-state",
    words(
        "The newest offsets record a setting with another value than the one that the state was written with, or have "
        "lost it, which counts as an old default. A restart takes it from there, whatever the session has, and loads "
        "only a part of the state, or none."
    ),
    REPAIR,
)
OTHER_PROVIDER = warning(
    "CKPT117 state-store-provider-unknown",
    words(
        "The newest offsets record a state store provider that is none of Spark's. A restart takes it from there, "
        "whatever the session has. Without that class it plans a batch and fails, and Spark's whole message is the "
        "class name (ClassNotFoundException). With it, ckpt does not know what it makes of the state."
    ),
    do(Do.START, words("Start the query with the library that has this class, as before.")).or_(
        run(
            call("repair", CHECKPOINT, choose="name-provider"),
            words("If there is none, and Spark's own provider wrote the state files, see the plan that records that."),
        )
    ),
)
REAL_TIME_OPERATOR = error(
    "CKPT125 state-of-real-time-mode",
    words(
        "Real-time mode wrote this aggregation, which needs Spark 4.3 or later. Spark 4.3 continues from it in "
        "real-time mode and in micro-batches. Earlier versions compare the operator's name with the query's, and fail "
        "at start, which leaves an offsets file planned."
    ),
    do(Do.START, words("Start the query with Spark 4.3 or later.")),
)
UNFINISHED = error(
    "CKPT113 unfinished-checkpoint",
    words(
        "{copy}, {rewrite} or {import_state} was interrupted while it wrote this checkpoint. Files are missing. ckpt "
        "writes the newest offsets only when all other files are there, so no query starts on it.",
        copy=call("copy"),
        rewrite=call("rewrite"),
        import_state=call("import_state"),
    ),
    do(
        Do.DELETE,
        words(
            "Remove {checkpoint}, with every other checkpoint that the interrupted command was to write, and run the "
            "command again. The checkpoint that it read from is unchanged."
        ),
        "",
    ),
)
UNFINISHED_CHANGE = error(
    "CKPT114 unfinished-change",
    words(
        "{evolve} was interrupted while it changed the sources of this checkpoint. It writes the newest offsets only "
        "when all other files are changed, so no query starts on it.",
        evolve=call("evolve", in_place=True),
    ),
    advise(
        run(
            call("evolve", CHECKPOINT, undo=Hole.BACKUP),
            words("Undo the change with the backup that it has made beside {checkpoint}."),
            writes=True,
        ),
        do(Do.CHANGE, words("Run the interrupted command again.")),
    ),
)
MISSING_PREDECESSOR = error(
    "CKPT201 missing-predecessor",
    words(
        "A synchronous start looks for the offsets of the batch before the latest one, and they are missing: Spark "
        'fails with "batch {batch} doesn\'t exist" or, from 4.2 on, "Previous batch {batch} not found in offset log". '
        "Asynchronous progress tracking leaves such gaps and starts across them."
    ),
    REPAIR_ASYNC.or_(ASYNCHRONOUS),
    ((Asked.ASYNC, Severity.NOTE), (Asked.BOTH, Severity.WARNING)),
)
LOST_PREDECESSOR = error(
    "CKPT202 lost-predecessor",
    words(
        "A synchronous start looks for the offsets of the batch before the latest one, and they are missing. The logs "
        "do not have the gaps that asynchronous progress tracking leaves, so the file was lost or removed."
    ),
    REPAIR_ASYNC.or_(or_put_back(), ASYNCHRONOUS),
)
UNCOMMITTED_LATEST = note(
    "CKPT203 latest-batch-uncommitted",
    words(
        "The latest batch was planned but not committed. The next start runs it again over the same offsets, with the "
        "rows that it may have written: {sinks}.",
        sinks=OnSinks(Ids.SAME),
    ),
)
COMMITS_AHEAD = error(
    "CKPT204 commits-ahead-of-offsets",
    words(
        "The commit log ends after the offset log: offset files were lost or removed. Spark runs the latest planned "
        "batch again, and then fails when it finds that batch's commit: CONCURRENT_STREAM_LOG_UPDATE, which mentions "
        "several streaming jobs though there is only one."
    ),
    repair("offsets", named=words("the missing offset files")),
)
COMMITS_BEHIND = error(
    "CKPT205 batches-never-run",
    words(
        "The commit log ends more than one batch before the offset log. Spark runs only the latest planned batch and "
        "never returns to those in between. If they had not finished, their rows are lost without an error."
    ),
    advise(
        do(
            Do.FIND_OUT,
            words("Check in the sink or the driver log whether these batches were written. If so, nothing is lost."),
        ),
        run(call("repair", CHECKPOINT), words("If not, see the plan that reads their rows again.")),
    ),
)
COMMITS_WITHOUT_OFFSETS = error(
    "CKPT206 commits-without-offsets",
    words(
        "There are commits (or state) but no offsets at all: Spark treats the query as new, and then fails because of "
        "the files that are left."
    ),
    do(
        Do.PUT_BACK,
        words("Put {checkpoint}/offsets back from a copy of the checkpoint that reaches the newest commit."),
        "offsets",
    ).or_(NEW_CHECKPOINT),
)
FIRST_REAL_TIME_BATCH = error(
    "CKPT215 first-real-time-batch",
    words(
        "No batch is planned, and state/ has schemas and temporary files, but no state. A query in real-time mode "
        "(Spark 4.3) leaves this in its first batch, which it plans only at its end: it is running now, or was killed. "
        "A start in real-time mode runs batch 0. A start in micro-batches is refused from Spark 4.1 on, because state/ "
        "is not empty. Rows that a killed batch has written are written again."
    ),
    do(Do.WAIT, words("If the query is running, wait for the end of the batch.")).or_(
        do(
            Do.START,
            words(
                "If not, start it in real-time mode, as before: {trigger}.",
                trigger=Code('.trigger(realTime="5 minutes")'),
            ),
        ),
        do(
            Do.DELETE,
            words(
                "If not, and you want to start it in micro-batches, first delete the folder {checkpoint}/state: it "
                "holds no state."
            ),
            "state",
        ),
    ),
)
ID_WITHOUT_BATCHES = warning(
    "CKPT112 query-id-without-batches",
    words(
        "The file metadata has a query id, but no batch is planned or committed. Either no start of this query reached "
        "a batch, or its logs were deleted. In that case batch 0 runs again under the old id: {sinks}.",
        sinks=OnSinks(Ids.REUSED),
    ),
    do(Do.START, words("Start the query only if it has never written a row.")).or_(
        do(
            Do.PUT_BACK,
            words(
                "If it has written rows, put offsets, commits and state back from a copy of the checkpoint that "
                "reaches the newest batch in the sink."
            ),
            "offsets",
            "commits",
            "state",
        ),
        do(Do.START, words("If it has, and there is no copy: ") + NEW_CHECKPOINT.what),
    ),
)
GAP_IGNORED = note(
    "CKPT207 gap-that-no-start-looks-at",
    words("Batches are missing from the middle of a log. No start looks at them."),
)
ASYNC_REFUSES_STATE = error(
    "CKPT208 asynchronous-tracking-refuses-state",
    words("Spark refuses asynchronous progress tracking for a stateful query."),
    do(Do.START, words("Start the query without the option asyncProgressTrackingEnabled.")),
)
REPLAY_FROM_BEGINNING = warning(
    "CKPT209 replay-from-the-beginning",
    words(
        "A start with asynchronous tracking runs the latest batch again. There are no earlier offsets, so its range "
        "starts at the beginning of its sources: rows of earlier batches are read and written again."
    ),
    do(Do.START, words("Start the query, and accept the replay.")).or_(
        do(
            Do.PUT_BACK,
            words("Before the start, put an earlier offset file back from a copy of the checkpoint."),
            "offsets",
        )
    ),
)
UNFINISHED_REPARTITION = error(
    "CKPT210 unfinished-repartition",
    words(
        "The latest batch is not committed and records a different number of shuffle partitions than the batch before: "
        "Spark 4.2 and later treat that as an interrupted offline repartitioning, and refuse to start."
    ),
    do(Do.CHANGE, words("Run the repartitioning again with the same number of partitions.")).or_(
        do(
            Do.CHANGE,
            words(
                "If there was none (Spark 4.2 and later mistake a changed setting for one), set {setting}.",
                setting=Setting(f"{settings.CHECK_UNFINISHED_REPARTITION}=false"),
            ),
        )
    ),
)
FINISHED_ROWS_AGAIN = warning(
    "CKPT213 finished-rows-read-again",
    words(
        "A start with asynchronous tracking runs the latest batch again, from the nearest earlier offsets that exist. "
        "Batches after those offsets are committed but have lost their own: their rows are read and written again."
    ),
    REPAIR_ASYNC.or_(or_put_back("offsets", named=words("the lost offset files"))),
)
TWO_WRITERS = warning(
    "CKPT211 two-writers-suspected",
    words(
        "Files of the log contradict each other in a way that a single query does not cause: two queries may be "
        "writing to this checkpoint."
    ),
    do(
        Do.FIND_OUT,
        words("Make sure that exactly one query uses {checkpoint}: stop all others before the next start."),
    ),
)
FAR_WATERMARK = warning(
    "CKPT214 watermark-in-the-future",
    words(
        "The watermark is more than a day ahead of the time at which its batch was planned: a row has an event time in "
        "the future. Spark has closed every window up to there and dropped its state, and silently leaves out all "
        "later rows as late, until real time gets there."
    ),
    advise(
        do(
            Do.CHANGE,
            words(
                "Find the row in the source, and let the query leave out such rows before withWatermark. The batch "
                "that read it is too far back for {rewind}.",
                rewind=call("rewind"),
            ),
        ),
        NEW_CHECKPOINT,
    ),
)
LOG_LAGS_BEHIND = note(
    "CKPT212 log-lags-behind-the-sink",
    words(
        "Asynchronous progress tracking left these gaps. Its log lags: it lacks the batches that ran after the last "
        "logged one. Any start reads and writes their rows again, under batch ids that were used before."
    ),
)
REAL_TIME = note(
    "CKPT216 written-in-real-time-mode",
    words(
        "Real-time mode (Spark 4.3) wrote this checkpoint. It plans a batch only at its end: if it was killed before, "
        "rows after the newest offsets are in the sink already, and any start writes them again. The forecasts {sync} "
        "and {asynchronous} are of starts in micro-batches, {realtime} is of a start in real-time mode.",
        sync=Name("sync"),
        asynchronous=Name("async"),
        realtime=Name("realtime"),
    ),
)
COMMIT_CUT_SHORT = note(
    "CKPT110 commit-without-content",
    words("The newest commit has only its version line: it was truncated. Every Spark version accepts it."),
)
COMMIT_WITH_OTHER_IDS = error(
    "CKPT118 commit-with-other-state-ids",
    words(
        "State store checkpoint format 2 finds its files by the unique ids in the commit of the batch before: one for "
        "each store of each partition. This commit has another number of them: it was written by hand. A partition "
        "without ids fails the batch; one with too many lets it run and write its rows, and from 4.2 on fails its "
        "commit."
    ),
    REPAIR,
)
COMMIT_WITHOUT_STATE_IDS = error(
    "CKPT111 commit-without-state-ids",
    words(
        "State store checkpoint format 2 finds its files by the unique ids in the commit of the batch before, and this "
        "commit names none: it was written by hand, or in a session without the setting. Spark then looks for other "
        "files."
    ),
    REPAIR,
)
