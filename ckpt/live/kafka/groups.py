"""Commits where queries stand to consumer groups, for tools that show the lag of groups: all that ckpt writes to Kafka.

A query of Structured Streaming reads its own checkpoint and no group, so nothing of it changes. A consumer that uses a
group would read on from there, and leave out rows: only groups that ckpt itself has made are written, and the broker
refuses one with members.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, TypeVar

from ckpt.checkpoint.sources.kafka import KafkaOffset
from ckpt.checkpoint.sources.registry import Offset
from ckpt.errors import one_line
from ckpt.live.kafka.ask import PATIENCE_S, Client
from ckpt.live.records import Answer, KafkaNow, Part

_MARK = "ckpt"
"""The metadata of every offset that ckpt commits, by which it knows its groups."""
_SOON = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS")
"""Answers of a broker that begins to look after a group: ask again."""
_PAUSE_S = 0.3

Reply = TypeVar("Reply")


def find_positions(end: Offset | None, answer: Answer) -> dict[Part, int]:
    """Find where a start continues in each partition that is there now; none of a source that is not Kafka."""
    if not isinstance(answer, KafkaNow) or not isinstance(end, KafkaOffset):
        return {}
    return {part: offset for part, offset in end.partitions.items() if part in answer.partitions}


def commit(settings: Mapping[str, str], positions: Mapping[str, Mapping[Part, int]]) -> dict[str, str | None]:
    """Commit the offsets of some groups; for each, why not, or None.

    Args:
        settings: Of librdkafka, as ``ckpt.live.kafka.options.librdkafka`` makes them.
        positions: For each group, the next offset to be read of partitions that exist.

    Raises:
        SourceError: The package is missing, or the cluster cannot be reached.
    """
    client, refused = Client(settings), dict[str, str | None]()
    for group, offsets in positions.items():
        if not group.isprintable():  # tools that list groups print it as it is
            refused[group] = f"group {one_line(group)}: ckpt does not commit to a group with an unprintable name"
            continue
        own = {**settings, "group.id": group, "enable.auto.commit": False, "error_cb": lambda _: None}
        with closing(client.library.Consumer(own, logger=client.silent)) as consumer:  # it subscribes to nothing
            try:
                refused[group] = _commit_group(client, consumer, offsets)
            except client.library.KafkaException as error:
                refused[group] = _explain_refusal(client, error, group)
    return refused


def _explain_refusal(client: Client, error: Exception, group: str) -> str:
    if error.args[0].name() in ("UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION"):
        return f"group {one_line(group)} has members, so it belongs to a consumer: choose another prefix"
    return str(client.build_error(error, f"group {one_line(group)}: "))


def _commit_group(client: Client, consumer: Any, offsets: Mapping[Part, int]) -> str | None:
    """Commit offsets of a group; return why they could not be, or None. Raises KafkaException."""
    places = [client.library.TopicPartition(*part, offset, _MARK) for part, offset in offsets.items()]
    there = _retry(client, lambda: consumer.committed(places, timeout=PATIENCE_S))
    if any(offset.offset >= 0 and offset.metadata != _MARK for offset in there):
        return "the group has offsets that ckpt did not commit: it may belong to a consumer"
    done = _retry(client, lambda: consumer.commit(offsets=places, asynchronous=False))
    wrong = next((offset for offset in done if offset.error is not None), None)
    return wrong and f"{one_line(wrong.topic)}/{wrong.partition}: {one_line(wrong.error.str())}"


def _retry(client: Client, ask: Callable[[], Reply]) -> Reply:
    """Ask a broker again that has to find out first that the group is its own. Raises KafkaException."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return ask()
        except client.library.KafkaException as error:
            if error.args[0].name() not in _SOON or time.monotonic() > end:
                raise
        time.sleep(_PAUSE_S)
