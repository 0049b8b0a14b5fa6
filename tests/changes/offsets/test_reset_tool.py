"""Kafka's own tool sets a group to the same offsets as ``ckpt offsets set --to``, for one topic of a real broker."""

import json
import os
import re
import subprocess
import time
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from tests.conftest import Ckpt, CopyOf
from tests.support.services.maven import jars

pytestmark = pytest.mark.service

TOPIC, MINUTE = f"reset-tool-{uuid4()}", 60_000
TIMES = {0: [*range(15), 14, *range(15, 29)], 1: [*range(10)]}  # minutes after the first record; two have the same
READ = {0: 20, 1: 10}
EARLIEST = {0: 5, 1: 0}
ENDS = {0: 30, 1: 10}
BEGAN_MS = int(time.time() // 60) * MINUTE - 90 * MINUTE


@pytest.fixture(scope="module")
def topic(kafka: str) -> str:
    from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": kafka})
    for future in admin.create_topics([NewTopic(TOPIC, num_partitions=2)]).values():
        try:
            future.result()
        except KafkaException as error:  # a slow broker is asked twice, and the topic is there
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    producer = Producer({"bootstrap.servers": kafka})
    for partition, minutes in TIMES.items():
        for number, minute in enumerate(minutes):
            ms = BEGAN_MS + minute * MINUTE
            producer.produce(TOPIC, value=str(number), partition=partition, timestamp=ms)
    producer.flush()
    for future in admin.delete_records([TopicPartition(TOPIC, 0, EARLIEST[0])]).values():
        future.result()
    return kafka


def at(minute: float) -> datetime:
    return datetime.fromtimestamp((BEGAN_MS + minute * MINUTE) / 1000, UTC)


TOOL = {
    "earliest": (["--to-earliest"], "earliest"),
    "latest": (["--to-latest"], "latest"),
    "time": (["--to-datetime", at(14).strftime("%Y-%m-%dT%H:%M:%S.000")], at(14).strftime("%Y-%m-%dT%H:%M:%S")),
    "duration": (["--by-duration", "PT85M30S"], "-85m30s"),
}


@pytest.mark.parametrize("name", TOOL)
def test_kafkas_own_tool_says_the_same(name: str, topic: str, copy_of: CopyOf, ckpt: Ckpt) -> None:
    words, to = TOOL[name]
    checkpoint = copy_of("kafka-4.2")
    log = checkpoint / "offsets" / "5"
    ends = json.dumps({TOPIC: {str(partition): number for partition, number in READ.items()}})
    log.write_text(re.sub(r"\{\"orders.*", ends, log.read_text()))
    path = os.pathsep.join(f"{jars(each)}/*" for each in ("kafka-tools", "kafka-broker"))
    java = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", path]
    tool = [*java, "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--bootstrap-server", topic]
    group = ["--group", "reset", "--topic", TOPIC, "--reset-offsets", "--dry-run"]
    done = subprocess.run([*tool, *group, *words], capture_output=True, text=True, check=True, timeout=120)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("reset ")]
    theirs = {line[2]: int(line[3]) for line in lines}
    assert len(theirs) == len(ENDS), done
    asked = ("--source-options", f"0.kafka.bootstrap.servers={topic}")
    document = json.loads(ckpt("offsets", "set", checkpoint, "--to", to, *asked, "-o", "json").stdout)
    assert document["sources"][0]["to"] == {TOPIC: theirs}
    assert json.loads(next(word for word in document["next"][0]["command"] if word.startswith("{"))) == {TOPIC: theirs}
