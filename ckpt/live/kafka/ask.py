"""Asks a Kafka cluster what it has of the topics of one source."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ckpt.checkpoint.sources.kafka import KafkaOffset
from ckpt.checkpoint.sources.registry import offset_of
from ckpt.errors import UsageError, one_line
from ckpt.live.kafka.client import Client
from ckpt.live.kafka.options import translate_options
from ckpt.live.kind import SourceRequest
from ckpt.live.records import KafkaNow, NotAsked, Part, PartitionNow, TopicNow, Younger
from ckpt.model import OffsetLog

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class Mark:
    """Batch that shows rows which came later under its offsets: when it was planned (ms since 1970 UTC), its range."""

    batch: int
    timestamp_ms: int
    ends: Mapping[Part, int]
    begins: Mapping[Part, int]  # none: the batch before it is not known

    def shows(self, part: Part, younger: int, earliest: int) -> bool:
        """Tell whether the first row that is younger than the batch shows that a partition is another one.

        Not where older rows are left below the batch, and the younger one is of the batch itself: then its clock was
        ahead, or `ckpt offsets set` has moved the end of the batch.
        """
        begin = self.begins.get(part, 0)
        return 0 <= younger < self.ends[part] and not earliest < begin <= younger


def ask_kafka(request: SourceRequest) -> KafkaNow | NotAsked:
    """Ask the cluster of a source for its topics, those of the checkpoint and those subscribed to.

    Raises UsageError, or SourceError where the package is missing, the cluster cannot be reached, or does not
    answer in 5 s a request.
    """
    settings = translate_options(request.options)
    options = {key.lower(): value for key, value in request.options.items()}
    if "assign" in options:
        return NotAsked("with the option assign ckpt cannot tell which partitions are read")
    fail_on_data_loss = (options.get("failondataloss") or "true").lower()
    if fail_on_data_loss not in ("true", "false"):
        raise UsageError("`source_options`: failOnDataLoss is true or false")
    try:  # Java and Python understand a pattern alike but for rare cases
        pattern = re.compile(options["subscribepattern"]) if "subscribepattern" in options else None
    except re.error:
        raise UsageError("`source_options`: ckpt cannot read this subscribePattern") from None
    subscribed = None
    if "subscribe" in options:
        subscribed = frozenset(filter(None, map(str.strip, options["subscribe"].split(","))))
    read = request.view.topics
    named = read | (subscribed or set())
    legal = {topic for topic in named if _TOPIC.fullmatch(topic)}
    client = Client(settings)
    matching = None if pattern is None else frozenset(name for name in client.list_topics() if pattern.fullmatch(name))
    topics = client.describe_topics({*legal, *(matching or ())})
    partitions = _ask_partitions(client, topics, _make_marks(request))
    subscribed = matching if subscribed is None else subscribed
    gone = sorted(read - (subscribed or set()))
    if pattern is not None and gone:  # such a topic a start takes in ways of its own
        topic = one_line(gone[0])
        return NotAsked(f"topic {topic} is gone, or subscribePattern does not match it: what a start does is not known")
    missing = dict.fromkeys(named - legal, TopicNow(None))
    return KafkaNow({**topics, **missing}, partitions, subscribed, fail_on_data_loss == "true")


def _ask_partitions(
    client: Client, topics: Mapping[str, TopicNow], marks: tuple[Mark, ...]
) -> dict[Part, PartitionNow]:
    parts = [(name, number) for name, topic in topics.items() for number in topic.partitions]
    earliest, latest = client.find_offsets(parts, "earliest"), client.find_offsets(parts, "latest")
    younger: dict[Part, Younger] = {}
    for mark in marks:
        marked = [part for part in parts if mark.ends.get(part)]
        for part, offset in client.find_offsets(marked, mark.timestamp_ms + 1).items():
            if mark.shows(part, offset, earliest[part]):
                younger[part] = Younger(mark.batch, offset)
    return {part: PartitionNow(earliest[part], latest[part], younger.get(part)) for part in parts}


def _make_marks(request: SourceRequest) -> tuple[Mark, ...]:
    """Mark the oldest and the newest batch: a topic that was recreated in between shows in one of them."""
    entries = sorted(request.checkpoint.offsets.entries.items())
    logs = {batch: log for batch, log in entries if isinstance(log, OffsetLog)}
    marks = []
    for batch in {*list(logs)[:1], *list(logs)[-1:]}:
        metadata, ends = logs[batch].metadata, _read_partitions(logs[batch], request.index)
        if metadata is not None and ends is not None:
            begins = _read_partitions(logs.get(batch - 1), request.index) or {}
            marks.append(Mark(batch, metadata.timestamp_ms, ends, begins))
    return tuple(marks)


def _read_partitions(log: OffsetLog | None, index: int) -> Mapping[Part, int] | None:
    offset = offset_of(log, index)
    return offset.partitions if isinstance(offset, KafkaOffset) else None
