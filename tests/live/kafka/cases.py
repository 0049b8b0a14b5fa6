"""What happened to a topic since a query stopped: real topics of a real broker, and the checkpoint of the query.

The topic had offsets 0 to 20 in each of two partitions. Batch 0 read 0 to 10, batch 1 read 10 to 20.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.live.running import finish, newest_offsets
from tests.support.files import write_files
from tests.support.spark.samples import FOLDER as SAMPLES

SILENT = logging.Logger("librdkafka of tests")
SILENT.addHandler(logging.NullHandler())
READ = 20  # offsets of each partition that batch 1 ends at


class Broker:
    """Makes topics what a case needs."""

    def __init__(self, servers: str) -> None:
        from confluent_kafka.admin import AdminClient

        self.servers = servers
        self._admin = AdminClient({"bootstrap.servers": servers}, logger=SILENT)

    def create(self, topic: str, partitions: int = 2) -> None:
        from confluent_kafka.admin import NewTopic

        self._all(self._admin.create_topics([NewTopic(topic, partitions, 1)]))

    def delete(self, topic: str) -> None:
        from confluent_kafka import TopicCollection

        self._all(self._admin.delete_topics([topic]))
        for _ in range(100):
            (described,) = self._admin.describe_topics(TopicCollection([topic])).values()
            if described.exception() is not None:
                return
            time.sleep(0.05)
        raise TimeoutError(topic)

    def add_partition(self, topic: str, total: int) -> None:
        from confluent_kafka.admin import NewPartitions

        self._all(self._admin.create_partitions([NewPartitions(topic, total)]))

    def fill(self, topic: str, rows: int, partitions: range = range(2), values: Iterator[int] | None = None) -> None:
        """Rows for each partition: their numbers, or the values given."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 0}, logger=SILENT)  # knows all partitions
        for row in range(rows):
            for partition in partitions:
                value = row if values is None else next(values)
                producer.produce(topic, str(value).encode(), partition=partition)
        assert producer.flush(30) == 0

    def expire(self, topic: str, before: int, partitions: range = range(2)) -> None:
        from confluent_kafka import TopicPartition

        self._all(self._admin.delete_records([TopicPartition(topic, one, before) for one in partitions]))

    @staticmethod
    def _all(futures: Any) -> None:
        for future in futures.values():
            future.result(30)


def recreated(rows: int, partitions: int = 2) -> Callable[[Broker, str], None]:
    def happen(broker: Broker, topic: str) -> None:
        broker.delete(topic)
        broker.create(topic, partitions)
        broker.fill(topic, rows, range(partitions))

    return happen


def expired(earliest: int, latest: int) -> Callable[[Broker, str], None]:
    def happen(broker: Broker, topic: str) -> None:
        broker.fill(topic, latest - READ)
        broker.expire(topic, earliest)

    return happen


def partition_added(rows: int, gone: int) -> Callable[[Broker, str], None]:
    def happen(broker: Broker, topic: str) -> None:
        broker.add_partition(topic, 3)
        time.sleep(0.5)
        broker.fill(topic, rows, range(3))
        if gone:
            broker.expire(topic, gone, range(2, 3))

    return happen


def another_topic(broker: Broker, topic: str) -> None:
    broker.fill(topic, 3)
    broker.create(f"{topic}-other")
    broker.fill(f"{topic}-other", 6)


@dataclass(frozen=True)
class Incident:
    """What happens to a topic, and the topic that the query subscribes to afterwards."""

    happen: Callable[[Broker, str], None]
    subscribe: str = "{topic}"


INCIDENTS = {
    "more-rows": Incident(lambda broker, topic: broker.fill(topic, 10)),
    "recreated-with-0": Incident(recreated(0)),
    "recreated-with-4": Incident(recreated(4)),
    "recreated-with-15": Incident(recreated(15)),
    "recreated-with-30": Incident(recreated(30)),
    "recreated-with-1-partition": Incident(recreated(40, 1)),
    "expired-25-of-30": Incident(expired(25, 30)),
    "expired-15-of-30": Incident(expired(15, 30)),
    "all-expired": Incident(expired(20, 20)),
    "partition-added": Incident(partition_added(5, 0)),
    "partition-added-late": Incident(partition_added(5, 3)),
    "deleted": Incident(lambda broker, topic: broker.delete(topic)),
    "another-topic": Incident(another_topic, "{topic}-other"),
}


@dataclass(frozen=True)
class Case:
    """An incident, whether batch 1 had been committed before it, and the option of the next start."""

    incident: str
    committed: bool
    fail_on_data_loss: bool = True

    @property
    def name(self) -> str:
        batch = "committed" if self.committed else "planned"
        return f"{self.incident}, {batch}" + ("" if self.fail_on_data_loss else ", failOnDataLoss=false")

    def make(self, broker: Broker, folder: Path) -> tuple[str, Path]:
        """The topic and the checkpoint after the incident, and what the query subscribes to then."""
        topic, incident = f"t{uuid.uuid4().hex[:12]}", INCIDENTS[self.incident]
        broker.create(topic)
        broker.fill(topic, READ)
        checkpoint = written(folder, topic, committed=self.committed)
        time.sleep(0.05)
        incident.happen(broker, topic)
        return incident.subscribe.format(topic=topic), checkpoint

    def job(self, subscribe: str, checkpoint: Path, servers: str) -> dict[str, Any]:
        options = {"subscribe": subscribe, "failOnDataLoss": str(self.fail_on_data_loss).lower()}
        return {"checkpoint": str(checkpoint), "options": {"kafka.bootstrap.servers": servers, **options}}


CASES = [
    Case(incident, committed, strict)
    for incident in INCIDENTS
    for committed in (True, False)
    for strict in (True, False)
]


def written(folder: Path, topic: str, *, committed: bool) -> Path:
    """A checkpoint as Spark writes it, of a query that stopped just now."""
    sample = SAMPLES / "kafka-4.2"
    now = int(time.time() * 1000)
    conf = json.loads((sample / "offsets" / "0").read_text().splitlines()[1])
    files = {"metadata": (sample / "metadata").read_text()}
    files["sources/0/0"] = f"\0v1\n{offsets(topic, 0)}"
    for batch in (0, 1):
        head = json.dumps({**conf, "batchTimestampMs": now - 1 + batch})
        files[f"offsets/{batch}"] = f"v1\n{head}\n{offsets(topic, 10 * (batch + 1))}"
        if batch == 0 or committed:
            files[f"commits/{batch}"] = (sample / "commits" / "0").read_text()
    return write_files(folder, files)


def offsets(topic: str, at: int) -> str:
    return json.dumps({topic: {"0": at, "1": at}}, separators=(",", ":"))


WAITS = {
    "kafkaConsumer.pollTimeoutMs": "3000",
    "kafka.default.api.timeout.ms": "6000",
    "kafka.request.timeout.ms": "5000",
}
"""How long Kafka's consumer waits for rows that do not come, instead of 120 s, and for a partition, instead of 60 s."""


def answer(spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
    """The batches that ran, Spark's error, and the newest offsets file that is there afterwards."""
    checkpoint, own = Path(job["checkpoint"]), spark.newSession()
    reader = own.readStream.format("kafka").options(**WAITS, **job["options"])
    rows = reader.option("startingOffsets", "earliest").load().select("topic", "partition", "offset")
    handle = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
    error, ran = finish(handle, handle.processAllAvailable)
    newest = newest_offsets(checkpoint)
    end = json.loads((checkpoint / "offsets" / str(newest)).read_text().splitlines()[2])
    batches = [[one["batchId"], one["numInputRows"]] for one in ran if one["numInputRows"] or one["batchId"] > 1]
    return {"error": error, "batches": batches, "newest": [newest, end]}
