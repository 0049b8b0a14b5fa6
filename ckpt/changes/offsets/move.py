"""``ckpt offsets move``: the same place of a topic on another Kafka cluster, proven by comparing records.

A plan of ``ckpt offsets set``, whose offsets come from comparing both clusters.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from os import fspath
from statistics import median_low
from typing import ClassVar, Unpack

from ckpt.advice import Words, call, join
from ckpt.changes.apply import ApplyOptions, ChangeResult, run_change
from ckpt.changes.book import BOOK
from ckpt.changes.offsets.plan import OffsetsPlan, choose_source, plan_offsets
from ckpt.changes.plan import NoWay
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources.ends import RequestedEnd
from ckpt.checkpoint.sources.kafka import KafkaOffset, list_parts, write_sorted
from ckpt.checkpoint.sources.registry import SourceView
from ckpt.errors import UsageError, one_line, parse_choices
from ckpt.live.kafka.ask import ask_kafka
from ckpt.live.kafka.options import SERVERS
from ckpt.live.kafka.records import CopyPosition, RecordReader, find_position
from ckpt.live.kind import SourceRequest, naming
from ckpt.live.records import KafkaNow, NotAsked, Part, TopicNow
from ckpt.model import Location
from ckpt.storage import Storage
from ckpt.texts import plural
from ckpt.versions import Spark

_SLACK, _WINDOW = 1_000, 10_000  # offsets before the place of a timestamp, and records from there on, to be searched
_NAMED = 5  # refused partitions that a refusal explains


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePlan(OffsetsPlan):
    """The ends at which the query continues on another cluster."""

    command: ClassVar[str] = "offsets move"


def offsets_move(
    checkpoint: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    source: int | None = None,
    from_options: Mapping[str, str] | None = None,
    to_options: Mapping[str, str] | None = None,
    topic: Mapping[str, str] | None = None,
    expect_batch: int | None = None,
    spark: Sequence[Spark | str] = (),
    **how: Unpack[ApplyOptions],
) -> ChangeResult[MovePlan]:
    """Do what ``ckpt offsets move`` does; return the plan and its receipt. By default it only plans.

    Each partition continues exactly after the last record that the query has read: the records around that place are
    compared on both clusters. Where no place is exact, the plan is refused.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        source: The index of the source; needed if the query has several.
        from_options: Options of a Kafka reader of the cluster that the query has read, at least
            ``kafka.bootstrap.servers``; with the query's ``kafka.isolation.level``.
        to_options: The same for the new cluster.
        topic: Topics that have another name on the new cluster, with that name.
        expect_batch: The batch whose end changes, as shown by a plan; refused if it is not the latest.
        spark: The Spark versions that the query may be started with; none named is all.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier change; see ``ApplyOptions``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        SourceError: A cluster cannot be asked.
        UsageError: A URI or option is wrong, or the backup would be inside the checkpoint.

    >>> ckpt.offsets_move("sample_checkpoints/kafka-4.2")
    Traceback (most recent call last):
    ckpt.errors.UsageError: name both clusters with `from_options` and `to_options`

    """
    uri, sparks = fspath(checkpoint), parse_choices(Spark, spark, "spark")
    if how.get("undo") is None and not (from_options and to_options):
        raise UsageError.of("name both clusters with {--from-options} and {--to-options}")
    old, new, names = dict(from_options or {}), dict(to_options or {}), dict(topic or {})
    request = call("offsets_move").but(source=source, from_options=old, to_options=new, topic=names or None)

    def ask(checkpoint: Checkpoint, views: Sequence[SourceView]) -> dict[int, RequestedEnd]:
        view = choose_source(views, source)
        if not isinstance(view.record, KafkaOffset):
            raise NoWay(BOOK.text("move_other_source", index=view.index, type=view.type))
        if checkpoint.offsets.latest not in checkpoint.commits:
            raise NoWay(BOOK.text("move_uncommitted", batch=checkpoint.offsets.latest))
        end = _find_end(SourceRequest(checkpoint, view, old, {}), view.record.partitions, new, names)
        return {each.index: end for each in views if each.offset == view.offset}  # one reader may be two sources

    def plan(storage: Storage) -> MovePlan:
        planned = plan_offsets(MovePlan, storage, request, ask=ask, batch=expect_batch, versions=sparks)
        why = f"{planned.why}, also on the new cluster: start the query on it" if planned.why else ""
        return replace(planned, why=why)

    return run_change(MovePlan, plan, uri, storage_options, sparks, **how)


def _find_end(
    request: SourceRequest, ends: Mapping[Part, int], to_options: Mapping[str, str], names: Mapping[str, str]
) -> RequestedEnd:
    """Find where each partition continues on the new cluster. Raises NoWay, UsageError, SourceError."""
    topics = {topic: names.get(topic, topic) for topic, _ in ends}
    if names.keys() - topics.keys() or len({*topics.values()}) < len(topics):
        raise UsageError.of("{--topic}: give each of {names} another name", names=one_line(", ".join(topics)))
    new_parts = {part: (topics[part[0]], part[1]) for part in ends}
    with naming("from_options"):
        old = RecordReader(request.options)
    with naming("to_options"):
        new = RecordReader(to_options)
    now = ask_kafka(request)
    if isinstance(now, NotAsked):
        raise NoWay(now.reason)
    _check_topics(ends, now, new.describe_topics(topics.values()), topics)
    first, last = (new.find_offsets(new_parts.values(), at) for at in ("earliest", "latest"))
    list_syncs = cache(lambda: [*old.read_syncs(), *new.read_syncs()])  # only once one is needed

    def find(part: Part, end: int) -> CopyPosition:
        before, after = old.read_around(part, end, now.partitions[part].earliest)
        new_part, begin, rows = new_parts[part], first[new_parts[part]], last[new_parts[part]] - first[new_parts[part]]
        if not before and (end == 0 or not after) and not (rows and (end or after)):
            return CopyPosition(begin, waiting=len(after))  # nothing was read, or nothing is there to be compared
        if not before and not after:
            return CopyPosition(refused="move_nothing_left", rows=rows)

        def search(start: int) -> CopyPosition:
            records = list(islice(new.read(new_part, max(start, begin)), _WINDOW))
            position = find_position(end, (before, after), records, begins=start <= begin, ends=len(records) < _WINDOW)
            later = sum(record.offset >= position.offset for record in records)
            gap = before and not after and before[-1].offset + 1 < end  # a record was there, and perhaps read
            unsure = not position.refused and gap and later and old.is_compacted(part[0])
            return CopyPosition(refused="move_differs", rows=later) if unsure else position

        known = before or after
        usual_ms = median_low(record.timestamp_ms for record in known)  # not that of a clock which is wrong
        at = new.find_offsets([new_part], usual_ms)[new_part]
        position = search((last[new_part] if at < 0 else at) - _SLACK if end else 0)
        if not position.refused:
            return position
        hints = [(abs(at - end), copy - max(at - known[0].offset, 0)) for of, at, copy in list_syncs() if of == part]
        hinted = search(min(hints)[1] - _SLACK) if hints else position
        return position if hinted.refused else hinted

    positions = {part: find(part, end) for part, end in ends.items()}
    if refused := [part for part, position in positions.items() if position.refused]:
        shown = ((positions[part], list_parts([part])) for part in refused[:_NAMED])
        why = (BOOK.text(position.refused, name=name, rows=plural(position.rows, "row")) for position, name in shown)
        raise NoWay(join((*why, _count_otherwise(ends, now)), "; "))
    new_end = write_sorted({new_parts[part]: position.offset for part, position in positions.items()})
    remarks = _say(positions, to_options[SERVERS], request.checkpoint.offsets.latest)
    return RequestedEnd(new_end, said=tuple(remarks), renamed=topics)


def _check_topics(
    ends: Mapping[Part, int], now: KafkaNow, there: Mapping[str, TopicNow], topics: Mapping[str, str]
) -> None:
    """Refuse topics whose copies cannot be compared. Raises NoWay."""
    parts = {part: now.partitions.get(part) for part in ends}
    again = {part[0] for part, have in parts.items() if have is None or have.younger or have.latest < ends[part]}
    for topic, name in topics.items():
        old, new = now.topics[topic], there[name]
        wrong = {
            "move_gone": old.id is None,
            "move_not_there": new.id is None,
            "move_recreated": topic in again,
            "move_same_topic": old.id == new.id,
            "move_partitions": old.partitions != new.partitions,
        }
        if why := next((why for why, holds in wrong.items() if holds), None):
            known = {"old": one_line(topic), "new": one_line(name), "has": len(old.partitions)}
            also = [_count_otherwise(ends, now)] if why == "move_partitions" else []
            raise NoWay(join((BOOK.text(why, gets=len(new.partitions), **known), *also), "; "))


def _count_otherwise(ends: Mapping[Part, int], now: KafkaNow) -> Words:
    """Count the rows that come twice or never where somebody chooses a place that is not exact."""
    twice = sum(end - now.partitions[part].earliest for part, end in ends.items())
    never = sum(now.partitions[part].latest - end for part, end in ends.items())
    return BOOK.text("move_otherwise", twice=plural(twice, "row"), never=plural(never, "row"))


def _say(positions: Mapping[Part, CopyPosition], servers: str, batch: int | None) -> Iterator[Words]:
    compared = sum(position.compared for position in positions.values())
    waiting = sum(position.waiting for position in positions.values())
    yield BOOK.text("move_exact", parts=plural(len(positions), "partition"), records=plural(compared, "record"))
    if untimed := [part for part, position in positions.items() if not position.timed]:
        yield BOOK.text("move_untimed", names=list_parts(untimed))
    if waiting:
        yield BOOK.text("move_waiting", rows=plural(waiting, "row"))
    yield BOOK.text("move_then", servers=one_line(servers), batch=batch)
