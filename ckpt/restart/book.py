"""The texts of diagnoses, and advice that several of them share: ``words.toml``."""

from ckpt.advice import Code, Known, Step, Words, words
from ckpt.advice.book import Book
from ckpt.restart.sinks import CLAUSES

AT_NEW = Code('.writeStream.option("checkpointLocation", "NEW")')
"""How a query is started with a new checkpoint."""
INTO_NOOP = Code('.writeStream.format("noop").trigger(once=True)')
"""How a query computes state once and writes no row."""
OF_SINKS = words("Of its sinks, {new_query}.", new_query=CLAUSES["new_query"])
"""The effect of a new checkpoint on sinks."""
BOOK = Book("ckpt.restart", "words.toml", CLAUSES | {"at_new": AT_NEW, "into_noop": INTO_NOOP, "of_sinks": OF_SINKS})


def put_back(*paths: str, named: Words | None = None, instead: bool = False, then: Words | None = None) -> Step:
    """Advise to put files back from a copy of the checkpoint: those of the finding, or ``paths``.

    ``named`` is how a sentence names them, ``then`` what to do after that; ``instead`` says that it is for whoever has
    a copy.
    """
    known = {"path": named, "then": then}
    parts = {name: part for name, part in known.items() if part is not None}
    (step,) = BOOK.advise("or_put_back" if instead else "put_back", **parts).fill(Known(paths=paths)).steps
    return step
