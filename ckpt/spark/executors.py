"""Spark's executors as who writes a new checkpoint, instead of this machine.

Importing this imports nothing of Spark.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ckpt.copies.fill.filling import Filling
from ckpt.copies.fill.rows import Given
from ckpt.copies.rewrite.moving import Move, Task
from ckpt.copies.rewrite.writing import NewState
from ckpt.spark import filling, rewriting
from ckpt.spark.calls import ANY, Session


@dataclass(frozen=True, slots=True)
class Executors:
    """Spark executors of one session."""

    session: Session

    def moved(self, move: Move, old: list[Task], new: list[Task]) -> Iterator[Mapping[str, int]]:
        """As of ``ckpt.copies.rewrite.moving.Moves``."""
        return rewriting.moved(self.session, move, old, new)

    def filled(
        self, given: Given, filling_: Filling, options: Mapping[str, str], state: NewState | None
    ) -> Iterator[Mapping[str, int]]:
        """As of ``ckpt.copies.fill.import_state.Fills``."""
        return filling.filled(self.session, given, filling_, options, state)


def on_spark(session: Session = ANY) -> Executors:
    """Have Spark's executors write the state of ``rewrite_checkpoint``, ``import_state`` or ``write_state``.

    They are given this as ``by``. Each executor has to have this version of ckpt with its extra ``native``, and to find
    all places at their URIs.

    Args:
        session: Which Spark session they belong to.

    Raises:
        SparkMissing, SparkFailed: Once rows are moved: Spark is not installed, or failed; nothing is left then, as far
            as it can be removed.
        UsageError: Likewise: the session is one of Spark Connect, or settings come too late.

    >>> by = ckpt.on_spark(ckpt.Session(master="local[2]"))
    >>> old = "sample_checkpoints/aggregation-hdfs-4.2"
    >>> ckpt.rewrite_checkpoint(old, "memory://on-spark", partitions=5, plan=True, by=by).new.partitions
    5

    """
    return Executors(session)
