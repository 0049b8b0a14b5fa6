"""Diagnoses of what ``ckpt inspect --sources`` finds: CKPT42x Kafka, 45x Delta, 46x files, 47x Iceberg."""

from ckpt.advice import CHECKPOINT, Do, Hole, Setting, advise, call, do, run, words
from ckpt.restart.diagnoses.common import AT_NEW, error, note, warning
from ckpt.restart.sinks import Ids, OnSinks

_LEAVES = words(
    "A failed start of a new batch leaves an offsets file, and every later start reads it: do not start the query "
    "before this is repaired."
)
_SET = call("offsets_set", CHECKPOINT, to=Hole.JSON)
_READ_APART = do(Do.CHANGE, words("If you need these rows, read them with a batch query."))
OF_SINKS = words("Of its sinks, {sinks}.", sinks=OnSinks(Ids.NEW_QUERY))
"""For what starts a query with a new checkpoint."""

KAFKA_ENDS_EARLIER = error(
    "CKPT421 kafka-topic-recreated",
    words(
        "A Kafka topic has fewer rows, or fewer partitions, than the query has read or planned: it was deleted and "
        "recreated, or a broker has lost rows. The next start fails, or waits for rows that never come. {leaves}",
        leaves=_LEAVES,
    ),
    run(
        _SET,
        words(
            "With failOnDataLoss=false the query would continue from the end of the topic, and never read the rows "
            "before it. Let it begin at the earliest rows instead."
        ),
    ),
)
KAFKA_EXPIRED = error(
    "CKPT422 kafka-rows-expired",
    words(
        "Rows that the next batch is to read are gone from Kafka: retention has passed. The next start fails. {leaves}",
        leaves=_LEAVES,
    ),
    run(_SET, words("These rows are lost. Let the query begin at the earliest rows that are left.")),
)
KAFKA_NO_TOPIC = error(
    "CKPT423 kafka-topic-missing",
    words(
        "A topic of the checkpoint is not on these brokers. The next start fails, even with failOnDataLoss=false; or "
        "it makes the brokers create an empty topic."
    ),
    advise(
        do(Do.WAIT, words("Do not start the query. Check the brokers and the name of the topic.")),
        run(
            _SET, words("A topic that is created again is empty: before the start, move the query to its beginning.")
        ).or_(run(_SET, words("To continue without the topic, remove it from subscribe, and from the checkpoint."))),
    ),
)
KAFKA_NOT_SUBSCRIBED = error(
    "CKPT424 kafka-topic-not-subscribed",
    words(
        'The option subscribe leaves out a topic that the checkpoint has read. The next new batch fails ("Partitions '
        '... have been deleted"). {leaves}',
        leaves=_LEAVES,
    ),
    run(
        _SET,
        words(
            "Subscribe to the topic again. To give up its unread rows, which another query can read, remove it from "
            "the checkpoint."
        ),
    ),
)
KAFKA_LOOKS_RECREATED = warning(
    "CKPT425 kafka-topic-looks-recreated",
    words(
        "A Kafka topic has rows at offsets that the query has already read, and these rows are newer than the batch "
        "that read those offsets. Either the topic was deleted and recreated, or the clocks of the producers and the "
        "driver differ. Spark does not notice: it continues from the old offsets, and never reads the rows before them."
    ),
    do(Do.FIND_OUT, words("Check in the broker's log whether the topic was recreated.")),
)
KAFKA_SKIPS = warning(
    "CKPT426 kafka-rows-skipped",
    words(
        "With failOnDataLoss=false, as given, the next start does not fail. It silently leaves out rows that it cannot "
        "find, and rows of a recreated topic."
    ),
    run(
        _SET,
        words("To lose only rows that are gone, move the query to the earliest rows that are left before the start."),
    ),
)
DELTA_OTHER_TABLE = error(
    "CKPT451 delta-table-other",
    words(
        "The id of the Delta table is not the one in the offsets: the table was dropped and recreated, or replaced, or "
        "it is a different table. The next start fails, even with failOnDataLoss=false."
    ),
    advise(
        do(Do.FIND_OUT, words("Check that the option path names the table that the query reads.")),
        do(
            Do.START,
            words(
                "If that table was replaced, start the query with {at_new}, a new checkpoint: it reads all rows of the "
                "new table, with empty state. Rows of the old table stay in the sink. {of_sinks}",
                at_new=AT_NEW,
                of_sinks=OF_SINKS,
            ),
        ),
    ),
)
DELTA_LOG_CLEANED = error(
    "CKPT452 delta-log-cleaned",
    words(
        "The log of the Delta table no longer has versions that the next start needs: its retention has passed. A "
        "start goes back to where the latest batch began, even if that batch is committed."
    ),
    do(Do.FIND_OUT, words("Compare the oldest version that is left with the unread ones.")),
)
DELTA_OLDER_TABLE = error(
    "CKPT453 delta-table-older",
    words(
        "The Delta table ends before the version that the query has read: it is an older copy. The next start fails, "
        "until the table has that many versions again; then it continues without an error, and never reads what was "
        "written to the copy before. With Delta 3.3 (Spark 3.5) the start does not fail either."
    ),
    do(Do.WAIT, words("Do not write to the table before this is repaired.")),
)
DELTA_ROWS_CHANGED = error(
    "CKPT454 delta-rows-changed",
    words(
        "An unread version of the Delta table updates, overwrites or deletes rows. A streaming query stops there, "
        "unless an option says what to do."
    ),
    do(
        Do.START,
        words(
            "Start the query with {option}, until it has read that version and committed one more batch. The option "
            "leaves out everything that this version writes, including new rows.",
            option=Setting("skipChangeCommits=true"),
        ),
    ),
)
DELTA_FILES_GONE = error(
    "CKPT455 delta-files-gone",
    words(
        "Unread data files of the Delta table are missing. The batch that reads them fails, even with "
        "failOnDataLoss=false."
    ),
    do(Do.PUT_BACK, words("Put the files back from a copy.")),
)
DELTA_COLUMNS_CHANGED = error(
    "CKPT456 delta-columns-changed",
    words("A column of the Delta table was renamed or dropped after what the query has read. The next start fails."),
    do(
        Do.START,
        words(
            "Start the query with {at_new}, a new checkpoint, after the change; its state is empty. {of_sinks}",
            at_new=AT_NEW,
            of_sinks=OF_SINKS,
        ),
    ),
)
DELTA_LOOKS_REWRITTEN = warning(
    "CKPT457 delta-version-looks-rewritten",
    words(
        "A version of the Delta table that the query has read is newer than the batch that read it. Either the table "
        "was put back from an older copy and written to again, or the clocks of the writers and the driver differ. "
        "Spark does not notice: it continues, and never reads these rows."
    ),
    do(Do.FIND_OUT, words("Check whether the table was restored from a copy.")),
)
DELTA_LEAVES_OUT = warning(
    "CKPT458 delta-rows-left-out",
    words("With the given options, the next start does not fail. It silently leaves out rows of the Delta table."),
    _READ_APART,
)
FILES_OF_BATCH_GONE = error(
    "CKPT461 files-of-planned-batch-gone",
    words(
        "Files of a planned batch are missing. The next start runs that batch without them and commits it, without an "
        "error. Their rows are lost, with any value of ignoreMissingFiles."
    ),
    do(Do.WAIT, words("Do not start the query before the files are back where they were.")),
)
FILES_TOO_OLD = warning(
    "CKPT462 files-too-old",
    words(
        "Unread files were modified more than maxFileAge (7 days by default) before the newest file that the query has "
        "read. No batch reads them, without an error."
    ),
    do(Do.START, words("Start the query with a larger maxFileAge.")),
)
FILES_CHANGED = warning(
    "CKPT463 files-written-again",
    words(
        "Files were rewritten after the query had read them. The query compares names, and does not read them again."
    ),
    do(
        Do.CHANGE,
        words(
            "Write new rows into new files. To have these read, copy them under new names: the query then reads all "
            "rows of the copies, including those that it has read before. If you do not need them, start the query as "
            "usual."
        ),
    ),
)
FILES_ELSEWHERE = warning(
    "CKPT464 files-read-elsewhere",
    words(
        "None of the files that the query has read was in this folder. If the query reads it now, every file in it is "
        "new, including copies of files that were read."
    ),
    do(Do.FIND_OUT, words("Check the option path.")),
)
FILES_OUTSIDE = error(
    "CKPT465 files-outside-the-folder",
    words(
        "Files of the latest batch are not below the folder that the query reads now. A start asks a file source for "
        "that batch once more, even if it is committed, and Spark refuses these files (Wrong basePath, or Wrong FS). "
        "Nothing is written."
    ),
    do(
        Do.CHANGE,
        words(
            "Set the option path back to the old folder. If the files were moved, move them back first: under new "
            "paths every row of them would be read again. Read another folder with a separate query that has its own "
            "checkpoint."
        ),
    ),
)
ICEBERG_SNAPSHOT_EXPIRED = error(
    "CKPT471 iceberg-snapshot-expired",
    words(
        "The snapshot of the Iceberg table at which the next batch begins has expired. The next start fails, even if "
        "every row of the snapshot was read."
    ),
    run(
        _SET,
        words(
            "Rows that expired snapshots added are left out. Let the query continue at the oldest snapshot that is "
            "left."
        ),
    ),
)
ICEBERG_ROLLED_BACK = error(
    "CKPT472 iceberg-table-rolled-back",
    words(
        "The query has read a snapshot of the Iceberg table that is no ancestor of the current one: the table was "
        "rolled back or replaced. The next start fails, with an error that does not say so (NullPointerException)."
    ),
    run(_SET, words("Let the query continue at the newest snapshot common to both.")),
)
ICEBERG_OTHER_TABLE = error(
    "CKPT473 iceberg-table-other",
    words(
        "The Iceberg table has no snapshot that is as old as the query: it was dropped and recreated, or it is a "
        "different table. The next start fails."
    ),
    run(
        _SET, words("Check the option path. If the table was created again, let the query begin at its first snapshot.")
    ),
)
ICEBERG_ROWS_CHANGED = error(
    "CKPT474 iceberg-rows-changed",
    words(
        "An unread snapshot of the Iceberg table overwrites or deletes rows. A streaming query stops there, unless an "
        "option says to leave it out."
    ),
    do(
        Do.START,
        words(
            "Start the query with {overwrite} or {delete}. The option leaves out everything that these snapshots add, "
            "including new rows.",
            overwrite=Setting("streaming-skip-overwrite-snapshots=true"),
            delete=Setting("streaming-skip-delete-snapshots=true"),
        ),
    ),
)
ICEBERG_LEAVES_OUT = warning(
    "CKPT475 iceberg-rows-left-out",
    words(
        "With the given options, the next start does not fail. It silently leaves out rows that snapshots of the "
        "Iceberg table add while they overwrite or delete others."
    ),
    _READ_APART,
)
ICEBERG_BEGINNING_GONE = note(
    "CKPT476 iceberg-beginning-gone",
    words(
        "A start with trigger availableNow goes through the Iceberg table from the snapshot at which the query began, "
        "however much it has read since. It fails, because that snapshot has expired or a later one changes rows. A "
        "start with another trigger does not fail."
    ),
    do(Do.START, words("Start the query with another trigger.")),
)
