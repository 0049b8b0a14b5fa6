"""Diagnoses of sources and sinks (CKPT4xx), of other files (CKPT5xx), of the kind of checkpoint (CKPT6xx)."""

from ckpt.advice import CHECKPOINT, PATH, Code, Do, Hole, advise, call, do, run, words
from ckpt.restart.diagnoses.common import AT_NEW, REPAIR, RESTORE, error, note, warning
from ckpt.restart.sinks import Ids, OnSinks

_REMOVE = run(call("repair", CHECKPOINT), words("Stop the query, and see the plan that removes {path}."))
OFFSETS_WENT_BACK = warning(
    "CKPT401 offsets-went-backwards",
    words(
        "A source's offsets are lower than those of an earlier batch: a topic or table was recreated, or a file was "
        "restored by hand. Rows in between may be missing or read twice."
    ),
    do(
        Do.FIND_OUT,
        words(
            "Compare the offsets shown with those that the source has now. A start resumes from the lower ones; with "
            "Kafka and failOnDataLoss=false it skips the rows below them silently."
        ),
    ),
)
TOPIC_SWITCHED = warning(
    "CKPT406 kafka-topic-switched",
    words(
        "A Kafka source reads another topic than in the batch before: the query was started with another subscription. "
        "With failOnDataLoss, the default, a batch that runs again fails, because the partitions of the old topic are "
        "gone from it. With failOnDataLoss=false it reads the new topic from its earliest rows. Either way the unread "
        "rows of the old topic are never read."
    ),
    advise(
        run(
            call("handoff", CHECKPOINT),
            words("Read the rest of the old topic with a query of its own, and see where that starts."),
        ),
        do(Do.START, words("Start this query with failOnDataLoss=false, until its next batch is committed.")),
    ),
)
SOURCE_REPLACED = warning(
    "CKPT402 delta-table-replaced",
    words(
        "The table id in the offsets of a Delta source changed between batches: the table was dropped and created "
        "again."
    ),
    do(
        Do.START,
        words(
            "Start the query on the new table with a new checkpoint and the option startingVersion. Rows after that "
            "version that this query has read are read again, and rows before it are left out. With a new checkpoint, "
            "{sinks}.",
            sinks=OnSinks(Ids.NEW_QUERY),
        ),
    ),
)
SOURCE_LOG_HOLE = error(
    "CKPT403 file-source-log-hole",
    words(
        'The log of a file source lacks an entry it needs. Spark fails at start with a message like "batch {batch} '
        "doesn't exist\", the same as for a missing offset file."
    ),
    REPAIR,
)
SOURCE_LOG_LOST = error(
    "CKPT407 file-source-log-lost",
    words(
        "The log of a file source ends before the entry that the offsets name: entries were lost. Spark gives the next "
        "files the numbers after what is left, which the offsets count as read. It skips these files silently, or "
        "fails (assertion failed) and leaves an offsets file that goes back."
    ),
    do(
        Do.PUT_BACK,
        words(
            "Do not start the query: put {path} back from a copy of the checkpoint that has the newest entry, and "
            "nothing else."
        ),
        PATH,
    ).or_(
        do(
            Do.START,
            words(
                "Without a copy, no change to this checkpoint helps, because no other file has the names of the files "
                "that were read: start the query with {at_new}, a new checkpoint. It reads every file of the folder "
                "again, and its state is made of these. With a new checkpoint, {sinks}.",
                at_new=AT_NEW,
                sinks=OnSinks(Ids.NEW_QUERY),
            ),
        )
    ),
)
SOURCE_LOG_UNREADABLE = error(
    "CKPT404 source-log-unreadable",
    words("A file that a source stores in the checkpoint, and reads at start, cannot be read."),
    REPAIR,
)
FILE_LOG_EDITED = warning(
    "CKPT408 file-source-log-edited",
    words(
        "An entry in the log of a file source has a number, a path or a time of modification that Spark does not "
        "write: it was edited. Spark takes files that were modified more than maxFileAge (7 days by default) before "
        "the newest one in the log as too old. A time in the future makes it ignore all new files silently. It also "
        "forgets files with older times, and reads those again whose own time is newer. With another number a start "
        "may fail."
    ),
    do(
        Do.PUT_BACK,
        words("Stop the query and put {path} back from a copy of the checkpoint, and nothing else."),
        PATH,
    ).or_(
        do(
            Do.CHANGE,
            words(
                "Without a copy, give the entry the number of its file there, the path, and the time of modification "
                "in ms since 1970, before the start."
            ),
        )
    ),
)
SINK_LOG_HOLE = error(
    "CKPT405 file-sink-log-hole",
    words("_spark_metadata lacks an entry that the next compaction or reader needs, or has one that cannot be read."),
    do(Do.PUT_BACK, words("Put that file of _spark_metadata back from a copy.")).or_(
        do(
            Do.START,
            words(
                "Write to a new output folder with a new checkpoint: the new folder gets every row that the sources "
                "still have."
            ),
        )
    ),
)
ORPHAN_SIDECAR_BLOCKS = error(
    "CKPT501 orphan-checksum-file-in-the-way",
    words(
        "A hidden checksum file without its file blocks a name that Spark has yet to write: the query fails with "
        '"Multiple streaming queries are concurrently using", though there is only one, or "Rename destination ... '
        'already exists".'
    ),
    _REMOVE,
)
ORPHAN_SIDECAR = note(
    "CKPT502 orphan-checksum-file",
    words("A hidden checksum file is left without its file, where no batch will be written."),
)
STALE_SIDECAR = note(
    "CKPT503 stale-checksum-file",
    words(
        "A file does not match its hidden checksum file: one of the two was changed by hand or damaged. Spark does not "
        "notice this in its logs, deltas and changelogs; other Hadoop clients refuse the file."
    ),
)
DIRECTORY_IN_THE_WAY = error(
    "CKPT504 directory-in-the-way",
    words(
        "A folder has the name of a file that Spark has yet to write. The write fails, and Spark mentions several "
        "streaming jobs though there is only one."
    ),
    do(Do.MOVE, words("Stop the query and move {path} out of {checkpoint}."), PATH),
)
LEFTOVER = note(
    "CKPT505 leftover-temporary-files",
    words("Temporary files are left from interrupted writes. Spark ignores them."),
)
ODD_NAME = error(
    "CKPT506 name-spark-reads-as-a-batch",
    words(
        "Spark reads this name as a batch id, though it would never write it in this form, and then looks for a file "
        "that does not exist."
    ),
    _REMOVE,
)
CHANGED_WHILE_READ = note(
    "CKPT507 changed-while-read",
    words(
        "Files appeared or disappeared while ckpt read the checkpoint: a query is using it now, so this report may be "
        "out of date."
    ),
    do(Do.FIND_OUT, words("Look again, preferably with the query stopped.")),
)
NESTED = note(
    "CKPT508 checkpoint-inside-the-checkpoint",
    words(
        "A folder in this checkpoint is a checkpoint itself: another query writes there, or a copy was put into it. No "
        "start looks at it, and this report does not cover it."
    ),
    do(Do.FIND_OUT, words("Inspect {path} on its own."), PATH),
)
TOO_LARGE = error(
    "CKPT509 too-large-to-read",
    words(
        "A file is larger than any that Spark writes there, so ckpt did not read it. It is unknown what Spark does "
        "with it."
    ),
    RESTORE,
)
LINK_OUT = warning(
    "CKPT510 link-out-of-the-checkpoint",
    words(
        "A part of this checkpoint is a symbolic link out of it. Spark follows such a link. ckpt reads nothing "
        "outside, so what the start does is unknown, and no command changes this checkpoint."
    ),
    advise(
        run(
            call("inspect", Hole.COPY),
            words(
                "Make a copy in which the files themselves are in the place of the link, with {cp}. Do not start the "
                "query on it. Inspect it.",
                cp=Code("cp -rL"),
            ),
        ),
        do(
            Do.CHANGE,
            words(
                "To change the checkpoint, stop the query and put the files themselves in the place of the link, or "
                "mount their disk there."
            ),
        ),
    ),
)
CONTINUOUS = warning(
    "CKPT601 continuous-processing",
    words(
        "Continuous processing wrote this checkpoint, whose offsets have no metadata. A start in micro-batches looks "
        "for it, and fails before it writes anything. A start with a continuous trigger deletes planned epochs that "
        "are not committed, and continues after the newest commit (seen with Kafka, on Spark 3.5, 4.2 and 4.3). Rows "
        "that a killed epoch has written are written again."
    ),
    do(Do.START, words("Start the query with a continuous trigger, as it ran before.")).or_(
        run(
            call("repair", CHECKPOINT),
            words("If the source is Kafka, micro-batches can continue instead. See the plan that writes the metadata."),
        )
    ),
)
EMPTY = note(
    "CKPT602 empty-checkpoint",
    words("There is no checkpoint here yet, and a query started here reads its sources from their beginning."),
    do(
        Do.START,
        words(
            "Start the query only if it has never run before. If it has, do NOT start it: the path is wrong or the "
            "checkpoint was deleted, and every source would be read from its beginning."
        ),
    ),
)
