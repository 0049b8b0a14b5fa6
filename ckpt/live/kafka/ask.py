"""Asks a Kafka cluster what it has of some topics. Needs confluent-kafka, which only this module imports.

Nothing here changes anything: no consumer group is joined, and no request names a topic that a broker may create
because of it (a metadata request for one topic, ``list_topics(topic)``, does that; ``describe_topics`` does not).
"""

import logging
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ckpt.errors import SourceError
from ckpt.live.records import KafkaNow, Part, PartitionNow, TopicNow, Younger
from ckpt.storage.base import one_line
from ckpt.texts import masked

PATIENCE_S = 5.0
"""How long one request may take."""
_TRIES = 3
"""Of a request that a partition answers with "no leader yet", as it does just after its topic was created."""
_AT_ONCE = 500
"""Partitions in one request."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A batch: when it was planned, in ms since 1970 UTC, and the offsets that it ended and began at."""

    batch: int
    timestamp_ms: int
    ends: Mapping[Part, int]
    begins: Mapping[Part, int]  # none: the batch before it is not known

    def shows(self, part: Part, younger: int, earliest: int) -> bool:
        """Whether the first row that is younger than the batch shows that a partition is another one.

        Not where older rows are left below the batch, and the younger one is of the batch itself: then its clock was
        ahead, or `ckpt offsets set` has moved the end of the batch.
        """
        begin = self.begins.get(part, 0)
        return 0 <= younger < self.ends[part] and not earliest < begin <= younger


def ask(
    settings: Mapping[str, str], topics: Collection[str], marks: Sequence[Mark], pattern: re.Pattern[str] | None = None
) -> KafkaNow:
    """What a cluster has of these topics.

    Args:
        settings: Of librdkafka, as ``ckpt.live.kafka.options.librdkafka`` makes them.
        topics: Their names; one that does not exist is in the answer without an id.
        marks: Batches to look for rows that they have read and that are younger.
        pattern: Of the names of further topics; those that match are what the query subscribes to.

    Raises:
        SourceError: The package is missing, the cluster cannot be reached, or does not answer in 5 s a request.

    """
    client = Client(settings)
    matching = None if pattern is None else frozenset(name for name in client.names() if pattern.fullmatch(name))
    found = client.topics({*topics, *(matching or ())})
    parts = [(name, number) for name, topic in found.items() for number in topic.partitions]
    earliest, latest = client.offsets(parts, "earliest"), client.offsets(parts, "latest")
    younger: dict[Part, Younger] = {}
    for mark in marks:
        asked = [part for part in parts if mark.ends.get(part)]
        for part, offset in client.offsets(asked, mark.timestamp_ms + 1).items():
            if mark.shows(part, offset, earliest[part]):
                younger[part] = Younger(mark.batch, offset)
    now = {part: PartitionNow(earliest[part], latest[part], younger.get(part)) for part in parts}
    return KafkaNow(found, now, matching)


class Client:
    """A connection that was seen to answer."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        try:
            import confluent_kafka
            from confluent_kafka import admin
        except ImportError:
            raise SourceError("asking Kafka needs one more package: pip install 'spark-ckpt[kafka]'") from None
        self.library, self._admin = confluent_kafka, admin
        self._servers = one_line(settings["bootstrap.servers"])
        self._secrets = [value for key, value in settings.items() if "password" in key or "secret" in key]
        self._errors: list[Any] = []
        self.silent = logging.Logger("librdkafka of ckpt")
        self.silent.addHandler(logging.NullHandler())
        try:
            self._client = admin.AdminClient({**settings, "error_cb": self._errors.append}, logger=self.silent)
        except (confluent_kafka.KafkaException, ValueError, TypeError) as error:
            raise self.refusal(error) from None
        self._wait_for(self._client.describe_cluster(request_timeout=PATIENCE_S))

    def names(self) -> Iterable[str]:
        """All topics but Kafka's own; asking for all makes none."""
        try:
            found = self._client.list_topics(timeout=PATIENCE_S).topics
        except self.library.KafkaException as error:
            raise self.refusal(error) from None
        return [name for name in found if not name.startswith("__")]

    def topics(self, names: Collection[str]) -> dict[str, TopicNow]:
        """What there is under these names."""
        asked = self._client.describe_topics(self.library.TopicCollection(sorted(names)), request_timeout=PATIENCE_S)
        return {name: self._topic(name, future) for name, future in sorted(asked.items())}

    def _topic(self, name: str, future: Any) -> TopicNow:
        try:
            described = self._wait_for(future)
        except self.library.KafkaException as error:
            if error.args[0].name() in ("UNKNOWN_TOPIC_OR_PART", "TOPIC_EXCEPTION"):
                return TopicNow(None)
            raise self.refusal(error, f"topic {one_line(name)}: ") from None
        return TopicNow(str(described.topic_id), tuple(sorted(one.id for one in described.partitions)))

    def offsets(self, parts: Iterable[Part], at: str | int) -> dict[Part, int]:
        """``earliest``, ``latest``, or the first row that is not older than a time in ms, -1 where there is none."""
        spec = self._admin.OffsetSpec
        wanted = getattr(spec, at)() if isinstance(at, str) else spec.for_timestamp(at)
        left, found = list(parts), dict[Part, int]()
        for attempt in range(_TRIES):
            for start in range(0, len(left), _AT_ONCE):
                some = {self.library.TopicPartition(*part): wanted for part in left[start : start + _AT_ONCE]}
                for place, future in self._client.list_offsets(some, request_timeout=PATIENCE_S).items():
                    offset = self._offset(place, future, last=attempt == _TRIES - 1)
                    if offset is not None:
                        found[place.topic, place.partition] = offset
            left = [part for part in left if part not in found]
            if not left:
                break
            time.sleep(0.3)
        return found

    def _offset(self, place: Any, future: Any, *, last: bool) -> int | None:
        try:
            return int(self._wait_for(future).offset)
        except self.library.KafkaException as error:
            if not last and error.args[0].name().startswith(("NOT_LEADER", "LEADER_NOT")):
                return None
            raise self.refusal(error, f"{one_line(place.topic)}/{place.partition}: ") from None

    def _wait_for(self, future: Any) -> Any:
        """The answer, or why there is none: what librdkafka reports meanwhile says more than "timed out".

        Raises KafkaException where the cluster answered with an error.
        """
        end = time.monotonic() + PATIENCE_S
        while not future.done() and time.monotonic() < end and not self._hopeless():
            self._client.poll(0.02)
        if not future.done() or (error := future.exception()) is None:
            if future.done():
                return future.result()
            raise self.refusal(None)
        if not isinstance(error, self.library.KafkaException) or error.args[0].name() in ("_TIMED_OUT", "_TRANSPORT"):
            raise self.refusal(None)
        raise error

    def _hopeless(self) -> bool:
        return any(error.name() in ("_ALL_BROKERS_DOWN", "_AUTHENTICATION") for error in self._errors)

    def refusal(self, error: Exception | None, place: str = "") -> SourceError:
        """The one line that says why there is no answer, without secrets."""
        said = [one.str() for one in self._errors if one.name() != "_ALL_BROKERS_DOWN"][:1]
        text = (error.args[0].str() if hasattr(error.args[0], "str") else str(error)) if error is not None else None
        why = text or (said[0] if said else f"no answer in {PATIENCE_S:.0f} s")
        for secret in self._secrets:
            why = why.replace(secret, "***") if secret else why
        cure = "check kafka.bootstrap.servers, the security options and the network"
        return SourceError(f"Kafka at {self._servers}: {place}{one_line(masked(why))}: {cure}")
