"""Incidents of Kafka topics, and what obeying the advice about them leaves in a Delta table."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ckpt.advice import Call
from tests.live.first_remedy import BATCHES, Answer, Query, advised, done
from tests.live.kafka.cases import WAITS, Broker


class FromKafka(Query):
    """One or two topics of two partitions, of which 20 offsets each were read in two batches."""

    def __init__(self, spark: Any, folder: Path, broker: Broker, topics: int) -> None:
        super().__init__(spark, folder, "delta")
        self.broker, self._next = broker, 0
        self.topics = [f"t{uuid.uuid4().hex[:10]}" for _ in range(topics)]
        self.place = self.old
        self.newest: list[list[int]] = []  # numbers of the newest batch, by topic

    def fill(self, topic: str, rows: int, partitions: int = 2) -> list[int]:
        """Numbers that are nowhere else, by turns into each partition."""
        numbers = list(range(self._next, self._next + rows * partitions))
        self._next += len(numbers)
        self.broker.fill(topic, rows, range(partitions), iter(numbers))
        return numbers

    def run_old(self) -> None:
        for topic in self.topics:
            self.broker.create(topic)
        for _ in range(BATCHES - 1):
            self.newest = [self.fill(topic, 10) for topic in self.topics]
            assert self.read(self.old, self.topics) == ""

    def options(self, topics: Sequence[str]) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.broker.servers, "subscribe": ",".join(topics)}

    def read(
        self, place: Path, topics: Sequence[str], options: Mapping[str, str] | None = None, *, once: bool = False
    ) -> str:
        reader = self.spark.readStream.format("kafka").options(**WAITS, **self.options(topics), **(options or {}))
        rows = reader.option("startingOffsets", "earliest").load()
        return self.start(place, rows.selectExpr("CAST(CAST(value AS STRING) AS LONG) AS id"), once=once)

    def obeyed(self, case: str, incident: str, state: str, *, lenient: bool = False) -> Answer:
        """What came of an incident, and the numbers that were to be read: there, and not in the sink."""
        place, what = self.copied(case), KAFKA[incident]
        self.place = place
        if state != "committed":
            self.uncommit(place, written=state == "written", newest=BATCHES - 2)
        before, unread = self.times(place), what.happen(self)
        given = {"failOnDataLoss": "false"} if lenient else {}
        advice = advised(place / "checkpoint", {**self.options(self.topics), **given})
        unread += what.then(self)
        first, after = advice.commands(what.of), advice.commands_afterwards
        if state == "written" and advice.others():
            first = [_with(one, advice.others()) for one in first]
        ran = [line for number, one in enumerate(first) for line in done(one, number, place)]
        topics = [topic for topic in self.topics if topic not in what.left_out(self)]
        errors = [self.read(place, topics, {**given, **advice.options}, once=advice.once)]
        ran += [line for number, one in enumerate(after, len(first)) for line in done(one, number, place)]
        for topic in topics:
            unread += self.fill(topic, 2)
        errors.append(self.read(place, topics, given))
        batch = self.newest if state == "unwritten" else [[]]
        there, gone = (batch, []) if what.keeps else (batch[:-1], batch[-1])
        unread += [number for numbers in there for number in numbers]
        told = {"remedy": str(advice.advice), "ran": ran, "errors": errors, **advice.takes}
        text = json.dumps({"code": advice.code, **told}).replace(str(place), "/place")
        for number, topic in enumerate(self.topics):
            text = text.replace(topic, f"topic-{number}")
        found = {"before": before, "of the batch": gone, "unread": unread, "times": self.times(place)}
        return {**json.loads(text), **found}


def _with(call: Call, ends: Mapping[str, Any]) -> Call:
    """A command that moves the query, with the ends of some topics."""
    to = dict(call.options).get("to")
    return call if to is None else call.but(to=json.dumps(json.loads(str(to)) | ends))


def _none(_: FromKafka) -> list[Any]:
    return []


@dataclass(frozen=True)
class Incident:
    """What happens to topics, and what somebody does once they have read the advice: numbers that are then to read."""

    happen: Callable[[FromKafka], list[int]]
    then: Callable[[FromKafka], list[int]] = _none
    left_out: Callable[[FromKafka], list[str]] = _none  # topics that are no longer subscribed to
    topics: int = 1
    keeps: bool = False  # what was read is still there; otherwise it is gone from the last topic
    of: int = 0  # the advice that is obeyed, where there are two


def _expired(query: FromKafka) -> list[int]:
    numbers = query.fill(query.topics[0], 10)
    query.broker.expire(query.topics[0], 25)
    return numbers[10:]


def _deleted(query: FromKafka) -> list[int]:
    query.broker.delete(query.topics[-1])
    return []


def _created(rows: int) -> Callable[[FromKafka], list[int]]:
    def then(query: FromKafka) -> list[int]:
        query.broker.create(query.topics[-1])
        return query.fill(query.topics[-1], rows)

    return then


def _created_again(rows: int) -> Callable[[FromKafka], list[int]]:
    return lambda query: _deleted(query) + _created(rows)(query)


def _created_again_and_started(query: FromKafka) -> list[int]:
    """Somebody tried a start: it failed, and left its offsets behind."""
    numbers = _created_again(4)(query)
    assert "offset was changed from 20 to 4" in query.read(query.place, query.topics)
    assert (query.place / "checkpoint" / "offsets" / str(BATCHES - 1)).exists()
    return numbers


def _partition_came_late(query: FromKafka) -> list[int]:
    query.broker.add_partition(query.topics[0], 3)
    time.sleep(0.5)
    numbers = query.fill(query.topics[0], 5, 3)
    query.broker.expire(query.topics[0], 3, range(2, 3))
    return [number for at, number in enumerate(numbers) if at % 3 < 2 or at // 3 >= 3]


KAFKA = {
    "expired": Incident(_expired),
    "created again with 4": Incident(_created_again(4)),
    "created again with 30": Incident(_created_again(30)),
    "created again with 4, and started": Incident(_created_again_and_started),
    "partition came late": Incident(_partition_came_late, keeps=True),
    "deleted, then created again": Incident(_deleted, _created(8)),
    "one of two deleted, then created again": Incident(_deleted, _created(8), topics=2),
    "one of two deleted, and given up": Incident(_deleted, left_out=lambda query: query.topics[1:], topics=2, of=1),
}
