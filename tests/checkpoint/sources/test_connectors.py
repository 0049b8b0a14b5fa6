"""Connectors that are known by the shape of their offsets, and what only looks like them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.checkpoint.sources.connectors import BY_SHAPE
from ckpt.checkpoint.sources.kind import Advance, SourceType, Unit
from ckpt.checkpoint.sources.registry import advance, decode, kind_of, source_type
from ckpt.checkpoint.sources.starts import StartFacts, StartingPoint
from tests.conftest import CopyOf
from tests.support.auto_loader import CLOUD_FILES, build

SHARD = {"shard": {"stream": "s", "shardId": "shardId-000000000000"}, "firstSeqNum": "1", "lastSeqNum": "2"}
KINESIS = {  # as ``KinesisV2SourceOffset`` of AWS writes it
    "metadata": {"batchId": "3", "streamName": "s"},
    "shardId-000000000000": {
        "iteratorType": "AFTER_SEQUENCE_NUMBER",
        "iteratorPosition": "495",
        "subSequenceNumber": "0",
        "isLast": "true",
    },
}
SHAPES: dict[SourceType, list[Any]] = {
    SourceType.CLOUD_FILES: [
        CLOUD_FILES,
        {"seqNum": 3, "sourceVersion": 3, "lastInputPath": "abfss://c@a.dfs.core.windows.net/in"},
    ],
    SourceType.PUB_SUB: [{"sourceVersion": 1, "seqNum": 7, "fetchEpoch": 2}],
    SourceType.KINESIS: [
        [SHARD],
        {
            "metadata": {"batchId": "1", "streamName": "s"},
            "shardId-000000000000": {"iteratorType": "AFTER_SEQUENCE_NUMBER", "iteratorPosition": "495"},
        },
        KINESIS,
    ],
    SourceType.PULSAR: [{"persistent://public/default/t": [8, 11, 16, 5, 48, 0]}, {"t": [8, -42, 1, 16, 0]}],
    SourceType.PAIMON: [
        {"snapshotId": 3, "index": 0, "scanSnapshot": False},
        {"snapshotId": 3, "index": -1, "scanSnapshot": True, "totalSplits": 2},
    ],
    SourceType.HUDI: [{"offsetCommitTime": "20261126120000123"}, {"commitTime": "000"}],
    SourceType.COSMOS: [
        {"id": "spark.cosmos.changeFeed.offset.v1", "state": "eyJ"},
        {"id": "com.azure.cosmos.spark.changeFeed.offset.v1", "state": "eyJ", "partitions": []},
    ],
    SourceType.MONGODB: [
        {"version": 1, "offset": {"_data": "82"}},
        {"version": 1, "offset": {"$timestamp": {"t": 1, "i": 0}}},
        {"_data": "82"},
    ],
    SourceType.SEQUENTIAL_UNION: [
        {"activeSourceName": "b", "allSourceNames": ["a", "b"], "completedSourceNames": ["a"]},
    ],
}


@pytest.mark.parametrize(("kind", "offset"), [(kind, offset) for kind, offsets in SHAPES.items() for offset in offsets])
def test_named_by_its_shape(kind: SourceType, offset: Any) -> None:
    read = decode(offset)
    assert source_type(read) == kind
    start = kind_of(read).start_after(read, StartFacts())
    assert start.begin is StartingPoint.REFUSED
    assert "ckpt has not tried this" in (start.refused or "")
    json.dumps(kind_of(read).to_json(read))
    assert kind_of(read).to_text(read)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ([8, 11, 16, 5, 48, 0], '"11:5:-1"'),
        ([8, -42, 1, 16, 0, 24, 2, 32, 7], '"214:0:2:7"'),
        ([8, *[-1] * 9, 1, 16, *[-1] * 9, 1], '"-1:-1:-1"'),  # MessageId.earliest
        ([8, 11, 16, 5, 82, 1, 116], "[8, 11, 16, 5, 82, 1, 116]"),  # with the name of its topic
        ([8, 11, 16, 5, 8], "[8, 11, 16, 5, 8]"),
        ([8, *[-1] * 12, 16, 0], "[8, -1, "),
    ],
)
def test_an_id_of_pulsar_is_shown_as_pulsar_does(message: Any, shown: str) -> None:
    read = decode({"t": message})
    assert kind_of(read).to_text(read).startswith(f'{{"t": {shown}')


def test_every_kind_has_a_shape() -> None:
    assert SHAPES.keys() == BY_SHAPE


@pytest.mark.parametrize(
    "offset",
    [
        {"seqNum": 3},
        {"seqNum": True, "sourceVersion": 1},
        {"seqNum": 3, "sourceVersion": 1, "more": 1},
        {"snapshotId": 3, "index": 0},
        {"snapshotId": 3, "index": 0, "scanSnapshot": 1},
        {"commitTime": 7},
        {"commitTime": "yesterday"},
        {"commitTime": "7", "more": 1},
        {"t": []},
        {"t": [8, 300, 16, 1]},
        {"t": [8, 1, 16]},
        {"t": [5, 6, 7, 16, 8]},
        {"t": ["8"]},
        [],
        [{"shard": "s"}],
        {"metadata": {"streamName": "s"}, "shardId-0": {"iteratorType": "LATEST"}},
        {"metadata": {"streamName": "s"}, "shardId-0": {**KINESIS["shardId-000000000000"], "more": "1"}},
        {"metadata": {}},
        {"id": "of another", "state": "eyJ"},
        {"id": "spark.cosmos.changeFeed.offset.v1", "state": 1},
        {"version": 1, "offset": 3},
        {"activeSourceName": "b"},
        {"1": 5, "2": 8},
    ],
)
def test_what_only_looks_like_it_is_unknown(offset: Any) -> None:
    assert source_type(decode(offset)) == SourceType.UNKNOWN


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({**CLOUD_FILES, "seqNum": 9}, {**CLOUD_FILES, "seqNum": 12}, Advance(3, Unit.STEPS)),
        (
            {"snapshotId": 3, "index": 1, "scanSnapshot": False},
            {"snapshotId": 3, "index": 4, "scanSnapshot": False},
            Advance(3, Unit.FILES),
        ),
        (
            {"snapshotId": 3, "index": 9, "scanSnapshot": False},
            {"snapshotId": 5, "index": 0, "scanSnapshot": False},
            Advance(2, Unit.VERSIONS),
        ),
        ({"commitTime": "1"}, {"commitTime": "2"}, None),
        (CLOUD_FILES, {"commitTime": "2"}, None),
    ],
)
def test_counted_as_far_as_the_offsets_tell(old: Any, new: Any, told: Advance | None) -> None:
    assert advance(decode(old), decode(new)) == told


def test_one_that_goes_back_says_so() -> None:
    went = advance(decode({**CLOUD_FILES, "seqNum": 12}), decode({**CLOUD_FILES, "seqNum": 9}))
    assert went is not None
    assert went.went_back == ("went from 12 to 9",)


@pytest.mark.parametrize(
    ("ids", "commits", "code", "call"),
    [
        ((0, 1, 2), 2, None, None),
        ((0, 1, 1), 2, None, None),
        ((0, 1, 0), 2, "CKPT401", "repair"),
        ((0, 1, -1), 2, "CKPT401", "repair"),
        ((0, 1, -1), 3, "CKPT401", "rewind"),
    ],
)
def test_kinesis_stops_at_a_batch_id_that_falls(
    ids: tuple[int, ...], commits: int, code: str | None, call: str | None, copy_of: CopyOf
) -> None:
    checkpoint = copy_of("stateless-4.2")
    metadata = (checkpoint / "offsets" / "0").read_text().split("\n")[1]
    for log in ("offsets", "commits"):
        shutil.rmtree(checkpoint / log)
        (checkpoint / log).mkdir()
    for batch, number in enumerate(ids):
        offset: dict[str, Any] = {"metadata": {"batchId": str(number), "streamName": "s"}}
        if number >= 0:
            offset["shardId-0"] = {**KINESIS["shardId-000000000000"], "iteratorPosition": str(495 + batch)}
        (checkpoint / "offsets" / str(batch)).write_text("\n".join(["v1", metadata, json.dumps(offset)]))
        if batch < commits:
            (checkpoint / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    document: Any = ckpt.inspect(str(checkpoint)).to_dict()
    of_offsets = [finding for finding in document["findings"] if finding["code"] in ("CKPT401", "CKPT106", "CKPT126")]
    assert [finding["code"] for finding in of_offsets] == ([code] if code else [])
    assert [source["type"] for source in document["sources"]] == ["kinesis"]
    if code:
        assert f"metadata.batchId went from 1 to {ids[-1]}" in of_offsets[0]["detail"]
        assert call in [step["command"][1] for step in document["next"] if step["command"]]
        assert ckpt.preflight(str(checkpoint)).to_dict()["go"] is (commits == 3)


def test_a_number_for_each_partition_is_likened_to_pub_sub_lite() -> None:
    read = decode({"1": 5, "2": 8, "3": 10})
    assert "Pub/Sub Lite" in (kind_of(read).start_after(read, StartFacts()).refused or "")


def test_handoff_says_what_a_file_source_needs(tmp_path: Path) -> None:
    checkpoint = build(tmp_path / "checkpoint")
    plan = ckpt.handoff(str(checkpoint))
    assert "cloud_file_state" in str(plan)
    assert "Spark's file source needs that list" in " ".join(str(plan).split())


@pytest.mark.spark
def test_spark_writes_a_sequential_union_so(spark: Any) -> None:
    """No query of 4.2 writes such an offset; its class does."""
    jvm = spark._jvm
    scala = jvm.scala.jdk.javaapi.CollectionConverters
    names = scala.asScala(jvm.java.util.List.of("a", "b")).toSeq()
    done = scala.asScala(jvm.java.util.Set.of("a")).toSet()
    union = jvm.org.apache.spark.sql.execution.streaming.checkpointing.SequentialUnionOffset
    written = json.loads(union.apply("b", names, done).json())
    assert written == SHAPES[SourceType.SEQUENTIAL_UNION][0]
    assert source_type(decode(written)) == SourceType.SEQUENTIAL_UNION
