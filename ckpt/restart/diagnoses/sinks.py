"""Diagnoses of what ``ckpt inspect --sink`` finds in the sink (CKPT41x, CKPT420)."""

from ckpt.advice import CHECKPOINT, Code, Do, Hole, advise, call, do, run, words
from ckpt.restart.diagnoses.common import AT_NEW, error, note, warning

INTO_NOOP = Code('.writeStream.format("noop").trigger(once=True)')
"""How a query is started once to compute state and write no row."""
_ASK_SINK = call("inspect", CHECKPOINT, sink=Hole.URI)
_WRITE_AGAIN = call("rewind", CHECKPOINT, to_batch=Hole.N, replay="new")

SINK_WILL_DROP = error(
    "CKPT411 sink-drops-batches",
    words(
        "The sink has other batches under ids that the checkpoint has yet to run, or has run: the checkpoint is older "
        "than its sink (restored from a copy, rewound), or the batches are another query's. The sink silently drops "
        "every row under an id that it has, and the query counts those rows as written. Delta and a file sink drop a "
        "batch before it is computed: a query with state then fails, in that batch (state store checkpoint format 2) "
        "or in the next one."
    ),
    advise(
        do(Do.WAIT, words("Do not start the query. If the newer checkpoint still exists, put it back.")),
        do(
            Do.CHANGE,
            words(
                "If it does not, make the sink forget these batches, as {rewind} says, or let the query write to a "
                "new place.",
                rewind=call("rewind"),
            ),
        ),
    ),
)
SINK_LACKS = warning(
    "CKPT412 sink-lacks-batches",
    words(
        "The checkpoint has batches that the log of the sink lacks: the sink was restored, recreated or copied, or the "
        "query writes elsewhere. No start writes them again."
    ),
    run(
        _WRITE_AGAIN,
        words(
            "Check whether their rows are in the sink. If they are not, have them written again: N is the newest batch "
            "of the sink."
        ),
    ),
)
SINK_LOG_WILL_BREAK = error(
    "CKPT413 file-sink-log-about-to-break",
    words(
        "_spark_metadata of a file sink lacks batches that the checkpoint has committed. The next batch leaves a hole "
        "in it: readers then fail with FileNotFoundException, and the query with BATCH_METADATA_NOT_FOUND at the next "
        "compaction."
    ),
    do(Do.PUT_BACK, words("Put _spark_metadata back from a copy.")).or_(
        run(_WRITE_AGAIN, words("Let the query write the others again: N is the newest batch of _spark_metadata."))
    ),
)
SINK_WITHOUT_QUERY = warning(
    "CKPT414 sink-does-not-know-the-query",
    words(
        "The Delta or Iceberg table has no batch of this query, though the checkpoint does: the table was recreated, "
        "the checkpoint got a new id, the query writes elsewhere, or in foreachBatch, or the snapshots of its batches "
        "have expired (Iceberg). The next start writes its batches; a batch that runs again is written again."
    ),
    do(
        Do.FIND_OUT,
        words(
            "Check that the query writes to this table, and whether the rows of earlier batches are in it: those of a "
            "batch that runs again would be in it twice. If the table was recreated and has lost them, no start of "
            "this checkpoint writes them again: start the query with {at_new}, which reads its sources from their "
            "beginning.",
            at_new=AT_NEW,
        ),
    ),
)
SINK_FORGOT = warning(
    "CKPT415 sink-has-forgotten-batches",
    words(
        "The transactions of this query in the Delta table have expired (delta.setTransactionRetentionDuration), so "
        "the table accepts batches that it already has: their rows are then in it twice."
    ),
    do(
        Do.CHANGE,
        words(
            "Before the start, run {unset}: the table then knows its batches again. If its log was cleaned after they "
            "expired, it does not. Then first look in the table for the rows of a batch that runs again: they would "
            "be in it twice.",
            unset=Code("ALTER TABLE ... UNSET TBLPROPERTIES ('delta.setTransactionRetentionDuration')"),
        ),
    ),
)
SINK_LOG_SEEMS_LOST = warning(
    "CKPT427 file-sink-log-seems-lost",
    words(
        "The folder has data files as a file sink writes them (names of Spark, and no _SUCCESS, which a batch job "
        "leaves), and no _spark_metadata. If the query writes here with the file sink, its log is lost: from the next "
        "batch on readers fail with FileNotFoundException, and the next compaction fails with "
        "BATCH_METADATA_NOT_FOUND. The data files are complete, and can be read as long as the folder has no "
        "_spark_metadata."
    ),
    do(
        Do.PUT_BACK,
        words(
            "If a function of foreachBatch writes here, start the query as usual. If the query writes here with the "
            "file sink, do not start it: put _spark_metadata back from a copy of the folder."
        ),
    ).or_(
        run(
            call("handoff", CHECKPOINT),
            words(
                "Without a copy, leave this folder to readers as it is, and see how a new query with a new checkpoint "
                "and a new output folder continues where this one stopped, with empty state."
            ),
        )
    ),
)
FIRST_INTO_NOOP = error(
    "CKPT419 batch-to-run-into-noop-first",
    words(
        "ckpt rewound the newest batch, which its sink has, and left {path} as a mark. If you start the query as "
        "usual, it writes the rows of that batch again. If the sink skips batches that it has, the query fails in the "
        "next batch because state is missing."
    ),
    do(
        Do.START,
        words(
            "In a new driver, start the query once with {noop} on this checkpoint. When that has ended without an "
            "error, start the query as usual. A sink that does not have the batch, or has another one under its id, "
            "needs no such start, which would lose the rows. See whether yours has it, if it is a Delta or Iceberg "
            "table or the output of a file sink: {ask}.",
            noop=INTO_NOOP,
            ask=_ASK_SINK,
        ),
    ),
)
FIRST_START_UNREADABLE = error(
    "CKPT420 unreadable-mark-of-first-start",
    words(
        "{path} cannot be read. ckpt writes it when it rewinds the newest batch although sinks have its rows. It is "
        "unknown whether the file is about the batch that runs next. If the sink has that batch, a normal start writes "
        "its rows again, or fails in the batch after it because state is missing. If the sink does not have it, a "
        "start into noop loses its rows."
    ),
    do(
        Do.FIND_OUT,
        words(
            "First check whether the sink has that batch: {ask}. That works for a Delta or Iceberg table and for the "
            "output of a file sink. If it has the batch, start the query once with {noop} in a new driver, and then as "
            "usual. If it does not, start the query as usual: a start into noop would lose the rows of the batch.",
            ask=_ASK_SINK,
            noop=INTO_NOOP,
        ),
    ),
)
SINK_RESTORED = warning(
    "CKPT418 sink-restored",
    words(
        "The Delta table was restored to a version before batches of this query. RESTORE removes their rows but keeps "
        "their transactions, so the table still skips these batches, and no start writes their rows again."
    ),
    run(
        call("rewind", CHECKPOINT, to_sink_version=Hole.VERSION, sink=Hole.URI),
        words(
            "If you want those rows, let the query go back to where the table is, with a new query id: V is the newest "
            "version of the table."
        ),
    ),
)
SINK_HAS_NEXT = note(
    "CKPT416 sink-has-the-uncommitted-batch",
    words(
        "The query stopped after the sink had written a batch but before Spark committed it. The next start runs the "
        "batch again, and the sink skips it. No row is lost or duplicated if the offsets file is the one that the "
        "batch was planned with."
    ),
)
SINK_PASSES_OVER_STATE = error(
    "CKPT417 batch-passed-over-without-its-state",
    words(
        "The next start runs a batch that the sink already has. The sink skips it, so its state is not computed, and "
        "the query fails: with state store checkpoint format 2 in the same batch (assertion failed: CheckpointInfo "
        "length), from Spark 4.2 on also where foreachBatch skips it (STATE_STORE_COMMIT_VALIDATION_FAILED), otherwise "
        "in the next one if state files of the batch are missing."
    ),
    do(
        Do.START,
        words(
            "Before any other start, start the query once with {noop} on this checkpoint: it computes the state of "
            "that batch and writes no row.",
            noop=INTO_NOOP,
        ),
    ),
)
