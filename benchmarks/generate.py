"""Checkpoints of any size, grown from a sample: its offsets and commits copied, its state written by ckpt."""

import json
import os
import re
from pathlib import Path

import pyarrow as pa

import ckpt
from ckpt.formats.changelog import changes_of
from ckpt.formats.rows.codecs import decompress
from ckpt.formats.sst import first_keys
from ckpt.formats.statefiles import LZ4
from ckpt.new.rewrite.snapshots import FileForm, make_changes
from ckpt.new.rewrite.stored_rows import make_stored

SAMPLES = Path(__file__).resolve().parent.parent / "sample_checkpoints"
STATELESS = SAMPLES / "stateless-4.2"
HDFS = SAMPLES / "aggregation-hdfs-4.2"
CHANGELOG = SAMPLES / "aggregation-changelog-4.2"

SNAPSHOT = 10  # the version that has a snapshot: a load of version 20 replays ten more, as many as Spark lets pile up

_KEYS = 20  # of each partition, on average
_CHANGED = 3  # keys of a partition in each batch
_BEGAN = 1_790_000_000  # when batch 0 was planned, in seconds since 1970 UTC


def long_log(target: Path, batches: int) -> int:
    """A stateless checkpoint with many batches, each with its hidden checksum files; says how many files it has."""
    _copy(STATELESS / "metadata", target / "metadata")
    return 1 + _logs(STATELESS, target, batches, {})


def wide_state(sample: Path, target: Path, partitions: int, versions: int = 20, keys: int = _KEYS) -> int:
    """A stateful checkpoint with many partitions, all with ``keys`` of their own; says how many files it has.

    In a partition there are a delta or changelog of each version, and one snapshot with what it names.
    """
    schema = ckpt.read_state_arrow(str(sample)).schema
    numbers = pa.array(range(keys * partitions))
    rows = pa.table([numbers.cast(field.type) for field in schema], schema=schema)
    target.parent.mkdir(parents=True, exist_ok=True)
    ckpt.write_state({"operator 0": rows}, str(target), like=str(sample), partitions=partitions)
    for partition in range(partitions):
        folder = target / "state/0" / str(partition)
        name, log = _log(folder)
        for version in range(1, versions + 1):
            _write(folder / f"{version}{name}", log)
    _logs(sample, target, versions, {"spark.sql.shuffle.partitions": str(partitions)})
    return sum(len(files) for _, _, files in os.walk(target))


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
        (target / folder).mkdir(exist_ok=True)
        for batch in range(batches):
            _write(target / folder / str(batch), text)
            files += 1
            if not conf:
                _write(target / folder / f".{batch}.crc", sidecar)
                files += 1
    return files


def _log(partition: Path) -> tuple[str, bytes]:
    """A log that puts a few keys of a partition again, and how its name ends."""
    snapshot = partition / f"{SNAPSHOT}.snapshot"
    if snapshot.exists():
        keys = [record.key for record in changes_of(decompress(iter([snapshot.read_bytes()]), LZ4))]
    else:
        (sst,) = partition.glob("SSTs/*.sst")
        keys = [*first_keys(sst.read_bytes())]
    rows = make_stored(keys[:_CHANGED], [key + key[-8:] for key in keys[:_CHANGED]])  # both values are the key's number
    log = make_changes(make_stored([], []), rows, FileForm(LZ4, checksums=False), families=False, rocksdb=False)
    return ".delta" if snapshot.exists() else ".changelog", log


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
