"""``ckpt migrate real-time``: how the query of a micro-batch checkpoint continues in real-time mode.

Spark 4.3 wants a newest commit of version 2 (``CHECKPOINT_FORMAT_V1_NOT_SUPPORTED``), and its own answer is a new
checkpoint. With state, ``ckpt rewrite`` writes one from which real-time mode continues; without, the version of the
newest commit is all that is missing. Shown by real starts (``tests/restart/realtime``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ckpt.advice import NO_ROWS, Code, Do, Step, Words, call, do, plain, run, words
from ckpt.checkpoint.reader import as_checkpoint
from ckpt.errors import parse_choice
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.inspection.verdict import outcome_words
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
        return tuple(_list_steps(self))

    @property
    def warnings(self) -> tuple[Words, ...]:
        """Effects of the change, a sentence each."""
        return tuple(_list_warnings(self))


def migrate_real_time(
    checkpoint: Location, spark: Spark | str = NEWEST, storage_options: Mapping[str, str] | None = None
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
        outcome = RealTimeOutcome.REFUSED
        refused = words(
            "continuous processing wrote its newest offsets: change to micro-batches first, with {repair}",
            repair=call("repair", opened.uri),
        )
    elif start.outcome is Outcome.REFUSED:
        outcome, refused = RealTimeOutcome.NO_WAY, plain(start.because[0].detail)
    elif in_the_way and opened.state is None and opened.stateful is False:
        outcome = RealTimeOutcome.COMMIT
    elif in_the_way and opened.state is not None and is_rewritable(opened, ToProvider.ROCKSDB, 2):
        outcome = RealTimeOutcome.REWRITE
    elif in_the_way and opened.state is None:
        outcome = RealTimeOutcome.REFUSED
        refused = words("the files do not say whether the query keeps state")
    elif in_the_way:
        outcome = RealTimeOutcome.REFUSED
        refused = words("{rewrite} does not write this state: it says why", rewrite=call("rewrite"))
    elif not start.outcome.runs:
        outcome = RealTimeOutcome.REFUSED
        refused = words("as it is, a start in real-time mode {ends}", ends=outcome_words(start))
    return RealTimeMove(inspection, version, outcome, refused)


def _list_steps(move: RealTimeMove) -> Iterator[Step]:
    path = move.inspection.checkpoint.uri
    start = words(
        "Start the same query with {mode} and {trigger}",
        mode=Code('.outputMode("update")'),
        trigger=Code('.trigger(realTime="5 minutes")'),
    )
    match move.outcome:
        case RealTimeOutcome.REWRITE:
            new = name_beside(path, "real-time")
            yield _STOP
            write = words("Write its state for RocksDB in format 2, into a new checkpoint.")
            yield run(call("rewrite", path, new, provider="rocksdb", format_version=2), write, writes=True)
            on_new = words("{start}, with {new} as its checkpointLocation, never on the old one.", start=start, new=new)
            yield do(Do.START, on_new)
        case RealTimeOutcome.COMMIT:
            yield _STOP
            give = words("Give its newest commit version 2, with a backup.")
            yield run(call("repair", path, choose="to-real-time", apply=True), give, writes=True)
            yield do(Do.START, start + ".")
        case RealTimeOutcome.ALREADY:
            yield do(Do.START, start + ".")


_STOP = do(Do.CHANGE, words("Stop the query."), rows=NO_ROWS)


def _list_warnings(move: RealTimeMove) -> Iterator[Words]:
    checkpoint = move.inspection.checkpoint
    if move.outcome in (RealTimeOutcome.NO_WAY, RealTimeOutcome.REFUSED):
        return
    latest, committed = checkpoint.offsets.latest, checkpoint.commits.latest
    if latest is not None and latest != committed:
        yield words(
            "Batch {latest} is planned and not committed: a start in real-time mode deletes it, and reads everything "
            "after the newest commit. No row is lost, but rows that the batch has written are written again. To finish "
            "it first, start once with {trigger}.",
            latest=latest,
            trigger=Code(".trigger(availableNow=True)"),
        )
    if move.outcome is not RealTimeOutcome.ALREADY:
        yield words(
            "Spark before 4.2 does not start on it any more, unless the session has state store checkpoint format 2."
        )
    if checkpoint.state is None:
        yield words("The checkpoint has no state/ folder: this holds for a query that keeps no state.")
    if checkpoint.state is not None:
        yield words("If the query ran in another output mode than update, it emits other rows from now on.")
        yield words(
            "To go back, start it in micro-batches with Spark 4.3 or later: the checkpoint says which format it has."
        )
