"""Asks each source of a checkpoint that ckpt can ask."""

import re
from collections.abc import Mapping
from dataclasses import replace

from ckpt.checkpoint import history
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources.delta import DeltaOffset
from ckpt.checkpoint.sources.kafka import KafkaOffset
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import SourceView, decode, value_of
from ckpt.errors import SourceError, StorageError, UsageError
from ckpt.live.delta import options as delta_options
from ckpt.live.delta.ask import ask_delta
from ckpt.live.files.ask import OUTPUT_OF_A_SINK, ask_files, other_files
from ckpt.live.iceberg import ask as iceberg
from ckpt.live.kafka import ask as kafka
from ckpt.live.kafka.options import SERVERS, librdkafka, plain
from ckpt.live.options import lower, other_rules
from ckpt.live.records import Answer, KafkaNow, LiveSource, NotAsked, Part, TopicNow, Unreached
from ckpt.model import Json, OffsetLog
from ckpt.storage.base import one_line
from ckpt.storage.locations import is_same_kind

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def ask_sources(
    checkpoint: Checkpoint,
    options: Mapping[int, Mapping[str, str]],
    storage_options: Mapping[str, str] | None = None,
    *,
    partial: bool = False,
) -> tuple[LiveSource, ...]:
    """Ask the sources of a checkpoint what they have now; one answer for each source, in their order.

    Args:
        checkpoint: What ``open_checkpoint`` read.
        options: Options of the reader of each source, by its number, as Spark calls them: for Kafka at least
            ``kafka.bootstrap.servers``, for others ``path``. ``source_options`` reads them from words.
        storage_options: For the file systems of paths that are of the same kind as that of the checkpoint.
        partial: Where a source cannot be reached, its answer says so (``unreached``), and nothing is raised.

    Raises:
        UsageError: There is no such source, its options cannot be used, or no source was given its place.
        SourceError, StorageError: A source cannot be reached, or a package is missing.

    >>> ckpt.ask_sources(ckpt.open_checkpoint("sample_checkpoints/stateless-4.2"), {})[0].not_asked
    'ckpt cannot ask a source of type rate-micro-batch'

    """
    views = history.sources(checkpoint)
    for index in sorted(options):
        if index >= len(views):
            raise UsageError(f"`source_options`: the checkpoint has no source {index}; the first one is source 0")
        if views[index].type not in _NEEDS:
            raise UsageError(f"`source_options`: source {index}: {_cannot(views[index])}")
    first = next((view for view in views if view.type in _NEEDS), None)
    if first is not None and not options:
        what, option = _NEEDS[first.type]
        raise UsageError(f"`source_options`: name {what} of source {first.index}: {first.index}.{option}")
    return tuple(
        LiveSource(
            view.index, _answer(checkpoint, view, options.get(view.index), storage_options or {}, partial=partial)
        )
        for view in views
    )


def _answer(
    checkpoint: Checkpoint,
    view: SourceView,
    options: Mapping[str, str] | None,
    storage_options: Mapping[str, str],
    *,
    partial: bool,
) -> Answer:
    try:
        return _asked(checkpoint, view, options, storage_options)
    except (SourceError, StorageError) as error:
        if not partial:
            raise
        return Unreached(str(error))


_NEEDS = {
    SourceType.KAFKA: ("the brokers", f"{SERVERS}=HOST:PORT"),
    SourceType.DELTA: ("the table", "path=URI"),
    SourceType.ICEBERG: ("the table", "path=URI"),
    SourceType.FILE: ("the folder", "path=URI"),
}
"""What a source has to be given: the checkpoint does not say where it is."""


def _cannot(view: SourceView) -> str:
    return f"ckpt cannot ask {_looks_like(view.offset) or f'a source of type {view.type}'}"


def _looks_like(offset: Json) -> str | None:
    """A source that ckpt does not know, by the names in its offset."""
    names = tuple(offset) if isinstance(offset, dict) else ()
    if set(names) & {"commitTime", "offsetCommitTime"}:
        return "a source that looks like Hudi"
    if any(name.startswith("shardId-") for name in names):
        return "a source that looks like Kinesis"
    if any(re.match("(non-)?persistent://", name) for name in names):
        return "a source that looks like Pulsar"
    return None


def _asked(
    checkpoint: Checkpoint, view: SourceView, options: Mapping[str, str] | None, storage_options: Mapping[str, str]
) -> Answer:
    if view.type not in _NEEDS:
        return NotAsked(_cannot(view))
    if options is None:
        what, option = _NEEDS[view.type]
        return NotAsked(f"name {what}: {view.index}.{option}")
    if view.type is SourceType.KAFKA:
        return _of_kafka(checkpoint, view, options)
    given = lower(options)
    if not given.get("path"):
        raise UsageError(f"`source_options`: source {view.index} needs path=URI")
    same = is_same_kind(given["path"], checkpoint.uri)
    if view.type is SourceType.FILE:
        return _of_files(checkpoint, view, given, storage_options, same=same)
    if view.type is SourceType.ICEBERG:
        strange = other_rules(given, "Iceberg", iceberg.KNOWN, iceberg.OTHER_RULES)
        if strange is not None:
            return _by_other_rules("Iceberg", strange)
        return iceberg.ask_iceberg(checkpoint, view.index, given, storage_options, same=same)
    return _delta(checkpoint, view, given, storage_options if same else {})


def _delta(
    checkpoint: Checkpoint, view: SourceView, given: Mapping[str, str], storage_options: Mapping[str, str]
) -> Answer:
    strange = other_rules(given, "Delta", delta_options.KNOWN, delta_options.OTHER_RULES)
    if strange is not None and strange not in delta_options.CHANGE_FEED:
        return _by_other_rules("Delta", strange)
    now, read = ask_delta(checkpoint, view.index, given, storage_options), view.record
    if strange is None or (isinstance(read, DeltaOffset) and now.table_id != read.table_id):  # which stops any start
        return now
    return _by_other_rules("Delta", strange)


def _by_other_rules(source: str, option: str) -> Answer:
    return NotAsked(f"with the option {option} {source} has rules that ckpt does not know")


def _of_files(
    checkpoint: Checkpoint,
    view: SourceView,
    given: Mapping[str, str],
    storage_options: Mapping[str, str],
    *,
    same: bool,
) -> Answer:
    why = other_files(given)
    if why is not None:
        return NotAsked(why)
    return ask_files(checkpoint, view.index, given, storage_options, same) or NotAsked(OUTPUT_OF_A_SINK)


def _of_kafka(checkpoint: Checkpoint, view: SourceView, options: Mapping[str, str]) -> Answer:
    if plain(options, "assign") is not None:
        librdkafka(options)  # refuses what is no option
        return NotAsked("with the option assign ckpt cannot tell which partitions are read")
    return _by_pattern(view, _kafka(checkpoint, view, options), plain(options, "subscribePattern"))


def _by_pattern(view: SourceView, now: KafkaNow, pattern: str | None) -> Answer:
    """With a pattern a start takes a topic that is gone in ways of its own."""
    known = view.record
    read = {topic for topic, _ in known.partitions} if isinstance(known, KafkaOffset) else set()
    gone = sorted(read - (now.subscribed or set())) if pattern is not None else []
    if gone:
        why = (
            f"topic {one_line(gone[0])} is gone, or subscribePattern does not match it: what a start does is not known"
        )
        return NotAsked(why)
    return now


def _kafka(checkpoint: Checkpoint, view: SourceView, options: Mapping[str, str]) -> KafkaNow:
    settings = librdkafka(options)
    given = plain(options, "subscribe")
    subscribed = None if given is None else frozenset(name.strip() for name in given.split(",") if name.strip())
    loss = plain(options, "failOnDataLoss") or "true"
    if loss.lower() not in ("true", "false"):
        raise UsageError("`source_options`: failOnDataLoss is true or false")
    known = view.record
    topics = {topic for topic, _ in known.partitions} if isinstance(known, KafkaOffset) else set()
    named = topics | (subscribed or set())
    strange = [name for name in named if not _TOPIC.fullmatch(name)]
    usual = [name for name in named if name not in strange]
    found = kafka.ask(settings, usual, _marks(checkpoint, view.index), _pattern(options))
    missing = {name: TopicNow(None) for name in strange}
    return replace(
        found,
        topics={**found.topics, **missing},
        subscribed=found.subscribed if subscribed is None else subscribed,
        fail_on_data_loss=loss.lower() == "true",
    )


def _pattern(options: Mapping[str, str]) -> re.Pattern[str] | None:
    """``subscribePattern``, which Java and Python read alike but for rare cases."""
    text = plain(options, "subscribePattern")
    try:
        return None if text is None else re.compile(text)
    except re.error:
        raise UsageError("`source_options`: subscribePattern is no pattern that ckpt can read") from None


def _marks(checkpoint: Checkpoint, index: int) -> tuple[kafka.Mark, ...]:
    """The oldest and the newest batch that were read: a topic that was recreated in between shows in one of them."""
    logs = {batch: log for batch, log in sorted(checkpoint.offsets.entries.items()) if isinstance(log, OffsetLog)}
    found = []
    for batch in {*list(logs)[:1], *list(logs)[-1:]}:
        metadata, ends = logs[batch].metadata, _partitions(logs[batch], index)
        if metadata is not None and ends is not None:
            begins = _partitions(logs.get(batch - 1), index) or {}
            found.append(kafka.Mark(batch, metadata.timestamp_ms, ends, begins))
    return tuple(found)


def _partitions(log: OffsetLog | None, index: int) -> Mapping[Part, int] | None:
    offset = decode(value_of(log, index))
    return offset.partitions if isinstance(offset, KafkaOffset) else None
