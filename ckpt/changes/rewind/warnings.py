"""Warnings before batches are undone: what becomes of rows that are read again."""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.changes.plan import END_FIRST, STOP_FIRST, First
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources.file_logs import file_source_logs
from ckpt.checkpoint.sources.kafka import is_kafka
from ckpt.checkpoint.sources.registry import offsets_of
from ckpt.restart.sinks import DROPS, REMEMBERING, SINKS, AboutSinks
from ckpt.texts import quote_path


@dataclass(frozen=True, slots=True)
class Again:
    """The batches that run again after ``kept``, the last one that counts, and how sinks treat them."""

    kept: int
    newest: int  # that the logs have
    same: bool  # the batch after ``kept`` runs over its old range
    committed: bool  # that batch was committed, so that its sink has its rows
    stateful: bool

    @property
    def first(self) -> First:
        """The step that comes before the usual start."""
        if self.loses:
            return First.SINK
        if not self.stateful or self.newest == self.kept:
            return First.NOTHING
        return First.NOOP if self.committed else First.NOOP_IF_WRITTEN

    @property
    def loses(self) -> bool:
        """Tell whether ids are used again with other rows: a sink that remembers them drops those rows."""
        return self.newest > (self.kept + 1 if self.same else self.kept)

    @property
    def repeats(self) -> bool:
        """Tell whether rows are read again that an unchanged start would not read."""
        return self.loses or (self.newest > self.kept and self.committed)


def rewind_warnings(checkpoint: Checkpoint, again: Again, *, cut: bool) -> Iterator[str]:
    """Return the warnings of a rewind; ``cut``: entries of file source logs go too."""
    yield END_FIRST if checkpoint.stateful else STOP_FIRST
    first = again.kept + 1
    if again.loses:
        old = f"Only batch {first} runs over its old range" if again.same else "Old ids are used again"
        yield AboutSinks(f"{old}: {DROPS}.{describe_named_sink(checkpoint)}")
        yield from _name_cures(checkpoint, again)
    elif again.first is First.NOOP:
        yield AboutSinks(
            f"Batch {first} runs again over its old range, and its sink has the rows. Before any other start, start "
            f"the query once with {_NOOP}: it computes the state of batch {first} again and writes no row. Started as "
            f"usual first, {REMEMBERING} passes over the batch, and the next one fails because its state is missing; "
            f"any other sink gets the rows again.{describe_named_sink(checkpoint)}"
        )
    elif again.repeats:
        yield AboutSinks(
            f"Batch {first} runs again over its old range: {REMEMBERING} takes it for the one it has, and neither "
            f"loses nor doubles a row.{describe_named_sink(checkpoint)}"
        )
    elif again.first is First.NOOP_IF_WRITTEN:
        yield AboutSinks(_warn_of_planned_batch(checkpoint, again))
    if again.repeats:
        if again.first is not First.NOOP:
            yield AboutSinks("Any other sink gets these rows again; upserts by key are safe.")
        yield from _must_be_there(checkpoint)
    logs = file_source_logs(checkpoint.listing, checkpoint.offsets.newest)
    if again.loses and logs and not cut:
        yield (
            "The log of the file source is left as is, because its older entries were compacted: the files of all "
            "batches that are taken back are then read together, in one batch; none is lost or read twice."
        )


_NOOP = '.writeStream.format("noop").trigger(once=True) on this checkpoint'


def _warn_of_planned_batch(checkpoint: Checkpoint, again: Again) -> str:
    """A batch that was planned: a sink may have its rows, and then the state of it is never computed.

    Measured on Spark 4.2.0 with Delta 4.4.0; ``FileStreamSink.addBatch`` does likewise.
    """
    first = again.kept + 1
    return (
        f"Batch {first} was planned, and {REMEMBERING} may have its rows: {has_batch(checkpoint, first)}. Then, before "
        f"any other start, start the query once with {_NOOP}, which computes the state of batch {first} and writes no "
        "row; started as usual first, Spark passes over the batch, and the next one fails because its state is "
        "missing. If the sink has not written it, start as usual: into noop its rows would be lost."
    )


def has_batch(checkpoint: Checkpoint, batch: int) -> str:
    """Where a sink that remembers batches shows that it has one."""
    query = checkpoint.query_id or "the query's id"
    return (
        f"a file sink if _spark_metadata/{batch} (or a later one) is in its output folder, a Delta table if its log "
        f"has a txn with appId {query} and version {batch} or higher, an Iceberg table if the summary of a "
        f"snapshot has that id as queryId, and {batch} or higher as epochId"
    )


def _must_be_there(checkpoint: Checkpoint) -> Iterator[str]:
    """Warn of data that sources may have deleted since: Kafka by retention, Delta by log and vacuum, files by hand."""
    log = checkpoint.offsets.newest
    kept = "The sources must still have all rows that are read again"
    if log is not None and any(map(is_kafka, offsets_of(log))):
        kept += ": leave failOnDataLoss on, or rows that Kafka has deleted since are skipped silently"
    yield f"{kept}."


def _name_cures(checkpoint: Checkpoint, again: Again) -> Iterator[str]:
    """Name the cures that make a sink accept rows under known batch ids."""
    for sink in SINKS:
        if sink.taken_back is not None:
            path = quote_path(checkpoint.uri)
            cure = sink.taken_back.format(
                checkpoint=path, kept=again.kept, next=again.kept + 1, last=again.newest, snapshot="SNAPSHOT"
            )
            yield AboutSinks(f"To lose none in {sink.kind}: {cure}.")


def describe_named_sink(checkpoint: Checkpoint) -> str:
    """Name the sink of the commit log, if it is there: a sentence after a space."""
    commit = checkpoint.commits.newest
    names = sorted({sink.provider or sink.name for sink in commit.sinks}) if commit else []
    return f" The commit log names this sink: {', '.join(names)}." if names else ""
