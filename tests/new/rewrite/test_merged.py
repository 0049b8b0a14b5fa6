"""Several checkpoints that become one, and one that becomes several: what is written, and what is refused."""

import json
import shutil
from collections.abc import Callable
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.errors import CkptError, StorageError, UsageError
from ckpt.formats.offsets import format_offset_log
from ckpt.formats.schemas import DEFAULT_COLUMN_FAMILY, format_state_schema
from ckpt.formats.types import struct_of
from ckpt.model import ColumnFamily, OffsetLog, SourceOffset
from ckpt.new.rewrite.writing import make_new
from ckpt.query.description import DescribedSource, QueryDescription, parse_query
from ckpt.storage import open_storage
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.new.rewrite.continuing import state
from tests.new.rewrite.merged import CASES, SUITE, ask, put
from tests.new.rewrite.merged_queries import answer as answer_to, build
from tests.support.places import SAMPLES
from tests.support.spark.live import EVERY_CASE, Here
from tests.support.spark.queries import drain, own_session

ANSWERS = SUITE.answers.read_all()
RECORDED = [(minor, name) for minor in ANSWERS for name in SUITE.wanted(minor)]
FIRST, SECOND = str(SAMPLES / "aggregation-hdfs-4.2"), str(SAMPLES / "aggregation-rocksdb-4.2")
FORMS: list[dict[str, Any]] = [
    {},
    {"provider": "rocksdb", "partitions": 5, "jobs": 2},
    {"provider": "rocksdb", "format_version": 2},
]
APART = ["key_key < 3", "key_key >= 3"]
NO_SUCH_FILTER = "rows of a source lack {column}"
LIVE = ("merge sessions, hdfs and changelog, 2 and 3",)


@pytest.mark.parametrize(("minor", "name"), [pytest.param(*pair, id="-".join(pair)) for pair in RECORDED])
def test_every_row_came_once(minor: str, name: str) -> None:
    answer = ANSWERS[minor]["answers"][name]
    assert answer["wrong"] == []
    assert answer["rows"] >= 5


@pytest.mark.spark
@pytest.mark.parametrize(
    "case", [case for case in CASES if EVERY_CASE or case.name in LIVE], ids=lambda case: case.name
)
def test_queries_continue_together_or_apart(case: Any, spark: Any, tmp_path: Path) -> None:
    assert ask(Here(spark, answer_to), case, tmp_path / "case")["wrong"] == []


@pytest.mark.spark
def test_a_folder_of_files_takes_batches_as_the_page_says(spark: Any, tmp_path: Path) -> None:
    """A gap below a batch id fails at the next compaction; a batch id of another query is silently dropped."""
    session = own_session(spark, {"spark.sql.streaming.fileSink.log.compactInterval": "3"})

    def run(name: str, tags: str, sink: str, rows: str = "") -> None:
        job = {"shape": "dedup", "tags": [*tags], "inputs": str(tmp_path / "inputs"), "filter": rows}
        drain(build(session, job), tmp_path / name, sink="parquet", path=str(tmp_path / sink))

    def read(*sinks: str) -> list[tuple[int, int]]:
        frames = [session.read.parquet(str(tmp_path / sink)).collect() for sink in sinks]
        return sorted((row.key, row.value) for rows in frames for row in rows)

    put(tmp_path / "inputs", "a", 0)
    run("first", "a", "sink_a")
    for number in range(3):
        put(tmp_path / "inputs", "b", number)
        run("second", "b", "sink_b")
    for name in ("new", "gap"):
        made = ckpt.merge([str(tmp_path / "first"), str(tmp_path / "second")], str(tmp_path / name))
        assert (made.batch, made.written) == (2, True)
    put(tmp_path / "inputs", "a", 1)
    shutil.copytree(tmp_path / "sink_b", tmp_path / "sink_c", ignore=shutil.ignore_patterns(".*"))
    for log in (tmp_path / "sink_c/_spark_metadata").iterdir():
        log.write_text(log.read_text().replace("sink_b", "sink_c"))
    of_first, of_second = read("sink_a"), read("sink_c")
    run("new", "ab", "sink_b")
    expected = {
        (row["key"], row["value"])
        for file in (tmp_path / "inputs").rglob("*.json")
        for row in map(json.loads, file.read_text().splitlines())
    }
    assert sorted(of_first + read("sink_b")) == sorted(expected)
    run("gap", "ab", "sink_a")
    put(tmp_path / "inputs", "b", 3)
    run("gap", "ab", "sink_a")
    put(tmp_path / "inputs", "b", 4)
    with pytest.raises(Exception, match=r"_spark_metadata/2\.compact"):
        run("gap", "ab", "sink_a")
    for names in (("low", "high"), ("low again", "high again")):
        ckpt.split(
            str(tmp_path / "second"), [str(tmp_path / name) for name in names], where=["key_key < 13", "key_key >= 13"]
        )
    run("low", "b", "sink_c", "key < 13")
    low = read("sink_c")
    assert {key for key, _ in set(low) - set(of_second)} == {11, 12}
    run("high", "b", "sink_c", "key >= 13")
    assert read("sink_c") == low, "the batch of the other query is dropped"
    run("high again", "b", "sink_d", "key >= 13")
    with pytest.raises(Exception, match=r"_spark_metadata/2\.compact"):
        read("sink_d")


@pytest.mark.spark
def test_a_delta_table_takes_all_queries(spark: Any, tmp_path: Path) -> None:
    """Two queries become one, and that one two others, as the pages say: each row is in their table once."""
    inputs, table = tmp_path / "inputs", str(tmp_path / "table")

    def run(name: str, tags: str, to: str = table, where: str | None = None) -> None:
        frame = build(spark, {"shape": "dedup", "tags": [*tags], "inputs": str(inputs), "filter": where})
        drain(frame, tmp_path / name, sink="delta", path=to)

    for number in range(2):
        put(inputs, "a", number)
        put(inputs, "b", number)
        run("first", "a")
    run("second", "b")
    assert ckpt.merge([str(tmp_path / "first"), str(tmp_path / "second")], str(tmp_path / "both")).written
    put(inputs, "a", 2)
    put(inputs, "b", 2)
    run("both", "ab")
    parts = {"low": "key < 12", "high": "key >= 12"}
    conditions = [where.replace("key", "key_key") for where in parts.values()]
    assert ckpt.split(str(tmp_path / "both"), [str(tmp_path / name) for name in parts], where=conditions).written
    put(inputs, "a", 3)
    put(inputs, "b", 3)
    for name, where in parts.items():
        run(name, "ab", where=where)
    never_changed = str(tmp_path / "control table")
    run("control", "ab", to=never_changed)
    rows, wanted = (
        spark.read.format("delta").load(each).orderBy("key", "value").collect() for each in (table, never_changed)
    )
    assert rows == wanted
    assert len(rows) > 40


@pytest.mark.spark
def test_a_row_that_was_late_for_one_query_emits_its_window_again(spark: Any, tmp_path: Path) -> None:
    """As the page says of watermarks that differ: the query of `b` was ahead, and had emitted the window."""
    inputs = tmp_path / "inputs"

    def run(name: str, tags: str) -> list[list[str]]:
        job = {"do": "run", "shape": "windows", "tags": [*tags], "conf": {}, "inputs": str(inputs)}
        answer = answer_to(spark, {**job, "checkpoint": str(tmp_path / name)}, tmp_path)
        assert answer["error"] is None
        return [row for row in answer["rows"] if row[1] == "11"]

    put(inputs, "a", 0)
    run("first", "a")
    for number in range(3):
        put(inputs, "b", number)
    before = run("second", "b")
    made = ckpt.merge([str(tmp_path / "first"), str(tmp_path / "second")], str(tmp_path / "new"))
    assert made.late_from_ms is not None
    low, high = made.late_from_ms
    late: dict[str, Any] = {"key": 11, "value": 1, "timestamp": "2026-01-01T00:05:04Z"}
    assert low < datetime.fromisoformat(late["timestamp"].replace("Z", "+00:00")).timestamp() * 1000 < high
    (inputs / "b/late.json").write_text(json.dumps(late))
    for tag in "ab":
        put(inputs, tag, 9, last=True)
    after = run("new", "ab")
    window = before[0][0]
    assert window not in {row[0] for row in before[1:]}
    assert [row[0] for row in after].count(window) == 1


@pytest.mark.spark
def test_a_row_that_each_has_counted_is_not_combined(spark: Any, tmp_path: Path) -> None:
    """Each deduplication has let the row pass, and each aggregation has counted it; a query of both would once."""
    inputs = tmp_path / "inputs"
    job: dict[str, Any] = {"do": "run", "shape": "dedup aggregation", "conf": {}, "inputs": str(inputs)}
    for tag, name in (("a", "first"), ("c", "second")):
        put(inputs, tag, 0)
        assert answer_to(spark, {**job, "tags": [tag], "checkpoint": str(tmp_path / name)}, tmp_path)["error"] is None
    query = parse_query(answer_to(spark, {**job, "do": "describe", "tags": ["a", "c"]}, tmp_path))
    both = [str(tmp_path / "first"), str(tmp_path / "second")]
    with pytest.raises(
        CkptError, match="operator 1 with keys that are in several checkpoints, and have passed to other"
    ):
        ckpt.merge(both, str(tmp_path / "new"), expect=query, combine=True)


@pytest.mark.spark
def test_one_reader_of_two_sources_reads_rows_twice(spark: Any, tmp_path: Path) -> None:
    """As the page says, each source needs a `readStream` of its own, also where both read one folder."""
    totals: dict[str, int] = {}

    def run(name: str, *keys: int, readers: int = 1) -> None:
        reader = spark.readStream.schema("key BIGINT, value BIGINT")
        frames = [reader.json(str(tmp_path / "a")) for _ in range(readers)]
        parts = [frames[number % readers].where(f"key = {key}") for number, key in enumerate(keys)]
        counts = reduce(lambda left, right: left.union(right), parts).groupBy("key").count()
        for rows in drain(counts, tmp_path / name, "update").values():
            totals.update({f"{name} {row['key']}": row["count"] for row in rows})

    put(tmp_path, "a", 0)
    run("first", 1)
    put(tmp_path, "a", 1)
    run("second", 2)
    for name in ("apart", "once"):
        assert ckpt.merge([str(tmp_path / "first"), str(tmp_path / "second")], str(tmp_path / name)).written
    put(tmp_path, "a", 2)
    run("apart", 1, 2, readers=2)
    run("once", 1, 2)
    run("control", 1, 2)
    assert totals["apart 2"] == totals["control 2"] < totals["once 2"]
    assert totals["apart 1"] == totals["control 1"]


@pytest.mark.spark
@pytest.mark.service
def test_one_source_of_kafka_reads_the_topics_of_both(kafka: str, kafka_jars: str, spark: Any, tmp_path: Path) -> None:
    server = {"kafka.bootstrap.servers": kafka}
    totals: dict[int, tuple[int, int]] = {}

    def put_numbers(topic: str, first: int, last: int) -> None:
        rows = spark.range(first, last, 1, 1).selectExpr("CAST(id AS STRING) AS value")
        rows.write.format("kafka").options(**server, topic=topic).save()

    def run(name: str, *topics: str, describe: bool = False) -> Any:
        options = {**server, "subscribe": ",".join(topics), "startingOffsets": "earliest"}
        rows = spark.readStream.format("kafka").options(**options).load()
        rows = rows.selectExpr(
            "CAST(CAST(value AS STRING) AS BIGINT) AS number", "CAST(topic = 'merge-us' AS INT) AS key"
        )
        counts = rows.groupBy("key").agg({"number": "sum", "*": "count"})
        if describe:
            return ckpt.describe_query(counts, output_mode="update")
        for batch in drain(counts, tmp_path / name, "update").values():
            totals.update({row["key"]: (row["count(1)"], row["sum(number)"]) for row in batch})
        return None

    put_numbers("merge-eu", 0, 5)
    put_numbers("merge-us", 100, 107)
    run("eu", "merge-eu")
    run("us", "merge-us")
    put_numbers("merge-us", 107, 110)
    described = run("", "merge-eu", "merge-us", describe=True)
    both = [str(tmp_path / "eu"), str(tmp_path / "us")]
    made = ckpt.merge(both, str(tmp_path / "new"), expect=described)
    assert made.written, made.refused
    assert len(made.new_sources) == 1
    run("new", "merge-eu", "merge-us")
    put_numbers("merge-eu", 5, 9)
    run("new", "merge-eu", "merge-us")
    assert totals == {0: (9, sum(range(9))), 1: (10, sum(range(100, 110)))}


@pytest.mark.spark
def test_executors_merge_what_one_machine_does(by: Any, apart: tuple[str, str], tmp_path: Path) -> None:
    here = ckpt.merge(apart, str(tmp_path / "here"), partitions=4)
    there = ckpt.merge(apart, str(tmp_path / "there"), partitions=4, engine=by)
    assert state(tmp_path / "there") == state(tmp_path / "here")
    assert [unit.rows for unit in there.units] == [unit.rows for unit in here.units] == [7]


@pytest.fixture
def apart(tmp_path: Path) -> tuple[str, str]:
    """Two checkpoints of one query, whose keys differ; the first has the newest batch and HDFS-backed state."""
    made = [
        ckpt.rewrite(old, str(tmp_path / name), where=where, new_id=True, partitions=partitions)
        for old, name, where, partitions in (
            (FIRST, "small", "key_key < 3", 2),
            (SECOND, "large", "key_key >= 3", 3),
        )
    ]
    assert all(each.written for each in made)
    return made[0].into, made[1].into


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_state_and_logs_of_both_become_one(form: dict[str, Any], apart: tuple[str, str], tmp_path: Path) -> None:
    new = str(tmp_path / "new")
    made = ckpt.merge(apart, new, **form)
    assert made.written, made.refused
    assert made.batch == max(plan.batch for plan in made.merged) == 9
    rows = [state(Path(folder))["operator 0"] for folder in (*apart, new)]
    assert rows[2] == sorted(rows[0] + rows[1])
    assert made.units[0].rows == len(rows[2])
    checkpoint = ckpt.open_checkpoint(new)
    assert checkpoint.query_id not in {ckpt.open_checkpoint(folder).query_id for folder in apart}
    newest = checkpoint.offsets.newest
    assert newest is not None
    old = [ckpt.open_checkpoint(folder).offsets.newest for folder in apart]
    assert [source.text for source in newest.sources] == [log.sources[0].text for log in old if log is not None]
    assert [(source.checkpoint, source.was) for source in made.new_sources] == [(0, 0), (1, 0)]
    assert ckpt.inspect(new).sound
    assert ckpt.state_verify(new).damages == ()


def test_three_become_one(apart: tuple[str, str], tmp_path: Path) -> None:
    parts = [str(tmp_path / name) for name in ("three", "more")]
    ckpt.split(apart[1], parts, where=["key_key = 3", "key_key <> 3"])
    made = ckpt.merge([apart[0], *parts], str(tmp_path / "new"), partitions=4)
    assert [unit.rows for unit in made.units] == [7]
    assert len(made.new_sources) == 3


def test_keys_of_both_are_named_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(CkptError, match=r'7 rows of operator 0 with keys that are in several.*\{"key": 0\}, .*\.\.\.'):
        ckpt.merge([FIRST, SECOND], str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def _refuse(old: list[str], tmp_path: Path, **more: Any) -> str:
    made = ckpt.merge(old, str(tmp_path / "refused"), plan=True, **more)
    assert made.refused is not None
    again = ckpt.merge(old, str(tmp_path / "refused"), **more)
    assert (again.refused, again.written) == (made.refused, False)
    assert not (tmp_path / "refused").exists()
    return str(made.refused)


def test_what_does_not_fit_is_refused_by_name(apart: tuple[str, str], copy_of: CopyOf, tmp_path: Path) -> None:
    first = apart[0]
    assert "deterministicKeyOrder" in _refuse([first, str(SAMPLES / "aggregation-hdfs-4.3")], tmp_path)
    assert "numbers of stateful operators" in _refuse([first, str(SAMPLES / "dedup-aggregation-hdfs-4.2")], tmp_path)
    why = _refuse([first, str(SAMPLES / "pandas-with-state-changelog-4.2")], tmp_path)
    assert why.startswith("operator 0, name: stateStoreSave in ")
    assert "joins streams" in _refuse([str(SAMPLES / "join-changelog-4.2"), first], tmp_path)
    assert "is a limit" in _refuse([str(SAMPLES / "limit-hdfs-4.2"), first], tmp_path)
    shutil.copytree(first, tmp_path / "copy")
    assert "the same query id" in _refuse([first, str(tmp_path / "copy")], tmp_path)
    assert "the same query id" in _refuse([SECOND, first, str(tmp_path / "copy")], tmp_path)
    planned = copy_of("aggregation-killed-hdfs-4.0")
    assert "planned but not committed" in _refuse([str(planned), first], tmp_path)
    assert "which functions operator 0 computes" in _refuse([*apart], tmp_path, combine=True)


def test_other_columns_are_named(apart: tuple[str, str], tmp_path: Path) -> None:
    schema = Path(apart[1]) / "state/0/0/_metadata/schema"
    data = schema.read_bytes()
    assert b'"sum"' in data
    schema.write_bytes(data.replace(b'"sum"', b'"max"'))
    for checksums in schema.parent.glob(".*crc"):
        checksums.unlink()
    why = _refuse([*apart], tmp_path)
    assert why.startswith("operator 0, value of default: struct<count: long not null, sum: long> in ")
    assert "max: long" in why


def test_a_described_query_puts_sources_in_its_order_or_has_others(apart: tuple[str, str], tmp_path: Path) -> None:
    """Rate sources look alike: only a person can say which is which."""

    def describe(*names: str) -> QueryDescription:
        sources = tuple(DescribedSource(name) for name in names)
        return QueryDescription(ckpt.Spark("4.2"), "update", sources, None, None, "not planned here", {})

    why = _refuse([*apart], tmp_path, expect=describe("rate-micro-batch", "rate-micro-batch"))
    assert why.endswith("no file says which: without it, sources are in the order of the checkpoints")
    assert "has different sources" in _refuse([*apart], tmp_path, expect=describe("kafka", "file"))


def test_topics_become_those_of_one_source(apart: tuple[str, str], tmp_path: Path) -> None:
    texts = ['{"eu":{"0":5,"1":7}}', '{"us":{"0":11}}']
    for uri, text in zip(apart, texts, strict=True):
        _set_offset(uri, text)
    topics = QueryDescription(
        ckpt.Spark("4.2"), "update", (DescribedSource("kafka", ("eu", "us")),), None, None, "not planned here", {}
    )
    made = ckpt.merge(apart, str(tmp_path / "new"), expect=topics)
    assert made.written, made.refused
    newest = ckpt.open_checkpoint(str(tmp_path / "new")).offsets.newest
    assert newest is not None
    assert [source.value for source in newest.sources] == [{"eu": {"0": 5, "1": 7}, "us": {"0": 11}}]
    _set_offset(apart[1], '{"eu":{"0":11}}')
    assert "several checkpoints read topic eu" in _refuse([*apart], tmp_path, expect=topics)


def _set_offset(uri: str, text: str) -> None:
    """Give the only source of a checkpoint another offset, in all batches."""
    offsets = read_checkpoint(open_storage(uri), batches=0).offsets
    for batch in offsets.ids:
        log = offsets.readable(batch)
        assert log is not None
        changed = OffsetLog(log.version, log.metadata, (SourceOffset(None, text, None),))
        (Path(uri) / f"offsets/{batch}").write_bytes(format_offset_log(changed))


def test_files_that_a_query_cleans_up_are_named_where_two_read_them(run_ckpt: Ckpt, tmp_path: Path) -> None:
    words = ("--where", APART[0], "--where", APART[1])
    pages: list[str] = []
    for offset in ("", '{"logOffset":0}'):
        old = tmp_path / f"old{len(pages)}"
        shutil.copytree(FIRST, old)
        if offset:
            _set_offset(str(old), offset)
        ran = run_ckpt("split", str(old), f"{old}-one", f"{old}-two", *words)
        assert ran.exit_code == 0, ran.stdout
        pages.append(" ".join(ran.stdout.split()))
    assert ["none may have the option cleanSource" in page for page in pages] == [False, True]
    assert not any("that query's watermark does not advance" in page for page in pages)


def test_a_split_says_what_holds_a_watermark_back(run_ckpt: Ckpt, tmp_path: Path) -> None:
    conditions = ("--where", "key_key < 2", "--where", "key_key >= 2")
    old, new = str(SAMPLES / "windowed-aggregation-hdfs-4.2"), [str(tmp_path / name) for name in ("one", "two")]
    page = " ".join(run_ckpt("split", old, *new, *conditions).stdout.split())
    assert "if no row of a source passes the filter, that query's watermark does not advance" in page


def _divide_and_hold_back(folder: Path, log: str, name: str) -> tuple[str, str, Path, int]:
    """Divide windows, and take 7 s from a watermark of the second part; the parts, the file, and what it had (ms)."""
    first, second = (str(folder / part) for part in ("first", "second"))
    sample = str(SAMPLES / "windowed-aggregation-hdfs-4.2")
    ckpt.split(sample, [first, second], where=["key_key < 2", "key_key >= 2"])
    newest = max((Path(second) / log).glob("[0-9]*"), key=lambda file: int(file.name))
    text = newest.read_text()
    watermark = json.loads(text.splitlines()[1])[name]
    newest.write_text(text.replace(str(watermark), str(watermark - 7000)))
    return first, second, newest, watermark


def test_the_lowest_watermark_is_taken_and_announced(run_ckpt: Ckpt, tmp_path: Path) -> None:
    first, second, newest, watermark = _divide_and_hold_back(tmp_path, "commits", "nextBatchWatermarkMs")
    ran = run_ckpt("merge", first, second, str(tmp_path / "new"))
    assert ran.exit_code == 0, ran.stdout
    page = " ".join(ran.stdout.split())
    assert "is emitted a second time" in page
    assert "in this order, each with its own readStream" in page
    log = ckpt.open_checkpoint(str(tmp_path / "new")).commits.readable(int(newest.name))
    assert log is not None
    assert log.next_watermark_ms == watermark - 7000
    assert "state can be combined only if the queries have the same watermark" in _refuse(
        [first, second], tmp_path, combine=True
    )


def test_a_deduplication_that_evicts_beside_another_operator_is_not_combined(tmp_path: Path) -> None:
    both = [str(tmp_path / name) for name in ("first", "second")]
    for uri in both:
        ckpt.rewrite(str(SAMPLES / "dedup-aggregation-hdfs-4.2"), uri, new_id=True)
    assert "which functions operator 0 computes" in _refuse(both, tmp_path, combine=True)
    for uri in both:
        newest = max((Path(uri) / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
        newest.write_text(newest.read_text().replace('"nextBatchWatermarkMs":0', '"nextBatchWatermarkMs":1000'))
    assert "operator 1 evicts keys" in _refuse(both, tmp_path, combine=True)


def test_a_query_that_alone_has_evicted_was_ahead(run_ckpt: Ckpt, tmp_path: Path) -> None:
    """As with ``noDataMicroBatches`` off: the watermark of the next batch is one, that of the newest is not."""
    first, second, _, watermark = _divide_and_hold_back(tmp_path, "offsets", "batchWatermarkMs")
    made = ckpt.merge([first, second], str(tmp_path / "planned"), plan=True)
    assert made.late_from_ms == (watermark - 7000, watermark)
    assert "is emitted a second time" in " ".join(
        run_ckpt("merge", first, second, str(tmp_path / "new")).stdout.split()
    )
    assert "state can be combined only if the queries have the same watermark" in _refuse(
        [first, second], tmp_path, combine=True
    )


def test_a_split_keeps_each_row_once(run_ckpt: Ckpt, tmp_path: Path) -> None:
    new = [str(tmp_path / name) for name in ("one", "two")]
    made = ckpt.split(FIRST, new, where=APART, provider="rocksdb", partitions=3)
    rows = [state(Path(folder))["operator 0"] for folder in (FIRST, *new)]
    assert rows[0] == sorted(rows[1] + rows[2])
    assert all(rows)
    assert [part.into for part in made.parts] == new
    assert all(part.written for part in made.parts)
    ids = {ckpt.open_checkpoint(folder).query_id for folder in (FIRST, *new)}
    assert len(ids) == 3


@pytest.mark.parametrize(
    ("where", "why"),
    [
        (("key_key < 3", "key_key > 3"), r'1 row of operator 0 matched by no condition.*\{"key": 3\}'),
        (
            ("key_key < 3", "key_key > 0"),
            r'2 rows of operator 0 matched by several.*\{"key": 1\}, \{"key": 2\}',
        ),
    ],
)
def test_a_row_in_none_or_in_several_is_named(where: tuple[str, str], why: str, tmp_path: Path) -> None:
    new = [str(tmp_path / name) for name in ("one", "two")]
    with pytest.raises(CkptError, match=why):
        ckpt.split(FIRST, new, where=where)
    assert not any((tmp_path / name).exists() for name in ("one", "two"))
    if "no condition" in why:
        made = ckpt.split(FIRST, new, where=where, accept_loss=True)
        assert [part.units[0].rows for part in made.parts] == [3, 3]


def test_a_part_that_fails_leaves_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second new checkpoint cannot be made; the first is gone again."""
    made: list[ckpt.types.Rewrite] = []

    def fail_later(*words: Any, **more: Any) -> Any:
        if made:
            raise StorageError("the disk is full")
        made.append(make_new(*words, **more))
        return made[0]

    monkeypatch.setattr("ckpt.new.rewrite.rewrite.make_new", fail_later)
    with pytest.raises(StorageError):
        ckpt.split(FIRST, [str(tmp_path / "one"), str(tmp_path / "two")], where=APART)
    assert made[0].written
    assert not (tmp_path / "one").exists()


@pytest.mark.parametrize(
    ("sample", "column", "why"),
    [
        ("aggregation-killed-hdfs-4.0", "key_key", "several queries would run it"),
        ("dedup-aggregation-hdfs-4.2", "key_part", "lacks columns of a condition"),
        ("aggregation-hdfs-4.2", "value_count", NO_SUCH_FILTER),
        ("windowed-aggregation-hdfs-4.2", "key_window_start", NO_SUCH_FILTER),
        ("session-window-hdfs-3.5", "key_sessionStartTime", NO_SUCH_FILTER),
    ],
)
def test_a_split_that_no_queries_continue_is_refused(sample: str, column: str, why: str, tmp_path: Path) -> None:
    """No filter on rows of a source decides as a condition on what no source has."""
    new = [str(tmp_path / name) for name in ("one", "two")]
    limit = 3 if column in ("key_key", "key_part", "value_count") else "TIMESTAMP '2026-01-01'"
    for plan in (True, False):
        made = ckpt.split(str(SAMPLES / sample), new, where=[f"{column} < {limit}", f"{column} >= {limit}"], plan=plan)
        assert made.refused is not None
        assert why.format(column=column) in str(made.refused)
        assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("kind", "refused"), [("float", True), ("double", False), ("integer", False)])
def test_a_split_by_a_float_is_refused(kind: str, refused: bool, copy_of: CopyOf, tmp_path: Path) -> None:
    """DuckDB compares it with 0.1 as a FLOAT, Spark as a DOUBLE: rows of one key would be in both."""
    old = copy_of("aggregation-hdfs-4.2")
    schema = old / "state/0/0/_metadata/schema"
    ((_, store),) = read_checkpoint(open_storage(str(old)), batches=0).stores()
    key = struct_of([("key", kind)])
    schema.write_bytes(format_state_schema(2, [ColumnFamily(DEFAULT_COLUMN_FAMILY, key, store.value_schema)]))
    schema.with_name(".schema.crc").unlink(missing_ok=True)
    new = [str(tmp_path / name) for name in ("one", "two")]
    made = ckpt.split(str(old), new, where=["key_key <= 0.1", "key_key > 0.1"], plan=True)
    assert (made.refused is not None) == refused
    assert "Spark and DuckDB compare key_key" in str(made.refused) or not refused


@pytest.mark.parametrize(
    "call",
    [
        lambda: ckpt.merge([FIRST], "memory://a", plan=True),
        lambda: ckpt.merge([], "memory://a", plan=True),
        lambda: ckpt.merge(FIRST, "memory://a", plan=True),
        lambda: ckpt.merge([FIRST, SECOND], "memory://a", where="key_key < 3", drop_keys=[{"key_key": "1"}], plan=True),
        lambda: ckpt.split(FIRST, ["memory://a", "memory://b"], where=["key_key < 3"], plan=True),
        lambda: ckpt.split(FIRST, ["memory://a"], where=["key_key < 3"], plan=True),
        lambda: ckpt.split(FIRST, ["memory://a", "memory://a/b"], where=APART, plan=True),
        lambda: ckpt.split(FIRST, "memory://a", where=APART, plan=True),
    ],
)
def test_options_that_do_not_go_together(call: Callable[[], object]) -> None:
    with pytest.raises(UsageError):
        call()


@pytest.mark.parametrize(
    "words", [("other", "new"), ("new", "--where", "key_key < 3", "--where", "key_key >= 3"), ("new", "--combine")]
)
def test_several_are_for_merge_and_split(words: tuple[str, ...], run_ckpt: Ckpt) -> None:
    run = run_ckpt("rewrite", FIRST, *words)
    assert run.exit_code == 2
    assert "ckpt merge" in run.stderr


def test_the_documents_are_those_of_the_contract(run_ckpt: Ckpt, apart: tuple[str, str], tmp_path: Path) -> None:
    merged = json.loads(run_ckpt("merge", *apart, str(tmp_path / "new"), "-o", "json").stdout)
    assert [each["path"] for each in merged["merged"]] == [*apart]
    assert merged["sources"][1] == {"checkpoint": 1, "source": 0, "type": "rate-micro-batch"}
    assert merged["watermarks_differ"] is False
    words = ("--where", "key_key < 3", "--where", "key_key >= 3")
    parts = json.loads(run_ckpt("split", FIRST, str(tmp_path / "a"), str(tmp_path / "b"), *words, "-o", "json").stdout)
    rows = [(part["where"], part["units"][0]["rows"]) for part in parts["parts"]]
    assert rows == [("key_key < 3", 3), ("key_key >= 3", 4)]
    assert contract.disagreements(merged, "merge") == contract.disagreements(parts, "split") == []
