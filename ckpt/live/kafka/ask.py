"""Asks a Kafka cluster what it has of one source's topics. Needs confluent-kafka, which only this module imports."""

import logging
import re
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ckpt.checkpoint.sources.kafka import KafkaOffset
from ckpt.checkpoint.sources.registry import offset_of
from ckpt.errors import SourceError, one_line
from ckpt.extras import install_command
from ckpt.live.kafka.options import translate_options
from ckpt.live.kind import SourceRequest, read_flag, unusable_option
from ckpt.live.records import KafkaNow, NotAsked, Part, PartitionNow, TopicNow, Younger
from ckpt.model import OffsetLog
from ckpt.texts import mask_secrets

PATIENCE_S = 5.0
"""How long one request may take."""
_TRIES = 3
"""Of a request that a partition answers with "no leader yet", as it does just after its topic was created."""
_AT_ONCE = 500
"""Partitions in one request."""


class Client:
    """Connection to a cluster that has answered once."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        try:
            import confluent_kafka
            from confluent_kafka import admin
        except ImportError:
            raise SourceError(f"asking Kafka needs one more package: {install_command('kafka')}") from None
        self.library, self._admin = confluent_kafka, admin
        self._servers = one_line(settings["bootstrap.servers"])
        self._secrets = [value for key, value in settings.items() if "password" in key or "secret" in key]
        self._errors: list[Any] = []
        self.silent = logging.Logger("librdkafka of ckpt")
        self.silent.addHandler(logging.NullHandler())
        try:
            self._client = admin.AdminClient({**settings, "error_cb": self._errors.append}, logger=self.silent)
        except (confluent_kafka.KafkaException, ValueError, TypeError) as error:
            raise self.build_error(error) from None
        self._wait_for(self._client.describe_cluster(request_timeout=PATIENCE_S))

    def list_topics(self) -> Iterable[str]:
        """List all topics but Kafka's own; asking for all makes none."""
        try:
            topics = self._client.list_topics(timeout=PATIENCE_S).topics
        except self.library.KafkaException as error:
            raise self.build_error(error) from None
        return [name for name in topics if not name.startswith("__")]

    def describe_topics(self, names: Collection[str]) -> dict[str, TopicNow]:
        """Describe what there is under these names."""
        futures = self._client.describe_topics(self.library.TopicCollection(sorted(names)), request_timeout=PATIENCE_S)
        return {name: self._read_topic(name, future) for name, future in sorted(futures.items())}

    def _read_topic(self, name: str, future: Any) -> TopicNow:
        try:
            described = self._wait_for(future)
        except self.library.KafkaException as error:
            if error.args[0].name() in ("UNKNOWN_TOPIC_OR_PART", "TOPIC_EXCEPTION"):
                return TopicNow(None)
            raise self.build_error(error, f"topic {one_line(name)}: ") from None
        return TopicNow(str(described.topic_id), tuple(sorted(partition.id for partition in described.partitions)))

    def find_offsets(self, parts: Iterable[Part], at: str | int) -> dict[Part, int]:
        """Find ``earliest``, ``latest``, or the first row that is not older than a time in ms: -1, if none is."""
        spec = self._admin.OffsetSpec
        wanted = getattr(spec, at)() if isinstance(at, str) else spec.for_timestamp(at)
        left, offsets = list(parts), dict[Part, int]()
        for attempt in range(_TRIES):
            for start in range(0, len(left), _AT_ONCE):
                specs = {self.library.TopicPartition(*part): wanted for part in left[start : start + _AT_ONCE]}
                for partition, future in self._client.list_offsets(specs, request_timeout=PATIENCE_S).items():
                    offset = self._read_offset(partition, future, last=attempt == _TRIES - 1)
                    if offset is not None:
                        offsets[partition.topic, partition.partition] = offset
            left = [part for part in left if part not in offsets]
            if not left:
                break
            time.sleep(0.3)
        return offsets

    def _read_offset(self, partition: Any, future: Any, *, last: bool) -> int | None:
        try:
            return int(self._wait_for(future).offset)
        except self.library.KafkaException as error:
            if not last and error.args[0].name().startswith(("NOT_LEADER", "LEADER_NOT")):
                return None
            raise self.build_error(error, f"{one_line(partition.topic)}/{partition.partition}: ") from None

    def _wait_for(self, future: Any) -> Any:
        """Wait for an answer; where there is none, what librdkafka reports meanwhile says more than "timed out".

        Raises KafkaException where the cluster answered with an error.
        """
        end = time.monotonic() + PATIENCE_S
        hopeless = ("_ALL_BROKERS_DOWN", "_AUTHENTICATION")
        while not future.done() and time.monotonic() < end and not any(e.name() in hopeless for e in self._errors):
            self._client.poll(0.02)
        if not future.done():
            raise self.build_error(None)
        if (error := future.exception()) is None:
            return future.result()
        if not isinstance(error, self.library.KafkaException) or error.args[0].name() in ("_TIMED_OUT", "_TRANSPORT"):
            raise self.build_error(None)
        raise error

    def build_error(self, error: Exception | None, subject: str = "") -> SourceError:
        """Build the line that says why there is no answer, without secrets."""
        reports = [each.str() for each in self._errors if each.name() != "_ALL_BROKERS_DOWN"]
        text = (error.args[0].str() if hasattr(error.args[0], "str") else str(error)) if error is not None else None
        why = text or (reports[0] if reports else f"no answer in {PATIENCE_S:.0f} s")
        for secret in self._secrets:
            why = why.replace(secret, "***") if secret else why
        cure = "check kafka.bootstrap.servers, the security options and the network"
        return SourceError(f"Kafka at {self._servers}: {subject}{one_line(mask_secrets(why))}: {cure}")


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
    fail_on_data_loss = read_flag(options, "failOnDataLoss", True)
    try:  # Java and Python understand a pattern alike but for rare cases
        pattern = re.compile(options["subscribepattern"]) if "subscribepattern" in options else None
    except re.error:
        raise unusable_option("ckpt cannot read this subscribePattern") from None
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
        return NotAsked(f"topic {topic} is gone, or subscribePattern does not match it: a start's outcome is unknown")
    missing = dict.fromkeys(named - legal, TopicNow(None))
    return KafkaNow({**topics, **missing}, partitions, subscribed, fail_on_data_loss)


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
    logs, marks = request.checkpoint.offsets.records, []
    for batch in {*list(logs)[:1], *list(logs)[-1:]}:
        metadata, ends = logs[batch].metadata, _read_partitions(logs[batch], request.index)
        if metadata is not None and ends is not None:
            begins = _read_partitions(logs.get(batch - 1), request.index) or {}
            marks.append(Mark(batch, metadata.timestamp_ms, ends, begins))
    return tuple(marks)


def _read_partitions(log: OffsetLog | None, index: int) -> Mapping[Part, int] | None:
    offset = offset_of(log, index)
    return offset.partitions if isinstance(offset, KafkaOffset) else None
