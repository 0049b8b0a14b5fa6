"""What Spark does at topics that something has happened to: the suite `kafka` of `python -m tests.record`.

What ckpt was told by the broker before the start stands beside
Spark's answer, so that the forecast can be compared without a broker.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ckpt import open_checkpoint
from ckpt.live.asking import ask_sources
from ckpt.live.records import KafkaNow, PartitionNow, TopicNow, Younger
from tests.live.kafka.cases import CASES, Broker, Case
from tests.record.answers import Document, OneFile
from tests.record.suite import Cases, a_broker
from tests.record.worker import Installed, Session
from tests.support.spark import topics


def ask(session: Session, broker: Broker, case: Case, folder: Path) -> tuple[KafkaNow, dict[str, Any]]:
    """What the broker tells ckpt, and then what Spark does; `folder` is then the checkpoint after that."""
    subscribe, checkpoint = case.make(broker, folder)
    job = case.job(subscribe, checkpoint, broker.servers)
    (source,) = ask_sources(open_checkpoint(str(checkpoint)), {0: job["options"]})
    assert isinstance(source.answer, KafkaNow)
    return source.answer, session.ask(job)


def to_json(now: KafkaNow, said: dict[str, Any]) -> dict[str, Any]:
    """As it is recorded: the topic is called "t"."""
    told = {
        "topics": {name: [topic.id, *topic.partitions] for name, topic in now.topics.items()},
        "partitions": [[*part, *dataclasses.astuple(there)] for part, there in sorted(now.partitions.items())],
        "subscribed": sorted(now.subscribed or ()),
    }
    error = said["error"] and said["error"].partition("\n=== Streaming Query")[0]
    if error:
        reason = max(error.find("Reason:"), error.rfind("Exception: "), 0)
        error = re.sub(r"spark-kafka-source-[\w-]+", "GROUP", error[reason:].partition("\n\tat ")[0])
    text = json.dumps({"now": told, "spark": {**said, "error": error}})
    return json.loads(re.sub(r"\bt[0-9a-f]{12}\b", "t", text))  # type: ignore[no-any-return]


def from_json(told: dict[str, Any], *, fail_on_data_loss: bool) -> KafkaNow:
    """The same read back."""
    return KafkaNow(
        {name: TopicNow(one[0], tuple(one[1:])) for name, one in told["topics"].items()},
        {
            (topic, number): PartitionNow(low, high, Younger(*younger) if younger else None)
            for topic, number, low, high, younger in told["partitions"]
        },
        frozenset(told["subscribed"]),
        fail_on_data_loss,
    )


class Topics(Cases[Case]):
    """Starts at topics of one broker."""

    answers = OneFile(Path(__file__).with_name("recorded.json"), partial(json.dumps, indent=1, sort_keys=True))
    role = "kafka"

    def cases(self, minor: str) -> Sequence[Case]:
        return CASES

    def ask(self, session: Session, case: Case, folder: Path) -> Document:
        return to_json(*ask(session, self._broker, case, folder))

    @contextmanager
    def settings(self, spark: Installed, case: Case) -> Iterator[dict[str, str]]:
        with a_broker(spark.minor) as environment:
            self._broker = Broker(environment[topics.BROKER])
            yield environment


SUITE = Topics()
