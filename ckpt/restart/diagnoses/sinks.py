"""Diagnoses of what ``ckpt inspect --sink`` finds in the sink (CKPT41x, CKPT420), and of what one left uncomputed."""

from ckpt.restart.findings import error, note, warning

SINK_WILL_DROP = error("CKPT411 sink-drops-batches")
SINK_LACKS = warning("CKPT412 sink-lacks-batches")
SINK_LOG_WILL_BREAK = error("CKPT413 file-sink-log-about-to-break")
SINK_WITHOUT_QUERY = warning("CKPT414 sink-does-not-know-the-query")
SINK_FORGOT = warning("CKPT415 sink-has-forgotten-batches")
SINK_LOG_SEEMS_LOST = warning("CKPT427 file-sink-log-seems-lost")
FIRST_INTO_NOOP = error("CKPT419 first-start-into-noop")
FIRST_START_UNREADABLE = error("CKPT420 unreadable-first-start-mark")
SINK_RESTORED = warning("CKPT418 sink-restored")
SINK_HAS_NEXT = note("CKPT416 sink-has-the-uncommitted-batch")
SINK_PASSES_OVER_STATE = error("CKPT417 skipped-batch-without-state")
NEVER_COMPUTED = error("CKPT428 batch-never-computed")
