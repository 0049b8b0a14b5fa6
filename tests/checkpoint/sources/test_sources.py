"""Source offsets: told apart by shape, strictly, and compared."""

import json

import pytest

from ckpt.checkpoint.sources import registry
from ckpt.checkpoint.sources.delta import DeltaOffset
from ckpt.checkpoint.sources.files import FileOffset
from ckpt.checkpoint.sources.iceberg import IcebergOffset
from ckpt.checkpoint.sources.kafka import KafkaOffset
from ckpt.checkpoint.sources.kind import Advance, SourceType, Unit
from ckpt.checkpoint.sources.rate_micro_batch import RateMicroBatchOffset
from ckpt.checkpoint.sources.registry import advances, decode, source_type, source_views
from ckpt.checkpoint.sources.unknown import NumberOffset, UnknownOffset
from ckpt.formats.offsets import parse_offset_log
from ckpt.model import Json, OffsetLog


def advance(old: Json, new: Json) -> Advance | None:
    return registry.advance(decode(old), decode(new))


def kafka(**topics: Json) -> Json:
    return dict(topics)


def delta(version: int, index: int = -1, *, table: str = "t", initial: bool = False, source_version: int = 1) -> Json:
    return {
        "sourceVersion": source_version,
        "reservoirId": table,
        "reservoirVersion": version,
        "index": index,
        "isStartingVersion": initial,
    }


def iceberg(snapshot: int, position: int) -> str:
    return json.dumps({"version": 1, "snapshot_id": snapshot, "position": position, "scan_all_files": False})


def log(*lines: str, version: int = 1) -> OffsetLog:
    found = parse_offset_log("offsets/1", "\n".join([f"v{version}", '{"batchWatermarkMs":0}', *lines]).encode())
    assert isinstance(found, OffsetLog)
    return found


@pytest.mark.parametrize(
    ("text", "offset", "kind"),
    [
        ('{"b":{"1":7,"0":5},"a":{"0":0}}', KafkaOffset({("a", 0): 0, ("b", 0): 5, ("b", 1): 7}), SourceType.KAFKA),
        ('{"logOffset":4}', FileOffset(4), SourceType.FILE),
        ('{"logOffset":4,"more":1}', FileOffset(4), SourceType.FILE),
        ('{"offset":80,"timestamp":8000}', RateMicroBatchOffset(80, 8000), SourceType.RATE_MICRO_BATCH),
        (json.dumps(delta(5)), DeltaOffset("t", 5, -1, False), SourceType.DELTA),
        (json.dumps(delta(5, 2, initial=True, source_version=3)), DeltaOffset("t", 5, 2, True), SourceType.DELTA),
        (iceberg(7, 3), IcebergOffset(7, 3, False), SourceType.ICEBERG),
        (iceberg(-1, -1), IcebergOffset(None, -1, False), SourceType.ICEBERG),
        ("17", NumberOffset(17, False), SourceType.UNKNOWN),
    ],
)
def test_known_shapes(text, offset, kind):
    found = decode(json.loads(text))
    assert found == offset
    assert source_type(found) is kind


@pytest.mark.parametrize(
    "text",
    [
        "null", "true", '"5"', "1.5", "[]", "[1,2]", "{}",
        '{"logOffset":"4"}', '{"logOffset":true}',
        '{"offset":80}', '{"offset":80,"timestamp":null}', '{"offset":80,"timestamp":1,"x":2}',
        '{"orders":{}}', '{"orders":{"0":"5"}}', '{"orders":{"x":5}}', '{"orders":{"00":5}}', '{"orders":{"-1":5}}',
        '{"orders":{"0":-2}}',
        '{"orders":[5]}', '{"orders":{"0":5},"other":5}', '{"":{"0":5}}', '{"orders":{"0":true}}',
        '{"orders":{"9999999999":5}}',
        '{"sourceVersion":2,"reservoirId":"t","reservoirVersion":5,"index":0,"isStartingVersion":false}',
        '{"sourceVersion":1,"reservoirId":"t","reservoirVersion":5,"index":0}',
        '{"sourceVersion":1,"reservoirId":7,"reservoirVersion":5,"index":0,"isStartingVersion":false}',
        '{"sourceVersion":true,"reservoirId":"t","reservoirVersion":5,"index":0,"isStartingVersion":false}',
        '{"0":{"value":20,"runTimeMs":1795254421995}}',
        '{"version":2,"snapshot_id":7,"position":0,"scan_all_files":false}',
        '{"version":1,"snapshot_id":"7","position":0,"scan_all_files":false}',
        '{"version":1,"snapshot_id":7,"position":0,"scan_all_files":0}',
    ],
)  # fmt: skip
def test_anything_else_is_unknown(text):
    offset = decode(json.loads(text))
    assert offset == (None if text == "null" else UnknownOffset(json.loads(text)))
    assert source_type(offset) is SourceType.UNKNOWN


def test_a_bare_number_is_a_rate_source_where_that_source_left_its_start():
    first, second = source_views(log("17", "18"), rate_sources=[1])
    assert (first.type, first.decoded) == (SourceType.UNKNOWN, {"number": 17})
    assert (second.type, second.decoded) == (SourceType.RATE, {"seconds": 18})


def test_delta_boundaries():
    def at_boundary(value: Json) -> bool:
        found = decode(value)
        assert isinstance(found, DeltaOffset)
        return found.at_boundary

    assert at_boundary(delta(5, -1))
    assert at_boundary(delta(5, -100, source_version=3))
    assert not at_boundary(delta(5, 0))
    assert not at_boundary(delta(5, -1, initial=True))
    assert not at_boundary(delta(5, -20, source_version=3))


def test_views_show_the_offset_as_it_stands():
    views = source_views(log('{"orders":{"1":295,"0":310}}', "-", '{"strange":[1]}', "nonsense"))
    assert [(v.index, v.name, v.type, v.offset) for v in views] == [
        (0, None, SourceType.KAFKA, {"orders": {"1": 295, "0": 310}}),
        (1, None, SourceType.UNKNOWN, None),
        (2, None, SourceType.UNKNOWN, {"strange": [1]}),
        (3, None, SourceType.UNKNOWN, None),
    ]
    assert views[0].decoded == {"topics": {"orders": {"0": 310, "1": 295}}, "partitions": 2}
    assert [view.decoded for view in views[1:]] == [{}, {}, {}]


def test_views_of_the_other_kinds():
    views = source_views(log('{"logOffset":4}', '{"offset":80,"timestamp":8000}', json.dumps(delta(5))))
    assert [view.decoded for view in views] == [
        {"log_offset": 4},
        {"rows": 80, "timestamp_ms": 8000},
        {"table_id": "t", "version": 5, "index": -1, "initial_snapshot": False, "at_boundary": True},
    ]


def test_sources_with_names_have_no_order_in_the_file():
    """Measured on 4.3.0: two batches of one query wrote the lines ``1:..`` and ``0:..`` in different orders."""
    before, after = (
        log("0:2", '1:{"offset":10,"timestamp":0}', version=2),
        log('1:{"offset":30,"timestamp":0}', "0:5", version=2),
    )
    assert [(v.index, v.name, v.offset) for v in source_views(after)] == [
        (0, "0", 5),
        (1, "1", {"offset": 30, "timestamp": 0}),
    ]
    assert advances(before, after) == (Advance(3, Unit.STEPS), Advance(20, Unit.ROWS))
    named = source_views(log("clicks:5", "orders:6", version=2))
    assert [(v.index, v.name) for v in named] == [(0, "clicks"), (1, "orders")]


def test_a_source_that_is_new_has_no_advance():
    assert advances(log("1"), log("2", "3")) == (Advance(1, Unit.STEPS), None)
    assert advances(log("a:1", version=2), log("b:2", "a:5", version=2)) == (None, Advance(4, Unit.STEPS))


def test_kafka_advances():
    old, new = kafka(a={"0": 5, "1": 7}), kafka(a={"0": 9, "1": 7, "2": 100})
    assert advance(old, new) == Advance(4, Unit.OFFSETS, new_partitions=1)
    assert advance(old, old) == Advance(0, Unit.OFFSETS)


def test_kafka_that_went_back():
    assert advance(kafka(a={"0": 500, "1": 7}), kafka(a={"0": 300, "1": 9})) == Advance(
        None, Unit.OFFSETS, ("a/0 went from 500 to 300",), recreated={"a": (0, 1)}
    )
    assert advance(kafka(a={"0": 5}, b={"3": 7}), kafka(a={"0": 6})) == Advance(
        None, Unit.OFFSETS, ("b/3 is gone, it was at 7",)
    )


def test_delta_advances():
    assert advance(delta(5), delta(8)) == Advance(3, Unit.VERSIONS)
    assert advance(delta(5, 3, initial=True), delta(6)) == Advance(1, Unit.VERSIONS)
    assert advance(delta(5, -1), delta(5, -100, source_version=3)) == Advance(0, Unit.VERSIONS)
    assert advance(delta(5, -100, source_version=3), delta(5, -20, source_version=3)) == Advance(0, Unit.VERSIONS)
    assert advance(delta(5), delta(9, table="u")) == Advance(None, Unit.VERSIONS, replaced=True)


def test_delta_that_went_back():
    back = advance(delta(5), delta(4, 9))
    assert back == Advance(None, Unit.VERSIONS, ("went from version 5 index -1 to 4 index 9",))
    again = advance(delta(5), delta(6, 0, initial=True))
    assert again == Advance(None, Unit.VERSIONS, ("reads the initial snapshot again",))


def test_iceberg_advances_inside_a_snapshot_only():
    places = [json.loads(iceberg(*place)) for place in ((7, 1), (7, 4), (5, 2))]
    assert advance(*places[:2]) == Advance(3, Unit.FILES)
    assert advance(places[1], places[0]) == Advance(None, Unit.FILES, ("went from 4 to 1",))
    assert advance(places[1], places[2]) == Advance(None, Unit.FILES)


def test_an_id_of_iceberg_is_shown_with_all_its_digits():
    (view,) = source_views(log(iceberg(8916756572067536200, 1)))
    assert view.decoded == {"snapshot_id": "8916756572067536200", "position": 1, "scan_all_files": False}


def test_other_advances():
    assert advance({"logOffset": 3}, {"logOffset": 5}) == Advance(2, Unit.ENTRIES)
    assert advance(3, 2) == Advance(None, Unit.STEPS, ("went from 3 to 2",))
    assert advance({"offset": 10, "timestamp": 5}, {"offset": 30, "timestamp": 0}) == Advance(20, Unit.ROWS)


@pytest.mark.parametrize(
    ("before", "after"), [(None, 5), (5, None), (5, {"logOffset": 5}), ({"logOffset": 5}, delta(5)), ([1], [2])]
)
def test_what_cannot_be_compared_is_not(before, after):
    assert advance(before, after) is None
