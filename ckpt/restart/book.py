"""The texts of diagnoses, and advice that several of them share: ``words.toml``."""

from ckpt.advice import Code, Step, words
from ckpt.advice.book import Book
from ckpt.restart.sinks import CLAUSES

AT_NEW = Code('.writeStream.option("checkpointLocation", "NEW")')
"""How a query is started with a new checkpoint."""
INTO_NOOP = Code('.writeStream.format("noop").trigger(once=True)')
"""How a query computes state once and writes no row."""
OF_SINKS = words("Of its sinks, {new_query}.", new_query=CLAUSES["new_query"])
"""The effect of a new checkpoint on sinks."""
BOOK = Book("ckpt.restart", "words.toml", CLAUSES | {"at_new": AT_NEW, "into_noop": INTO_NOOP, "of_sinks": OF_SINKS})


def put_back() -> Step:
    """Advise to put the files of the finding back from a copy of the checkpoint."""
    (step,) = BOOK.advise("put_back").steps
    return step
