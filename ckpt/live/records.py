"""What a source answered, as facts; ``ckpt.restart.asked`` says what follows from them."""

from collections.abc import Mapping
from dataclasses import dataclass

Part = tuple[str, int]
"""A topic, and the number of one of its partitions."""


@dataclass(frozen=True, slots=True)
class TopicNow:
    """A topic of a broker."""

    id: str | None  # None: there is no such topic
    partitions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Younger:
    """A row that a batch has read by the checkpoint, and that is younger than the batch: so it was not there."""

    batch: int
    offset: int


@dataclass(frozen=True, slots=True)
class PartitionNow:
    """A partition of a topic: it has the rows from ``earliest`` up to, and without, ``latest``."""

    earliest: int
    latest: int
    younger: Younger | None = None


@dataclass(frozen=True, slots=True)
class KafkaNow:
    """What a Kafka cluster has of the topics of a source."""

    topics: Mapping[str, TopicNow]  # of the checkpoint, and those subscribed to, as far as they were named
    partitions: Mapping[Part, PartitionNow]
    subscribed: frozenset[str] | None = None  # None: not given
    fail_on_data_loss: bool = True


@dataclass(frozen=True, slots=True)
class LiveSource:
    """One source of a query, and what it answered."""

    index: int
    kafka: KafkaNow | None = None
    not_asked: str | None = None  # why there is no answer, without a full stop
