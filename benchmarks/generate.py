"""Checkpoints of any size, grown from a sample: every file is a copy of one that Spark wrote."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

SAMPLES = Path(__file__).resolve().parent.parent / "sample_checkpoints"
STATELESS = SAMPLES / "stateless-4.2"
HDFS = SAMPLES / "aggregation-hdfs-4.2"
CHANGELOG = SAMPLES / "aggregation-changelog-4.2"

SNAPSHOT = 10  # the version that has a snapshot: a load of version 20 replays ten more, as many as Spark lets pile up

_BEGAN = 1_790_000_000  # when batch 0 was planned, in seconds since 1970 UTC


def long_log(target: Path, batches: int) -> int:
    """A stateless checkpoint with many batches, each with its hidden checksum files; says how many files it has."""
    _copy(STATELESS / "metadata", target / "metadata")
    return 1 + _logs(STATELESS, target, batches, {})


def wide_state(sample: Path, target: Path, partitions: int, versions: int = 20) -> int:
    """A stateful checkpoint with many partitions of the sample's store; says how many files it has."""
    _copy(sample / "metadata", target / "metadata")
    described = list(_described(sample / "state/0"))
    for path in described:
        _copy(path, target / path.relative_to(sample))
    files = _partition(sample / "state/0/0", versions)
    for partition in range(partitions):
        for name, data in files.items():
            _write(target / "state/0" / str(partition) / name, data)
    logs = _logs(sample, target, versions, {"spark.sql.shuffle.partitions": str(partitions)})
    return 1 + len(described) + partitions * len(files) + logs


def times_of_batches(checkpoint: Path) -> None:
    """Give each file the time at which a query that takes ten seconds for each batch would have written it."""
    for path in checkpoint.rglob("[0-9]*"):
        within = {"offsets": 0, "commits": 8}.get(path.parent.name)
        if path.suffix in (".delta", ".changelog", ".snapshot", ".zip"):
            within = -5  # version V is the state after batch V - 1
        if within is not None and path.is_file():
            number = int(re.split("[._]", path.name)[0])
            os.utime(path, (_BEGAN + 10 * number + within,) * 2)


def _logs(sample: Path, target: Path, batches: int, conf: dict[str, str]) -> int:
    """Offsets and commits of every batch, all as in the sample's latest but for ``conf``."""
    files = 0
    for folder in ("offsets", "commits"):
        latest = max((sample / folder).glob("[0-9]*"), key=lambda path: int(path.name))
        text = latest.read_bytes()
        sidecar = (latest.parent / f".{latest.name}.crc").read_bytes()
        if folder == "offsets" and conf:
            version, metadata, *sources = text.decode().split("\n")
            fields = json.loads(metadata)
            fields["conf"] |= conf
            text = "\n".join([version, json.dumps(fields, separators=(",", ":")), *sources]).encode()
        (target / folder).mkdir()
        for batch in range(batches):
            _write(target / folder / str(batch), text)
            files += 1
            if not conf:
                _write(target / folder / f".{batch}.crc", sidecar)
                files += 1
    return files


def _described(operator: Path) -> Iterator[Path]:
    """Operator metadata and state schema."""
    yield operator / "_metadata/metadata"
    yield operator / "0/_metadata/schema"


def _partition(sample: Path, versions: int) -> dict[str, bytes]:
    """The files of one partition: a delta or changelog of each version, and one snapshot with what it names."""
    log = min(sample.glob("[0-9]*.delta"), default=None) or min(sample.glob("[0-9]*.changelog"))
    snapshot = max(path for path in sample.glob("[0-9]*.*") if path.suffix in (".snapshot", ".zip"))
    files = {f"{version}{log.suffix}": log.read_bytes() for version in range(1, versions + 1)}
    files[f"{SNAPSHOT}{snapshot.suffix}"] = snapshot.read_bytes()
    for path in sample.glob("SSTs/[!.]*"):
        files[f"SSTs/{path.name}"] = path.read_bytes()
    return files


def _copy(path: Path, target: Path) -> None:
    _write(target, path.read_bytes())


def _write(path: Path, data: bytes) -> None:
    """Write a small file in as few calls as there are, because there are many."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        handle = os.open(path, flags, 0o644)
    except FileNotFoundError:
        path.parent.mkdir(parents=True)
        handle = os.open(path, flags, 0o644)
    try:
        os.write(handle, data)
    finally:
        os.close(handle)
