"""``ckpt handoff``: how a new query continues from where an old one stopped."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from os import fspath
from typing import Annotated

from ckpt.advice import Words, join, plain
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.history import name_lagging_mode
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.sources.registry import SourceRange, kind_of, offsets_of, source_ranges
from ckpt.checkpoint.sources.starts import StartingPoint
from ckpt.checkpoint.state.ranges import Ranges, contains, intersect, ranges_of
from ckpt.checkpoint.times import BatchOrTime, find_batch
from ckpt.errors import parse_choice
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.live.sink.reader import find_kind
from ckpt.migrate.book import BOOK
from ckpt.migrate.handoff.snippets import Language, write_snippet
from ckpt.migrate.handoff.starts import SourceStart, start_sources
from ckpt.model import DamageKind, Kind, Location, Unreadable
from ckpt.restart.diagnoses.others import OFFSETS_WENT_BACK
from ckpt.restart.sinks import SINKS, Seen, Sink
from ckpt.storage import open_storage
from ckpt.texts import ranges
from ckpt.values import Value


@dataclass(frozen=True, slots=True)
class SinkMeaning:
    """The meaning of a new checkpoint, whose batches count from 0 again, to one kind of sink."""

    kind: str
    meaning: Annotated[str, "for people; its words are not fixed"]


def describe_sinks(checkpoint: Checkpoint, batch: int, only: Sink | None = None) -> tuple[SinkMeaning, ...]:
    """Describe every kind of sink, or ``only`` one: only commit log v3 names the sink that the query had."""
    old = checkpoint.query_id or "OLD_QUERY_ID"
    last = max((batch, *checkpoint.offsets.ids[-1:], *checkpoint.commits.ids[-1:]))
    return tuple(
        SinkMeaning(sink.kind, str(sink.new_checkpoint(Seen(batch + 1, last, old))))
        for sink in (SINKS if only is None else (only,))
    )


def list_doubts(
    inspection: Inspection, batch: int, starts: Sequence[SourceStart], *, newest_readable: bool
) -> Iterator[Words]:
    """Say why a new query that continues after a batch may read some rows twice.

    ``newest_readable`` says whether the state of the newest committed batch can be loaded in all partitions.
    """
    checkpoint = inspection.checkpoint
    commits, latest = checkpoint.commits, checkpoint.offsets.latest
    newest = commits.ids[-1]
    if _left_alone(checkpoint, batch, starts):
        latest = newest = batch  # as far as these topics go
    if newest > batch:
        why = Words() if newest_readable else BOOK.text("handoff_state_unreadable", uri=checkpoint.uri)
        yield BOOK.text("handoff_committed_later", newest=newest, why=why, batch=batch)
    earliest = [start.view for start in starts if start.begin is StartingPoint.EARLIEST]
    if latest is not None and latest > max(batch, newest):
        finishes = any(start.outcome.runs and start.batch_id == latest for start in inspection.counted)
        finishes = finishes and not any(start.refused for start in starts)  # which says itself what helps
        once_more = BOOK.text("handoff_once_more") if finishes else Words()
        yield BOOK.text("handoff_ends_before" if earliest else "handoff_unfinished", latest=latest, once_more=once_more)
    for view in earliest:
        yield BOOK.text("handoff_topic_recreated", index=view.index, kind=view.type, batch=batch)
    if mode := name_lagging_mode(checkpoint):
        yield BOOK.text("handoff_lagging_log", mode=mode, batch=batch)
    for start in starts:
        if start.begin is StartingPoint.FROM_ZERO:
            yield BOOK.text("handoff_starts_over", index=start.view.index, kind=start.view.type)


def _left_alone(checkpoint: Checkpoint, batch: int, starts: Sequence[SourceStart]) -> bool:
    """Tell whether no batch after this one read any of its Kafka topics: the query went on with others."""
    topics = [start.view.topics for start in starts]
    later = [checkpoint.offsets.readable(later_batch) for later_batch in checkpoint.offsets.ids if later_batch > batch]
    read = [kind_of(offset).find_topics(offset) for log in later if log for offset in offsets_of(log)]
    whole = all(topics) and all(read) and None not in later
    return whole and frozenset[str]().union(*topics).isdisjoint(frozenset[str]().union(*read))


def _warn(inspection: Inspection, batch: int, *, state_readable: bool) -> Iterator[Words]:
    """Give other warnings about continuing after a batch, also of rows that the old query had skipped before it."""
    checkpoint = inspection.checkpoint
    yield BOOK.text("handoff_stop")
    for sign in inspection.written_by.newer[:1]:
        yield BOOK.text("handoff_newer_spark", sign=sign)
    if not state_readable:
        first = BOOK.text("handoff_repair_first", uri=checkpoint.uri) if inspection.advice.repairs else Words()
        yield BOOK.text("handoff_state_gone", batch=batch, first=first)
    elif checkpoint.stateful is None:
        yield BOOK.text("handoff_state_unseen")
    elif checkpoint.stateful:
        described = all(store.key_schema is not None or store.column_families for _, store in checkpoint.stores())
        name = "handoff_export_state" if described else "handoff_export_undescribed"
        yield BOOK.text(name, batch=batch, chosen=batch, uri=checkpoint.uri)
    commit = checkpoint.commits.readable(batch)
    names = sorted({sink.provider or sink.name for sink in commit.sinks}) if commit else []
    if names:
        yield BOOK.text("handoff_named_sink", names=", ".join(names))
    for rated in inspection.findings:
        back = rated.finding.diagnosis is OFFSETS_WENT_BACK
        if back and rated.advice and int(rated.finding.path.rpartition("/")[2]) <= batch:
            advice = join(rated.advice.sentences())
            yield BOOK.text("handoff_went_back", detail=rated.finding.detail, advice=advice)


@dataclass(frozen=True, slots=True)
class Later:
    """A batch that the old query planned after the chosen one."""

    batch: int
    committed: bool
    sources: tuple[SourceRange, ...]  # what it read, or was to read; empty where that is not known


@dataclass(frozen=True, slots=True)
class Handoff(Value):
    """How a new query continues after ``batch``; without a batch, or with ``refused``, it cannot."""

    inspection: Inspection
    possible: Ranges  # after which a new query can continue: committed, with offsets, and with state if there is any
    batch: Annotated[int | None, "the batch after which the new query continues, or was to continue"] = None
    state_version: Annotated[int | None, "of the batch's state; null if the query is stateless"] = None
    watermark_ms: Annotated[
        int | None, "the watermark of the old query's next batch; 0 without a watermark, null if it is not recorded"
    ] = None
    sources: tuple[SourceStart, ...] = ()
    later: tuple[Later, ...] = ()
    sinks: Annotated[tuple[SinkMeaning, ...], "how each kind treats a new checkpoint"] = ()
    doubts: tuple[Words, ...] = ()  # why rows may be read twice; none is ever left out
    warnings: tuple[Words, ...] = ()
    refused: Words | None = None
    snippet: Annotated[str | None, "with `--snippet`"] = None

    @property
    def exact(self) -> bool:
        """True if the new query reads every row after the batch, and the old one read none of them."""
        return self.refused is None and not self.doubts

    @property
    def state_lost(self) -> bool:
        """True if a new query can continue, and not all state of the batch can be loaded."""
        return self.refused is None and self.batch is not None and not contains(self.possible, self.batch)


def handoff(
    checkpoint: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    batch: BatchOrTime | None = None,
    sink: str | None = None,
    snippet: Language | str | None = None,
) -> Handoff:
    """Show how a new query continues where the old one stopped, like ``ckpt handoff``.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI.
        batch: The batch after which the new query continues; by default the newest that is committed, whose state can
            be read where the query is stateful.
        sink: The query's sink, as for ``inspect``: only that sink is
            described then.
        snippet: Also write code that starts the sources there, in ``python`` or ``scala``.

    Raises:
        NotACheckpoint, NotFound, StorageError, UsageError: The checkpoint, or the sink, cannot be read.
        CkptError: The code cannot be written: too many files, or a secret in a path.

    >>> handoff = ckpt.handoff("sample_checkpoints/kafka-4.2", snippet="python")
    >>> [line for line in handoff.snippet.splitlines() if line.startswith("def")]
    ['def source_0(spark: SparkSession, options: dict[str, str]) -> DataStreamReader:']
    >>> handoff.batch, handoff.exact, dict(handoff.sources[0].options)
    (5, True, {'startingOffsets': '{"orders":{"0":51,"1":49}}'})
    """
    language = None if snippet is None else parse_choice(Language, snippet, "snippet")
    storage = open_storage(fspath(checkpoint), storage_options or {})
    kind = find_kind(sink, fspath(checkpoint), storage_options)
    read = read_checkpoint(storage, batches=0)  # 0: the complete logs
    inspection, possible = inspect(read), _find_possible(read)
    chosen = _choose_batch(read, possible) if batch is None else find_batch(read, batch)
    refused = _refuse(read, chosen, possible)
    log = read.offsets.readable(chosen)
    if chosen is None or log is None or refused is not None:
        return Handoff(inspection, possible, chosen, refused=refused or BOOK.text("handoff_after_none"))
    starts = tuple(start_sources(storage, inspection, chosen))
    commit = read.commits.readable(chosen)
    newest_readable = contains(possible, read.commits.ids[-1])
    plan = Handoff(
        inspection,
        possible,
        chosen,
        state_version=chosen + 1 if read.stateful else None,
        watermark_ms=commit.next_watermark_ms if commit else None,
        sources=starts,
        later=tuple(_list_later(read, chosen)),
        sinks=describe_sinks(read, chosen, kind),
        doubts=tuple(list_doubts(inspection, chosen, starts, newest_readable=newest_readable)),
        warnings=tuple(_warn(inspection, chosen, state_readable=contains(possible, chosen))),
        refused=_refuse_sources(starts),
    )
    if language is None or plan.refused:
        return plan
    return replace(plan, snippet=write_snippet(read.uri, chosen, plan.watermark_ms, starts, language))


def _choose_batch(checkpoint: Checkpoint, possible: Ranges) -> int | None:
    """Choose the newest committed batch, even without its offsets; an older one only where that has all state."""
    newest = next(iter(checkpoint.commits.ids[-1:]), None)
    if checkpoint.offsets.readable(newest) is None or not possible:
        return newest
    return possible[-1][1]


def _find_possible(checkpoint: Checkpoint) -> Ranges:
    """Find the committed batches that have offsets, none that was seen unreadable, and state that can be loaded."""
    offsets = checkpoint.offsets
    ids = [i for i in checkpoint.commits.ids if i in offsets and not isinstance(offsets.entries.get(i), Unreadable)]
    lost = checkpoint.state and any(damage.kind is DamageKind.MISSING_STATE for damage in checkpoint.state.damages)
    possible = () if lost else ranges_of(ids)
    for _, store in checkpoint.stores():
        possible = intersect(possible, store.readable_batches)
    return possible


def _refuse(checkpoint: Checkpoint, batch: int | None, possible: Ranges) -> Words | None:
    """Say why no query can continue after a batch, before its sources are checked."""
    offsets, commits = checkpoint.offsets, checkpoint.commits
    if checkpoint.kind is Kind.EMPTY:
        return BOOK.text("handoff_nothing_planned")
    if batch is None:
        began = [f"source {k} at {json.dumps(offset)}" for k, offset in sorted(checkpoint.initial_offsets.items())]
        name = "handoff_none_committed_from" if began else "handoff_none_committed"
        return BOOK.text(name, began=", ".join(began), latest=offsets.latest)
    unreadable = offsets.entries.get(batch)
    if batch not in offsets:
        why = BOOK.text("handoff_no_offsets", batch=batch)
    elif isinstance(unreadable, Unreadable):
        why = BOOK.text("handoff_bad_offsets", batch=batch, reason=unreadable.reason)
    elif batch not in commits:
        why = BOOK.text("handoff_not_committed", batch=batch)
    else:
        return None
    spans = ranges(possible[-4:])
    rest = BOOK.text("handoff_other_batches" if spans else "handoff_after_none", spans=spans)
    return BOOK.text("handoff_refused", why=why, rest=rest)


def _refuse_sources(starts: tuple[SourceStart, ...]) -> Words | None:
    alike: dict[tuple[str, str], list[int]] = {}
    for start in starts:
        if start.refused:
            alike.setdefault((start.view.type, str(start.refused)), []).append(start.view.index)
    refusals = [
        f"{'each of sources' if len(which) > 1 else 'source'} {ranges(ranges_of(which))} ({kind}): {why}"
        for (kind, why), which in alike.items()
    ]
    return plain("; ".join(refusals)) or None


def _list_later(checkpoint: Checkpoint, batch: int) -> Iterator[Later]:
    offsets = checkpoint.offsets
    for before, later in pairwise((batch, *(i for i in offsets.ids if i > batch))):
        begins, ends = offsets.readable(before), offsets.readable(later)
        yield Later(later, later in checkpoint.commits, source_ranges(begins, ends) if begins and ends else ())
