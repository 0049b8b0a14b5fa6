"""Records as a real broker gives them: each read is whole, whatever was read before, with an open transaction too."""

from uuid import uuid4

import pytest

from ckpt.live.kafka.records import RUN, RecordReader
from tests.changes.offsets.clusters import Clusters

pytestmark = pytest.mark.service


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_what_is_around_each_offset_is_read(isolation: str, kafka: str) -> None:
    from confluent_kafka import Producer

    clusters = Clusters(kafka, kafka, f"reading {isolation}")
    clusters.create(kafka, clusters.name)
    for number in range(0, 30, 6):
        clusters.send(range(number, number + 4), transaction=True)
        clusters.send(range(number + 4, number + 6), aborted=True)
    opened = Producer({"bootstrap.servers": kafka, "transactional.id": f"open-{uuid4()}"})
    opened.init_transactions(30)
    opened.begin_transaction()
    opened.produce(clusters.name, value="open", partition=0)
    opened.flush()
    reader = RecordReader({"kafka.bootstrap.servers": kafka, "kafka.isolation.level": isolation})
    part = (clusters.name, 0)
    there = [message.offset() for message in clusters.read(kafka, clusters.name, 0, isolation=isolation)]
    assert len(there) == (20 if isolation == "read_committed" else 31)
    ends = [*range(0, there[-1], 7), there[-1], there[-1] + 1]
    for end in ends:
        before, after = reader.read_around(part, end, 0)
        assert [record.offset for record in before] == [offset for offset in there if offset < end][-RUN:]
        assert [record.offset for record in after] == [offset for offset in there if offset >= end][:RUN]
    assert not reader.is_compacted(clusters.name)
    opened.abort_transaction(30)
