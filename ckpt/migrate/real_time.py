"""``ckpt migrate real-time``: how the query of a micro-batch checkpoint continues in real-time mode.

Spark 4.3 wants a newest commit of version 2 (``CHECKPOINT_FORMAT_V1_NOT_SUPPORTED``), and its own answer is a new
checkpoint. With state, ``ckpt rewrite`` writes one from which real-time mode continues; without, the version of the
newest commit is all that is missing. Shown by real starts (``tests/restart/realtime``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ckpt.advice import Step, Words, plain
from ckpt.checkpoint.reader import as_checkpoint
from ckpt.errors import parse_choice
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.inspection.verdict import outcome_words
from ckpt.migrate.book import BOOK
from ckpt.migrate.provider import is_rewritable, name_beside
from ckpt.model import Kind, Location, ToProvider
from ckpt.restart.diagnoses.modes import REAL_TIME_FORMAT
from ckpt.restart.findings import Asked, Forecast, Outcome
from ckpt.values import Value
from ckpt.versions import NEWEST, Spark

NEEDS = (
    "sources: Kafka, without the options maxOffsetsPerTrigger and minPartitions",
    "sink: Kafka, foreach or the console",
    'output mode: update. Trigger: realTime="5 minutes" (5 seconds at least)',
    "state: aggregations and dropDuplicates only, with Spark 4.3 or later",
    "a slot of Spark for each partition of the sources and each shuffle partition, all at once",
)
"""Demands of real-time mode on the query, which no file of a checkpoint shows."""


class RealTimeOutcome(StrEnum):
    """A change to real-time mode, as far as the files foretell it."""

    ALREADY = "already"  # a start in real-time mode continues as it is
    REWRITE = "rewrite"  # the same query continues on a checkpoint that ``ckpt rewrite`` writes
    COMMIT = "commit"  # the newest commit gets version 2
    NO_WAY = "no-way"  # real-time mode does not run such a query
    REFUSED = "refused"  # ckpt cannot tell, or something else is wrong


@dataclass(frozen=True, slots=True)
class RealTimeMove(Value):
    """A change to real-time mode, before anybody makes it."""

    inspection: Inspection  # of a start in real-time mode
    spark: Spark
    outcome: RealTimeOutcome
    refused: Words | None = None

    @property
    def forecast(self) -> Forecast:
        """The next start in real-time mode, as the checkpoint is."""
        return self.inspection.forecasts[0]

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps in their order."""
        if self.outcome in (RealTimeOutcome.NO_WAY, RealTimeOutcome.REFUSED):
            return ()
        uri = self.inspection.checkpoint.uri
        return BOOK.advise(f"real_time_{self.outcome}", uri=uri, new=name_beside(uri, "real-time")).steps

    @property
    def warnings(self) -> tuple[Words, ...]:
        """Effects of the change, a sentence each."""
        return tuple(_list_warnings(self))


def migrate_real_time(
    checkpoint: Location, *, spark: Spark | str = NEWEST, storage_options: Mapping[str, str] | None = None
) -> RealTimeMove:
    """All that ``ckpt migrate real-time`` says; reads the checkpoint's small files, and starts no JVM.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        spark: The version that is to run the query in real-time mode.
        storage_options: For the file system of the URI.

    Raises:
        NotACheckpoint, NotFound, StorageError, UsageError: The checkpoint cannot be read.

    >>> from ckpt.migrate.real_time import migrate_real_time
    >>> move = migrate_real_time("sample_checkpoints/kafka-4.2")
    >>> move.outcome.value, [step.words for step in move.steps if step.words]
    ('commit', [('ckpt', 'repair', 'sample_checkpoints/kafka-4.2', '--choose', 'to-real-time', '--apply')])

    """
    version = parse_choice(Spark, spark, "spark")
    inspection = inspect(as_checkpoint(checkpoint, storage_options), (version,), Asked.REALTIME)
    start, opened = inspection.forecasts[0], inspection.checkpoint
    outcome: RealTimeOutcome = RealTimeOutcome.ALREADY
    refused: Words | None = None
    in_the_way = any(finding.diagnosis is REAL_TIME_FORMAT for finding in start.because)
    if opened.kind is Kind.CONTINUOUS:
        outcome, refused = RealTimeOutcome.REFUSED, BOOK.text("real_time_continuous", uri=opened.uri)
    elif start.outcome is Outcome.REFUSED:
        outcome, refused = RealTimeOutcome.NO_WAY, plain(start.because[0].detail)
    elif in_the_way and opened.state is None and opened.stateful is False:
        outcome = RealTimeOutcome.COMMIT
    elif in_the_way and opened.state is not None and is_rewritable(opened, ToProvider.ROCKSDB, 2):
        outcome = RealTimeOutcome.REWRITE
    elif in_the_way and opened.state is None:
        outcome, refused = RealTimeOutcome.REFUSED, BOOK.text("real_time_unknown")
    elif in_the_way:
        outcome, refused = RealTimeOutcome.REFUSED, BOOK.text("real_time_not_written")
    elif not start.outcome.runs:
        outcome, refused = RealTimeOutcome.REFUSED, BOOK.text("real_time_as_it_is", ends=outcome_words(start))
    return RealTimeMove(inspection, version, outcome, refused)


def _list_warnings(move: RealTimeMove) -> Iterator[Words]:
    checkpoint = move.inspection.checkpoint
    if move.outcome in (RealTimeOutcome.NO_WAY, RealTimeOutcome.REFUSED):
        return
    latest, committed = checkpoint.offsets.latest, checkpoint.commits.latest
    if latest is not None and latest != committed:
        yield BOOK.text("real_time_planned", latest=latest)
    if move.outcome is not RealTimeOutcome.ALREADY:
        yield BOOK.text("real_time_older_spark")
    if checkpoint.state is None:
        yield BOOK.text("real_time_no_state")
    else:
        yield BOOK.text("real_time_output_mode")
        yield BOOK.text("real_time_go_back")
