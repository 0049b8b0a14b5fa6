"""Diagnoses of the state and what describes it (CKPT3xx)."""

from ckpt import settings
from ckpt.advice import CHECKPOINT, PATH, Do, Hole, Name, Option, Setting, advise, call, do, run, words
from ckpt.restart.diagnoses.common import (
    NEW_CHECKPOINT,
    NEW_STATE,
    REPAIR,
    REPAIR_DEEP,
    RESTORE,
    RESTORE_DEEP,
    error,
    note,
    put_back,
    warning,
)

STATE_CHAIN_HOLE = error(
    "CKPT301 state-file-missing",
    words("A file is missing from the chain of snapshot and changes that the next start loads state from."),
    REPAIR,
)
STATE_FILE_DAMAGED = error(
    "CKPT302 state-file-damaged",
    words(
        "A state file that the next start loads is empty, truncated, cannot be decoded, or does not match its "
        "checksums."
    ),
    REPAIR,
)
STATE_SST_MISSING = error(
    "CKPT303 sst-file-missing-or-damaged",
    words(
        "A RocksDB snapshot names an SST file that is missing, whose size differs from the recorded one, or that does "
        "not match its checksums. If only a data block is damaged, Spark fails when it looks up a key in it. When "
        "Spark iterates over all keys, it silently stops at that block and leaves out the rest."
    ),
    REPAIR,
)
STATE_FOLDER_MISSING = error(
    "CKPT304 state-folder-missing",
    words("The folder of an operator, a partition or a store is missing, so its state cannot be loaded."),
    advise(put_back().or_(*NEW_STATE)),
)
_RELOCATE = run(call("relocate", CHECKPOINT), words("Plan to make the metadata name the files here."))
STATE_MOVED = error(
    "CKPT305 moved-transformwithstate-checkpoint",
    words(
        "Operator metadata of transformWithState names its schema files by absolute path, at another location: the "
        "checkpoint was moved or copied. If the old path is gone, neither a restart nor the state reader works; if it "
        "still exists, Spark silently reads the schemas there."
    ),
    advise(
        _RELOCATE.or_(
            do(
                Do.CHANGE,
                words(
                    "Move the checkpoint back to where it was written, or make the old path point here (locally with a "
                    "symbolic link)."
                ),
            )
        )
    ),
)
_PUT_BACK = do(Do.PUT_BACK, words("Put {path} back from a copy of the checkpoint."), PATH)
_PUT_BACK_OR_TIDY = advise(
    do(
        Do.PUT_BACK,
        words(
            "Stop the query. If a copy of the checkpoint has the offsets and commits of the later batches, put them "
            "back: then no row is read again."
        ),
        "offsets",
        "commits",
    ).or_(
        run(
            call("repair", CHECKPOINT),
            words(
                "Without such a copy, plan to remove the newer state, and see what sinks do with batches that run "
                "again."
            ),
        )
    )
)
STATE_ABOVE = error(
    "CKPT306 state-of-an-abandoned-timeline",
    words(
        "There are snapshots of higher versions than the next start loads and writes, or state that is many batches "
        "ahead. Spark does not ignore them later: once the query reaches such a version, it may load the old file and "
        "continue with wrong state, without an error."
    ),
    _PUT_BACK_OR_TIDY,
)
STATE_AHEAD = warning(
    "CKPT332 state-ahead-of-the-logs",
    words(
        "There are state files of higher versions than the next start loads and writes. Each is overwritten before a "
        "batch reads it, so the state stays right. But batches have run of which the logs know nothing: their rows are "
        "read again, under ids that a sink may have seen."
    ),
    _PUT_BACK_OR_TIDY,
)
SNAPSHOT_LAG = note(
    "CKPT307 snapshot-lag",
    words(
        "Loading the state replays many versions of changes on top of the newest snapshot, which makes a start slow."
    ),
    do(
        Do.START,
        words(
            "Let the query run longer than {interval} (60 s), so that it writes snapshots.",
            interval=Setting(settings.MAINTENANCE_INTERVAL),
        ),
    ),
)
NO_OPERATOR_METADATA = note(
    "CKPT308 no-operator-metadata",
    words(
        "Spark before 4.0 wrote no operator metadata. The query restarts; Spark's state reader needs the operator and "
        "store as options, and its format {metadata} shows nothing.",
        metadata=Name("state-metadata"),
    ),
)
UNREADABLE_STATE_METADATA = warning(
    "CKPT309 unreadable-state-metadata",
    words("A file that describes the state (operator metadata or schema) cannot be read."),
    RESTORE,
)
WRITTEN_AGAIN = advise(
    run(
        call("repair", CHECKPOINT),
        words(
            "No start reads the file, and Spark 4.0 and later write it again; until then Spark's state reader fails. "
            "Plan to remove it."
        ),
    )
)
"""For operator metadata of version 1 that cannot be read."""
FORMAT_TWO = note(
    "CKPT310 state-format-2-needs-its-setting",
    words(
        "State store checkpoint format 2 is not recorded in the checkpoint: a session of Spark before 4.3 that "
        "lacks its setting cannot load the state. The forecast is for a session that has it."
    ),
    do(
        Do.START,
        words("Start the query with {format}, as before.", format=Setting(f"{settings.CHECKPOINT_FORMAT}=2")),
    ),
)
STATE_MOVED_JOIN = warning(
    "CKPT311 moved-schemas-of-a-join",
    words(
        "Operator metadata of a join (state format 3 or 4) names its schema files by absolute path, at another "
        "location. The query restarts and writes them again; until then Spark's state reader fails on this checkpoint."
    ),
    advise(_RELOCATE.or_(do(Do.START, words("Start the query once before you read its state.")))),
)
NO_STATE_FOLDER = note(
    "CKPT312 no-state-folder",
    words(
        "There is no folder state/. A stateless query has none. A query that aggregates, joins or deduplicates has "
        "lost its state, and no other file shows that."
    ),
    do(
        Do.PUT_BACK,
        words("If the query keeps state, put state/ back from a copy of the checkpoint before you start it."),
        "state",
    ),
)
STATE_SEEMS_LOST = warning(
    "CKPT328 state-seems-lost",
    words(
        "There is no folder state/, and the logs have a watermark, which is mostly for state. If the query aggregates, "
        "joins or deduplicates, its state is lost: every start fails, from Spark 4.2 on with "
        "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY, and before it for a missing state file. The failed start "
        "leaves an offsets file, which does no harm."
    ),
    advise(
        do(
            Do.PUT_BACK,
            words(
                "Find out whether the query keeps state. If it does not, start it as usual. If it does, put state/ "
                "back from a copy of the checkpoint before the start, and only that."
            ),
            "state",
        ).or_(*NEW_STATE)
    ),
)
ODD_END = note(
    "CKPT313 state-file-cut-behind-its-data",
    words(
        "A state file that the next start loads lacks its end marker, or its checksum file is empty. All its "
        "data is there."
    ),
)
STATE_SCHEMA_MISSING = note(
    "CKPT314 state-schema-missing",
    words("The schema of a state store is missing. The query restarts without it; Spark's state reader fails."),
    RESTORE,
)
STATE_TOO_NEW = error(
    "CKPT315 state-of-a-newer-spark",
    words(
        "The checkpoint has state of transformWithState, which Spark supports since 4.0: no earlier version can run "
        "the query that wrote it."
    ),
    do(Do.START, words("Start the query with Spark 4.0 or later.")),
)
_ANOTHER_SPARK = do(
    Do.START,
    words("Start the query with a Spark version for which {inspect} forecasts a restart.", inspect=call("inspect")),
)
SNAPSHOT_OF_4_0 = error(
    "CKPT316 snapshot-that-only-spark-4-0-reads",
    words(
        "In state store checkpoint format 2 Spark 4.0 writes v2 into its RocksDB snapshots, and every other version "
        "expects v1. Spark 4.2 and later rebuild the state from changelogs if all of them are there; 4.1 never does."
    ),
    _ANOTHER_SPARK,
)
SNAPSHOT_NOT_OF_4_0 = error(
    "CKPT320 snapshot-that-spark-4-0-does-not-read",
    words(
        "In state store checkpoint format 2 Spark 4.0 expects v2 in its RocksDB snapshots, and 4.1 and later write v1. "
        "An executor of Spark 4.0 keeps to the checkpoint format of the first RocksDB state that it loads, so it reads "
        "v1 if that state was of format 1."
    ),
    _ANOTHER_SPARK,
)
STATE_OF_OLD_SPARK = warning(
    "CKPT317 state-without-schema-of-old-spark",
    words(
        "Spark before 3.1 wrote this state, without a schema. Later versions check its rows against the query: counts "
        "and deduplication of Spark 2 pass, and sums of decimals fail, with InvalidUnsafeRowException (3.5) or "
        "VALUE_ROW_FORMAT_VALIDATION_FAILURE. The files do not say which kind this is."
    ),
    do(
        Do.START,
        words(
            "Start the query on a copy of the checkpoint first, with a sink of its own. If Spark refuses the rows, "
            "only the version that wrote them resumes from this checkpoint."
        ),
    ),
)
OPERATOR_UNKNOWN = error(
    "CKPT318 operator-unknown",
    words(
        "Operator metadata names an operator that no Spark up to 4.3 has: the file is damaged, or a newer Spark wrote "
        "it. Spark 4.0 and later compare the name with the query's, and fail at start."
    ),
    RESTORE,
)
_NEW_JOIN = words(
    "start it with a new checkpoint, to which the rows that it has buffered are not carried over. See where its "
    "sources continue."
)
JOIN_OF_FORMAT_1 = warning(
    "CKPT319 join-in-state-format-1",
    words(
        "The state of a join has format 1, as Spark up to 2.4 writes it. Later versions run only inner joins in that "
        "format; they refuse outer and semi joins, whose results were wrong (SPARK-26154). The files do not say which "
        "kind this is."
    ),
    run(call("handoff", CHECKPOINT), words("If Spark refuses the join, {start_it}", start_it=_NEW_JOIN)),
)
JOIN_WITHOUT_SCHEMA = error(
    "CKPT321 join-in-state-format-1-without-schema",
    words(
        "A join in state format 1, as Spark up to 2.4 writes it, has no state schema. Spark 4.1 and later cannot write "
        "one for it: an inner join fails with MatchError (4.1) or with Unsupported schema writer version: 1 (4.2 and "
        "later). They refuse outer and semi joins in that format (SPARK-26154)."
    ),
    advise(
        run(
            call("rewrite", CHECKPOINT, Hole.NEW, schema=Hole.FILE),
            words("If it is an inner join, write a checkpoint that later versions start, with its schema from FILE."),
            writes=True,
        ).or_(
            do(Do.START, words("If it is an inner join, run a batch with Spark 3.5, which writes the schemas.")),
            run(call("handoff", CHECKPOINT), words("If it is an outer or semi join, {start_it}", start_it=_NEW_JOIN)),
        )
    ),
)
STATE_REDESCRIBED = warning(
    "CKPT323 state-schema-changed-since-it-was-written",
    words(
        "A state schema, or operator metadata, does not match its hidden checksum file: it was changed by hand or "
        "damaged. Spark compares it with the query: if a type or an operator in it differs now, the start fails."
    ),
    RESTORE_DEEP,
)
KEYS_ELSEWHERE = error(
    "CKPT324 keys-in-the-wrong-partition",
    words(
        "State files hold keys that belong to other partitions: they were put into the wrong folder. Spark loads the "
        "files without an error but does not find these keys. It starts each of them from nothing, and writes wrong "
        "results."
    ),
    REPAIR_DEEP,
)
STATE_CONTRADICTS = error(
    "CKPT325 state-that-contradicts-itself",
    words(
        "Two records of the same state differ: the rows of a join and their count, or timers, expiry times or lists "
        "and their index or count. Spark loads the state without an error. Later it fails when it looks for a missing "
        "row, or silently leaves out what it does not find."
    ),
    REPAIR_DEEP,
)
STATE_NAME_ASTRAY = error(
    "CKPT326 state-file-name-that-is-no-version",
    words(
        "A file among the snapshots of a store has a name that is not a version, or a unique id that the others lack. "
        "Spark parses each of these names as a number, and fails: with changelogs in every Spark version, otherwise "
        "from 4.2 on, which looks for older snapshots."
    ),
    do(
        Do.MOVE,
        words(
            "Stop the query and move {path} out of {checkpoint}: Spark never writes a file with this kind of name, and "
            "loads nothing from it."
        ),
        PATH,
    ),
)
STATE_NAME_IGNORED = note(
    "CKPT327 state-file-that-no-start-reads",
    words(
        "A file in the folder of a store has the suffix of a state file, but its name is not a version. Spark ignores "
        "it."
    ),
)
SNAPSHOT_OF_ABANDONED = error(
    "CKPT337 snapshot-of-an-abandoned-timeline",
    words(
        "A snapshot is older than the changes of its own version, and holds other rows: batches ran again, and it is "
        "of the ones before. That happens when somebody goes back without removing newer state. The next start loads "
        "the snapshot and continues with wrong state, without an error. An earlier start may have done so."
    ),
    advise(
        run(
            call("handoff", CHECKPOINT),
            words(
                "See how a new query continues where this one stopped: with empty state, to which the rows read so "
                "far do not count."
            ),
        ).or_(NEW_CHECKPOINT)
    ),
)
OTHER_STATE_DAMAGED = warning(
    "CKPT322 damaged-state-that-no-start-loads-now",
    words(
        "A state file that the next start does not load is damaged. Going back to a batch that needs the file fails, "
        "and so does reading or copying the state of that batch. A start cannot fall back to the file."
    ),
    do(
        Do.PUT_BACK,
        words(
            "If you need an older batch whose state is not complete, put {path} back from a copy of the checkpoint. If "
            "you do not, nothing has to be done: Spark deletes the file eventually."
        ),
        PATH,
    ),
)
OPERATOR_ASTRAY = error(
    "CKPT329 operator-metadata-of-another-operator",
    words(
        "Operator metadata has another number than the folder that it is in: folders of operators were exchanged, or "
        "the file was edited. Spark 4.0 and later compare the numbers and names with those of the query, and every "
        "version reads the state in the folder as that of the operator with its number."
    ),
    RESTORE,
)
OPERATOR_RENAMED = error(
    "CKPT334 operator-name-that-is-not-of-its-state",
    words(
        "Operator metadata names one operator, and the schema of its state is that of another one: the file was "
        "edited, or comes from another checkpoint. Spark 4.0 and later compare the name with the query's, and fail at "
        "start."
    ),
    RESTORE,
)
OPERATOR_CHANGED = error(
    "CKPT336 operator-metadata-unlike-that-of-earlier-batches",
    words(
        "The newest operator metadata has another operator name, time mode or output mode than that of earlier "
        "batches: the file was edited, or comes from another checkpoint. Spark never changes them. It compares the "
        "newest with the query, and fails at start if they differ."
    ),
    REPAIR,
)
SCHEMA_OF_OTHER_ROWS = warning(
    "CKPT335 schema-of-a-moved-join-does-not-fit",
    words(
        "Operator metadata of a join names its schema files at another location, and the schema here fits no row of "
        "any partition. A start does not read it: the query restarts, and writes its schemas again. Spark's state "
        "reader fails, and so would a start after {relocate}.",
        relocate=call("relocate"),
    ),
    do(Do.START, words("Start the query once before anything reads its state.")).or_(_PUT_BACK),
)
SCHEMA_ASTRAY = error(
    "CKPT330 state-schema-in-another-partition",
    words(
        "Spark writes the schema of a state store into partition 0 only, and here another partition has one: folders "
        "of partitions were exchanged, renamed or copied. Spark loads their files without an error but does not find "
        "the keys in them. It starts each of them from nothing, and writes wrong results."
    ),
    REPAIR_DEEP,
)
STORE_ASTRAY = error(
    "CKPT333 state-store-of-another-name",
    words(
        "A store of a join has the schema of another one: its folder was exchanged. Spark compares the schema with the "
        "query, and fails."
    ),
    RESTORE,
)
ROWS_NOT_COMPARED = warning(
    "CKPT331 state-rows-not-compared",
    words(
        "Every byte was read, but the rows of a state store could not be compared with a schema, because it has none "
        "that ckpt can use. Whether they belong to their partition and to their store is not known."
    ),
    _PUT_BACK.or_(
        do(
            Do.START,
            words(
                "Without a copy, start the query once, unchanged: Spark writes the schema again. Then look again at "
                "every byte ({deep}).",
                deep=Option("deep"),
            ),
        )
    ),
)
