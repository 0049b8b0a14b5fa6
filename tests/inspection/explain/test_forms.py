"""A text is explained as it was written, in whatever form it is pasted, and other programs' stacks never are."""

from collections.abc import Iterable
from functools import cache
from io import BytesIO
from itertools import product

import pytest

from ckpt.inspection.explain.catalog import catalog
from ckpt.inspection.explain.explain import explain
from ckpt.inspection.explain.forms import clean, unwrap
from tests.inspection.explain.drivers import read
from tests.inspection.explain.pastes import FORMS
from tests.support.spark.live import EVERY_CASE

_EACH = 1 if EVERY_CASE else 42
"""Of the texts, each form is tried on one of so many, beginning with another one than the form before."""
SAMPLES = {error.id: error.sample for error in catalog() if error.twin is None}
logs = cache(read)


def some(texts: Iterable[str], form: str) -> list[str]:
    return [*texts][[*FORMS].index(form) % _EACH :: _EACH]


def first(text: str) -> str | None:
    matches = explain(text).matches
    return matches[0].error.id if matches else None


def test_a_sample_in_any_form_is_explained_as_before() -> None:
    forms = [*FORMS.values()]
    turned = {name: forms[number % len(forms)](sample) for number, (name, sample) in enumerate(SAMPLES.items())}
    assert {name: first(text) for name, text in turned.items()} == {name: name for name in SAMPLES}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_sample_in_every_form_is_explained_as_before(form: str) -> None:
    names = some(SAMPLES, form)
    assert [first(FORMS[form](SAMPLES[name])) for name in names] == names


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_log_in_every_form_has_the_same_cause(form: str) -> None:
    assert len(logs()) > 80
    names = some(logs(), form)
    assert [first(FORMS[form](logs()[name])) for name in names] == [first(logs()[name]) for name in names]


PROGRAMS = {
    "Flink": (
        "org.apache.flink.streaming.runtime.tasks.StreamTask.invoke",
        "org.apache.flink.runtime.taskmanager.Task.run",
    ),
    "Kafka Streams": (
        "org.apache.kafka.streams.state.internals.RocksDBStore.put",
        "org.apache.kafka.streams.processor.internals.StreamThread.run",
    ),
    "Kafka Connect": (
        "org.apache.kafka.connect.runtime.WorkerSinkTask.poll",
        "org.apache.kafka.connect.runtime.WorkerTask.run",
    ),
    "Trino": ("io.trino.execution.executor.TaskExecutor$TaskRunner.run", "io.trino.operator.Driver.process"),
    "Hive": ("org.apache.hadoop.hive.ql.exec.MoveTask.moveFile", "org.apache.hadoop.hive.ql.Driver.runInternal"),
    "HBase": (
        "org.apache.hadoop.hbase.regionserver.HStore.openStoreFiles",
        "org.apache.hadoop.hbase.regionserver.HRegion.initialize",
    ),
    "MapReduce": (
        "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter.commitJob",
        "org.apache.hadoop.mapred.MapTask.run",
    ),
    "Cassandra": (
        "org.apache.cassandra.db.commitlog.CommitLogReader.readCommitLogSegment",
        "org.apache.cassandra.service.CassandraDaemon.setup",
    ),
    "Elasticsearch": (
        "org.elasticsearch.index.translog.Translog.recoverFromFiles",
        "org.elasticsearch.threadpool.ThreadPool.run",
    ),
    "NiFi": (
        "org.apache.nifi.controller.repository.WriteAheadFlowFileRepository.loadFlowFiles",
        "org.apache.nifi.NiFi.main",
    ),
    "Beam": ("org.apache.beam.sdk.io.FileBasedSource.split", "org.apache.beam.runners.direct.DirectRunner.run"),
    "a Spark batch job": (
        "org.apache.spark.sql.execution.datasources.FileFormatWriter$.write",
        "org.apache.spark.sql.classic.Dataset.count",
    ),
    "a shop": ("com.example.shop.Archive.read", "com.example.shop.Main.main"),
}
"""Program -> methods of its own code, as its public sources have them."""

LIBRARIES = ("java.base/java.io.DataInputStream.readInt", "org.apache.hadoop.fs.FileSystem.get", "scala.Predef$.assert")
THROWN = (
    "java.io.EOFException",
    "java.lang.AssertionError: assertion failed",
    "java.lang.NullPointerException",
    "java.lang.OutOfMemoryError: Java heap space",
    "java.lang.OutOfMemoryError: GC overhead limit exceeded",
    "java.util.NoSuchElementException: next on empty iterator",
    "java.util.NoSuchElementException: None.get",
    "java.io.IOException: No space left on device",
    "java.io.IOException: Stream is corrupted",
    "java.nio.charset.MalformedInputException: Input length = 1",
    'java.lang.NumberFormatException: For input string: "8_5d1ed5a6-0c0e-4b6a-9e0f-3e1f5d2a7b11"',
    "com.fasterxml.jackson.core.io.JsonEOFException: Unexpected end-of-input in field name",
    "com.fasterxml.jackson.databind.exc.MismatchedInputException: No content to map due to end-of-input",
    "java.lang.IllegalArgumentException: Can not create a Path from an empty string",
    "java.lang.IllegalArgumentException: Invalid UUID string: x",
    "org.rocksdb.RocksDBException: While open a file: /t/LOCK: No space left on device",
    "java.lang.ClassNotFoundException: com.example.shop.Codec",
    'org.apache.hadoop.security.AccessControlException: Permission denied: user=etl, access=WRITE, inode="/w"',
    'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "s3"',
    "java.lang.IllegalArgumentException: Wrong FS: hdfs://a/warehouse, expected: file:///",
    "java.io.IOException: rename from /warehouse/a to /warehouse/b failed.",
    "org.apache.hadoop.fs.FileAlreadyExistsException: rename destination /warehouse/b already exists",
    "java.lang.IllegalArgumentException: java.net.UnknownHostException: nameservice1",
    "java.net.ConnectException: Call From host/10.0.0.1 to nn:8020 failed on connection exception: "
    "java.net.ConnectException: Connection refused",
    "java.io.FileNotFoundException: /warehouse/b (Permission denied)",
    "org.rocksdb.RocksDBException: block checksum mismatch: stored = 1, computed = 2, type = 4  in /t/8.sst",
    "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: [orders]",
    "org.apache.kafka.common.errors.TimeoutException: Timeout expired while fetching topic metadata",
    "org.apache.kafka.common.errors.RecordTooLargeException: 2000 bytes when serialized which is larger than 1",
    "java.nio.file.AccessDeniedException: s3a://b/w: getFileStatus on s3a://b/w: (Service: S3, Status Code: 403)",
    "com.amazonaws.services.s3.model.AmazonS3Exception: The provided token has expired. (Error Code: ExpiredToken)",
    "com.amazonaws.SdkClientException: Unable to execute HTTP request: Timeout waiting for connection from pool",
    "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException: Failed to CREATE_FILE /warehouse/a for DFSClient_1",
    "java.io.IOException: Filesystem closed",
    "org.apache.hadoop.fs.s3a.UnknownStoreException: s3a://nowhere/warehouse: The specified bucket does not exist",
)  # fmt: skip


def _stack(program: str, thrown: str) -> str:
    frames = (LIBRARIES[len(thrown) % len(LIBRARIES)], *PROGRAMS[program], "java.base/java.lang.Thread.run")
    return "\n".join((thrown, *(f"\tat {frame}(Source.java:{number})" for number, frame in enumerate(frames, 7))))


FOREIGN = [_stack(program, thrown) for program, thrown in product(PROGRAMS, THROWN)]


@pytest.mark.slow
def test_the_stack_of_another_program_is_not_explained() -> None:
    assert len(FOREIGN) > 300
    assert [(text, found) for text in FOREIGN if (found := first(text))] == []


@pytest.mark.slow
@pytest.mark.parametrize("form", [form for form in FORMS if form != "cut"])
def test_the_stack_of_another_program_is_not_explained_in_any_form(form: str) -> None:
    assert [(text, found) for text in some(FOREIGN, form) if (found := first(FORMS[form](text)))] == []


def test_the_head_of_every_entry_above_a_foreign_stack_is_what_it_is_in_tabs() -> None:
    """An entry that needs a frame of its own is lost, in whatever form the frames are."""
    frames = [f"at {frame}(Source.java:7)" for frame in PROGRAMS["a shop"]]
    wrong = []
    for error in catalog():
        head = error.sample.split("\n")[0]
        if error.frames and not error.classes and not any(frame in head for frame in error.frames):
            flat, quoted = "\n".join([head, *frames]), "\n> ".join(["> " + head, *frames])
            found = [match.error.id for text in (flat, quoted) for match in explain(text).matches]
            wrong += [error.id] if error.id in found else []
    assert wrong == []


@pytest.mark.parametrize("text", ["KAFKA_DATA_LOSS.PARTITIONS_DELETED\n", '{"errorClass": "CONCURRENT_QUERY"}\n'])
def test_a_class_alone_is_known_in_a_file_too(text: str) -> None:
    assert [match.error.id for match in explain(BytesIO(text.encode())).matches] == [
        "kafka-partitions-deleted" if "KAFKA" in text else "query-started-twice"
    ]


@pytest.mark.parametrize(("sample", "given"), [("async-kafka-4.2", False), ("file-source-4.2", True)])
def test_an_error_of_a_source_that_the_checkpoint_does_not_have_is_not_given(sample: str, given: bool) -> None:
    found = explain(SAMPLES["file-source-log-lost"], checkpoint=f"sample_checkpoints/{sample}").matches
    assert [match.error.id for match in found] == ["file-source-log-lost"] * given


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("> a\n> \tat a.b.C.d(C.java:1)", ["a", "\tat a.b.C.d(C.java:1)"]),
        ("x: 1 at a.b.C.d(C.java:1) Caused by: e.F", ["x: 1", "\tat a.b.C.d(C.java:1)", "Caused by: e.F"]),
        ("26/11/24 23:34:58 ERROR Utils: Aborting", ["26/11/24 23:34:58 ERROR Utils: Aborting"]),
        ("he looked at the file (a.java:1) of it", ["he looked at the file (a.java:1) of it"]),
        ("&quot;a&quot; &lt;b&gt;", ['"a" <b>']),
        ('{"errorClass": "A_B.C", "n": 1}', ["[A_B.C] "]),
        ('{\n "error": {"error_class": "AB_C"}\n}', ["[AB_C] "]),
        ("KAFKA_DATA_LOSS\n", ["[KAFKA_DATA_LOSS]"]),
        ("it says `KAFKA_DATA_LOSS`", ["it says [KAFKA_DATA_LOSS]"]),
        ("There are \\[1\\] sources in my\\_checkpoint", ["There are [1] sources in my_checkpoint"]),
        (" * a.b.CException: d\n *   at e.f.G.h(I)\n * j", ["a.b.CException: d", "\tat e.f.G.h(I)", "j"]),
        ('{"level":"WARN","logger":"a.B","msg":"c","exception":{"class":"d.E","msg":"f","stacktrace":'
         '[{"class":"g.H","method":"i","file":"j"}]}}', ["WARN B: c", "d.E: f", "\tat g.H.i(j)"]),
        ('{"message":"a","thrown":{"name":"b.CException","message":"d","extendedStackTrace":"\\tat e.f.G(H)\\n",'
         '"cause":{"name":"i.JError"}}}', ["a", "b.CException: d", "\tat e.f.G(H)", "", "Caused by: i.JError: None"]),
    ],
)  # fmt: skip
def test_a_form_is_undone(text: str, lines: list[str]) -> None:
    assert clean(text) == lines


def test_lines_that_are_not_wrapped_stay_apart() -> None:
    lines = ["java.io.IOException: short", "\tat a.b.C.d(C.java:1)", "Caused by: x.YException: z", "\t... 3 more"]
    assert unwrap(lines) == lines
    assert clean("\n".join(lines)) == lines


def test_an_exception_below_a_line_of_full_width_stays_a_line_of_its_own() -> None:
    ended = "26/11/24 23:34:5{} ERROR MicroBatchExecution: Query orders [id = 1, runId = 2] terminated with error"
    cause = "java.lang.IllegalStateException: batch 4 doesn't exist"
    lines = [part for number in range(4) for part in (ended.format(number), cause)]
    assert clean("\n".join(lines)) == lines
    name = "a" * 59 + " org.apache.spark."
    cut = [name, "sql.AnalysisException: b", *["c" * len(name)] * 3, "d"]
    assert clean("\n".join(cut))[0].endswith("org.apache.spark.sql.AnalysisException: b")


@pytest.mark.parametrize(
    "error", ["no-file-system", "moved-file-system", "checkpoint-file-manager", "hdfs-unknown-host"]
)
def test_a_moved_checkpoint_says_itself_that_it_was_moved(error: str) -> None:
    match = explain(SAMPLES[error], checkpoint="sample_checkpoints/tws-avro-changelog-4.2").matches[0]
    assert [rated.code for rated in match.shown] == ["CKPT305"]
    assert "relocate" in str(match.shown[0].advice)
