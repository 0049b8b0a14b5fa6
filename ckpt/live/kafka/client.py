"""A connection to a Kafka cluster that only asks. Needs confluent-kafka, which only this module imports.

Nothing here changes anything: no consumer group is joined, and no request names a topic that a broker may create
because of it (a metadata request for one topic, ``list_topics(topic)``, does that; ``describe_topics`` does not).
"""

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ckpt.errors import SourceError, one_line
from ckpt.extras import install_command
from ckpt.live.records import Part, TopicNow
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
        while not future.done() and time.monotonic() < end and not self._is_hopeless():
            self._client.poll(0.02)
        if not future.done() or (error := future.exception()) is None:
            if future.done():
                return future.result()
            raise self.build_error(None)
        if not isinstance(error, self.library.KafkaException) or error.args[0].name() in ("_TIMED_OUT", "_TRANSPORT"):
            raise self.build_error(None)
        raise error

    def _is_hopeless(self) -> bool:
        return any(error.name() in ("_ALL_BROKERS_DOWN", "_AUTHENTICATION") for error in self._errors)

    def build_error(self, error: Exception | None, subject: str = "") -> SourceError:
        """Build the line that says why there is no answer, without secrets."""
        reports = [each.str() for each in self._errors if each.name() != "_ALL_BROKERS_DOWN"]
        text = (error.args[0].str() if hasattr(error.args[0], "str") else str(error)) if error is not None else None
        why = text or (reports[0] if reports else f"no answer in {PATIENCE_S:.0f} s")
        for secret in self._secrets:
            why = why.replace(secret, "***") if secret else why
        cure = "check kafka.bootstrap.servers, the security options and the network"
        return SourceError(f"Kafka at {self._servers}: {subject}{one_line(mask_secrets(why))}: {cure}")
