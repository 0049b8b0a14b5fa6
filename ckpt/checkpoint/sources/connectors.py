"""Offsets of connectors that no test of ckpt runs, told by the shape of their JSON alone.

The shapes are those of the classes that are named here, or of documented progress reports where the class is not
public. No start with them was tried, and no reader option.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ckpt.checkpoint.sources.book import say
from ckpt.checkpoint.sources.ends import MOST_ON_PAGE, show_offset
from ckpt.checkpoint.sources.kind import Advance, SourceKind, SourceType, Unit, advance_number, whole_number
from ckpt.checkpoint.sources.starts import ReaderStart, StartFacts, StartingPoint
from ckpt.model import Json


@dataclass(frozen=True, slots=True)
class ConnectorOffset:
    """An offset of one of the connectors."""

    kind: "ConnectorKind"
    value: Json


class ConnectorKind(SourceKind[ConnectorOffset]):
    """A connector, known by the shape of its offsets."""

    record = ConnectorOffset

    def __init__(
        self,
        name: SourceType,
        fits: Callable[[Json], bool],
        count: Callable[[dict[str, Any], dict[str, Any]], Advance | None] = lambda old, new: None,
    ) -> None:
        self.name, self._fits, self._count = name, fits, count

    def decode(self, value: Json) -> ConnectorOffset | None:
        return ConnectorOffset(self, value) if self._fits(value) else None

    def advance(self, old: ConnectorOffset, new: ConnectorOffset) -> Advance | None:
        if isinstance(old.value, dict) and isinstance(new.value, dict):
            return self._count(old.value, new.value)
        return None

    def to_json(self, offset: ConnectorOffset) -> dict[str, Json]:
        return offset.value if isinstance(offset.value, dict) else {"shards": offset.value}

    def to_text(self, offset: ConnectorOffset) -> str:
        if self.name is SourceType.CLOUD_FILES and isinstance(offset.value, dict):
            return f"number {offset.value['seqNum']} in the order of discovery"
        if self.name is SourceType.PULSAR and isinstance(offset.value, dict):
            return show_offset({topic: _name_message(value) for topic, value in offset.value.items()}, MOST_ON_PAGE)
        return show_offset(offset.value, MOST_ON_PAGE, ascii_only=True)

    def start_after(self, offset: ConnectorOffset, facts: StartFacts) -> ReaderStart:
        return ReaderStart(StartingPoint.REFUSED, refused=say(self.name))


_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)


def _has(value: Json, *numbers: str, others: frozenset[str] = frozenset(), maybe: frozenset[str] = frozenset()) -> bool:
    """Tell whether an object has these whole numbers and others, and nothing else but what it may have."""
    if not isinstance(value, dict) or any(whole_number(value.get(key)) is None for key in numbers):
        return False
    return others.union(numbers) <= value.keys() <= others.union(numbers, maybe)


def _is_cloud_files(value: Json) -> bool:
    """``CloudFilesSourceOffset`` of Databricks, as its progress reports show it."""
    maybe = frozenset(("lastBackfillStartTimeMs", "lastBackfillFinishTimeMs", "lastInputPath"))
    return _has(value, "seqNum", "sourceVersion", maybe=maybe)


def _count_files(old: dict[str, Any], new: dict[str, Any]) -> Advance:
    """``seqNum`` is the position in what was discovered: 3 after a folder with one file, so these are not files."""
    return advance_number(old["seqNum"], new["seqNum"], Unit.STEPS)


def _is_kinesis(value: Json) -> bool:
    """``KinesisV2`` of Databricks: a list; ``KinesisSourceOffset`` (Qubole), ``KinesisV2SourceOffset`` (AWS): maps."""
    if isinstance(value, list):
        return bool(value) and all(
            isinstance(part, dict)
            and isinstance(shard := part.get("shard"), dict)
            and isinstance(shard.get("stream"), str)
            and isinstance(shard.get("shardId"), str)
            for part in value
        )
    if not isinstance(value, dict) or not isinstance(head := value.get("metadata"), dict) or "streamName" not in head:
        return False
    shards = [part for name, part in value.items() if name != "metadata"]
    least, most = {"iteratorType", "iteratorPosition"}, {"subSequenceNumber", "isLast"}
    return all(isinstance(part, dict) and least <= part.keys() <= least | most for part in shards)


def _count_kinesis_batches(old: dict[str, Any], new: dict[str, Any]) -> Advance | None:
    """``metadata.batchId`` may not fall: ``planInputPartitions`` asserts it. The rows between are not known."""
    batches = [offset["metadata"].get("batchId") for offset in (old, new)]
    if not all(isinstance(batch, str) and _NUMBER.fullmatch(batch) for batch in batches):
        return None
    before, after = map(int, batches)
    return Advance(None, Unit.STEPS, (f"metadata.batchId went from {before} to {after}",)) if after < before else None


def _is_pulsar(value: Json) -> bool:
    """``org.apache.spark.sql.pulsar.SpecificPulsarOffset``: the bytes of a ``MessageId`` for each topic."""
    return isinstance(value, dict) and bool(value) and all(map(_is_message_id, value.values()))


def _is_message_id(value: Json) -> bool:
    """Pulsar's ``MessageIdData``: a ledger and an entry, fields 1 and 2 of a protocol buffer, and maybe others."""
    if not isinstance(value, list) or len(value) < 4:
        return False
    numbers = [whole_number(number) for number in value]
    return numbers[0] == 8 and 16 in numbers and all(n is not None and -128 <= n <= 127 for n in numbers)


def _name_message(value: Json) -> Json:
    """``ledger:entry:partition`` and maybe a place in a batch, as ``MessageIdImpl`` prints it; else the bytes."""
    numbers, number, shift = [], 0, 0
    for byte in (whole_number(part) or 0 for part in (value if isinstance(value, list) else ())):
        number, shift = number | (byte & 127) << shift, shift + 7
        if not byte & 128 or shift > 63:
            numbers.append(number - (number >> 63 << 64))
            number, shift = 0, 0
    fields = dict(zip(numbers[::2], numbers[1::2], strict=False))  # by their tags
    if shift or len(numbers) % 2 or any(tag & 7 for tag in fields) or not {8, 16} <= fields.keys():
        return value  # cut, or it has a field of bytes
    return ":".join(str(fields.get(tag, -1)) for tag in (8, 16, 24, 32) if tag in {24, *fields})


def _is_paimon(value: Json) -> bool:
    """``org.apache.paimon.spark.sources.PaimonSourceOffset``."""
    others, maybe = frozenset(("scanSnapshot",)), frozenset(("totalSplits",))
    fits = _has(value, "snapshotId", "index", others=others, maybe=maybe)
    return fits and isinstance(value, dict) and isinstance(value["scanSnapshot"], bool)


def _count_snapshots(old: dict[str, Any], new: dict[str, Any]) -> Advance:
    if old["snapshotId"] == new["snapshotId"]:
        return advance_number(old["index"], new["index"], Unit.FILES)
    return advance_number(old["snapshotId"], new["snapshotId"], Unit.VERSIONS)


def _is_hudi(value: Json) -> bool:
    """``org.apache.spark.sql.hudi.streaming.HoodieSourceOffset``: an instant; ``commitTime`` before 1.0."""
    if not isinstance(value, dict) or len(value) != 1:
        return False
    instant = value.get("offsetCommitTime", value.get("commitTime"))
    return isinstance(instant, str) and instant.isascii() and instant.isdigit()


def _is_cosmos(value: Json) -> bool:
    """``ChangeFeedOffset`` of azure-cosmos-spark: the state of the feed in base64, and ranges of keys."""
    if not isinstance(value, dict) or not {"id", "state"} <= value.keys() <= {"id", "state", "partitions"}:
        return False
    return str(value["id"]).endswith(".changeFeed.offset.v1") and isinstance(value["state"], str)


def _is_mongodb(value: Json) -> bool:
    """``MongoOffset`` of mongo-spark: a resume token, alone before version 1, or a time of the server."""
    if isinstance(value, dict) and value.keys() == {"version", "offset"}:
        value = value["offset"]
    return isinstance(value, dict) and value.keys() in ({"_data"}, {"$timestamp"})


_OF_UNION = frozenset(("activeSourceName", "allSourceNames", "completedSourceNames"))
CONNECTORS = (
    ConnectorKind(SourceType.CLOUD_FILES, _is_cloud_files, _count_files),
    ConnectorKind(SourceType.KINESIS, _is_kinesis, _count_kinesis_batches),
    # the source ``pubsub`` of Databricks, as its progress reports are documented
    ConnectorKind(SourceType.PUB_SUB, lambda value: _has(value, "sourceVersion", "seqNum", "fetchEpoch")),
    ConnectorKind(SourceType.PULSAR, _is_pulsar),
    ConnectorKind(SourceType.PAIMON, _is_paimon, _count_snapshots),
    ConnectorKind(SourceType.HUDI, _is_hudi),
    ConnectorKind(SourceType.COSMOS, _is_cosmos),
    ConnectorKind(SourceType.MONGODB, _is_mongodb),
    # Spark class ``SequentialUnionOffset`` of 4.2 and 4.3, which no public method of theirs writes
    ConnectorKind(SourceType.SEQUENTIAL_UNION, lambda value: _has(value, others=_OF_UNION)),
)
BY_SHAPE = frozenset(kind.name for kind in CONNECTORS)
"""Kinds that are known by the shape of their offsets alone: no start with them was tried."""
