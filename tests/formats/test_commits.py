from ckpt.formats.commits import format_commit_log, parse_commit_log
from ckpt.model import CommitLog, Fault, Unreadable


def parsed(text: str) -> CommitLog:
    log = parse_commit_log("commits/7", text.encode())
    assert isinstance(log, CommitLog), log
    return log


def fault(text: str) -> Fault:
    log = parse_commit_log("commits/7", text.encode())
    assert isinstance(log, Unreadable), log
    return log.fault


def test_old_and_short_files_that_spark_accepts():
    for text in ("v1", "v1\n", "v1\n{}", "v1 \n{} and more\nand more"):
        assert parsed(text) == CommitLog(1, None)
    assert format_commit_log(CommitLog(1, None)) == b"v1\n{}"


def test_version_1_has_no_unique_ids_whatever_it_says():
    assert parsed('v1\n{"stateUniqueIds":{"0":[["a"]]}}').state_unique_ids is None


def test_faults():
    assert fault("") is Fault.EMPTY
    assert fault("v1\n\n") is Fault.INCOMPLETE
    assert fault("v3") is Fault.INCOMPLETE
    assert fault("v9\n{}") is Fault.NEWER_VERSION
    assert fault("v0\n{}") is Fault.BAD_VERSION
    assert fault('v1\n{"nextBatchWatermarkMs":1') is Fault.TRUNCATED_JSON
    assert fault('v2\n{"stateUniqueIds":{"x":[]}}') is Fault.BAD_JSON
    assert fault("v1\nnull") is Fault.BAD_JSON
