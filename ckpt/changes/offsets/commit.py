"""``ckpt offsets commit``: where queries continue in Kafka, as consumer groups that lag tools watch.

That is all that ckpt writes to Kafka. A query of Structured Streaming reads its own checkpoint and no group, so nothing
of it changes. A consumer that uses a group would read on from there, and leave out rows: only groups that ckpt itself
has made are written, and the broker refuses one with members.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from ckpt.errors import SourceError, UsageError, one_line
from ckpt.inspection.scan.rows import ScannedCheckpoint
from ckpt.inspection.scan.scan import Scan, scan_all
from ckpt.live.kafka.ask import PATIENCE_S, Client
from ckpt.live.kafka.options import translate_options
from ckpt.model import Location
from ckpt.values import Value

_MARK = "ckpt"
"""The metadata of every offset that ckpt commits, by which it knows its groups."""
_SOON = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS")
"""Answers of a broker that begins to look after a group: ask again."""
_PAUSE_S = 0.3
_SAME_NAME = "another checkpoint has the same name: commit them separately, with different prefixes"

Reply = TypeVar("Reply")
Offsets = Mapping[str, Mapping[str, int]]
"""The next offset to be read, by topic and partition."""


@dataclass(frozen=True, slots=True)
class CommittedGroup:
    """The consumer group of one checkpoint."""

    path: Annotated[str, "of the checkpoint, as for `ckpt inspect`"]
    group: Annotated[str, "of consumers"]
    positions: Annotated[Mapping[str, Mapping[str, int]], "object: the next offset by topic and partition"]
    refused: Annotated[str | None, "why nothing was committed"]


@dataclass(frozen=True, slots=True)
class OffsetsCommit(Value):
    """The consumer groups of all checkpoints below some roots."""

    scan: Scan
    groups: tuple[CommittedGroup, ...]  # one for each checkpoint with a Kafka source that answered

    @property
    def problems(self) -> tuple[str, ...]:
        """Roots and checkpoints that could not be read, sources that did not answer, and groups that were refused."""
        unread = (
            row.error or (f"{row.path}: {row.sources_error}" if row.sources_error else None)
            for row in self.scan.checkpoints
        )
        refused = (f"{group.path}: {group.refused}" for group in self.groups if group.refused)
        return (*self.scan.problems, *filter(None, unread), *refused)


def offsets_commit(
    roots: Location | Sequence[Location],
    *,
    group: str,
    source_options: Mapping[str, str],
    storage_options: Mapping[str, str] | None = None,
    depth: int | None = None,
    jobs: int | None = None,
    watcher: Callable[[int, int], None] | None = None,
) -> OffsetsCommit:
    """Commit the Kafka offsets of each query to its own consumer group, for tools that show lag.

    Queries read their checkpoints and no consumer group, so they are not affected. Checkpoints are only read.

    Args:
        roots: Local paths or URIs, of a checkpoint or of any folder above checkpoints.
        group: Prefix of the group names; the checkpoint's name follows. A group with members, or with commits from
            somebody else, is refused.
        source_options: Options of a Kafka reader as Spark calls them, at least ``kafka.bootstrap.servers``.
        storage_options: For the file system of the URIs.
        depth: How many levels below a root to search; 0 is only the root, None is all.
        jobs: How many processes inspect checkpoints, at most; by default one per core.
        watcher: Called after each checkpoint with the number done and the total.

    Raises:
        UsageError: ``depth`` or ``jobs`` is out of range, or Kafka options are unusable or missing.

    >>> ckpt.offsets_commit("sample_checkpoints/kafka-4.2", group="lag-", source_options={})
    Traceback (most recent call last):
    ckpt.errors.UsageError: `source_options`: name the brokers: kafka.bootstrap.servers

    """
    if not source_options:
        raise UsageError.of("{--source-options}: name the brokers: kafka.bootstrap.servers")
    scanned = scan_all(
        roots,
        storage_options=storage_options,
        depth=depth,
        jobs=jobs,
        sources=True,
        source_options=source_options,
        watcher=watcher,
    )
    rows = {row.path: row for row in scanned.checkpoints if row.positions}
    names = {path: f"{group}{row.name}" for path, row in rows.items()}
    refused = _commit_positions(translate_options(source_options), names, rows)
    groups = (
        CommittedGroup(path, name, rows[path].positions, refused.get(name)) for path, name in sorted(names.items())
    )
    return OffsetsCommit(scanned, tuple(groups))


def _commit_positions(
    settings: Mapping[str, str], names: Mapping[str, str], rows: Mapping[str, ScannedCheckpoint]
) -> dict[str, str | None]:
    """Commit what can be committed; for each group, why it was refused, or None."""
    refused: dict[str, str | None] = {name: _SAME_NAME for name, count in Counter(names.values()).items() if count > 1}
    positions = {name: rows[path].positions for path, name in names.items() if name not in refused}
    try:
        return refused | (_commit_groups(settings, positions) if positions else {})
    except SourceError as error:
        return refused | dict.fromkeys(positions, str(error))


def _commit_groups(settings: Mapping[str, str], positions: Mapping[str, Offsets]) -> dict[str, str | None]:
    """Commit the offsets of some groups, with settings of librdkafka; for each, why not. Raises SourceError."""
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


def _commit_group(client: Client, consumer: Any, offsets: Offsets) -> str | None:
    """Commit offsets of a group; return why they could not be, or None. Raises KafkaException."""
    parts = ((topic, int(number), at) for topic, ends in offsets.items() for number, at in ends.items())
    places = [client.library.TopicPartition(*part, _MARK) for part in parts]
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
