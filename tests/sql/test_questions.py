"""Questions of an operator in SQL, each answered by another way too: `ckpt inspect`, `ckpt state show`, the files."""

import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import ckpt
from ckpt.storage.local import LocalStorage
from ckpt.tables import catalog
from ckpt.tables.connect import connect, list_problems, run_sql
from docs.generate.sql import PAGE, sql_page
from tests.conftest import Ckpt
from tests.restart.oracle.cases.model import replace, truncate

SAMPLES = Path(__file__).parents[2] / "sample_checkpoints"
NAMES = (
    *("kafka-4.2", "delta-4.2", "async-kafka-4.2", "aggregation-hdfs-4.2", "aggregation-rocksdb-4.2"),
    *("join-rocksdb-4.0", "tws-rocksdb-4.2", "aggregation-killed-hdfs-4.0"),
)
PATHS = [str(SAMPLES / name) for name in NAMES]
Facts = dict[str, Any]


@pytest.fixture(scope="module")
def connection() -> Any:
    return connect(*PATHS)


@pytest.fixture(scope="module")
def facts() -> Facts:
    return {path: ckpt.inspect(path, batches=0) for path in PATHS}


def each(what: Callable[[Any], Iterator[Any] | Any]) -> Callable[[Facts], Any]:
    return lambda facts: [(path, *row) for path, inspection in facts.items() for row in what(inspection)]


def last_numbers(path: str, batch: int) -> dict[str, dict[str, int]]:
    """The last line of an offset file of one Kafka source, as it is."""
    parsed: dict[str, dict[str, int]] = json.loads(Path(path, "offsets", str(batch)).read_text().splitlines()[-1])
    return parsed


KAFKA, HDFS, JOIN, ASYNC = (
    str(SAMPLES / name) for name in ("kafka-4.2", "aggregation-hdfs-4.2", "join-rocksdb-4.0", "async-kafka-4.2")
)
QUESTIONS: dict[str, tuple[str, Callable[[Facts], Any]]] = {
    "which batches are not committed": (
        "SELECT checkpoint, batch FROM batches WHERE planned AND NOT committed",
        each(lambda i: [(batch,) for batch in i.uncommitted]),
    ),
    "how many batches are there": (
        "SELECT checkpoint, count(*) FROM batches WHERE planned GROUP BY ALL",
        each(lambda i: [(len(i.checkpoint.offsets.ids),)]),
    ),
    "when was each batch planned": (
        "SELECT checkpoint, batch, epoch_ms(planned_at) FROM batches WHERE planned_at IS NOT NULL",
        each(lambda i: [(b.batch_id, b.timestamp_ms) for b in i.batches if b.timestamp_ms]),
    ),
    "which batch files cannot be read": (
        "SELECT checkpoint, batch, unreadable FROM batches WHERE unreadable IS NOT NULL",
        each(lambda i: [(b.batch_id, b.unreadable) for b in i.batches if b.unreadable]),
    ),
    "where is the topic now": (
        f"SELECT topic, partition, end_offset FROM offsets WHERE checkpoint = '{KAFKA}' AND batch = 5",
        lambda _: [(t, int(p), n) for t, parts in last_numbers(KAFKA, 5).items() for p, n in parts.items()],
    ),
    "how many offsets did a batch read": (
        f"SELECT sum(end_offset - start_offset)::BIGINT FROM offsets WHERE checkpoint = '{KAFKA}' AND batch = 5",
        lambda facts: [(facts[KAFKA].batches[-1].advanced[0].amount,)],
    ),
    "which queries read a topic": (
        "SELECT DISTINCT checkpoint FROM offsets WHERE topic = 'orders'",
        lambda facts: [(p,) for p, i in facts.items() if any("orders" in s.topics for s in i.sources)],
    ),
    "of which kind are the sources": (
        "SELECT checkpoint, source, type FROM sources",
        each(lambda i: [(s.index, str(s.type)) for s in i.sources]),
    ),
    "which commits are there": (
        "SELECT checkpoint, batch, version FROM commits WHERE unreadable IS NULL",
        each(lambda i: [(b, i.checkpoint.commits.readable(b).version) for b in i.checkpoint.commits.ids]),
    ),
    "how many shuffle partitions": (
        "SELECT checkpoint, value FROM settings WHERE name = 'spark.sql.shuffle.partitions'",
        each(lambda i: [(v,) for k, v in i.checkpoint.conf.items() if k == "spark.sql.shuffle.partitions"]),
    ),
    "what is the verdict": (
        "SELECT checkpoint, verdict, latest_batch FROM checkpoints",
        each(lambda i: [(i.verdict, i.checkpoint.offsets.latest)]),
    ),
    "what is wrong": (
        "SELECT checkpoint, code, path FROM findings WHERE severity <> 'note'",
        each(lambda i: [(r.finding.diagnosis.code, r.finding.path) for r in i.troubles]),
    ),
    "what does each start do": (
        "SELECT checkpoint, spark, progress, outcome, batch FROM forecasts",
        each(lambda i: [(str(f.spark), str(f.progress), str(f.outcome), f.batch_id) for f in i.forecasts]),
    ),
    "which starts fail": (
        "SELECT DISTINCT checkpoint FROM forecasts WHERE counted AND outcome LIKE 'fails%'",
        lambda facts: [(p,) for p, i in facts.items() if any(f.outcome.startswith("fails") for f in i.counted)],
    ),
    "which operators are there": (
        "SELECT checkpoint, operator, name FROM operators",
        each(lambda i: [(o.id, o.name) for o in i.checkpoint.operators]),
    ),
    "how large is each store": (
        "SELECT checkpoint, operator, store, bytes FROM stores",
        each(lambda i: [(o.id, s.name, s.bytes) for o, s in i.checkpoint.stores()]),
    ),
    "which files are snapshots": (
        f"SELECT path, bytes FROM state_files WHERE kind = 'snapshot' AND checkpoint = '{HDFS}'",
        lambda _: [(str(f.relative_to(HDFS)), f.stat().st_size) for f in Path(HDFS).glob("state/*/*/[0-9]*.snapshot")],
    ),
    "which value has a key": (
        f"SELECT value_count, value_sum FROM state('{HDFS}') WHERE key_key = 3",
        lambda _: [(r["value_count"], r["value_sum"]) for r in ckpt.state_show(HDFS, key={"key": "3"}).rows],
    ),
    "which value had it": (
        "SELECT value_count FROM state('aggregation-hdfs-4.2', 0, 'default', 7) WHERE key_key = 3",
        lambda _: [(r["value_count"],) for r in ckpt.state_show(HDFS, key={"key": "3"}, batch=7).rows],
    ),
    "how many rows has a side": (
        f"SELECT count(*) FROM state('{JOIN}', side := 'left')",
        lambda _: [(ckpt.state_count(JOIN, side="left").units[0].rows,)],
    ),
    "which keys are in two checkpoints": (
        "SELECT key_key FROM state('aggregation-hdfs-4.2') JOIN state('aggregation-rocksdb-4.2') USING (key_key)",
        lambda _: [
            (key,)
            for key in {r["key_key"] for r in ckpt.state_show(HDFS, limit=99).rows}
            & {r["key_key"] for r in ckpt.state_show(PATHS[4], limit=99).rows}
        ],
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_is_that_of_another_way(question: str, connection: Any, facts: Facts) -> None:
    statement, otherwise = QUESTIONS[question]
    expected = sorted(otherwise(facts), key=repr)

    assert sorted(run_sql(connection, statement).fetchall(), key=repr) == expected
    assert expected or "cannot be read" in question


REFUSED = (
    *("FROM '/etc/passwd'", "FROM read_csv('/etc/passwd')", "FROM read_text('s3://bucket/x')", "FROM glob('/*')"),
    *("FROM 'https://example.org/x.parquet'", "INSTALL httpfs", "LOAD httpfs", "ATTACH '/tmp/x.db'"),
    *("COPY batches TO '/tmp/x.csv'", "SET enable_external_access = true", "SET threads = 1", "PRAGMA version"),
    *("CREATE TABLE t AS SELECT 1", "DROP VIEW batches", "SELECT 1; SELECT 2", "", "SELEC", "FROM nowhere"),
    *("EXPLAIN ANALYZE DROP VIEW sources", "EXPLAIN (ANALYZE) CREATE TABLE t AS SELECT 1", "EXPLAIN DROP VIEW sources"),
    *("UPDATE EXTENSIONS", "EXPLAIN EXPLAIN SELECT 1"),
    *("FROM state('/etc')", "FROM state('s3://bucket/x')", "FROM state('tws-rocksdb-4.2')", "FROM state(NULL)"),
)


@pytest.mark.parametrize("statement", REFUSED)
def test_a_statement_is_refused_in_a_line(statement: str, ckpt: Ckpt) -> None:
    ended = ckpt("sql", statement, *PATHS)

    assert (ended.exit_code, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize("how", ["EXPLAIN", "EXPLAIN ANALYZE", "explain (analyze, format json)", "EXPLAIN /* why */"])
def test_a_question_is_explained(how: str, ckpt: Ckpt) -> None:
    ended = ckpt("sql", f"{how} FROM batches", KAFKA, "-o", "csv")
    assert ended.exit_code == 0
    assert "scan" in ended.stdout.lower()


def test_a_state_that_another_statement_named_refuses_nothing() -> None:
    connection = connect(HDFS)
    with pytest.raises(Exception, match="ckpt_state_0"):
        connection.sql("FROM state('elsewhere')")

    assert run_sql(connection, "SELECT count(*) FROM state('aggregation-hdfs-4.2')").fetchall() == [(7,)]


def test_no_statement_is_refused(ckpt: Ckpt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(" "))
    ended = ckpt("sql", "FROM batches")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "no statement" in ended.stderr


def test_more_rows_than_memory_are_refused_in_a_line(ckpt: Ckpt, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("ckpt.tables.answers._read_rows", fill)
    run = ckpt("sql", "FROM range(3)", ASYNC)
    assert (run.exit_code, run.stdout) == (3, "")
    assert run.stderr == "ckpt: this machine does not have enough memory for the answer\n"


def test_a_batch_after_a_gap_begins_nowhere_that_is_known(ckpt: Ckpt, connection: Any) -> None:
    counted = "SELECT batch, count(start_offset) FROM offsets"
    shown = run_sql(connection, f"{counted} WHERE checkpoint = '{ASYNC}' GROUP BY ALL")
    for batch, known in shown.fetchall():
        (source,) = ckpt("offsets", "show", ASYNC, "--batch", batch, "-o", "json").json()["sources"]
        assert known == len((source["from"] or {}).get("orders", {})), batch


def test_codes_of_a_forecast_are_those_of_inspect(ckpt: Ckpt) -> None:
    checkpoint = SAMPLES / "aggregation-format2-4.2"
    rows = ckpt("sql", "SELECT codes FROM forecasts", checkpoint, "-o", "json").json()["rows"]
    forecasts = ckpt("inspect", checkpoint, "-o", "json").json()["restart"]

    assert [row["codes"] for row in rows] == [forecast["because"] for forecast in forecasts]


def watch_reading(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note from now on which files are read."""
    opened: list[str] = []
    read = LocalStorage.read_many

    def read_many(self: LocalStorage, requests: Any) -> Any:
        listed = list(requests)
        opened.extend(f"{self.uri}/{request.path}" for request in listed)
        return read(self, listed)

    monkeypatch.setattr(LocalStorage, "read_many", read_many)
    return opened


@pytest.mark.slow
def test_batches_of_300_checkpoints_open_no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(300):
        shutil.copytree(HDFS, tmp_path / f"q{number}", ignore=shutil.ignore_patterns(".*", "[1-9].delta"))
    opened = watch_reading(monkeypatch)
    list_tree = LocalStorage.list_tree

    def watch_listing(self: LocalStorage, *, tolerant: bool = False) -> Any:
        opened.append(self.uri)
        return list_tree(self, tolerant=tolerant)

    monkeypatch.setattr(LocalStorage, "list_tree", watch_listing)

    answer = connect(tmp_path).sql("SELECT count(*), count(DISTINCT checkpoint) FROM batches").fetchall()

    assert answer == [(3000, 300)]
    below = {path.removeprefix(f"{tmp_path}/").partition("/")[2].partition("/")[0] for path in opened}
    assert below == {"offsets", "commits", "metadata"}
    assert sum(path.endswith("/offsets/9") for path in opened) == 300


@pytest.mark.parametrize(
    ("condition", "partitions"),
    [("key_key = 3", 1), ("partition_id = 1", 1), ("key_key > 0", 2), ("value_count = 14", 2)],
)
def test_a_key_reads_its_partition_alone(condition: str, partitions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = connect(HDFS)
    statement = f"SELECT * FROM state('{HDFS}') WHERE {condition}"
    run_sql(connection, statement)  # what describes the state is read
    opened = watch_reading(monkeypatch)
    rows = run_sql(connection, statement).fetchall()

    assert rows
    assert len({path.rpartition("/")[0] for path in opened}) == partitions


def test_a_condition_on_the_checkpoint_reads_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    look = catalog._read_subject
    monkeypatch.setattr(catalog, "_read_subject", lambda root, *more: looked.append(root.uri) or look(root, *more))  # type: ignore[func-returns-value]

    connect(*PATHS).sql(f"SELECT count(*) FROM batches WHERE checkpoint = '{KAFKA}' AND batch > 2").fetchall()

    assert looked == [KAFKA]


def test_what_cannot_be_read_is_said(ckpt: Ckpt, tmp_path: Path) -> None:
    ended = ckpt("sql", "SELECT count(*) AS n FROM batches", KAFKA, tmp_path / "nowhere", "-o", "json")

    assert ended.exit_code == 3
    assert json.loads(ended.stdout)["rows"] == [{"n": 6}]
    assert "nowhere" in ended.stderr


def test_secrets_are_masked_before_sql_sees_them(copy_of: Any, ckpt: Ckpt) -> None:
    checkpoint = copy_of("kafka-4.2", replace("offsets/5", '"conf":{', '"conf":{"kafka.sasl.password":"hush",'))

    shown = ckpt("sql", "SELECT name, reverse(value) AS v FROM settings", checkpoint, "-o", "csv").stdout

    assert "kafka.sasl.password" in shown
    assert "hsuh" not in shown


def test_forms_have_the_same_rows(ckpt: Ckpt, tmp_path: Path) -> None:
    statement = "SELECT batch, committed, topic FROM offsets WHERE partition = 0 ORDER BY batch"
    rows = ckpt("sql", statement, KAFKA, "-o", "json").json()["rows"]
    file = tmp_path / "rows.parquet"

    assert ckpt("sql", statement, KAFKA, "-o", "parquet", "--to", file).exit_code == 0
    assert pq.read_table(file).to_pylist() == rows
    assert [json.loads(line) for line in ckpt("sql", statement, KAFKA, "-o", "jsonl").stdout.splitlines()] == rows
    lines = ckpt("sql", statement, KAFKA, "-o", "csv").stdout.splitlines()
    assert lines[:2] == ["batch,committed,topic", "0,true,orders"]
    assert len(lines) == len(rows) + 1
    assert len(list(tmp_path.iterdir())) == 1


def test_no_file_of_a_checkpoint_is_written(copy_of: Any, ckpt: Ckpt, tmp_path: Path) -> None:
    checkpoint = copy_of("kafka-4.2")
    before = sorted(checkpoint.rglob("*"))
    for name in ("x.csv", "offsets/5", "state.csv"):
        assert ckpt("sql", "FROM batches", KAFKA, "-o", "csv", "--to", checkpoint / name).exit_code == 2
    (tmp_path / "link").symlink_to(checkpoint)
    assert ckpt("sql", "FROM batches", KAFKA, "-o", "csv", "--to", tmp_path / "link" / "x.csv").exit_code == 2
    assert sorted(checkpoint.rglob("*")) == before


def test_problems_are_listed() -> None:
    connection = connect("nowhere-at-all")
    assert connection.sql("FROM batches").fetchall() == []
    assert "nowhere-at-all" in list_problems(connection)[0]


def test_the_page_has_the_tables_as_declared() -> None:
    assert PAGE.read_text(encoding="utf-8") == sql_page()


def test_a_command_ends_where_rows_are_left_unread(ckpt_process: Ckpt) -> None:
    ended = ckpt_process("sql", "SELECT batch FROM batches LIMIT 1", *PATHS, "-o", "csv")
    assert (ended.exit_code, ended.stdout) == (0, "batch\n0\n")


def test_state_that_is_damaged_is_named(copy_of: Any, ckpt: Ckpt) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2", truncate("state/0/*/*.delta", -9))
    ended = ckpt("sql", f"FROM state('{checkpoint}')", checkpoint)
    assert (ended.exit_code, ended.stdout) == (3, "")
    assert "state/0/" in ended.stderr
