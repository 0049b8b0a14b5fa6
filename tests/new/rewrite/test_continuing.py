"""A real query continues on a rewritten or imported checkpoint as on the old one: the same rows, and equal state."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

import ckpt
from tests.live.sink.stateful import BATCHES, NUMBERS, Numbers
from tests.new.rewrite import continuing
from tests.new.rewrite.continuing import Case, found, state
from tests.new.rewrite.file_batches import COMPACTED, SCATTERED, FileBatches, appending_processor
from tests.support.spark.live import EVERY_CASE
from tests.support.spark.pandas_state import collecting_processor
from tests.support.spark.queries import STATE_STORES, drain, own_session

pytestmark = pytest.mark.spark
_STATE_STORE = "spark.sql.streaming.stateStore."
CODEC, ENCODING = f"{_STATE_STORE}compression.codec", f"{_STATE_STORE}encodingFormat"

LIVE = (
    Case("session-window-changelog-4.2", "hdfs", 3),
    Case("join-v3-changelog-4.2", None, 1, 2),
    Case("aggregation-hdfs-4.2", "rocksdb", 3, shape=ckpt.types.Shape.RAW),
    Case("tws-event-time-changelog-4.2", shape=ckpt.types.Shape.FLAT),
)
"""Both directions, both formats and both shapes, each once; with `CKPT_TEST_ALL=1` all."""
SAMPLES = (
    "aggregation-hdfs-4.2",
    "aggregation-format2-4.2",
    "aggregation-rocksdb-4.2",
    "dedup-aggregation-hdfs-4.2",
    "dedup-hdfs-4.0",
    "join-changelog-4.2",
    "join-v3-changelog-4.2",
    "limit-hdfs-4.2",
    "pandas-with-state-changelog-4.2",
    "session-window-changelog-4.2",
    "tws-event-time-changelog-4.2",
    "windowed-aggregation-hdfs-4.2",
)
EVERY = [
    Case(sample, *form)
    for sample in SAMPLES
    for form in (
        ("rocksdb", None),
        ("hdfs", None),
        (None, 3),
        ("rocksdb", 5, 1),
        ("rocksdb", 1, 2),
        (None, None, None, ckpt.types.Shape.FLAT),
        (None, 3, None, ckpt.types.Shape.RAW),
    )
    if form[-1] is not ckpt.types.Shape.RAW
    or not sample.startswith(("dedup", "limit"))  # has void, which no file holds
]


@pytest.mark.parametrize("case", EVERY if EVERY_CASE else LIVE, ids=lambda case: case.name)
def test_it_continues_as_on_the_old_one(case: Case, spark: Any, tmp_path: Path) -> None:
    told = found(spark, case, tmp_path)
    if "refused" in told:
        pytest.skip(told["refused"])
    assert any(told["old"]["state"].values())
    assert told["new"] == told["old"]


LISTS = list(product(("unsaferow", "avro"), (False, True), (COMPACTED, SCATTERED)))


@pytest.mark.parametrize(
    ("encoding", "imported", "files"),
    LISTS if EVERY_CASE else [("avro", True, COMPACTED), ("unsaferow", False, SCATTERED)],
)
def test_lists_are_appended_to(
    encoding: str, imported: bool, files: dict[str, str], spark: Any, tmp_path: Path
) -> None:
    """In other partitions, where RocksDB compacts after each batch or never; what comes out is all of each list."""
    batches, keys, per_key = FileBatches(spark, tmp_path, {ENCODING: encoding, **files}), 5, 3
    for number in range(2):
        batches.add(number, keys * per_key, keys)
    batches.start(tmp_path / "old", appending_processor())
    assert f'"{encoding}"' in (tmp_path / "old" / "offsets" / "0").read_text()
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    if imported:
        made = ckpt.write_state(continuing.frames(old, "raw"), new, like=old, partitions=3)
    else:
        made = ckpt.rewrite(old, new, partitions=3)
    assert made.written
    for number in range(2, 4):
        batches.add(number, keys * per_key, keys)
    told = [batches.start(tmp_path / name, appending_processor()) for name in ("old", "new")]
    assert told[1] == told[0]
    assert max(len(values.split()) for rows in told[0].values() for _, values in rows) == 4 * per_key
    assert state(tmp_path / "new") == state(tmp_path / "old")


@pytest.mark.parametrize("sink", ["parquet", "delta"])
def test_a_sink_has_every_row_once(sink: str, spark: Any, tmp_path: Path) -> None:
    """The query is started on the new checkpoint as the page says: no row twice, and none dropped by the sink.

    A key that was left out is one that the query has never seen.
    """
    query, place = Numbers(spark, tmp_path, sink), tmp_path / "query"
    for batch in range(BATCHES):
        query.add(batch)
    assert query.start(place) == ""
    (place / "checkpoint").rename(tmp_path / "old")

    forgotten = {"id": "3"} if sink == "delta" else {"id": "77"}
    made = ckpt.rewrite(
        str(tmp_path / "old"), str(place / "checkpoint"), provider="rocksdb", partitions=3, drop_keys=[forgotten]
    )
    assert made.written
    query.add(0)
    query.add(BATCHES)

    assert query.start(place) == ""
    again = {3: 2} if sink == "delta" else {}
    assert query.times(place) == dict.fromkeys(range(NUMBERS), 1) | again


@pytest.mark.parametrize(
    ("codec", "store", "provider", "imported"),
    [("lzf", "hdfs", "rocksdb", False), ("snappy", "changelog", "hdfs", True)],
)
def test_state_of_another_codec_keeps_it(
    codec: str, store: str, provider: str, imported: bool, spark: Any, tmp_path: Path
) -> None:
    """Whatever the session says: a start takes the codec that the offsets record."""
    query = Numbers(spark, tmp_path, "parquet", {**STATE_STORES[store], CODEC: codec})
    place, old = tmp_path / "query", str(tmp_path / "old")
    for batch in range(BATCHES):
        query.add(batch)
    assert query.start(place) == ""
    (place / "checkpoint").rename(old)
    if imported:
        rows = continuing.frames(old)
        made = ckpt.write_state(rows, str(place / "checkpoint"), like=old, provider=provider)
    else:
        made = ckpt.rewrite(old, str(place / "checkpoint"), provider=provider, partitions=3)
    assert CODEC not in made.changed
    query.add(0)
    query.add(BATCHES)
    assert query.start(place) == ""
    assert query.times(place) == dict.fromkeys(range(NUMBERS), 1)
    assert ckpt.state_verify(str(place / "checkpoint")).damages == ()


def test_keys_that_a_condition_left_out_were_never_seen(spark: Any, tmp_path: Path) -> None:
    """Those without a purchase since day 5; a query that never had their rows is the judge."""
    session = own_session(spark, partitions=2)

    def run(name: str) -> dict[str, tuple[int, int]]:
        rows = session.readStream.schema("user STRING, spent LONG, day LONG").json(str(tmp_path / "in" / name))
        totals = rows.groupBy("user").agg({"spent": "sum", "day": "max"}).toDF("user", "total", "last")
        batches = drain(totals, tmp_path / name, "update").values()
        return {row.user: row[1:] for batch in batches for row in batch}

    def add(name: str, part: str, users: range) -> None:
        (tmp_path / "in" / name).mkdir(parents=True, exist_ok=True)
        rows = (f'{{"user": "u{user}", "spent": {user + 1}, "day": {user}}}' for user in users)
        (tmp_path / "in" / name / part).write_text("\n".join(rows))

    add("new", "first.json", range(10))
    add("never", "first.json", range(5, 10))
    for name in ("new", "never"):
        run(name)
    (tmp_path / "new").rename(tmp_path / "old")
    made = ckpt.rewrite(
        str(tmp_path / "old"), str(tmp_path / "new"), provider="rocksdb", partitions=3, where="value_max >= 5"
    )
    assert [(one.rows, one.dropped) for one in made.units] == [(5, 5)]
    told = {}
    for name in ("new", "never"):
        add(name, "second.json", range(3, 12))
        told[name] = run(name), state(tmp_path / name)
    assert told["new"] == told["never"]
    assert told["new"][0]["u4"] == (5, 4), "and not 10"
    assert told["new"][0]["u5"] == (12, 5)


@pytest.mark.parametrize("imported", [False, True] if EVERY_CASE else [True])
def test_avro_of_two_schemas_continues(imported: bool, spark: Any, tmp_path: Path) -> None:
    """Rows of an earlier schema are read as Spark reads them, and the query continues on the rewritten checkpoint."""
    batches = FileBatches(spark, tmp_path, {**STATE_STORES["changelog"], ENCODING: "avro"})
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    for number, keys in enumerate((6, 4)):
        batches.add(number, keys, keys)
    batches.start(tmp_path / "old", collecting_processor(0))
    batches.add(2, 2, 2)
    batches.start(tmp_path / "old", collecting_processor(1))
    for unit in ckpt.state_units(old):
        spark.streams.active  # noqa: B018  (without it a reader finds no coordinator)
        reader = spark.read.format("statestore").option("stateVarName", unit.variable)
        rows = [row.asDict(recursive=True) for row in reader.load(old).collect()]
        table = ckpt.read_state_arrow(old, shape="raw", variable=unit.variable)
        assert sorted(map(str, table.to_pylist())) == sorted(map(str, rows))
        assert any(row.get("value", row.get("list_element"))["x"] is None for row in rows)
    if imported:
        made = ckpt.write_state(continuing.frames(old, "flat"), new, like=old, partitions=3)
    else:
        made = ckpt.rewrite(old, new, partitions=3)
    assert made.written
    batches.add(3, 5, 5)
    batches.add(4, 6, 6)
    told = [batches.start(tmp_path / name, collecting_processor(1)) for name in ("old", "new")]
    assert told[1] == told[0]
    assert "None)" in str(told[0])
    assert state(tmp_path / "new") == state(tmp_path / "old")
