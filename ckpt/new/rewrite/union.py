"""Checkpoints of one query over different sources as one: whether their state fits together, and their logs.

The new query reads all sources, those of the first checkpoint first. Its next batch is one past the newest of all, so
that no sink of an old query has a batch of that number; and it has the lowest of the watermarks, so that no row is late
that was not late before.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated

from ckpt import settings
from ckpt.changes.plan import NoWay
from ckpt.changes.steps import FileStep, view_changed
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, SOURCES
from ckpt.checkpoint.history import sources
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.sources.file_logs import is_read_twice, name_folder, source_folder
from ckpt.checkpoint.sources.registry import SourceView, in_order
from ckpt.checkpoint.state.rewritable import recognise_operator
from ckpt.errors import one_line
from ckpt.formats.commits import format_commit_log
from ckpt.formats.offsets import format_offset_log
from ckpt.formats.operators import OperatorName
from ckpt.model import CommitLog, Json, Kind, OffsetLog, Operator, SourceOffset
from ckpt.new.book import BOOK
from ckpt.new.evolve.columns import plan_combining
from ckpt.new.evolve.logs import has_names, is_hidden, plan_logs
from ckpt.new.evolve.origins import StoreColumns
from ckpt.new.evolve.sources import Unclear, match_sources
from ckpt.new.rewrite.merging import feeds_another
from ckpt.query.compare_checkpoint import compare_operators
from ckpt.query.description import QueryDescription, spell_schema
from ckpt.restart.findings import Severity
from ckpt.restart.remedies import commit_planned
from ckpt.state.reading.reading import ChosenState
from ckpt.storage import Storage

_MAY_DIFFER = frozenset(
    {
        *(settings.SHUFFLE_PARTITIONS, settings.PROVIDER_CLASS, settings.COMPRESSION_CODEC),
        *(settings.ROCKSDB_FORMAT, settings.ROW_CHECKSUM),
    }
)
"""Recorded settings that say how rows are kept, which are written in the form of the first checkpoint."""


@dataclass(frozen=True, slots=True)
class UnitedSource:
    """A source of the new query: one of an old one."""

    checkpoint: Annotated[int, "its position in `merged`"]
    was: int  # the number of the source there
    view: SourceView
    also: tuple["UnitedSource", ...] = ()  # other sources of Kafka, whose topics the new query reads with this one


@dataclass(frozen=True, slots=True)
class Union:
    """The logs of the new checkpoint, and what it is made of."""

    chosen: tuple[ChosenState, ...]
    logs: Storage  # the first checkpoint with the new logs
    batch: int  # the newest committed one of the new checkpoint
    sources: tuple[UnitedSource, ...]  # in the order of the new query
    watermarks_ms: tuple[int, ...]  # of the next batch of each checkpoint
    evicted_ms: tuple[int, ...]  # of the newest batch of each, which has evicted what is older
    combining: Mapping[tuple[int, str], StoreColumns]  # by operator and store

    @property
    def newest(self) -> OffsetLog:
        """The newest offsets of the new checkpoint."""
        log = read_checkpoint(self.logs, batches=0).offsets.newest
        assert log is not None
        return log


def unite(chosen: Sequence[ChosenState], query: QueryDescription | None, *, combine: bool) -> Union:
    """Bring checkpoints together; ``query`` is the new one, where somebody has described it.

    Raises NoWay where they do not fit, StorageError.
    """
    first = chosen[0]
    for earlier, other in combinations(chosen, 2):
        if earlier.checkpoint.query_id == other.checkpoint.query_id:
            both = " and ".join(one_line(each.checkpoint.uri) for each in (earlier, other))
            raise NoWay(f"{both} have the same query id: one is a copy of the other, and has the same rows")
    for other in chosen:
        _check_alone(other)
        _check_fits(first, other)
    newest = [_read_offsets(each, each.moment.batch) for each in chosen]
    _check_names(newest)
    watermarks = tuple(each.moment.next_watermark_ms or 0 for each in chosen)
    evicted = tuple(log.metadata.watermark_ms for log in newest if log.metadata is not None)
    if combine and (len(set(watermarks)) > 1 or len(set(evicted)) > 1) and first.checkpoint.operators:
        raise NoWay(BOOK.text("combine_watermarks"))
    counted = [each for each in first.checkpoint.operators if feeds_another(each, first.checkpoint.operators)]
    if combine and counted and any(watermarks):
        raise NoWay(BOOK.text("combine_evicts", id=counted[0].id))
    batch = max(each.moment.batch for each in chosen)
    united = tuple(
        UnitedSource(number, view.index, view)
        for number, each in enumerate(chosen)
        for view in sources(each.checkpoint)
    )
    if query is not None:
        united = _unite_topics(united, query)
    steps = _plan_logs(chosen, newest, united, batch, watermarks)
    logs: Storage = view_changed(first.storage, first.checkpoint.listing, steps)
    if query is not None:
        logs, united = _arrange(logs, query, united)
        for finding in compare_operators(query, first.checkpoint, query.spark).findings:
            if finding.diagnosis.severity is Severity.ERROR:
                raise NoWay(f"{finding.diagnosis.code} {finding.diagnosis.name}: {finding.detail}")
    columns = [(operator, _plan_combining(operator, query)) for operator in first.checkpoint.operators if combine]
    combining = {(each.id, each.stores[0].name): own for each, own in columns if each not in counted}
    return Union(tuple(chosen), logs, batch, united, watermarks, evicted, combining)


def _check_alone(chosen: ChosenState) -> None:
    """Raise NoWay for a checkpoint that cannot be one of several."""
    checkpoint, batch = chosen.checkpoint, chosen.moment.batch
    own = one_line(checkpoint.uri)
    if checkpoint.kind is Kind.CONTINUOUS:
        raise NoWay(f"{own}: continuous processing wrote it")
    if checkpoint.offsets.latest != batch:
        latest, commit = checkpoint.offsets.latest, commit_planned(checkpoint)
        raise NoWay(BOOK.text("union_planned", own=own, latest=latest, commit=commit))
    log = checkpoint.commits.readable(batch)
    if log is not None and log.sinks:
        raise NoWay(f"{own}: its commits record the state of its sinks, and no other query can continue from that")
    offsets = _read_offsets(chosen, batch)
    if offsets.metadata is None or is_read_twice(checkpoint.listing, offsets):
        raise NoWay(f"{own}: its offsets lack settings, or it reads one folder twice through one source")
    for operator in checkpoint.operators:
        match recognise_operator(operator):
            case OperatorName.JOIN:
                raise NoWay(f"{own}: operator {operator.id} joins streams: rows of several queries have never met")
            case OperatorName.LIMIT:
                raise NoWay(f"{own}: operator {operator.id} is a limit, and each query has counted up to it alone")


def _check_fits(first: ChosenState, other: ChosenState) -> None:
    """Raise NoWay where a checkpoint is not of the query that wrote the first one."""
    own, its = one_line(first.checkpoint.uri), one_line(other.checkpoint.uri)
    for name in sorted({*first.recorded, *other.recorded} - _MAY_DIFFER):
        values = [each.recorded.get(name, "no value") for each in (first, other)]
        if values[0] != values[1]:
            parts = {"own": own, "its": its, "one": one_line(values[0]), "other": one_line(values[1])}
            raise NoWay(BOOK.text("union_two_values", setting=name, **parts))
    theirs = {operator.id: operator for operator in other.checkpoint.operators}
    if theirs.keys() != {operator.id for operator in first.checkpoint.operators}:
        raise NoWay(f"{own} and {its} have different numbers of stateful operators")
    for operator in first.checkpoint.operators:
        ours, others = _describe(operator), _describe(theirs[operator.id])
        for what in {**ours, **others}:
            if ours.get(what) != others.get(what):
                schemas = [each.get(what) for each in (ours, others)]
                shown = ["nothing" if each is None else one_line(spell_schema(each)) for each in schemas]
                raise NoWay(f"operator {operator.id}, {what}: {shown[0]} in {own}, but {shown[1]} in {its}")


def _describe(operator: Operator) -> dict[str, Json]:
    """Everything that has to be equal of an operator."""
    parts: dict[str, Json] = {
        "name": recognise_operator(operator),
        "properties": operator.properties,
        "variables": [[variable.name, variable.kind, variable.ttl] for variable in operator.variables],
    }
    for store in operator.stores:
        parts |= {f"key of {store.name}": store.key_schema, f"value of {store.name}": store.value_schema}
        parts[f"prefix of {store.name}"] = store.prefix_columns
        for family in store.column_families:
            own = f"{store.name} {family.name}"
            parts |= {f"key of {own}": family.key_schema, f"value of {own}": family.value_schema}
            parts[f"encoder of {own}"] = [family.key_encoder, family.user_key_schema]
            parts[f"generations of {own}"] = [family.generation, [list(older) for older in family.older]]
    return parts


def _check_names(logs: Sequence[OffsetLog]) -> None:
    """Raise NoWay where sources have names in one checkpoint only, or the same name in two."""
    if len({(log.version, has_names(log)) for log in logs}) > 1:
        raise NoWay(BOOK.text("union_names_differ"))
    names = [source.name for log in logs if has_names(log) for source in log.sources]
    twice = sorted({name for name in names if name is not None and names.count(name) > 1})
    if twice:
        raise NoWay(BOOK.text("union_name_twice", twice=one_line(twice[0])))


def _read_offsets(chosen: ChosenState, batch: int) -> OffsetLog:
    log = chosen.checkpoint.offsets.readable(batch)
    assert log is not None  # the state of the batch was found
    return log


def _unite_topics(united: Sequence[UnitedSource], query: QueryDescription) -> tuple[UnitedSource, ...]:
    """Make one source of those whose topics one source of Kafka of the described query reads. Raises NoWay."""
    left = list(united)
    for wants in query.sources:
        topics = set(wants.topics or ())
        together = [source for source in left if source.view.topics and source.view.topics <= topics]
        if len(together) < 2:
            continue
        read = [topic for source in together for topic in source.view.topics]
        if len(set(read)) < len(read):
            twice = sorted({topic for topic in read if read.count(topic) > 1})
            raise NoWay(f"several checkpoints read topic {one_line(twice[0])}, but one source has one offset")
        left[left.index(together[0])] = replace(together[0], also=tuple(together[1:]))
        left = [source for source in left if source not in together[1:]]
    return tuple(left)


def _plan_logs(
    chosen: Sequence[ChosenState],
    newest: Sequence[OffsetLog],
    united: Sequence[UnitedSource],
    batch: int,
    watermarks: Sequence[int],
) -> Iterator[FileStep]:
    """Steps that give the first checkpoint the logs of all. Raises StorageError."""
    listing = chosen[0].checkpoint.listing
    for folder in (OFFSETS, COMMITS, SOURCES):
        yield from (FileStep(path, b"", None) for path, _ in listing.walk(folder))
    before = [_read_before(each) for each in chosen]
    for number, logs in ((batch, newest), (batch - 1, before)):
        if number >= 0:
            yield FileStep(f"{OFFSETS}/{number}", None, format_offset_log(_join_offsets(logs, newest, united)))
    last = chosen[0].checkpoint.commits.readable(chosen[0].moment.batch)
    version = 1 if last is None else last.version
    late = min(log.metadata.watermark_ms for log in newest if log.metadata is not None)
    for number, watermark in ((batch, min(watermarks)), (batch - 1, late)):
        if number >= 0:
            yield FileStep(f"{COMMITS}/{number}", None, format_commit_log(CommitLog(version, watermark)))
    for number, source in enumerate(united):
        own, log = chosen[source.checkpoint], newest[source.checkpoint]
        old = source_folder(own.checkpoint.listing, log, source.was)
        new = name_folder(number, in_order(log)[source.was].name if has_names(log) else None)
        for path, _ in own.checkpoint.listing.walk(old):
            if not is_hidden(path):
                yield FileStep(new + path.removeprefix(old), None, own.storage.read(path))


def _read_before(chosen: ChosenState) -> OffsetLog | None:
    """The offsets before the newest ones, if they are of the same sources."""
    offsets = chosen.checkpoint.offsets
    log, newest = offsets.readable(offsets.before(chosen.moment.batch)), _read_offsets(chosen, chosen.moment.batch)
    fits = log is not None and len(log.sources) == len(newest.sources) and has_names(log) == has_names(newest)
    return log if fits else None


def _join_offsets(
    logs: Sequence[OffsetLog | None], newest: Sequence[OffsetLog], united: Sequence[UnitedSource]
) -> OffsetLog:
    """One file of all; of sources without a line there none is read yet."""
    lines = []
    for number, source in enumerate(united):
        last = in_order(newest[source.checkpoint])[source.was]
        name = str(number) if last.name is not None and not has_names(newest[source.checkpoint]) else last.name
        each_log = ((logs[each.checkpoint], each.was) for each in (source, *source.also))
        own = [in_order(log)[was] for log, was in each_log if log is not None]
        texts = [line.text for line in own if line.text is not None]
        if len(texts) > 1:  # by topic
            ends = {topic: of for line in own if isinstance(line.value, dict) for topic, of in line.value.items()}
            texts = [json.dumps(ends, separators=(",", ":"), ensure_ascii=False)]
        lines.append(SourceOffset(name, next(iter(texts), None), None))
    metadata = [log.metadata for log in newest if log.metadata is not None]
    times = [each.timestamp_ms for each in metadata]
    late = min(each.watermark_ms for each in metadata)
    return replace(
        newest[0],
        metadata=replace(metadata[0], watermark_ms=late, timestamp_ms=max(times), text=None),
        sources=tuple(lines),
    )


def _arrange(
    logs: Storage, query: QueryDescription, united: Sequence[UnitedSource]
) -> tuple[Storage, tuple[UnitedSource, ...]]:
    """The logs in the order of a described query. Raises NoWay where it has other sources."""
    checkpoint = read_checkpoint(logs, batches=0)
    try:
        changes = match_sources(checkpoint, query)
    except NoWay as error:
        why = error.reason if isinstance(error, Unclear) else error.words
        raise NoWay(BOOK.text("union_expect", why=why)) from None
    for change in changes:
        if change.is_new or change.is_gone or change.new is None or change.old is None:
            which = f"source {change.old} of the checkpoints" if change.new is None else f"source {change.new} of it"
            raise NoWay(f"the described query has different sources: {which} is {change.change}, {change.why}")
    steps = tuple(plan_logs(logs, checkpoint, query, changes))
    order = sorted((change.new, change.old) for change in changes if change.new is not None and change.old is not None)
    return view_changed(logs, checkpoint.listing, steps), tuple(united[old] for _, old in order)


def _plan_combining(operator: Operator, query: QueryDescription | None) -> StoreColumns:
    """How an operator merges rows of the same key. Raises NoWay."""
    described = () if query is None else (query.operators or ())[operator.id : operator.id + 1]
    if not described or described[0].name != operator.name:
        raise NoWay(BOOK.text("combine_description", id=operator.id))
    return plan_combining(operator, described[0])
