"""Words that Spark's own messages contain, so that somebody with a stack trace finds the forecast that explains it.

``tests/oracle`` compares each with what Spark said; where nothing is established the words are None. The words for a file that
cannot be read stand with the file (``Unreadable.says``).
"""

NEWER_VERSION = "maximum supported log version"
SOURCES_DIFFER = "sources in the checkpoint offsets and now there are"
ASYNC_REFUSES_STATE = "Stateful streaming queries do not support async progress tracking at this moment"
USED_CONCURRENTLY = "Multiple streaming queries are concurrently using"
NO_SHUFFLE_PARTITIONS = "None.get"
UNFINISHED_REPARTITION = "STREAMING_UNFINISHED_REPARTITION_DETECTED"
IN_THE_WAY: str | None = None


def does_not_exist(batch_id: int) -> str:
    """``MicroBatchExecution.validateOffsetLogAndGetPrevOffset``."""
    return f"batch {batch_id} doesn't exist"


def previous_not_found(batch_id: int) -> str:
    """``OfflineStateRepartitionUtils.isRepartitionBatch``, Spark 4.2 and later."""
    return f"Previous batch {batch_id} not found in offset log"


def concurrent_update(batch_id: int) -> str:
    """``QueryExecutionErrors.concurrentStreamLogUpdate``."""
    return f"Multiple streaming jobs detected for {batch_id}"



def no_metadata(batch_id: int) -> str:
    """``OfflineStateRepartitionUtils.isRepartitionBatch``, Spark 4.2 and later."""
    return f"atch {batch_id} metadata not found"
