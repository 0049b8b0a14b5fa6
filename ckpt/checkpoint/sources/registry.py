"""The kinds of source that ckpt knows, a line for each, and the sources of an offset file as records.

The log does not say which source wrote an offset, so its kind is derived from the shape of the JSON, strictly: an
offset that fits no kind exactly is of unknown kind and shown as is.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, assert_never

from ckpt.checkpoint.sources.connectors import CONNECTORS, ConnectorOffset
from ckpt.checkpoint.sources.delta import DeltaKind, DeltaOffset
from ckpt.checkpoint.sources.files import FileOffset, FilesKind
from ckpt.checkpoint.sources.iceberg import IcebergKind, IcebergOffset
from ckpt.checkpoint.sources.kafka import NO_TOPIC_YET, KafkaKind, KafkaOffset, is_kafka
from ckpt.checkpoint.sources.kind import Advance, SourceKind, SourceType
from ckpt.checkpoint.sources.plugins import PluginOffset, load_kinds
from ckpt.checkpoint.sources.rate_micro_batch import RateMicroBatchKind, RateMicroBatchOffset
from ckpt.checkpoint.sources.starts import NOT_READ, ReaderStart, StartFacts, StartingPoint
from ckpt.checkpoint.sources.unknown import NumberOffset, NumbersKind, UnknownKind, UnknownOffset
from ckpt.formats.text import Damaged, exact_json
from ckpt.model import Json, OffsetLog, SourceOffset

Offset: TypeAlias = (
    KafkaOffset
    | DeltaOffset
    | IcebergOffset
    | FileOffset
    | RateMicroBatchOffset
    | NumberOffset
    | PluginOffset
    | ConnectorOffset
    | UnknownOffset
)

_KINDS: tuple[SourceKind[Any], ...] = (
    KafkaKind(),
    DeltaKind(),
    IcebergKind(),
    FilesKind(),
    RateMicroBatchKind(),
    NumbersKind(),
)
_UNKNOWN = UnknownKind()
_KIND_OF: dict[type, SourceKind[Any]] = {kind.record: kind for kind in _KINDS}


@dataclass(frozen=True, slots=True)
class SourceView:
    """One source as the latest offset file has it."""

    index: int
    name: str | None  # offset log v2
    type: str  # a SourceType, or the name of a plugin's kind
    offset: Json
    decoded: dict[str, Json]  # empty where the type is unknown
    well_formed: bool = True  # the offset could be read
    record: Offset | None = None  # None: there is no offset
    files: tuple[str, ...] = ()  # of a file source: those that the offset names in its log

    @property
    def kind(self) -> SourceKind[Any]:
        """The kind of source."""
        return kind_of(self.record)

    @property
    def topics(self) -> frozenset[str]:
        """The topics that the offset names."""
        return self.kind.find_topics(self.record)

    @property
    def reader_options(self) -> dict[str, str]:
        """Options that a reader needs besides where it begins; empty are those that the offset does not say."""
        return self.kind.list_reader_options(self.record)

    def start_after(self, facts: StartFacts) -> ReaderStart:
        """Say how a new query begins with the source so that it reads on exactly after the offset."""
        if not self.well_formed:
            return ReaderStart(StartingPoint.REFUSED, refused=NOT_READ)
        if self.offset is None:
            condition = "start as the old query did when it was new: it had read nothing from this source"
            return ReaderStart(StartingPoint.UNREAD, conditions=(condition,))
        return self.kind.start_after(self.record, facts)


def decode(value: Json, *, rate: bool = False) -> Offset | None:
    """Tell what an offset of the log means; None where there is none.

    ``rate`` says that the checkpoint has ``sources/<k>/0`` for this source, so that a bare number is a rate
    source's.
    """
    if value is None:
        return None
    offset = _recognise(value, _KINDS)
    if offset is None and value:  # no plugin and no connector has offsets that are empty
        offset = _recognise(value, (*load_kinds(), *CONNECTORS))
    if isinstance(offset, NumberOffset):
        return replace(offset, rate=rate)
    return UnknownOffset(value) if offset is None else offset


def decode_like(old: Json, new: Json) -> Offset | None:
    """Tell what an offset means of a source that had another one before: some kinds ignore what they do not know."""
    offset = decode(new)
    if isinstance(offset, UnknownOffset) and isinstance(new, dict):
        return kind_of(decode(old)).ignore_more(new) or offset
    return offset


def parse_offset(data: bytes) -> Offset | None:
    """Read an offset that a source keeps in a file of its own; None where it is no JSON."""
    try:
        return decode(exact_json(data.decode("utf-8")))
    except (Damaged, UnicodeDecodeError):
        return None


def _recognise(value: Json, kinds: Iterable[SourceKind[Any]]) -> Offset | None:
    return next((offset for kind in kinds if (offset := kind.decode(value)) is not None), None)


def kind_of(offset: Offset | None) -> SourceKind[Any]:
    """Return the kind of source that has such offsets; without an offset it is unknown."""
    match offset:
        case None | UnknownOffset():
            return _UNKNOWN
        case PluginOffset() | ConnectorOffset():
            return offset.kind
        case KafkaOffset() | DeltaOffset() | IcebergOffset() | FileOffset() | RateMicroBatchOffset() | NumberOffset():
            return _KIND_OF[type(offset)]
        case _:
            assert_never(offset)


def kind_named(name: str) -> SourceKind[Any]:
    """Return the kind of source with a name, as ``describe_query`` has it; unknown where ckpt knows none."""
    return next((kind for kind in (*_KINDS, *load_kinds(), *CONNECTORS) if kind.name == name), _UNKNOWN)


def settable_kinds() -> list[str]:
    """Name the sources whose offsets can be set."""
    return [kind.name for kind in (*_KINDS, *load_kinds()) if kind.settable]


def source_type(offset: Offset | None) -> str:
    """Name the source that writes such an offset."""
    return SourceType.UNKNOWN if offset is None else kind_of(offset).type_of(offset)


def advance(old: Offset | None, new: Offset | None) -> Advance | None:
    """Count how far a source went between two of its offsets; None where that is not known."""
    kind = kind_of(old)
    return kind.advance(old, new) if old is not None and kind is kind_of(new) else None


def counts_anew(offset: Offset | None) -> bool:
    """Tell whether an offset is -1, with which a socket source starts counting after each start of the query."""
    return isinstance(offset, NumberOffset) and offset.value == -1


def advances(before: OffsetLog, after: OffsetLog) -> tuple[Advance | None, ...]:
    """How far each source of ``after`` went since ``before``, in the order of ``source_views``.

    Sources are matched by name in offset log v2, whose lines have no order, and by position in v1.
    """
    old = {source.name or index: decode(source.value) for index, source in indexed(before.sources)}
    new = indexed(after.sources)
    return tuple(advance(old.get(source.name or index), decode(source.value)) for index, source in new)


def source_views(log: OffsetLog, rate_sources: Collection[int] = ()) -> tuple[SourceView, ...]:
    """Every source of an offset file, in the order of the query.

    Offset log v2 names its sources and keeps no order; without names of their own they are called by their
    index. ``rate_sources`` are the k for which ``sources/<k>`` holds a file ``0`` and nothing else.
    """
    views = []
    for index, source in indexed(log.sources):
        offset = decode(source.value, rate=index in rate_sources)
        shown = {} if offset is None else kind_of(offset).to_json(offset)
        views.append(
            SourceView(index, source.name, source_type(offset), source.value, shown, source.well_formed, offset)
        )
    return tuple(views)


def in_order(log: OffsetLog) -> tuple[SourceOffset, ...]:
    """The sources of an offset file in the order of ``source_views``."""
    return tuple(source for _, source in indexed(log.sources))


def offsets_of(log: OffsetLog) -> tuple[Offset | None, ...]:
    """Return the offsets of all sources at the end of a batch, in the order of ``source_views``."""
    return tuple(decode(source.value) for source in in_order(log))


def offset_of(log: OffsetLog | None, index: int) -> Offset | None:
    """Return the offset of a source at the end of a batch; None where it has none there."""
    sources = in_order(log) if log is not None else ()
    return decode(sources[index].value) if index < len(sources) else None


def indexed(sources: tuple[SourceOffset, ...]) -> list[tuple[int, SourceOffset]]:
    """Sources with their numbers, in the order of these where their names say them."""
    names = [source.name or "" for source in sources]
    if not all(name.isdecimal() and name.isascii() and len(name) < 10 for name in names):
        return list(enumerate(sources))
    return sorted(((int(name), source) for name, source in zip(names, sources, strict=True)), key=lambda pair: pair[0])


@dataclass(frozen=True, slots=True)
class SourceRange:
    """The range that a batch reads of one source: after ``start`` up to ``end``, as in the offset log."""

    index: int
    start: Json  # None: from the source's beginning, or what its options say
    end: Json  # None: up to what is there when the batch is planned

    @property
    def start_offset(self) -> Offset | None:
        """The meaning of ``start``."""
        return decode(self.start)

    @property
    def end_offset(self) -> Offset | None:
        """The meaning of ``end``."""
        return decode(self.end)

    @property
    def advance(self) -> Advance | None:
        """How far the source goes; None where that is not known."""
        return advance(self.start_offset, self.end_offset)


def is_of_other_kind(old: SourceOffset, new: SourceOffset) -> bool:
    """Tell whether an offset is of another kind of source than the one before it."""
    if old.text is None or new.text is None or not (old.well_formed and new.well_formed):
        return False
    begin, end = decode(old.value), decode_like(old.value, new.value)
    return kind_of(begin) is not kind_of(end) and not (begin == NO_TOPIC_YET and is_kafka(end))


def share_no_kind(begin: OffsetLog, end: OffsetLog) -> bool:
    """Tell whether two batches have no kind of source in common: they are of different queries."""
    before, after = ({kind_of(offset) for offset in offsets_of(log) if offset is not None} for log in (begin, end))
    return bool(before and after) and before.isdisjoint(after)


def source_ranges(begin: OffsetLog | None, end: OffsetLog | None) -> tuple[SourceRange, ...]:
    """From the end of one batch to the end of another, per source in the order of the query; None is not known.

    Neither is the end of a source that is of another kind there: that file is of another query.
    """
    sides = [in_order(log) if log else () for log in (begin, end)]
    if begin and end and begin.names_sources and end.names_sources:
        by_name = {source.name: source for source in begin.sources}
        if by_name.keys() == {source.name for source in end.sources}:
            sides[0] = tuple(by_name[source.name] for source in sides[1])
    count = max(map(len, sides))
    if any(is_of_other_kind(*pair) for pair in zip(*sides, strict=False)):
        sides[1] = ()
    values = [[source.value for source in side] + [None] * (count - len(side)) for side in sides]
    return tuple(SourceRange(i, a, b) for i, (a, b) in enumerate(zip(*values, strict=True)))
