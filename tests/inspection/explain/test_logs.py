"""Whole driver logs of real queries: the cause is found, whatever is around it."""

import gzip
import io
import json
import re
from functools import cache
from itertools import permutations
from pathlib import Path

import pytest

from ckpt.inspection.explain.explain import explain, find_nearest, read_chunks
from tests.conftest import CopyOf
from tests.inspection.explain import programs
from tests.inspection.explain.drivers import CASES, HEALTHY, read
from tests.support.places import ROOT, SAMPLES
from tests.support.remedies import remove

CAUSES = {
    "changelog-changelog-1-missing-uncommitted": "state-changelog-missing",
    "changelog-changelog-1-empty-uncommitted": "state-file-cut",
    "changelog-logs-commits-ahead": "commits-ahead-of-offsets",
    "changelog-logs-logs-gone-state-left": "state-location-not-empty",
    "changelog-logs-metadata-missing": "metadata-missing",
    "changelog-logs-predecessor-missing-uncommitted": "batch-does-not-exist",
    "changelog-operator-gone-uncommitted": "state-directory-missing",
    "changelog-operator-metadata-unknown-operator-uncommitted": "state-operator-changed",
    "changelogs-sst-all-cut-uncommitted": "state-sst-size",
    "commit-ahead-empty": "empty-commit",
    "commit-ahead-json-cut-early": "json-cut",
    "commit-ahead-v9": "log-of-other-state-format",
    "commit-latest-blank-line": "malformed-log-file",
    "contents-join-changelog-rows-missing": "join-state-inconsistent",
    "crc-orphan-commit-latest": "rename-onto-existing",
    "damaged-expired-deltas": "state-delta-missing",
    "damaged-file-source-log-hole": "file-source-log-hole",
    "damaged-missing-join-store": "state-delta-missing",
    "damaged-missing-sst": "state-sst-missing",
    "damaged-one-source-short": "number-of-sources",
    "damaged-truncated-sst": "state-sst-size",
    "damaged-tws-missing-schema": "state-schema-file-moved",
    "flipped-aggregation-changelog-4.0-changelog-02": "state-file-cut",
    "flipped-aggregation-rocksdb-4.2-sst-00": "state-rocksdb-damaged",
    "flipped-schema-type-stale-crc": "state-key-schema",
    "made-tws-avro-changelog-4.2-moved": "state-schema-file-moved",
    "metadata-directory": "metadata-is-directory",
    "metadata-empty-uncommitted": "metadata-unreadable",
    "metadata-garbage-uncommitted": "metadata-unreadable",
    "offset-latest-only-v1-uncommitted": "log-file-cut-after-version",
    "snapshots-of-4.0-no-older-changelogs": "state-lineage-incomplete",
}
FAILED = [(minor, case) for minor, cases in CASES.items() for case in cases]
logs = cache(read)


def causes(text: str) -> list[str]:
    """Without other causes of the same text."""
    return [match.error.id for match in explain(text).matches if match.error.twin is None]


@pytest.mark.parametrize(("minor", "case"), FAILED, ids=lambda word: word)
def test_the_cause_of_a_failed_query_is_first(minor: str, case: str) -> None:
    assert causes(logs()[f"{minor}-{case}"])[0] == CAUSES[case]


PROGRAMS = [(minor, name, cause) for minor, causes in programs.CAUSES.items() for name, cause in causes.items()]
INNERMOST = {
    "foreach_batch_raises": "ValueError: batch 0 holds the poison row 7",
    "foreach_batch_merge": "AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] The table or view `shop`.`prices`",
    "foreach_raises": "ConnectionError: the shop answered 503",
    "udf_raises": "ZeroDivisionError: integer division or modulo by zero",
    "udf_out_of_memory": "MemoryError",
    "assertion_in_sql": "the row 7 is not allowed",
    "division_by_zero": "[DIVIDE_BY_ZERO] Division by zero.",
    "processor_raises": "KeyError: 'no price for 2 among 4 rows'",
}
"""Program -> what its innermost cause says; none for an error that says itself what it is."""


@pytest.mark.parametrize(("minor", "name", "cause"), PROGRAMS, ids=lambda word: word)
def test_the_cause_of_a_failed_program_is_first(minor: str, name: str, cause: str) -> None:
    first = explain(logs()[programs.path_of(minor, name).name.removesuffix(".log.gz")]).matches[0]
    assert first.error.id == cause
    assert INNERMOST.get(name, "") in (first.innermost or "")
    assert (first.innermost is None) == (name not in INNERMOST)


def test_the_page_says_how_many_logs_there_are() -> None:
    total = len(FAILED) + len(PROGRAMS)
    assert total > 75
    page = (ROOT / "docs" / "evidence" / "errors.md").read_text()
    assert f"- {total} whole driver logs of real queries that failed, {len(FAILED)} of them on damaged" in page


def test_the_innermost_cause_is_of_the_last_failure() -> None:
    one, other = logs()["4.2-program-udf-raises"], logs()["4.2-program-foreach-batch-raises"]
    assert explain(one + other).matches[0].innermost == INNERMOST["foreach_batch_raises"]
    assert explain(other + one).matches[0].innermost == INNERMOST["udf_raises"]


def test_what_a_batch_job_says_too_is_known_by_the_stack_of_a_query() -> None:
    failed = "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times"
    batch = "\n\tat org.apache.spark.sql.Dataset.count(Dataset.scala:1)"
    stream = "\n\tat org.apache.spark.sql.execution.streaming.MicroBatchExecution.runBatch(MicroBatchExecution.scala:1)"
    assert causes(failed + batch) == []
    assert causes(failed + batch + stream) == causes(failed) == ["task-failed"]


@pytest.mark.parametrize(
    ("cause", "reason"),
    {
        "executor-lost": "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: \n"
        "The executor with id 3 exited with exit code 137(SIGKILL, possible container OOM).",
        "storage-file-vanished": "java.io.FileNotFoundException: File does not exist: hdfs://prod/c/state/0/3/12.delta",
        "task-failed": "com.example.Unknown: why",
    }.items(),
)
def test_what_a_task_died_of_is_the_cause_and_not_that_a_task_failed(cause: str, reason: str) -> None:
    failed = "Job aborted due to stage failure: Task 2 in stage 5.0 failed 4 times, most recent failure: Lost task 2.3"
    assert causes(f"SparkException: {failed} in stage 5.0 (TID 40) (10.1.2.3 executor 3): {reason}")[0] == cause


@pytest.mark.parametrize(("minor", "case"), HEALTHY.items())
def test_nothing_is_found_in_the_log_of_a_query_that_ran(minor: str, case: str) -> None:
    assert causes(logs()[f"{minor}-{case}"]) == []


def test_the_last_failure_counts() -> None:
    one, other = logs()["4.2-damaged-one-source-short"], logs()["4.2-metadata-directory"]
    assert causes(one + other)[0] == "metadata-is-directory"
    assert causes(other + one)[0] == "number-of-sources"
    healthy = logs()[f"4.2-{HEALTHY['4.2']}"]
    assert causes(healthy + one + healthy)[0] == "number-of-sources"


_ENDED = re.compile(r"Query \[id = ([0-9a-f-]{36}), .* terminated with error")


@pytest.mark.parametrize("names", [*permutations(["damaged-one-source-short", "damaged-missing-sst"])])
@pytest.mark.parametrize("asked", [0, 1])
def test_of_two_queries_that_failed_the_one_of_the_checkpoint_counts(
    names: tuple[str, str], asked: int, copy_of: CopyOf
) -> None:
    """Two queries of one driver, whose ends are in one log, in either order."""
    texts = [logs()[f"4.2-{name}"] for name in names]
    (query_id, *_) = _ENDED.findall(texts[asked])
    top = copy_of("aggregation-rocksdb-4.2")
    remove(top / "metadata")
    (top / "metadata").write_text(json.dumps({"id": query_id}))
    found = explain("".join(texts), checkpoint=str(top))
    assert found.matches[0].error.id == causes(texts[asked])[0]
    assert not any("belongs to query" in said for said in found.contradictions)
    other = explain("".join(texts), checkpoint=str(SAMPLES / "aggregation-rocksdb-4.2"))
    assert [match.error.id for match in other.matches] == [match.error.id for match in explain("".join(texts)).matches]
    assert any("belongs to query" in said for said in other.contradictions)


AIRFLOW = "[2026-11-22, 23:21:39 UTC] {spark_submit.py:579} INFO - "
CONTAINER = "2026-11-22T23:21:39.123456789Z stderr F "


@pytest.mark.parametrize("prefix", [AIRFLOW, CONTAINER])
@pytest.mark.parametrize("name", ["4.1-changelog-changelog-1-empty-uncommitted", "3.5-damaged-expired-deltas"])
def test_a_log_inside_a_log_is_read(name: str, prefix: str) -> None:
    text = logs()[name]
    assert causes("".join(f"{prefix}{line}\n" for line in text.splitlines())) == causes(text)


def test_structured_and_escaped_lines_are_read() -> None:
    frames = [{"class": "org.apache.spark.sql.execution.streaming.state.RocksDB", "method": "load", "line": 1}]
    thrown = {"class": "java.io.EOFException", "msg": None, "stacktrace": frames}
    line = json.dumps({"ts": "2026-11-22T23:21:39Z", "level": "ERROR", "msg": "Query terminated", "exception": thrown})
    assert causes(line) == ["state-file-cut"]

    escaped = (
        "2026-11-22 23:21:39 ERROR X: java.io.EOFException\\n\\tat a.B.c(B.java:1)\\n\\tat "
        "org.apache.spark.sql.execution.streaming.state.RocksDB.load(RocksDB.scala:1)"
    )
    assert causes(escaped) == ["state-file-cut"]


@pytest.mark.parametrize("key", ["msg", "message", "log", "textPayload", "other"])
def test_a_message_inside_json_is_read(key: str) -> None:
    assert causes(json.dumps({"time": "x", key: "batch 4 doesn't exist\n", "stream": "stderr"})) == [
        "batch-does-not-exist"
    ]
    assert causes(json.dumps({"level": ["x"], key: "batch 4 doesn't exist", "exception": {"class": {}}})) == [
        "batch-does-not-exist"
    ]


def test_a_stack_elsewhere_is_not_of_a_checkpoint() -> None:
    elsewhere = "java.io.EOFException\n\tat com.example.Shop.read(Shop.java:1)"
    assert causes(elsewhere) == []
    mine = "java.util.NoSuchElementException: next on empty iterator\n\tat com.example.Shop.read(Shop.java:1)"
    assert causes(mine) == []


@pytest.mark.slow
def test_a_large_compressed_log_is_read_in_bounded_memory() -> None:
    text = logs()["4.2-damaged-one-source-short"]
    noise = logs()[f"4.2-{HEALTHY['4.2']}"]
    packed = gzip.compress((noise * 30 + text).encode(), 1)
    found = explain(io.BytesIO(packed)).matches
    assert found[0].error.id == "number-of-sources"


UNRELATED = sorted((Path(__file__).parent / "unrelated").iterdir())


@pytest.mark.parametrize("path", UNRELATED, ids=lambda path: path.stem)
def test_in_a_log_of_something_else_nothing_is_found_and_nothing_is_near(path: Path) -> None:
    text = path.read_text()
    for one in (text, *text.splitlines()):
        found = explain(one)
        assert (found.matches, found.nearest) == ((), ())


@pytest.mark.slow
def test_little_of_the_recorded_logs_is_near_an_error() -> None:
    lines = {line[:200] for text in logs().values() for line in text.splitlines()[::17] if not line.startswith("\tat")}
    near = [line for line in lines if find_nearest(line) and not explain(line).matches]
    assert len(near) * 200 < len(lines), near


def test_what_was_thrown_by_python_is_seen() -> None:
    text = 'Traceback (most recent call last):\n  File "/app/x.py", line 3, in <module>\nKeyError: 3\n'
    assert explain(text).seen == "KeyError: 3"


def test_what_is_near_has_most_words_of_a_message() -> None:
    assert [
        near.error.id for near in find_nearest("streaming queries are concurrently using file:/data/ck/commits.")
    ] == ["rename-onto-existing"]
    assert find_nearest("FileNotFoundException") == find_nearest("File /data/state/x does not exist") == ()


def test_blank_lines_cost_nothing() -> None:
    assert sum(map(len, read_chunks(io.BytesIO(b"\n" * 3_000_000)))) < 10
    assert sum(map(len, read_chunks(io.BytesIO(b" \r\n" * 1_000_000)))) < 10
    assert causes("\n" * 3_000_000 + "batch 4 doesn't exist") == ["batch-does-not-exist"]


def test_hostile_text_ends() -> None:
    endless = "Copied " * 40_000 + " to " * 40_000 + "expected 1" + "1" * 60_000
    assert causes(endless) == []
    assert causes("\n".join(["[" * 5000, "batch " * 10_000, "\\n\\tat " * 9_000, '{"a":' * 9_000])) == []
    assert causes("a" * 3_000_000) == []
    assert causes(("a" * 98 + "." + "A" * 97 + ".") * 600 + "Error") == []
    assert (
        causes("\n".join([" " * 60_000 + "at ", "[" + "A" * 90 + "[" + "B" * 60_000, "{" * 60_000 + "batch 1"])) == []
    )
    assert causes("\x00\x1b[2J batch 4 doesn't exist") == ["batch-does-not-exist"]
    assert causes("\x1f\x8b not gzip") == []


def test_of_a_long_line_only_the_beginning_is_compared_with_a_checkpoint() -> None:
    """The pattern of paths takes as long as the square of a line: a minute for one of 60,000 characters."""
    line = f"batch 4 doesn't exist in /other/offsets/4{' ' * 3000}/another/offsets/4 {'/a' * 15_000}"
    assert explain(line, checkpoint=SAMPLES / "kafka-4.2").contradictions == (
        "the text names /other, which is another path",
    )
    assert explain(line.replace("/other/offsets/4", "offsets"), checkpoint=SAMPLES / "kafka-4.2").contradictions == ()
