"""Diagnoses of what ``ckpt inspect --sources`` finds: CKPT42x Kafka, 45x Delta, 46x files, 47x Iceberg."""

from ckpt.restart.diagnoses.common import error, note, warning
from ckpt.restart.sinks import DROP_IDS

_LEAVES = (
    "A failed start of a new batch leaves an offsets file, and every later start reads it: do not start the query "
    "before this is repaired."
)
KAFKA_ENDS_EARLIER = error(
    "CKPT421 kafka-topic-recreated",
    "A Kafka topic has fewer rows, or fewer partitions, than the query has read or planned: it was deleted and "
    f"recreated, or a broker has lost rows. The next start fails, or waits for rows that never come. {_LEAVES}",
    "`ckpt offsets set {checkpoint}` lets the query begin at the earliest rows of the topic. With failOnDataLoss=false "
    "it would continue from the end of the topic instead, and never read the rows before it.",
)
KAFKA_EXPIRED = error(
    "CKPT422 kafka-rows-expired",
    f"Rows that the next batch is to read are gone from Kafka: retention has passed. The next start fails. {_LEAVES}",
    "These rows are lost. `ckpt offsets set {checkpoint}` lets the query begin at the earliest rows that are left.",
)
KAFKA_NO_TOPIC = error(
    "CKPT423 kafka-topic-missing",
    "A topic of the checkpoint is not on these brokers. The next start fails, even with failOnDataLoss=false; or it "
    "makes the brokers create an empty topic.",
    "Do not start the query. Check the brokers and the name. A topic that is created again is empty: before the "
    "start, move the query to its beginning with `ckpt offsets set {checkpoint}`. To continue without the topic, "
    "remove it from `subscribe`, and from the checkpoint with the same command. The page has the commands.",
)
KAFKA_NOT_SUBSCRIBED = error(
    "CKPT424 kafka-topic-not-subscribed",
    'The option `subscribe` leaves out a topic that the checkpoint has read. The next new batch fails ("Partitions '
    f'... have been deleted"). {_LEAVES}',
    "`ckpt offsets set {checkpoint}` removes the topic from the checkpoint. This query then never reads the unread "
    "rows of the topic; another query can.",
)
KAFKA_LOOKS_RECREATED = warning(
    "CKPT425 kafka-topic-looks-recreated",
    "A Kafka topic has rows at offsets that the query has already read, and these rows are newer than the batch that "
    "read those offsets. Either the topic was deleted and recreated, or the clocks of the producers and the driver "
    "differ. Spark does not notice: it continues from the old offsets, and never reads the rows before them.",
    "Check in the broker's log whether the topic was recreated.",
)
KAFKA_SKIPS = warning(
    "CKPT426 kafka-rows-skipped",
    "With failOnDataLoss=false, as given, the next start does not fail. It silently leaves out rows that it cannot "
    "find, and rows of a recreated topic.",
    "Before the start, move the query with `ckpt offsets set {checkpoint}` to the earliest rows that are left. Then "
    "only rows that are gone are lost.",
)
DELTA_OTHER_TABLE = error(
    "CKPT451 delta-table-other",
    "The id of the Delta table is not the one in the offsets: the table was dropped and recreated, or replaced, or "
    "it is a different table. The next start fails, even with failOnDataLoss=false.",
    "Check that the option path names the table that the query reads. If that table was replaced, start the query "
    "with a new checkpoint: it reads all rows of the new table, with empty state. Rows of the old table stay in the "
    f"sink. Of sinks, {DROP_IDS}.",
)
DELTA_LOG_CLEANED = error(
    "CKPT452 delta-log-cleaned",
    "The log of the Delta table no longer has versions that the next start needs: its retention has passed. A start "
    "goes back to where the latest batch began, even if that batch is committed.",
    "Compare the oldest version that is left with the unread ones.",
)
DELTA_OLDER_TABLE = error(
    "CKPT453 delta-table-older",
    "The Delta table ends before the version that the query has read: it is an older copy. The next start fails, until "
    "the table has that many versions again; then it continues without an error, and never reads what was written to "
    "the copy before. With Delta 3.3 (Spark 3.5) the start does not fail either.",
    "Do not write to the table before this is repaired.",
)
DELTA_ROWS_CHANGED = error(
    "CKPT454 delta-rows-changed",
    "An unread version of the Delta table updates, overwrites or deletes rows. A streaming query stops there, unless "
    "an option says what to do.",
    "Start the query with skipChangeCommits=true, until it has read that version and committed one more batch. The "
    "option leaves out everything that this version writes, including new rows.",
)
DELTA_FILES_GONE = error(
    "CKPT455 delta-files-gone",
    "Unread data files of the Delta table are missing. The batch that reads them fails, even with "
    "failOnDataLoss=false.",
    "Put the files back from a copy.",
)
DELTA_COLUMNS_CHANGED = error(
    "CKPT456 delta-columns-changed",
    "A column of the Delta table was renamed or dropped after what the query has read. The next start fails.",
    f"Start the query with a new checkpoint after the change; its state is empty. Of sinks, {DROP_IDS}.",
)
DELTA_LOOKS_REWRITTEN = warning(
    "CKPT457 delta-version-looks-rewritten",
    "A version of the Delta table that the query has read is newer than the batch that read it. Either the table was "
    "put back from an older copy and written to again, or the clocks of the writers and the driver differ. Spark "
    "does not notice: it continues, and never reads these rows.",
    "Check whether the table was restored from a copy.",
)
DELTA_LEAVES_OUT = warning(
    "CKPT458 delta-rows-left-out",
    "With the given options, the next start does not fail. It silently leaves out rows of the Delta table.",
    "Read these rows with a batch query, if they are needed.",
)
FILES_OF_BATCH_GONE = error(
    "CKPT461 files-of-planned-batch-gone",
    "Files of a planned batch are missing. The next start runs that batch without them and commits it, without an "
    "error. Their rows are lost, with any value of ignoreMissingFiles.",
    "Do not start the query before the files are back where they were.",
)
FILES_TOO_OLD = warning(
    "CKPT462 files-too-old",
    "Unread files were modified more than maxFileAge (7 days by default) before the newest file that the query has "
    "read. No batch reads them, without an error.",
    "Start the query with a larger maxFileAge.",
)
FILES_CHANGED = warning(
    "CKPT463 files-written-again",
    "Files were rewritten after the query had read them. The query compares names, and does not read them again.",
    "Write new rows into new files. To have these read, copy them under new names: the query then reads all rows of "
    "the copies, including those that it has read before. If you do not need them, start the query as usual.",
)
FILES_ELSEWHERE = warning(
    "CKPT464 files-read-elsewhere",
    "None of the files that the query has read was in this folder. If the query reads it now, every file in it is "
    "new, including copies of files that were read.",
    "Check the option path.",
)
FILES_OUTSIDE = error(
    "CKPT465 files-outside-the-folder",
    "Files of the latest batch are not below the folder that the query reads now. A start asks a file source for "
    "that batch once more, even if it is committed, and Spark refuses these files (Wrong basePath, or Wrong FS). "
    "Nothing is written.",
    "Set the option path back to the old folder. If the files were moved, move them back first: under new paths "
    "every row of them would be read again. Read another folder with a separate query that has its own checkpoint.",
)
ICEBERG_SNAPSHOT_EXPIRED = error(
    "CKPT471 iceberg-snapshot-expired",
    "The snapshot of the Iceberg table at which the next batch begins has expired. The next start fails, even if "
    "every row of the snapshot was read.",
    "`ckpt offsets set {checkpoint}` lets the query continue at the oldest snapshot that is left; rows that expired "
    "snapshots added are left out.",
)
ICEBERG_ROLLED_BACK = error(
    "CKPT472 iceberg-table-rolled-back",
    "The query has read a snapshot of the Iceberg table that is no ancestor of the current one: the table was rolled "
    "back or replaced. The next start fails, with an error that does not say so (NullPointerException).",
    "`ckpt offsets set {checkpoint}` lets the query continue at the newest snapshot common to both.",
)
ICEBERG_OTHER_TABLE = error(
    "CKPT473 iceberg-table-other",
    "The Iceberg table has no snapshot that is as old as the query: it was dropped and recreated, or it is a "
    "different table. The next start fails.",
    "Check the option path. If the table was created again, `ckpt offsets set {checkpoint}` lets the query begin at "
    "its first snapshot.",
)
ICEBERG_ROWS_CHANGED = error(
    "CKPT474 iceberg-rows-changed",
    "An unread snapshot of the Iceberg table overwrites or deletes rows. A streaming query stops there, unless an "
    "option says to leave it out.",
    "Start the query with streaming-skip-overwrite-snapshots=true or streaming-skip-delete-snapshots=true. The "
    "option leaves out everything that these snapshots add, including new rows.",
)
ICEBERG_LEAVES_OUT = warning(
    "CKPT475 iceberg-rows-left-out",
    "With the given options, the next start does not fail. It silently leaves out rows that snapshots of the Iceberg "
    "table add while they overwrite or delete others.",
    "Read these rows with a batch query, if they are needed.",
)
ICEBERG_BEGINNING_GONE = note(
    "CKPT476 iceberg-beginning-gone",
    "A start with trigger availableNow goes through the Iceberg table from the snapshot at which the query began, "
    "however much it has read since. It fails, because that snapshot has expired or a later one changes rows. A "
    "start with another trigger does not fail.",
    "Start the query with another trigger.",
)
