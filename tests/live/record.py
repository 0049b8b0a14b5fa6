"""Record what Spark does at topics that something has happened to: `python -m tests.live.record --spark 4.2=PYTHON`.

To be run with the Python in which ckpt is installed. What ckpt was told by the broker before the start stands beside
Spark's answer, so that the forecast can be compared without a broker.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ckpt import ask_sources, open_checkpoint
from ckpt.live.records import KafkaNow, PartitionNow, TopicNow, Younger
from tests.live.cases import CASES, Broker, Case
from tests.restart.oracle.record import Worker
from tests.support.services.kafka import connector_jars, kafka_broker
from tests.support.spark import topics

if TYPE_CHECKING:
    from tests.support.spark.live import Here

RECORDED = Path(__file__).parent / "recorded.json"


def ask(session: Worker | Here, broker: Broker, case: Case, folder: Path) -> tuple[KafkaNow, dict[str, Any]]:
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


def record(minor: str, python: str) -> None:
    """Record the cases that are not recorded yet for one Spark version."""
    found = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    answers: dict[str, Any] = found.setdefault(minor, {"spark": "", "answers": {}})["answers"]
    todo = [case for case in CASES if case.name not in answers]
    jars = ",".join(map(str, connector_jars(minor)))
    with TemporaryDirectory() as scratch, TemporaryDirectory() as data, kafka_broker(Path(data)) as servers:
        settings = {topics.JARS: jars, topics.BROKER: servers}
        broker = Broker(servers)
        with Worker(python, Path(os.devnull), "tests.live.worker", settings) as session:
            if not session.spark.startswith(f"{minor}."):
                raise SystemExit(f"{python} has Spark {session.spark}, not {minor}")
            found[minor]["spark"] = session.spark
            for number, case in enumerate(todo):
                answers[case.name] = to_json(*ask(session, broker, case, Path(scratch, str(number))))
                RECORDED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", action="append", required=True, metavar="VERSION=PYTHON")
    for word in parser.parse_args().spark:
        record(*word.split("=", 1))
