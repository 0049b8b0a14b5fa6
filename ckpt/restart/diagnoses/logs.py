"""Diagnoses of the offset and commit logs, of ``metadata``, and of what a start makes of them (CKPT1xx, CKPT2xx)."""

from ckpt import settings
from ckpt.advice import words
from ckpt.restart.diagnoses.common import REPAIR, error, note, repair, warning
from ckpt.restart.findings import Asked, Severity
from ckpt.restart.sinks import DROPS, NEW_CHECKPOINT, REMEMBERING

_ASYNCHRONOUS = (
    'Or start the query with `.writeStream.option("asyncProgressTrackingEnabled", "true")`, which Spark allows for '
    "stateless queries into Kafka (not through foreachBatch) without a once or availableNow trigger; once it has run "
    'two batches with `.option("asyncProgressTrackingCheckpointIntervalMs", "0")` as well, both can be left out.'
)
QUERY_ID = (
    "The old id is in the driver log, in the query's progress events and, for a Delta sink, in the log of the table: "
    '`grep -ho \'"appId":"[^"]*","version":[0-9]*\' TABLE/_delta_log/*.json | tail -n 3` prints who wrote last, '
    "and its batch. With another id, a Delta or Iceberg table gets the rows of a batch that runs again twice. No other "
    "sink knows the id: for them, any new UUID will do."
)
UNREADABLE_LOG = error(
    "CKPT101 unreadable-log-file",
    "A file of the offset or commit log that every start reads cannot be read, so the query fails at start. "
    "Spark's own message often names no file.",
    REPAIR,
)
UNREADABLE_LOG_IGNORED = note(
    "CKPT102 unreadable-log-file-ignored",
    "A log file that no start reads is unreadable. Spark does not notice it unless you go back to that batch by hand.",
)
MISSING_METADATA = error(
    "CKPT103 missing-metadata",
    "The file metadata, which contains the query id, is missing. Spark 4.2 and later refuse to start; earlier "
    "versions start under a new query id, so sinks that remember the id (Delta's txnAppId) treat old batches as "
    "new.",
    f"`ckpt repair {{checkpoint}} --query-id ID` writes it again. {QUERY_ID}",
)
UNREADABLE_METADATA = error(
    "CKPT104 unreadable-metadata",
    "The file metadata cannot be read, so no Spark version starts the query.",
    f"`ckpt repair {{checkpoint}} --query-id ID` writes it again. {QUERY_ID}",
)
NEWER_LOG_VERSION = error(
    "CKPT105 log-version-not-supported",
    "A log file that a start reads has a version line that this Spark version cannot read.",
    "Start the query with a Spark version for which `ckpt inspect {checkpoint}` forecasts a restart. If there is "
    "none, `ckpt repair {checkpoint}` shows the fixes, and what each costs.",
)
SOURCES_DIFFER = error(
    "CKPT106 number-of-sources-changed",
    "Offset files name different numbers of sources. A query must keep its number of sources as long as it keeps "
    'its checkpoint. A start reads the newest two files, and refuses a query with a different number: "There are '
    '[1] sources in the checkpoint offsets and now there are [2]".',
    REPAIR,
)
SOURCE_LEFT_OUT = error(
    "CKPT119 source-without-newest-offset",
    "The newest offsets (offset log v2, which names its sources) have no offset of a source, and those of the batch "
    "before have one. Spark does not fail: it continues this source from the end of the batch before, so that all rows "
    "that the newest batch has read of it are read again.",
    REPAIR,
)
MALFORMED_OFFSET = error(
    "CKPT107 malformed-source-offset",
    "The offset of a source, in an offset file that a start reads, is not JSON, or is at the largest number that there "
    "is. Spark reads the log and then fails when it passes the offset to the source, or when the source counts on.",
    REPAIR,
)
NEW_QUERY_ID = warning(
    "CKPT108 new-query-id",
    "The file metadata is missing, and this Spark version starts anyway, under a new query id. Sinks that remember "
    "the id (Delta's txnAppId) treat the batch that runs next as new, even if they have it already.",
    f"Before the start, `ckpt repair {{checkpoint}} --query-id ID` writes it again. {QUERY_ID}",
)
NEWER_SETTING = error(
    "CKPT109 recorded-setting-not-supported",
    "The offsets record a setting, which a restart restores, with a value that this Spark version does not know.",
    "Start the query with a Spark version for which `ckpt inspect {checkpoint}` forecasts a restart.",
)
REFUSED_SETTING = error(
    "CKPT115 recorded-setting-refused",
    "The newest offsets record a setting with a value that Spark refuses. A restart takes it from there, whatever the "
    "session has, and fails before it writes anything.",
    REPAIR,
)
CONTRADICTING_SETTING = error(
    "CKPT116 recorded-setting-contradicts-state",
    "The newest offsets record a setting with another value than the one that the state was written with, or have lost "
    "it, which counts as an old default. A restart takes it from there, whatever the session has, and does not load "
    "the state, or not all of it.",
    REPAIR,
)
OTHER_PROVIDER = warning(
    "CKPT117 state-store-provider-unknown",
    "The newest offsets record a state store provider that is none of Spark's. A restart takes it from there, whatever "
    "the session has. Without that class it plans a batch and fails, and Spark's whole message is the class name "
    "(ClassNotFoundException). With it, ckpt does not know what it makes of the state.",
    "Start the query with the library that has this class, as before. If there is none, and Spark's own provider wrote "
    "the state files, `ckpt repair {checkpoint} --choose name-provider` plans to record that.",
)
REAL_TIME_OPERATOR = error(
    "CKPT125 state-of-real-time-mode",
    "Real-time mode wrote this aggregation, which needs Spark 4.3 or later. Spark 4.3 continues from it in real-time "
    "mode and in micro-batches. Earlier versions compare the operator's name with the query's, and fail at start, "
    "which leaves an offsets file planned.",
    "Start the query with Spark 4.3 or later.",
)
UNFINISHED = error(
    "CKPT113 unfinished-checkpoint",
    "`ckpt copy`, `ckpt rewrite` or `ckpt import-state` was interrupted while it wrote this checkpoint. Files are "
    "missing. ckpt writes the newest offsets only when all other files are there, so no query starts on it.",
    "Remove {checkpoint}, with every other checkpoint that the interrupted command was to write, and run it again. The "
    "checkpoint that it read from is unchanged.",
)
UNFINISHED_CHANGE = error(
    "CKPT114 unfinished-change",
    "`ckpt evolve --in-place` was interrupted while it changed the sources of this checkpoint. It writes the newest "
    "offsets only when all other files are changed, so no query starts on it.",
    "Undo the change with the backup that it has made beside {checkpoint}: `ckpt evolve {checkpoint} --undo BACKUP`. "
    "Then run it again.",
)
MISSING_PREDECESSOR = error(
    "CKPT201 missing-predecessor",
    "A synchronous start looks for the offsets of the batch before the latest one, and they are missing: Spark "
    'fails with "batch {batch} doesn\'t exist" or, from 4.2 on, "Previous batch {batch} not found in offset '
    'log". Asynchronous progress tracking leaves such gaps and starts across them.',
    f"`ckpt repair-async {{checkpoint}}` plans a repair. {_ASYNCHRONOUS}",
    ((Asked.ASYNC, Severity.NOTE), (Asked.BOTH, Severity.WARNING)),
)
LOST_PREDECESSOR = error(
    "CKPT202 lost-predecessor",
    "A synchronous start looks for the offsets of the batch before the latest one, and they are missing. The logs "
    "do not have the gaps that asynchronous progress tracking leaves, so the file was lost or removed.",
    f"`ckpt repair-async {{checkpoint}}` plans a repair, unless you can restore {{path}} from a copy. {_ASYNCHRONOUS}",
)
UNCOMMITTED_LATEST = note(
    "CKPT203 latest-batch-uncommitted",
    "The latest batch was planned but not committed. The next start runs it again over the same offsets; rows it had "
    f"already written are written again, but not by {REMEMBERING}.",
)
COMMITS_AHEAD = error(
    "CKPT204 commits-ahead-of-offsets",
    "The commit log ends after the offset log: offset files were lost or removed. Spark runs the latest planned "
    "batch again, and then fails when it finds that batch's commit: CONCURRENT_STREAM_LOG_UPDATE, which mentions "
    "several streaming jobs though there is only one.",
    repair(named=words("the missing offset files")),
)
COMMITS_BEHIND = error(
    "CKPT205 batches-never-run",
    "The commit log ends more than one batch before the offset log. Spark runs only the latest planned batch and "
    "never returns to those in between. If they had not finished, their rows are lost without an error.",
    "Check in the sink or the driver log whether these batches were written. If so, nothing is lost. If not, `ckpt "
    "repair {checkpoint}` plans how to read their rows again.",
)
COMMITS_WITHOUT_OFFSETS = error(
    "CKPT206 commits-without-offsets",
    "There are commits (or state) but no offsets at all: Spark treats the query as new, and then fails because of "
    "the files that are left.",
    "Restore {checkpoint}/offsets from a copy that reaches the newest commit. Or start over in a new checkpoint "
    f"folder: {NEW_CHECKPOINT}.",
)
FIRST_REAL_TIME_BATCH = error(
    "CKPT215 first-real-time-batch",
    "No batch is planned, and state/ has schemas and temporary files, but no state. A query in real-time mode (Spark "
    "4.3) leaves this in its first batch, which it plans only at its end: it is running now, or was killed. A start in "
    "real-time mode runs batch 0. A start in micro-batches is refused from Spark 4.1 on, because state/ is not empty. "
    "Rows that a killed batch has written are written again.",
    "If the query is running, wait for the end of the batch. If not, start it in real-time mode, as before: "
    '`.trigger(realTime="5 minutes")`. To start it in micro-batches instead, delete the folder {checkpoint}/state '
    "first: it holds no state.",
)
ID_WITHOUT_BATCHES = warning(
    "CKPT112 query-id-without-batches",
    "The file metadata has a query id, but no batch is planned or committed. Either no start of this query reached a "
    f"batch, or its logs were deleted. In that case batch 0 runs again under the old id: {DROPS}.",
    "Start the query only if it has never written a row. If it has, put offsets, commits and state back from a copy of "
    f"the checkpoint that reaches the newest batch in the sink, or start over in a new checkpoint folder: "
    f"{NEW_CHECKPOINT}.",
)
GAP_IGNORED = note(
    "CKPT207 gap-that-no-start-looks-at",
    "Batches are missing from the middle of a log. No start looks at them.",
)
ASYNC_REFUSES_STATE = error(
    "CKPT208 asynchronous-tracking-refuses-state",
    "Spark refuses asynchronous progress tracking for a stateful query.",
    "Start the query without the option asyncProgressTrackingEnabled.",
)
REPLAY_FROM_BEGINNING = warning(
    "CKPT209 replay-from-the-beginning",
    "A start with asynchronous tracking runs the latest batch again. There are no earlier offsets, so its range "
    "starts at the beginning of its sources: rows of earlier batches are read and written again.",
    "Accept the replay, or restore an earlier offset file from a copy of the checkpoint before the start.",
)
UNFINISHED_REPARTITION = error(
    "CKPT210 unfinished-repartition",
    "The latest batch is not committed and records a different number of shuffle partitions than the batch before: "
    "Spark 4.2 and later treat that as an interrupted offline repartitioning, and refuse to start.",
    "Run the repartitioning again with the same number of partitions. If there was none (Spark 4.2 and "
    "later mistake a changed setting for one), set "
    f"{settings.CHECK_UNFINISHED_REPARTITION}=false.",
)
FINISHED_ROWS_AGAIN = warning(
    "CKPT213 finished-rows-read-again",
    "A start with asynchronous tracking runs the latest batch again, from the nearest earlier offsets that exist. "
    "Batches after those offsets are committed but have lost their own: their rows are read and written again.",
    "`ckpt repair-async {checkpoint}` plans a repair and says what is read again, unless you can restore the lost "
    "offset files from a copy of the checkpoint.",
)
TWO_WRITERS = warning(
    "CKPT211 two-writers-suspected",
    "Files of the log contradict each other in a way that a single query does not cause: two queries may be "
    "writing to this checkpoint.",
    "Make sure that exactly one query uses {checkpoint}: stop all others before the next start.",
)
FAR_WATERMARK = warning(
    "CKPT214 watermark-in-the-future",
    "The watermark is more than a day ahead of the time at which its batch was planned: a row has an event time in the "
    "future. Spark has closed every window up to there and dropped its state, and silently leaves out all later rows "
    "as late, until real time gets there.",
    "Find the row in the source, and let the query leave out such rows before withWatermark. The batch that read it is "
    "too far back for `ckpt rewind`: start the query with a new checkpoint, which reads its sources from their "
    "beginning.",
)
LOG_LAGS_BEHIND = note(
    "CKPT212 log-lags-behind-the-sink",
    "Asynchronous progress tracking left these gaps. Its log lags: batches that ran after the last logged one are "
    "not in it. Any start reads and writes their rows again, under batch ids that were used before.",
)
REAL_TIME = note(
    "CKPT216 written-in-real-time-mode",
    "Real-time mode (Spark 4.3) wrote this checkpoint. It plans a batch only at its end: if it was killed before, rows "
    "after the newest offsets are in the sink already, and any start writes them again. The forecasts `sync` and "
    "`async` are of starts in micro-batches, `realtime` is of a start in real-time mode.",
)
COMMIT_CUT_SHORT = note(
    "CKPT110 commit-without-content",
    "The newest commit has only its version line: it was truncated. Every Spark version accepts it.",
)
COMMIT_WITH_OTHER_IDS = error(
    "CKPT118 commit-with-other-state-ids",
    "State store checkpoint format 2 finds its files by the unique ids in the commit of the batch before: one for each "
    "store of each partition. This commit has another number of them: it was written by hand. A partition without ids "
    "fails the batch; one with too many lets it run and write its rows, and from 4.2 on fails its commit.",
    REPAIR,
)
COMMIT_WITHOUT_STATE_IDS = error(
    "CKPT111 commit-without-state-ids",
    "State store checkpoint format 2 finds its files by the unique ids in the commit of the batch before, and this "
    "commit names none: it was written by hand, or in a session without the setting. Spark then looks for other "
    "files.",
    REPAIR,
)
