"""Every log file of the bundled samples, and of Spark's own test resources where they are at hand."""

from pathlib import Path

import pytest

from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import decode, source_type, source_views
from ckpt.formats.commits import format_commit_log, parse_commit_log
from ckpt.formats.metadata import parse_metadata
from ckpt.formats.names import compactible_id, compactible_log, sort_batch_names
from ckpt.formats.offsets import format_offset_log, is_continuous, parse_offset_log
from ckpt.formats.sidecars import (
    HadoopChecksums,
    SparkChecksum,
    build_hadoop_sidecar,
    parse_hadoop_sidecar,
    parse_spark_sidecar,
)
from ckpt.formats.sourcelogs import parse_kafka_start, parse_source_log
from ckpt.model import CommitLog, OffsetLog, QueryMetadata, Unreadable
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


@needs_golden
@pytest.mark.parametrize("batch_id", range(4))
def test_golden_offset_map_names_its_source(batch_id):
    """Spark's test resources; unlike a file that Spark wrote they end with a line end."""
    raw = (GOLDENS / "offset-map" / str(batch_id)).read_bytes()
    log = parse_offset_log(f"offsets/{batch_id}", raw)
    assert isinstance(log, OffsetLog)
    assert (log.version, [(s.name, s.value) for s in log.sources]) == (2, [("0", batch_id)])
    assert format_offset_log(log) + b"\n" == raw


@needs_golden
def test_golden_metadata():
    files = list(GOLDENS.rglob("metadata"))
    query = [path for path in files if (path.parent / "offsets").is_dir()]
    assert len(query) > 10
    for path in query:
        record = parse_metadata(str(path), path.read_bytes())
        assert isinstance(record, QueryMetadata)
        assert len(record.query_id) == 36


@needs_golden
def test_golden_checksums_match():
    sidecars = [path for path in GOLDENS.rglob(".*.crc") if path.with_name(path.name[1:-4]).is_file()]
    assert len(sidecars) > 20
    for path in sidecars:
        data = path.with_name(path.name[1:-4]).read_bytes()
        record = parse_hadoop_sidecar(str(path), path.read_bytes())
        assert isinstance(record, HadoopChecksums)
        assert record.match(data)
        assert build_hadoop_sidecar(data) == path.read_bytes()


def test_there_are_samples():
    assert EVERY_SAMPLE


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


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli) bit by bit, as a signed 32-bit number."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


def test_spark_checksums_of_samples_are_of_the_file_beside_them():
    sidecars = [path for path in SAMPLES.rglob("*.crc") if not path.name.startswith(".")]
    assert sidecars
    compared = 0
    for path in sidecars:
        record = parse_spark_sidecar(str(path), path.read_bytes())
        assert isinstance(record, SparkChecksum), path
        assert record.algorithm == "CRC32C"
        main = path.with_name(path.name.removesuffix(".crc"))
        if main.is_file() and main.stat().st_size == record.size < 3000:
            assert crc32c(main.read_bytes()) == record.value
            compared += 1
    assert compared > 5


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
