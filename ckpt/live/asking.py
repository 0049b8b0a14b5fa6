"""Asks each source of a checkpoint that ckpt can ask."""

import re
from collections.abc import Mapping
from dataclasses import replace

from ckpt import history
from ckpt.checkpoint import Checkpoint
from ckpt.errors import UsageError
from ckpt.live import kafka
from ckpt.live.kafka_options import SERVERS, librdkafka, plain
from ckpt.live.records import KafkaNow, LiveSource, TopicNow
from ckpt.model import OffsetLog
from ckpt.sources import KafkaOffset, SourceType, SourceView, decode, in_order

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def ask_sources(checkpoint: Checkpoint, options: Mapping[int, Mapping[str, str]]) -> tuple[LiveSource, ...]:
    """Ask the sources of a checkpoint what they have now; one answer for each source, in their order.

    Args:
        checkpoint: What ``open_checkpoint`` read.
        options: Options of the reader of each source, by its number, as Spark calls them: for Kafka at least
            ``kafka.bootstrap.servers``. ``source_options`` reads them from words.

    Raises:
        UsageError: There is no such source, its options cannot be used, or no source was given its brokers.
        SourceError: A source cannot be reached, or a package is missing.

    >>> ckpt.ask_sources(ckpt.open_checkpoint("sample_checkpoints/delta-4.2"), {})[0].not_asked
    'ckpt cannot ask a source of type delta'

    """
    views = history.sources(checkpoint)
    for index in sorted(options):
        if index >= len(views):
            raise UsageError(f"`source_options`: the checkpoint has no source {index}; the first one is source 0")
        if views[index].type is not SourceType.KAFKA:
            raise UsageError(f"`source_options`: source {index}: {_cannot(views[index])}")
    first = next((view.index for view in views if view.type is SourceType.KAFKA), None)
    if first is not None and not options:
        raise UsageError(f"`source_options`: name the brokers of source {first}: {first}.{SERVERS}=HOST:PORT")
    return tuple(_asked(checkpoint, view, options.get(view.index)) for view in views)


def _cannot(view: SourceView) -> str:
    return f"ckpt cannot ask a source of type {view.type}"


def _asked(checkpoint: Checkpoint, view: SourceView, options: Mapping[str, str] | None) -> LiveSource:
    if view.type is not SourceType.KAFKA:
        return LiveSource(view.index, not_asked=_cannot(view))
    if options is None:
        return LiveSource(view.index, not_asked=f"name its brokers: {view.index}.{SERVERS}=HOST:PORT")
    return LiveSource(view.index, _kafka(checkpoint, view, options))


def _kafka(checkpoint: Checkpoint, view: SourceView, options: Mapping[str, str]) -> KafkaNow:
    settings = librdkafka(options)
    given = plain(options, "subscribe")
    subscribed = None if given is None else frozenset(name.strip() for name in given.split(",") if name.strip())
    loss = plain(options, "failOnDataLoss") or "true"
    if loss.lower() not in ("true", "false"):
        raise UsageError("`source_options`: failOnDataLoss is true or false")
    known = decode(view.offset)
    topics = {topic for topic, _ in known.partitions} if isinstance(known, KafkaOffset) else set()
    named = topics | (subscribed or set())
    strange = [name for name in named if not _TOPIC.fullmatch(name)]
    found = kafka.ask(settings, [name for name in named if name not in strange], _marks(checkpoint, view.index))
    missing = {name: TopicNow(None) for name in strange}
    return replace(
        found,
        topics={**found.topics, **missing},
        subscribed=subscribed,
        fail_on_data_loss=loss.lower() == "true",
    )


def _marks(checkpoint: Checkpoint, index: int) -> tuple[kafka.Mark, ...]:
    """The oldest and the newest batch that were read: a topic that was recreated in between shows in one of them."""
    logs = {batch: log for batch, log in sorted(checkpoint.offsets.entries.items()) if isinstance(log, OffsetLog)}
    found = []
    for batch in {*list(logs)[:1], *list(logs)[-1:]}:
        log = logs[batch]
        sources = in_order(log)
        offset = decode(sources[index].value) if index < len(sources) else None
        if log.metadata is not None and isinstance(offset, KafkaOffset):
            found.append(kafka.Mark(batch, log.metadata.timestamp_ms, offset.partitions))
    return tuple(found)
