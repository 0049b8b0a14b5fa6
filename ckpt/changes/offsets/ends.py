"""What moving the end of the latest batch L does, for each kind of source: the rules, as measured on Spark 4.2.0.

A source of Spark's second kind (V2: Kafka, Iceberg, rate-micro-batch) is asked at a start for the range after the
latest committed batch only. One of the first kind (V1: files, Delta) is asked for the range of that batch once more,
though its rows are thrown away, so that the end of L must not be before its start.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ckpt.changes.offsets.requested import RequestedEnd, as_json, names
from ckpt.changes.plan import NoWay
from ckpt.checkpoint.sources.delta import DeltaOffset, base_index
from ckpt.checkpoint.sources.files import FileOffset
from ckpt.checkpoint.sources.iceberg import IcebergOffset
from ckpt.checkpoint.sources.kafka import KafkaOffset
from ckpt.checkpoint.sources.rate_micro_batch import RateMicroBatchOffset
from ckpt.checkpoint.sources.registry import Offset, SourceView, decode
from ckpt.formats.compaction import CompactibleLog
from ckpt.migrate.handoff.starts import NOT_READ
from ckpt.model import Json
from ckpt.restart.forecast import SourceRange
from ckpt.storage.base import one_line


@dataclass(frozen=True, slots=True)
class Place:
    """A source in the latest batch."""

    batch: int  # the latest, L
    committed: bool
    view: SourceView  # at its end, as it is
    start: Json  # where the batch begins, None for the beginning of the source
    start_known: bool
    log: CompactibleLog | None = None  # of a file source

    @property
    def index(self) -> int:
        """Of the source in the query."""
        return self.view.index


@dataclass(frozen=True, slots=True)
class Moved:
    """One source with a new end."""

    place: Place
    new: RequestedEnd
    ahead: tuple[SourceRange, ...] = ()  # from the old end to the new one, where that is later
    back: tuple[SourceRange, ...] = ()  # from the new end to the old one, where that is earlier
    warnings: tuple[str, ...] = ()


Rule = Callable[[Place, RequestedEnd], Moved]


def moved(place: Place, new: RequestedEnd) -> Moved:
    """What the new end of a source leads to. Raises NoWay."""
    if not place.committed and not place.start_known:
        raise NoWay(f"where batch {place.batch} begins is not in the log, so that nothing can be said of another end")
    return rule_of(place.view)(place, new)


def rule_of(view: SourceView) -> Rule:
    """The rule for a source. Raises NoWay where there is none."""
    rule = _RULES.get(type(view.record))
    if rule is None:
        if not view.well_formed:
            raise NoWay(f"source {view.index}: {NOT_READ}")
        if view.offset is None:
            raise NoWay(f"source {view.index} has no offset yet: the query has read nothing from it")
        raise NoWay(
            f"source {view.index} is of type {view.type}: ckpt sets the offsets of kafka, delta, iceberg, file "
            "and rate-micro-batch sources only"
        )
    return rule


def _kafka(place: Place, new: RequestedEnd) -> Moved:
    was, to = _partitions(place.view.offset), _partitions(new.value)
    start = _partitions(place.start)
    old = {(new.renamed.get(topic, topic), partition): offset for (topic, partition), offset in was.items()}
    _must_name_all(place, old, to, new.left_out)
    moved_topics = set(new.renamed.values())
    back = {part: at for part, at in old.items() if to.get(part, at) < at and part[0] not in moved_topics}
    ahead = {part: at for part, at in to.items() if old.get(part, 0) < at and part[0] not in moved_topics}
    if not place.committed:
        low = [part for part in to if to[part] < start.get(part, 0)]
        if to.keys() != was.keys() or low:
            what = f"{names(low)} would end before its start" if low else "its partitions would change"
            raise NoWay(f"batch {place.batch} is planned and not committed, and {what}: let it run first, or skip it")
    ahead_of = [_range(place, {part: old.get(part, 0) for part in ahead}, ahead)] if ahead else []
    back_to = [_range(place, {part: to[part] for part in back}, back)] if back else []
    if new.left_out:
        back_to.append(SourceRange(place.index, None, as_json({part: old[part] for part in new.left_out})))
    return Moved(place, new, tuple(ahead_of), tuple(back_to), tuple(_about_kafka(was, to, new)))


_UNSEEN = (
    "ckpt does not ask the broker: of an offset that a partition does not have, or no longer has, the next start says "
    '"Some data may have been lost", and with failOnDataLoss=false it reads other rows silently.'
)


def _must_name_all(
    place: Place, old: Mapping[tuple[str, int], int], to: Mapping[tuple[str, int], int], out: frozenset[tuple[str, int]]
) -> None:
    unknown = sorted(out - old.keys())
    if unknown:
        raise NoWay(f"{names(unknown)} cannot be left out: source {place.index} does not have it")
    missing = sorted(old.keys() - to.keys() - out)
    if missing:
        raise NoWay(
            f"{names(missing)} is left out, and Spark reads a partition without an offset again from its beginning, "
            "without an error: give its offset as well, or null to have that"
        )
    if not to:
        raise NoWay("no partition is left: the source would be read again from its beginning")


def _about_kafka(
    old: Mapping[tuple[str, int], int], to: Mapping[tuple[str, int], int], new: RequestedEnd
) -> Iterator[str]:
    yield _UNSEEN
    for topic, name in new.renamed.items():
        yield (
            f"ckpt cannot know whether the record at an offset of {one_line(name)} is the one that comes next in "
            f"{one_line(topic)}: a copy of a topic mostly has other offsets. Compare some records at these offsets "
            "first; rows in between are lost, or read again."
        )
    if new.left_out:
        yield (
            f"{names(sorted(new.left_out))} is left out: the next batch reads it from its beginning, as long as the "
            "query subscribes to its topic."
        )
    came = sorted({topic for topic, _ in to} - {topic for topic, _ in old})
    if came:
        yield (
            f"The query must subscribe to {one_line(', '.join(came))}: partitions that it does not read fail the next "
            'start ("Partitions Set(...) have been deleted").'
        )
    gone = sorted({topic for topic, _ in old} - {topic for topic, _ in to})
    if gone:
        yield f"The query must no longer subscribe to {one_line(', '.join(gone))}, or it reads that from its beginning."


def _rate_micro_batch(place: Place, new: RequestedEnd) -> Moved:
    old, to = _rows(place.view.offset), _rows(new.value)
    if not place.committed and to < _rows(place.start):
        raise NoWay(f"batch {place.batch} is planned and not committed, and begins at row {_rows(place.start)}")
    return _along(place, new, old, to)


def _file(place: Place, new: RequestedEnd) -> Moved:
    """Spark class ``FileStreamSource``; the next batch takes every entry after the end at once."""
    old, to, start = (_entry(value) for value in (place.view.offset, new.value, place.start))
    newest = place.log.latest if place.log is not None else None
    if newest is None or to > newest:
        raise NoWay(f"the log of the source ends at entry {newest}: a start fails on entries that are not there")
    if not place.start_known:
        raise NoWay(f"where batch {place.batch} begins is not in the log, and a file source looks at its range again")
    if to < start:
        raise NoWay(
            f"batch {place.batch} begins after entry {start}, and a file source fails at a start if it ends before "
            'that ("assertion failed"): `ckpt rewind` goes further back'
        )
    return _along(place, new, old, to)


def _delta(place: Place, new: RequestedEnd) -> Moved:
    """Spark class ``DeltaSource``."""
    old, to, start = place.view.record, decode(new.value), decode(place.start)
    assert isinstance(old, DeltaOffset)
    assert isinstance(to, DeltaOffset)
    _must_fit(place, old, to, new.value)
    if not place.start_known or (place.start is None and not place.committed):
        raise NoWay(f"where batch {place.batch} begins is not in the log, and Delta looks at its range again")
    if isinstance(start, DeltaOffset) and to.version <= start.last_read:
        raise NoWay(
            f"batch {place.batch} begins at version {start.version}: before that Delta reads rows again under the "
            "number of this batch, or none: `ckpt rewind` goes further back"
        )
    warning = (
        "ckpt does not read the table: its log must have every version from the new end on, and the version before it "
        "must exist (DESCRIBE HISTORY), or the next start fails or waits."
    )
    found = _along(place, new, old.version, to.version)
    return Moved(place, new, found.ahead, found.back, (warning,))


def _iceberg(place: Place, new: RequestedEnd) -> Moved:
    """Iceberg class ``SparkMicroBatchStream``: the ids of snapshots say nothing of their order."""
    old, to = place.view.record, decode(new.value)
    assert isinstance(old, IcebergOffset)
    assert isinstance(to, IcebergOffset)
    if not place.committed:
        raise NoWay(f"batch {place.batch} is planned and not committed: let it run first, or skip it")
    warning = (
        "ckpt does not read the table: snapshot_id must be the current snapshot or an ancestor of it, or the next "
        "start fails, and position is how many of the files that it added are left out (`ckpt inspect --sources` shows "
        "what waits then)."
    )
    if (old.snapshot, old.all_files) == (to.snapshot, to.all_files):
        found = _along(place, new, old.position, to.position)
        return Moved(place, new, found.ahead, found.back, (warning,))
    ahead = SourceRange(place.index, place.view.offset, new.value)
    back = SourceRange(place.index, new.value, place.view.offset)
    which = (
        "Whether that is earlier or later, the ids of snapshots do not say: rows in between are read again if it is "
        "earlier, and left out if it is later."
    )
    return Moved(place, new, (ahead,), (back,), (which, warning))


def _must_fit(place: Place, old: DeltaOffset, to: DeltaOffset, value: Json) -> None:
    was, now = (one if isinstance(one, dict) else {} for one in (place.view.offset, value))
    if to.table_id != old.table_id:
        raise NoWay(f"the source reads the table with the id {old.table_id}: a start refuses offsets of another")
    if now.get("sourceVersion") != was.get("sourceVersion"):
        raise NoWay(f"the query writes offsets with sourceVersion {was.get('sourceVersion')}: keep that")
    if old.initial_snapshot or to.initial_snapshot:
        raise NoWay(
            "the source is still reading the table as it was when the query began (isStartingVersion), and what is "
            "left of that would be lost without an error: let it finish first, with trigger availableNow"
            if old.initial_snapshot
            else "isStartingVersion true would read the whole table again: write false"
        )
    if not to.at_boundary:
        base = base_index(was)
        raise NoWay(f"index {to.index} is inside a version, and ckpt cannot see its files: write {base}, its beginning")


def _along(place: Place, new: RequestedEnd, old: int, to: int) -> Moved:
    """A source that goes along one line: ahead, rows are skipped; back, they are read again."""
    if to >= old:
        return Moved(place, new, ahead=(SourceRange(place.index, place.view.offset, new.value),) if to > old else ())
    return Moved(place, new, back=(SourceRange(place.index, new.value, place.view.offset),))


def _range(place: Place, begin: Mapping[tuple[str, int], int], end: Mapping[tuple[str, int], int]) -> SourceRange:
    return SourceRange(place.index, as_json(begin), as_json(end))


def _partitions(value: Json) -> Mapping[tuple[str, int], int]:
    offset = decode(value)
    return offset.partitions if isinstance(offset, KafkaOffset) else {}


def _rows(value: Json) -> int:
    offset = decode(value)
    return offset.rows if isinstance(offset, RateMicroBatchOffset) else 0


def _entry(value: Json) -> int:
    offset = decode(value)
    return offset.log_offset if isinstance(offset, FileOffset) else -1


_RULES: Mapping[type[Offset] | type[None], Rule] = {
    KafkaOffset: _kafka,
    RateMicroBatchOffset: _rate_micro_batch,
    FileOffset: _file,
    DeltaOffset: _delta,
    IcebergOffset: _iceberg,
}
