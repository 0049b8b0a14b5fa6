"""Sinks that meet a batch id a second time: one table of what each kind does, and the words that follow from it.

A batch id is seen again if a checkpoint is restored from an older copy, if its logs are rewound or deleted, and
with a new checkpoint, whose batches count from 0. What the file sink drops was measured on Spark 3.5 to 4.3, what Delta
drops on 3.5 to 4.2 (``tests/live/sink/answers.json``; 4.3 has no Delta yet), what Iceberg drops on 3.5 to 4.1
(``tests/live/sink/iceberg.json``), the rest on 4.2.0. What a sink drops shows
nowhere: there is no error, and the metrics of the query count the rows as read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

from ckpt.advice import NO_ROWS, Code, Hole, Known, Option, RowsEffect, Step, Words, again, join, left_out, words
from ckpt.advice.book import Book
from ckpt.advice.calls import Speech, TextPart

_BOOK = Book("ckpt.restart", "sinks.toml", {})


@dataclass(frozen=True, slots=True)
class Seen:
    """The batches of a query that a sink remembers."""

    next: int  # the first batch that it is to write, though it may have one of this id
    last: int | None = None  # the newest that it has
    query: str | None = None  # its id
    snapshot: int | None = None  # of an Iceberg table, before that batch

    @property
    def kept(self) -> int:
        """The last batch that counts."""
        return self.next - 1

    @property
    def parts(self) -> dict[str, Any]:
        """The parts that a text about the sink may name."""
        snapshot = "SNAPSHOT" if self.snapshot is None else self.snapshot
        rollback = Code(f"CALL CATALOG.system.rollback_to_snapshot('TABLE', {snapshot})")
        facts = {"next": self.next, "last": str(self.last), "query": str(self.query)}
        return {**facts, "kept": self.kept, "rollback": rollback}


@dataclass(frozen=True, slots=True)
class Sink:
    """One kind of sink."""

    kind: str
    new_checkpoint: Callable[[Seen], Words]  # what a new checkpoint means to it
    drops_same_query: bool = False  # rows under ids up to its newest one, from the same checkpoint or a copy of it
    drops_new_query: bool = False  # the same from a new checkpoint, which has another query id
    taken_back: Callable[[Seen], Step] | None = None  # how it accepts rows under ids that it has seen; None: it does
    record: str = "batch"  # what its log keeps of a batch
    computes_first: bool = False  # tasks read the rows of a batch, and write its state, before the sink passes it over
    fails_with_state: bool = False  # Spark 4.2 and later fail a batch with state that it passes over
    unbroken_log: str | None = None  # the folder of its log, if that breaks where batches are missing
    again: str | None = None  # of a sink that keeps no batch ids: what becomes of rows that it has and that come again
    doubles: bool = False  # of such a sink: it has them twice then

    @property
    def is_by_query(self) -> bool:
        """True if the sink knows batches by query id too."""
        return self.drops_same_query and not self.drops_new_query


def _sink(kind: str, name: str, **rules: Any) -> Sink:
    back = (lambda seen: _BOOK.advise(name, **seen.parts).steps[0]) if rules.get("drops_same_query") else None
    return Sink(kind, lambda seen: _BOOK.text(name, **seen.parts), taken_back=back, **rules)


_BY_QUERY: Mapping[str, Any] = {"drops_same_query": True}
_BY_ID: Mapping[str, Any] = {"drops_same_query": True, "drops_new_query": True}
SINKS = (
    # DeltaSink.addBatch: by query id and batch id, as txn in _delta_log
    _sink("delta", "delta", record="transaction", **_BY_QUERY),
    # SparkWrite.BaseStreamingWrite.commit: by query id and batch id, in the summaries of its snapshots
    _sink("iceberg", "iceberg", record="snapshot", computes_first=True, **_BY_QUERY),
    # FileStreamSink.addBatch: by batch id, in _spark_metadata of the output folder
    _sink("file", "file", unbroken_log="_spark_metadata", **_BY_ID),
    # options of a Delta write: by txnAppId and txnVersion, as txn in _delta_log
    _sink("foreachBatch with txnAppId", "txn_app_id", record="transaction", fails_with_state=True, **_BY_ID),
    _sink("kafka", "kafka"),  # KafkaStreamingWrite
    _sink("foreach, foreachBatch", "foreach"),
)
"""Every kind whose rule is known."""

_TWICE = "rows that it already has are then in it twice"
_UNDER_KEYS = (
    "rows that it already has are written again under the same keys, with the query's current values, so no key is "
    "in it twice"
)
NAMED_SINKS = (
    # foreach or foreachBatch that writes by key: MERGE, Cassandra, put_item of DynamoDB, ON CONFLICT
    _sink("upsert", "upsert", again=_UNDER_KEYS),
    # foreach or foreachBatch that adds each row, such as a batch write of JDBC in append mode
    _sink("append", "append", again=_TWICE, doubles=True),
    _sink("kafka", "topic", again=_TWICE, doubles=True),
    _sink("noop", "noop", again="it writes no rows"),
)
"""Kinds of sinks that keep no batch ids, as a user may say which a query has: no place of theirs is looked at."""

_KINDS = {sink.kind: sink for sink in (*SINKS, *NAMED_SINKS)}
WITH_TXN_APP_ID = _KINDS["foreachBatch with txnAppId"]


class Ids(StrEnum):
    """The batch ids under which a sink gets rows that it may have."""

    SAME = "same"  # a batch runs again under its id, with its rows
    REUSED = "reused"  # ids that the sink has seen are given to other rows
    NEW = "new"  # rows are read again in new batches of the query
    NEW_QUERY = "new-query"  # ids count from 0, under a new query id: a new checkpoint


def effect(kind: str | None, ids: Ids) -> RowsEffect:
    """Return the effect on rows that reach a sink of this kind, or of any kind, under these ids."""
    sinks = [sink for sink in _KINDS.values() if kind is None or sink.kind == kind]
    if kind == "noop":
        return NO_ROWS
    dropping = tuple(sink.kind for sink in sinks if _drops(sink, ids))
    if dropping and ids is Ids.SAME:
        return NO_ROWS if len(dropping) == len(sinks) else again()
    return left_out(dropped_by=dropping) if dropping else again()


def _drops(sink: Sink, ids: Ids) -> bool:
    return ids is not Ids.NEW and (sink.drops_new_query if ids is Ids.NEW_QUERY else sink.drops_same_query)


@dataclass(frozen=True, slots=True)
class OnSinks(TextPart):
    """A part of a text: what becomes of rows in sinks, as a clause; of the sink that was asked, once it is known."""

    ids: Ids
    kind: str | None = None

    def spell(self, speech: Speech) -> str:
        """Write it."""
        sink = _KINDS.get(self.kind or "")
        if sink is None:
            return str(_BOOK.text(f"any_{self.ids}"))
        if _drops(sink, self.ids):
            return str(_BOOK.text(f"dropping_{self.ids}"))
        name = "writes_nothing" if sink.kind == "noop" else "gets_again"
        if sink.kind == "upsert" and self.ids is Ids.NEW_QUERY:
            name = "upserts_from_the_beginning"
        return str(_BOOK.text(name, again=sink.again or _TWICE))

    def fill(self, known: Known) -> "OnSinks":
        """Return it for the sink that was asked."""
        return self if known.sink_kind not in _KINDS else replace(self, kind=known.sink_kind)


CLAUSES = {ids.value.replace("-", "_"): OnSinks(ids) for ids in Ids}
"""The effect on rows in sinks, by the names that texts have for it."""
BEGINS_ANEW = words("Batch ids count from 0 under a new query id: {sinks}.", sinks=OnSinks(Ids.NEW_QUERY))
REUSED = words("Old batch ids are reused: {sinks}.", sinks=OnSinks(Ids.REUSED))


@dataclass(frozen=True, slots=True)
class InSink:
    """The effect of a plan on rows in one kind of sink."""

    kind: str
    rows: RowsEffect
    says: Annotated[Words, "for people; its words are not fixed"]


def list_sinks(ids: Ids, remembered: Seen | None = None) -> tuple[InSink, ...]:
    """List for each kind of sink what becomes of rows, and with ``remembered`` how it loses none."""
    listed = []
    for kind, sink in _KINDS.items():
        says, rows = words("{sink}.", sink=OnSinks(ids, kind)), effect(kind, ids)
        if remembered is not None and sink.taken_back is not None and rows.dropped_by:
            says = words("{does} To lose none: {cure}", does=says, cure=sink.taken_back(remembered).what)
        listed.append(InSink(kind, rows, says))
    return tuple(listed)


@dataclass(frozen=True, slots=True)
class AnySink:
    """The effect of a plan on rows if the sink is unknown."""

    said: Words  # on a page with how to learn the rest at most three lines
    ids: Ids | None = None  # under which the sink gets rows that it may have; None: it gets none
    first: Words | None = None  # what comes before a usual start
    kinds: tuple[InSink, ...] = ()  # the same for each kind of sink, at length
    named: str = ""  # the sink that the commit log names

    def texts(self, *, sink_known: bool) -> tuple[Words, ...]:
        """The sentences of a page about it; unless the sink is known, also how to learn the rest."""
        ask, uri = Words(), Option("sink", Hole.URI)
        if self.named and not sink_known:
            ask = words("The commit log names {named}: {uri} shows how it behaves.", named=self.named, uri=uri)
        elif self.ids is not None and not sink_known:
            ask = words("{uri} (or append, upsert, kafka, noop) shows more.", uri=uri)
        return tuple(filter(None, (join((self.said, ask)), self.first)))


def shared_with_a_copy(*, new_id: bool, only: Sink | None = None) -> dict[str, str]:
    """Describe for each kind of sink, or one, the result if a query and a copy of its checkpoint both write to it."""
    outcomes = {}
    for sink in SINKS if only is None else (only,):
        name = "both_twice" if sink.again is None or sink.doubles else "both_by_key"
        name = "both_noop" if sink.kind == "noop" else "both_anew" if new_id and sink.is_by_query else name
        known = sink.drops_new_query if new_id else sink.drops_same_query
        outcomes[sink.kind] = str(_BOOK.text("both_dropped" if known else name))
    return outcomes
