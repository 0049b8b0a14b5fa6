from ckpt.formats.commits import format_commit_log, parse_commit_log
from ckpt.model import CommitLog, Fault, SinkCommit, Unreadable

V3 = (
    'v3\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{"0":[["a","b"],["c"]]},"sinkMetadataMap":{"main":{"sinkName":"main",'
    '"commitOffset":"{\\"offset\\":5}","providerName":"p","apiVersion":"v2","isActive":true}}}'
)


def parsed(text: str) -> CommitLog:
    log = parse_commit_log("commits/7", text.encode())
    assert isinstance(log, CommitLog), log
    return log


def fault(text: str) -> Fault:
    log = parse_commit_log("commits/7", text.encode())
    assert isinstance(log, Unreadable), log
    return log.fault


def test_version_1():
    assert parsed('v1\n{"nextBatchWatermarkMs":12}') == CommitLog(1, 12)


def test_old_and_short_files_that_spark_accepts():
    for text in ("v1", "v1\n", "v1\n{}", "v1 \n{} and more\nand more"):
        assert parsed(text) == CommitLog(1, None)
    assert format_commit_log(CommitLog(1, None)) == b"v1\n{}"


def test_version_2():
    log = parsed('v2\n{"nextBatchWatermarkMs":3,"stateUniqueIds":{"10":[["a"]],"2":[]}}')
    assert log == CommitLog(2, 3, {10: (("a",),), 2: ()})
    assert parsed("v2\n{}").state_unique_ids is None


def test_version_1_has_no_unique_ids_whatever_it_says():
    assert parsed('v1\n{"stateUniqueIds":{"0":[["a"]]}}').state_unique_ids is None


def test_version_3():
    log = parsed(V3)
    assert log.sinks == (SinkCommit("main", '{"offset":5}', "p", True, "v2"),)
    assert log.state_unique_ids == {0: (("a", "b"), ("c",))}
    assert format_commit_log(log).decode() == V3


def test_version_3_as_spark_4_3_writes_it():
    text = (
        'v3\n{"nextBatchWatermarkMs":0,"sinkMetadataMap":{"main":{"sinkName":"main","commitOffset":"-","providerName":'
        '"org.apache.spark.sql.execution.datasources.noop.NoopTable$","apiVersion":"DSv2","isActive":true}}}'
    )
    log = parsed(text)
    assert [(sink.name, sink.commit_offset, sink.active) for sink in log.sinks] == [("main", "-", True)]
    assert format_commit_log(log).decode() == text


def test_faults():
    assert fault("") is Fault.EMPTY
    assert fault("v1\n\n") is Fault.INCOMPLETE
    assert fault("v3") is Fault.INCOMPLETE
    assert fault("v9\n{}") is Fault.NEWER_VERSION
    assert fault("v0\n{}") is Fault.BAD_VERSION
    assert fault('v1\n{"nextBatchWatermarkMs":1') is Fault.TRUNCATED_JSON
    assert fault('v2\n{"stateUniqueIds":{"x":[]}}') is Fault.BAD_JSON
    assert fault("v1\nnull") is Fault.BAD_JSON
