"""Reads records of a partition as hashes, and finds in a copy the place where a query continues.

A mirror keeps the order of records, and changes their offsets. A place is exact if the records before and after the end
of the query surround it there too, and no other place.
"""

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice, takewhile
from typing import Any

from ckpt.errors import SourceError, one_line
from ckpt.live.kafka.ask import PATIENCE_S, Client
from ckpt.live.kafka.options import translate_options
from ckpt.live.records import Part

RUN = 20
"""Records before the end of a query, and after it, that are compared."""
_SYNCS = re.compile(r"(.*\.)?mm2-offset-syncs\..*\.internal")


@dataclass(frozen=True, slots=True)
class HashedRecord:
    """One record of a partition."""

    offset: int
    digest: bytes  # of key, value and headers
    timestamp_ms: int
    appended: bool = False  # the broker's own timestamp (LogAppendTime), which a mirror does not keep


Records = Sequence[HashedRecord]
Key = tuple[bytes, int]


class RecordReader(Client):
    """Connection to a cluster whose records are read, as the reader options of a query say; it makes no topic."""

    def __init__(self, options: Mapping[str, str]) -> None:
        settings = translate_options(options)
        super().__init__(settings)
        settings |= {"group.id": "ckpt", "enable.auto.commit": "false", "enable.partition.eof": "true"}
        settings |= {"auto.offset.reset": "error", "fetch.wait.max.ms": "50", "queued.max.messages.kbytes": "16384"}
        settings["isolation.level"] = options.get("kafka.isolation.level", "read_uncommitted")  # as Java, so Spark
        self._settings = {**settings, "error_cb": self._errors.append}

    def read(self, part: Part, start: int) -> Iterator[HashedRecord]:
        """Yield the records of a partition from an offset on."""
        for message in self._consume(part, start):
            kind, ms = message.timestamp()
            digest = blake2b(repr((message.key(), message.value(), message.headers() or [])).encode(), digest_size=16)
            yield HashedRecord(message.offset(), digest.digest(), ms, kind == self.library.TIMESTAMP_LOG_APPEND_TIME)

    def read_around(self, part: Part, end: int, earliest: int) -> tuple[Records, Records]:
        """Read the last records below an offset, however far back gaps have put them, and the next ones."""
        start, before = end, list[HashedRecord]()
        while len(before) < RUN and start > earliest:
            start = max(start - max(end - start, RUN), earliest)
            before = list(takewhile(lambda record: record.offset < end, self.read(part, start)))
        return before[-RUN:], list(islice(self.read(part, max(end, earliest)), RUN))

    def is_compacted(self, topic: str) -> bool:
        """Tell whether compaction may have removed records; True where the cluster does not say."""
        resource = self._admin.ConfigResource(self._admin.ConfigResource.Type.TOPIC, topic)
        with suppress(self.library.KafkaException, SourceError):
            (future,) = self._client.describe_configs([resource], request_timeout=PATIENCE_S).values()
            return "compact" in self._wait_for(future)["cleanup.policy"].value
        return True

    def read_syncs(self) -> Iterator[tuple[Part, int, int]]:
        """Yield what MirrorMaker has noted: a partition, an offset of it, and that of the same record in the copy."""
        for topic in filter(_SYNCS.fullmatch, self.list_topics()):
            for message in self._consume((topic, 0), self.find_offsets([(topic, 0)], "earliest")[topic, 0]):
                with suppress(struct.error, TypeError):
                    (length,) = struct.unpack_from(">h", message.key())
                    name, number = struct.unpack(f">2x{length}si", message.key())
                    yield (name.decode(), number), *struct.unpack(">qq", message.value())

    def _consume(self, part: Part, start: int) -> Iterator[Any]:
        """Yield messages to the end; a consumer that is assigned a partition again may leave out what is there."""
        with closing(self.library.Consumer(self._settings, logger=self.silent)) as consumer:
            consumer.assign([self.library.TopicPartition(*part, start)])
            while (message := consumer.poll(PATIENCE_S)) is not None:
                if (error := message.error()) is None:
                    yield message
                elif error.name() == "_PARTITION_EOF":
                    return
                else:
                    raise self.build_error(self.library.KafkaException(error), f"{one_line(part[0])}/{part[1]}: ")
        raise self.build_error(None)


@dataclass(frozen=True, slots=True)
class CopyPosition:
    """The offset at which a query continues in the copy, or the name of the text that says why none is exact."""

    offset: int = 0  # the next one to be read
    compared: int = 0  # records that are the same
    waiting: int = 0  # records after the end that are not there yet
    timed: bool = True  # timestamps were compared too
    refused: str = ""
    rows: int = 0  # that would come twice or never, where that is known


def find_position(end: int, old: tuple[Records, Records], new: Records, *, begins: bool, ends: bool) -> CopyPosition:
    """Find where a query continues among records of the copy, from those before and after its end.

    ``begins`` and ``ends``: the records of the copy are its first, or its last ones. There is a record before or after.
    """
    timed = not any(record.appended for record in new)
    before, after, there = ([(each.digest, each.timestamp_ms * timed) for each in records] for records in (*old, new))
    wanted = [*before, *after]

    def overlap(split: int) -> slice:
        """Find which records are compared at a place: as many as both have."""
        return slice(max(len(before) - split, 0), min(len(before) - split + len(there), len(wanted)))

    def fits(split: int) -> bool:
        part, shift = overlap(split), split - len(before)
        whole = (part.start == 0 or (timed and begins)) and (part.stop == len(wanted) or (timed and ends))
        return bool(there) and whole and wanted[part] == there[part.start + shift : part.stop + shift]

    splits = [split for split in range(1 - len(after), len(there) + len(before)) if fits(split)]
    if len(splits) > 1:
        return CopyPosition(refused="move_repeated", rows=splits[-1] - splits[0])
    if not splits or not 0 <= (split := splits[0]) <= len(there):
        return _explain(before, after, there)
    if not before and old[1][0].offset > end:
        return CopyPosition(refused="move_expired", rows=old[1][0].offset - end)
    if not before and end == 0 and split:
        return CopyPosition(refused="move_differs", rows=split)
    read = {*before} - {*after}
    if again := sum(key in read for key in there[split:]):
        return CopyPosition(refused="move_again", rows=again)
    offset, part = new[split - 1].offset + 1 if split else new[0].offset, overlap(split)
    if not any(wanted.count(key) == there.count(key) == 1 for key in wanted[part]):
        return CopyPosition(refused="move_repeated", rows=len(there))
    return CopyPosition(offset, part.stop - part.start, len(wanted) - part.stop, timed)


def _explain(before: list[Key], after: list[Key], there: list[Key]) -> CopyPosition:
    """Say why no place is exact: records are not there yet, or one side has some that the other does not have."""
    known, wanted = {*there}, {*before, *after}
    splits = [split for split, key in enumerate(there) if key in wanted]
    later = there[splits[-1] + 1 :] if splits else there
    if before and not known & {before[-1], *after} and all(ms <= before[-1][1] for _, ms in later):
        missing = next((count for count, key in enumerate(reversed(before)) if key in known), len(before))
        return CopyPosition(refused="move_lags", rows=missing)
    if not splits:
        return CopyPosition(refused="move_not_found")
    differ = splits[-1] - splits[0] + 1 - len(splits) + len(wanted - known)
    again = len(splits) - len({there[split] for split in splits})
    refused, rows = ("move_differs", differ) if differ else ("move_repeated", again)
    return CopyPosition(refused=refused, rows=rows)
