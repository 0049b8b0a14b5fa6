"""Two Kafka clusters with a topic and its copy: what a mirror does to offsets, on real brokers."""

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from ckpt.live.kafka.records import RecordReader
from tests.support.services.maven import jars
from tests.support.services.process import running

PARTITIONS = 2
_MIRROR = """clusters=old,new
old.bootstrap.servers={old}
new.bootstrap.servers={new}
old->new.enabled=true
old->new.topics={topic}
old->new.offset.lag.max=10
offset.flush.interval.ms=1000
new->old.enabled=false
replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset-syncs.topic.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
config.storage.replication.factor=1
offset.storage.partitions=1
status.storage.partitions=1
emit.heartbeats.enabled=false
sync.topic.acls.enabled=false
refresh.topics.interval.seconds=3
"""
BEGAN_MS = int(time.time() * 1000) - 3_600_000
Sent = tuple[str, int]  # a value, and its partition


@dataclass
class Clusters:
    """An old and a new cluster; the topic has the name of the case, and may have another one on the new cluster."""

    old: str
    new: str
    name: str
    copy: str = ""
    sent: list[Sent] = field(default_factory=list)  # that a query of the old cluster reads, once each
    partitions: int = PARTITIONS  # of the copy
    config: dict[str, str] = field(default_factory=dict)  # of the copy
    used: tuple[int, ...] = tuple(range(PARTITIONS))  # partitions that get records
    equal: bool = False  # records that nothing tells apart
    at_once: bool = False  # all have one timestamp

    def __post_init__(self) -> None:
        self.name = f"{self.name.replace(' ', '-')}-{uuid4().hex[:8]}"
        self.copy = self.copy or self.name

    def create(self, servers: str, topic: str, config: Mapping[str, str] = MappingProxyType({})) -> None:
        """Make a topic; settings are those of the topic, if any."""
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": servers})
        partitions = self.partitions if servers == self.new else PARTITIONS
        for future in admin.create_topics([NewTopic(topic, partitions, config={**config})]).values():
            future.result(30)
        time.sleep(0.5)

    def delete(self, servers: str, topic: str) -> None:
        """Remove a topic, so that it can be made again."""
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": servers})
        for future in admin.delete_topics([topic]).values():
            future.result(30)
        time.sleep(1)

    def expire(self, offset: int) -> None:
        """Remove the records of the old topic below an offset, as retention does."""
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.old})
        parts = [TopicPartition(self.name, partition, offset) for partition in self.used]
        for future in admin.delete_records(parts).values():
            future.result(30)

    def send(
        self,
        values: Iterable[int | str],
        servers: str = "",
        topic: str = "",
        *,
        aborted: bool = False,
        transaction: bool = False,
        key: str = "{}",
    ) -> None:
        """Send values to both partitions, with a timestamp each, and keep them in ``sent``."""
        from confluent_kafka import Producer

        own = {"transactional.id": f"tests-{uuid4()}"} if transaction or aborted else {}
        producer = Producer({"bootstrap.servers": servers or self.old, **own})
        if own:
            producer.init_transactions(30)
            producer.begin_transaction()
        for number in values:
            for partition in self.used:
                value = f"{partition}-{'equal' if self.equal else number}"
                producer.produce(
                    topic or self.name,
                    key="equal" if self.equal else key.format(number),
                    value=value,
                    partition=partition,
                    timestamp=BEGAN_MS + (0 if self.equal or self.at_once else 1000 * int(number)),
                    headers=[("trace", b"" if self.equal else str(number).encode())],
                )
                if not aborted and not servers:
                    self.sent.append((value, partition))
        producer.flush()
        if own:
            (producer.abort_transaction if aborted else producer.commit_transaction)(30)

    def mirror(
        self,
        *,
        start: int = 0,
        end: int | None = None,
        isolation: str = "read_committed",
        without: Iterable[int] = (),
    ) -> None:
        """Copy records from an offset on, up to another one, in their order."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.new})
        for partition in self.used:
            for message in self.read(self.old, self.name, partition, start, isolation):
                if (end is None or message.offset() < end) and message.offset() not in {*without}:
                    producer.produce(
                        self.copy,
                        key=message.key(),
                        value=message.value(),
                        partition=partition,
                        timestamp=message.timestamp()[1],
                        headers=message.headers(),
                    )
            producer.flush()

    def run_mirror_maker(self, folder: Path) -> None:
        """Copy all there is with Kafka's own MirrorMaker, which also writes its topic of offsets."""
        file = folder / "mirror.properties"
        file.write_text(_MIRROR.format(old=self.old, new=self.new, topic=self.name))
        java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars('kafka-mirror')}/*"]
        wanted = [len(self.read(self.old, self.name, part)) for part in self.used]

        def done() -> bool:
            synced = {part for part, *_ in RecordReader({"kafka.bootstrap.servers": self.old}).read_syncs()}
            copied = [len(self.read(self.new, self.copy, part)) for part in self.used]
            return copied == wanted and {(self.name, part) for part in self.used} <= synced

        with running([*java, "org.apache.kafka.connect.mirror.MirrorMaker", file], folder, done):
            time.sleep(3)  # until it has written the newest offsets

    def read(self, servers: str, topic: str, partition: int, start: int = 0, isolation: str = "read_committed") -> Any:
        """Read a partition to its end."""
        from confluent_kafka import Consumer, TopicPartition

        own = {"group.id": "tests", "enable.partition.eof": True, "auto.offset.reset": "earliest"}
        with closing(Consumer({"bootstrap.servers": servers, "isolation.level": isolation, **own})) as consumer:
            consumer.assign([TopicPartition(topic, partition, start)])
            messages = []
            while (message := consumer.poll(30)) is not None and message.error() is None:
                messages.append(message)
            return messages
