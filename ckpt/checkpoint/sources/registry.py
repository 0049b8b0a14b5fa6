"""The kinds of source that ckpt knows, a line for each, and the sources of an offset file as records.

The log does not say which source wrote an offset, so its kind is derived from the shape of the JSON, strictly: an
offset that fits no kind exactly is of unknown kind and shown as is.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ckpt.checkpoint.sources.delta import DeltaKind, DeltaOffset
from ckpt.checkpoint.sources.files import FileOffset, FilesKind
from ckpt.checkpoint.sources.iceberg import IcebergKind, IcebergOffset
from ckpt.checkpoint.sources.kafka import KafkaKind, KafkaOffset
from ckpt.checkpoint.sources.kind import Advance, SourceKind, SourceType
from ckpt.checkpoint.sources.numbers import NumberOffset, NumbersKind
from ckpt.checkpoint.sources.rate_micro_batch import RateMicroBatchKind, RateMicroBatchOffset
from ckpt.model import Json, OffsetLog, SourceOffset

Offset: TypeAlias = KafkaOffset | DeltaOffset | IcebergOffset | FileOffset | RateMicroBatchOffset | NumberOffset

_KINDS: tuple[SourceKind[Any], ...] = (
    DeltaKind(),
    IcebergKind(),
    FilesKind(),
    RateMicroBatchKind(),
    KafkaKind(),
    NumbersKind(),
)
_KIND_OF = {kind.record: kind for kind in _KINDS}


@dataclass(frozen=True, slots=True)
class SourceView:
    """One source as the latest offset file has it."""

    index: int
    name: str | None  # offset log v2
    type: SourceType
    offset: Json
    decoded: dict[str, Json]  # empty where the type is unknown
    well_formed: bool = True  # the offset could be read
    record: Offset | None = None  # None: there is no offset, or its kind is unknown


def decode(value: Json, *, rate: bool = False) -> Offset | None:
    """Tell what an offset of the log means; None where its shape is not one ckpt knows.

    ``rate`` says that the checkpoint has ``sources/<k>/0`` for this source, so that a bare number is a rate
    source's.
    """
    offset: Offset | None = next((o for kind in _KINDS if (o := kind.decode(value)) is not None), None)
    return replace(offset, rate=rate) if isinstance(offset, NumberOffset) else offset


def kind_of(offset: Offset) -> SourceKind[Any]:
    """Return the kind of source that has offsets of this type."""
    return _KIND_OF[type(offset)]


def source_type(offset: Offset | None) -> SourceType:
    """The kind of source that writes such an offset."""
    return SourceType.UNKNOWN if offset is None else kind_of(offset).type_of(offset)


def advance(before: Json, after: Json) -> Advance | None:
    """How far a source went between two of its offsets; None where that is not known."""
    old, new = decode(before), decode(after)
    return kind_of(old).advance(old, new) if old is not None and type(old) is type(new) else None


def advances(before: OffsetLog, after: OffsetLog) -> tuple[Advance | None, ...]:
    """How far each source of ``after`` went since ``before``, in the order of ``source_views``.

    Sources are matched by name in offset log v2, whose lines have no order, and by position in v1.
    """
    old = {source.name or index: source for index, source in indexed(before.sources)}
    pairs = [(old.get(source.name or index), source) for index, source in indexed(after.sources)]
    return tuple(None if earlier is None else advance(earlier.value, source.value) for earlier, source in pairs)


def source_views(log: OffsetLog, rate_sources: Collection[int] = ()) -> tuple[SourceView, ...]:
    """Every source of an offset file, in the order of the query.

    Offset log v2 names its sources and keeps no order; without names of their own they are called by their
    index. ``rate_sources`` are the k for which ``sources/<k>`` holds a file ``0`` and nothing else.
    """
    views = []
    for index, source in indexed(log.sources):
        offset = decode(source.value, rate=index in rate_sources)
        shown = {} if offset is None else kind_of(offset).to_json(offset)
        kind = source_type(offset)
        views.append(SourceView(index, source.name, kind, source.value, shown, source.well_formed, offset))
    return tuple(views)


def in_order(log: OffsetLog) -> tuple[SourceOffset, ...]:
    """The sources of an offset file in the order of ``source_views``."""
    return tuple(source for _, source in indexed(log.sources))


def value_of(log: OffsetLog | None, index: int) -> Json:
    """The offset of a source in a batch; None where it has none there."""
    sources = in_order(log) if log is not None else ()
    return sources[index].value if index < len(sources) else None


def indexed(sources: tuple[SourceOffset, ...]) -> list[tuple[int, SourceOffset]]:
    """Sources with their numbers, in the order of these where their names say them."""
    numbers = [_index(source.name) for source in sources]
    if None in numbers:
        return list(enumerate(sources))
    return sorted(((n or 0, source) for n, source in zip(numbers, sources, strict=True)), key=lambda pair: pair[0])


def _index(name: str | None) -> int | None:
    return int(name) if name is not None and name.isdecimal() and name.isascii() and len(name) < 10 else None
