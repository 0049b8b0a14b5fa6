"""Where a new query begins to read one source so that it reads on exactly after a batch of the old one."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ckpt.checkpoint.sources.delta import DeltaOffset
from ckpt.checkpoint.sources.iceberg import IcebergOffset
from ckpt.checkpoint.sources.kafka import KafkaOffset
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import SourceView
from ckpt.model import Json


class Begin(StrEnum):
    """How a new query comes to begin with a source."""

    EXACT = "exact"  # by the options or the filter given here: exactly after the batch
    EARLIEST = "earliest"  # a recreated Kafka topic: from its earliest rows, by the options given here
    UNREAD = "unread"  # the old query had read nothing of it: as the old one began
    FROM_ZERO = "from-zero"  # from its beginning, whatever is asked for: the source cannot do otherwise
    REFUSED = "refused"  # no option says where


@dataclass(frozen=True, slots=True)
class SourceStart:
    """One source of the new query; ``options`` are those of ``DataStreamReader``."""

    view: SourceView  # at the end of the batch
    begin: Begin
    options: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()  # options of the old query that would override these, or conflict with them
    seen: tuple[str, ...] = ()  # files that it must leave out: values of ``_metadata.file_path``
    conditions: tuple[str, ...] = ()  # what must hold besides, and ckpt cannot see
    refused: str | None = None  # why no option says where to start, and the remedy


_EVENT_HUBS = (
    "the source must be Kafka: offsets of Azure Event Hubs look the same, and its reader wants sequence numbers in "
    "eventhubs.startingPositions instead of these options"
)
NOT_READ = "its offset is not JSON, and cannot be read; name an older batch, or put the file back from a copy"
"""Of a source whose line in the offset file is damaged."""

_TEST_SOURCES = {
    SourceType.RATE: "a rate source counts from zero in every new checkpoint; no option says otherwise",
    SourceType.RATE_MICRO_BATCH: "a rate-micro-batch source counts from row 0 in every new checkpoint; "
    "no option says otherwise",
}


def source_start(
    view: SourceView, seen: Sequence[str] | str | None, recreated: Mapping[str, Sequence[int]]
) -> SourceStart:
    """How a new query begins with a source.

    Args:
        view: The source at the end of the batch after which the new query continues.
        seen: Of a file source, the files read up to there, or why that is unknown.
        recreated: Of a Kafka source, topics that were recreated after the batch, and the partitions that they have.

    """
    offset = view.record
    if not view.well_formed:
        return SourceStart(view, Begin.REFUSED, refused=NOT_READ)
    if view.offset is None:
        condition = "start as the old query did when it was new: it had read nothing from this source"
        return SourceStart(view, Begin.UNREAD, conditions=(condition,))
    if view.type in _TEST_SOURCES:
        return SourceStart(view, Begin.FROM_ZERO, conditions=(_TEST_SOURCES[view.type],))
    if isinstance(offset, KafkaOffset):
        return _kafka(view, offset, recreated)
    if isinstance(offset, DeltaOffset):
        return _delta(view, offset)
    if isinstance(offset, IcebergOffset):
        return SourceStart(view, Begin.REFUSED, refused=_ICEBERG.format(snapshot=offset.snapshot or "none"))
    if view.type is SourceType.FILE:
        return _files(view, "the files that it had read are not recorded" if seen is None else seen)
    return SourceStart(view, Begin.REFUSED, refused=_unknown(view))


def in_doubt(start: SourceStart) -> SourceStart:
    """The same, of a checkpoint in which offsets of Event Hubs cannot be told from those of Kafka."""
    return replace(start, conditions=(_EVENT_HUBS, *start.conditions)) if start.view.type is SourceType.KAFKA else start


def file_path(logged: str) -> str:
    """A path of a file source's log as ``_metadata.file_path`` spells it.

    The log has ``file:///in%20put/a.json``, the column ``file:/in%20put/a.json``: it went through Hadoop's ``Path``,
    which drops an empty authority; both are percent-encoded (measured on Spark 3.5 to 4.3).
    """
    return re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*):///(?!/)", r"\1:/", logged)


def _kafka(view: SourceView, offset: KafkaOffset, recreated: Mapping[str, Sequence[int]]) -> SourceStart:
    """The log has the next offset to be read of every partition, which is what ``startingOffsets`` wants.

    The offsets of a recreated topic are those of other rows: it is read from its earliest, which is -2.
    """
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), number in offset.partitions.items():
        topics.setdefault(topic, {})[str(partition)] = number
    anew = {topic: {str(partition): -2 for partition in recreated[topic]} for topic in topics if topic in recreated}
    topics |= anew
    return SourceStart(
        view,
        Begin.EARLIEST if anew else Begin.EXACT,
        {"startingOffsets": json.dumps(topics, separators=(",", ":"), ensure_ascii=False)},
        without=("startingTimestamp", "startingOffsetsByTimestamp"),
        conditions=(
            *(f"topic {topic} was recreated after this batch: -2 is the earliest row of a partition" for topic in anew),
            "every partition must be named: add those that a topic has gained since, with -2 for their beginning",
            "the broker must still have these offsets: leave failOnDataLoss on, so that the query fails if not",
            "offsets of a topic that was recreated mean other rows, and those below them are skipped silently: name "
            "its partitions with -2",
        ),
    )


def _delta(view: SourceView, offset: DeltaOffset) -> SourceStart:
    """``startingVersion`` is inclusive, and nothing of the version of an offset at a boundary was read."""
    if not offset.at_boundary:
        inside = "the initial snapshot" if offset.initial_snapshot else "that version"
        refused = (
            f"the batch ended inside version {offset.version} of the table (file {offset.index} of {inside}), but "
            "startingVersion starts at the beginning of a version; start the old query once more with trigger "
            "availableNow and without maxFilesPerTrigger and maxBytesPerTrigger, which ends between two versions"
        )
        return SourceStart(view, Begin.REFUSED, refused=refused)
    return SourceStart(
        view,
        Begin.EXACT,
        {"startingVersion": str(offset.version)},
        without=("startingTimestamp",),
        conditions=(
            f"the table must be the one whose id is {offset.table_id} (DESCRIBE DETAIL)",
            f"version {offset.version} may not exist yet (DESCRIBE HISTORY): the new query then fails with "
            "DELTA_VERSION_NOT_FOUND; wait for the next write, or make a version without rows: "
            "ALTER TABLE ... SET TBLPROPERTIES; startingVersion latest would skip rows",
        ),
    )


def _files(view: SourceView, seen: Sequence[str] | str) -> SourceStart:
    if isinstance(seen, str):
        return SourceStart(view, Begin.REFUSED, refused=seen)
    conditions = (
        "no reader option says where to begin: filter what the reader loads by _metadata.file_path, before anything "
        "else is done to it; the code that ckpt writes does so",
        "the new query must read the same folder under the same URI, spelled in the same way: paths are compared as "
        "they are, so through a symbolic link, or with s3 for s3a, every file is read again",
    )
    return SourceStart(view, Begin.EXACT, seen=tuple(seen), conditions=conditions)


_ICEBERG = (
    "no option of Iceberg's reader names the file or the snapshot to begin with; stream-from-timestamp begins with the "
    "first snapshot that was committed at a time (in ms) or after it: the one after {snapshot} in the table's "
    "`snapshots`, if the batch ended at the end of that one"
)


def _unknown(view: SourceView) -> str:
    shown = json.dumps(view.offset, ensure_ascii=False)
    shown = shown if len(shown) <= 200 else shown[:200] + "..."
    if _is_number(view.offset):
        return (
            f"its offset is the number {shown}, as sockets and others write it: ckpt does not know which source "
            "this is; what a socket sent is gone, and a new query reads only what arrives after its start"
        )
    return f"ckpt does not know a source whose offsets look like {shown}; see its documentation for how it can start"


def _is_number(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
