"""Every log file of the bundled samples, and of Spark's own test resources where they are at hand."""

from pathlib import Path

import pytest

from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import decode, source_type, source_views
from ckpt.formats.commits import format_commit_log, parse_commit_log
from ckpt.formats.names import compactible_id, compactible_log, sort_batch_names
from ckpt.formats.offsets import format_offset_log, is_continuous, parse_offset_log
from ckpt.formats.sourcelogs import parse_kafka_start, parse_source_log
from ckpt.model import CommitLog, OffsetLog, Unreadable
from tests.support.places import GOLDENS, SAMPLES

EVERY_SAMPLE = sorted(path.parent for path in SAMPLES.glob("*/metadata"))

needs_golden = pytest.mark.skipif(not GOLDENS.is_dir(), reason="../shared/golden is not there")


def log_files(root: Path, folder: str) -> list[Path]:
    folders = [path for path in root.rglob(folder) if path.is_dir()]
    return [
        path / str(batch_id)
        for path in folders
        for batch_id in sort_batch_names(entry.name for entry in path.iterdir() if entry.is_file()).ids
    ]


def check_offsets(path: Path) -> OffsetLog:
    raw = path.read_bytes()
    log = parse_offset_log(str(path), raw)
    assert isinstance(log, OffsetLog), log
    assert format_offset_log(log) == raw
    assert log.sources
    return log


def check_commit(path: Path) -> CommitLog:
    raw = path.read_bytes()
    log = parse_commit_log(str(path), raw)
    assert isinstance(log, CommitLog), log
    assert format_commit_log(log) == raw
    return log


@needs_golden
def test_golden_offset_files_come_back_byte_for_byte():
    files = log_files(GOLDENS, "offsets")
    assert len(files) > 25
    for path in files:
        log = check_offsets(path)
        assert log.metadata is not None
        assert log.metadata.timestamp_ms >= 1000
        assert is_continuous(log) is False
        assert all(source.well_formed for source in log.sources)


@needs_golden
def test_golden_commit_files_come_back_byte_for_byte():
    files = [*log_files(GOLDENS, "commits"), *GOLDENS.glob("testCommitLog*/testCommitLog")]
    assert len(files) > 25
    logs = {path: check_commit(path) for path in files}
    written_by_2_3 = GOLDENS / "checkpoint-version-2.3.1-streaming-aggregate-state-format-1" / "commits"
    assert logs[written_by_2_3 / "0"].next_watermark_ms is None
    second = logs[GOLDENS / "testCommitLogV2" / "testCommitLog"].state_unique_ids
    assert second is not None
    assert second[1] == (("unique_id5", "unique_id6"), ("unique_id7", "unique_id8"))


@pytest.mark.parametrize("sample", EVERY_SAMPLE, ids=lambda path: path.name)
def test_log_files_of_samples_come_back_byte_for_byte(sample):
    """Damaged samples too: what can be read at all comes back as it was."""
    for path in log_files(sample, "offsets"):
        log = parse_offset_log(str(path), path.read_bytes())
        if isinstance(log, OffsetLog):
            assert format_offset_log(log) == path.read_bytes()
    for path in log_files(sample, "commits"):
        commit = parse_commit_log(str(path), path.read_bytes())
        if isinstance(commit, CommitLog) and len(path.read_bytes()) > 3:
            assert format_commit_log(commit) == path.read_bytes()


@pytest.mark.parametrize("sample", ["file-source-3.5", "file-source-4.2"])
def test_file_source_log_of_samples(sample):
    """Each compacted file names the files of all entries up to its own, each plain one those of its entry."""
    folder = SAMPLES / sample / "sources" / "0"
    names = [path.name for path in folder.iterdir() if compactible_id(path.name) is not None]
    assert compactible_log(names).missing == ()
    for name in names:
        files = parse_source_log(name, (folder / name).read_bytes())
        assert isinstance(files, tuple)
        entry = compactible_id(name) or 0
        entries = {file.log_offset for file in files}
        assert entries == (set(range(entry + 1)) if name.endswith(".compact") else {entry})


def test_kafka_start_of_sample():
    start = parse_kafka_start("sources/0/0", (SAMPLES / "kafka-4.2" / "sources" / "0" / "0").read_bytes())
    assert not isinstance(start, Unreadable)
    assert source_type(decode(start)) is SourceType.KAFKA


def test_delta_and_continuous_samples():
    delta = check_offsets(log_files(next(SAMPLES.glob("delta*")), "offsets")[-1])
    assert [view.type for view in source_views(delta)] == [SourceType.DELTA]
    for path in log_files(SAMPLES / "continuous-4.2", "offsets"):
        assert is_continuous(check_offsets(path)) is True
