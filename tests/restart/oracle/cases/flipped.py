"""Bytes changed somewhere in a state file, with and without the hidden checksum that Hadoop kept of it.

Chosen by a seed: one byte, or 64 in a row, of a file that a load of the newest version may read.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

from .model import SAMPLES, Case, Mutation, delete, delete_logs, latest, replace
from .operators import HOMES, QUERIES

SEED = 20261123
P0 = "state/0/0"
_SCHEMA = f"{P0}/_metadata/schema"

_CHOSEN: tuple[tuple[str, str, int], ...] = (
    ("aggregation-hdfs-3.5", "*.delta", 14),
    ("aggregation-hdfs-4.2", "[5-9]*.delta", 8),
    ("aggregation-hdfs-4.2", "*.snapshot", 10),
    ("aggregation-changelog-4.0", "*.changelog", 10),
    ("aggregation-changelog-4.2", "10.changelog", 6),
    ("aggregation-changelog-4.2", "9.zip", 14),
    ("aggregation-changelog-4.2", "9.zip/SSTs", 16),
    ("aggregation-rocksdb-4.2", "6.zip", 10),
    ("aggregation-rocksdb-4.2", "6.zip/SSTs", 16),
    ("aggregation-format2-4.2", "*.zip", 3),
    ("aggregation-format2-4.2", "*.changelog", 3),
    ("join-changelog-4.2", "right-keyWithIndexToValue/*.changelog", 5),
    ("session-window-hdfs-3.5", "*.delta", 5),
    ("tws-changelog-4.0", "*.changelog", 5),
    ("tws-rocksdb-4.2", "3.zip/SSTs", 6),
)
"""A sample, files of its partition 0 (or the SST files that a zip of it names), and how many damages."""


def flip(path: str, at: int, pattern: bytes, *, keep_crc: bool) -> Mutation:
    """Change the bytes from `at` on where bits of `pattern` are set."""
    return {"op": "flip", "path": path, "at": at, "hex": pattern.hex()} | ({"keep_crc": True} if keep_crc else {})


def _pattern(rng: Random, width: int) -> bytes:
    return bytes([1 << rng.randrange(8)]) if width == 1 else bytes(rng.randrange(1, 256) for _ in range(width))


def _files(folder: Path, pattern: str) -> Iterable[Path]:
    name, _, _ = pattern.partition("/SSTs")
    if not pattern.endswith("/SSTs"):
        return folder.glob(pattern)
    with zipfile.ZipFile(folder / name) as snapshot:
        named = json.loads(snapshot.read("metadata").partition(b"\n")[2])
    return [folder / "SSTs" / one["dfsSstFileName"] for one in named["sstFiles"]]


def _random() -> Iterator[Case]:
    for sample, pattern, count in _CHOSEN:
        rng = Random(f"{SEED}-{sample}-{pattern}")
        root = SAMPLES / sample
        files = sorted(_files(root / P0, pattern)) if root.is_dir() else []
        for number in range(count if files else 0):
            file, width, keep_crc = rng.choice(files), rng.choice((1, 64)), rng.random() < 0.5
            at = rng.randrange(max(file.stat().st_size - width, 1))
            damage = flip(str(file.relative_to(root)), at, _pattern(rng, width), keep_crc=keep_crc)
            kind = f"{file.suffix[1:]}-{number:02}" + ("-stale-crc" if keep_crc else "")
            yield Case(f"flipped-{sample}-{kind}", sample, (*HOMES[sample], damage), QUERIES[sample])


def _in_the_checksum(sample: str, names: tuple[str, ...]) -> Iterator[Case]:
    """The hidden checksum is wrong, and the file that it is of is whole."""
    for name in names:
        folder, _, file = f"{P0}/{name}".rpartition("/")
        damage = flip(f"{folder}/.{file}.crc", 9, b"\x10", keep_crc=True)
        kind = file.rpartition(".")[2]
        yield Case(f"flipped-crc-of-{sample}-{kind}", sample, (*HOMES[sample], damage), QUERIES[sample])


def _ends() -> Iterator[Case]:
    """One bit of the end mark of a stream, of the padding in the footer of an SST file, of a zip's directory."""
    for sample, name, places in (
        ("aggregation-hdfs-3.5", "6.delta", (-21, -13, -1)),
        ("aggregation-changelog-4.2", "10.changelog", (-21, -13, -1)),
        ("aggregation-hdfs-4.2", "8.snapshot", (-13,)),
        ("aggregation-changelog-4.2", "9.zip", (-1, -22, -40)),
        ("aggregation-changelog-4.2", "SSTs/{first}", (-1, -12, -14, -53)),
    ):
        root = SAMPLES / sample / P0
        if "{first}" in name and root.is_dir():
            name = f"SSTs/{min(path.name for path in _files(root, '9.zip/SSTs'))}"
        if not (root / name).is_file():
            continue
        for at in places:
            damage = flip(f"{P0}/{name}", at, b"\x04", keep_crc=False)
            kind = f"{name.rpartition('.')[2]}{at}"
            yield Case(f"flipped-end-of-{sample}-{kind}", sample, (damage,), QUERIES[sample])


def _older() -> Iterator[Case]:
    """Files that only older batches need, and snapshots whose logs are gone or whole."""
    flipped = flip(f"{P0}/3.zip", 200, b"\xff" * 64, keep_crc=False)
    yield Case("flipped-older-zip", "aggregation-changelog-4.2", (flipped,), "aggregation")
    newest = flip(f"{P0}/9.zip", 200, b"\xff" * 64, keep_crc=False)
    for name, more in {
        "newest-zip-and-older-zip": (newest, flip(f"{P0}/6.zip", 200, b"\xff" * 64, keep_crc=False)),
        "newest-zip-and-a-changelog": (newest, flip(f"{P0}/8.changelog", 40, b"\xff" * 8, keep_crc=False)),
        "newest-zip-no-changelog": (newest, *delete(f"{P0}/8.changelog")),
    }.items():
        yield Case(f"flipped-{name}", "aggregation-changelog-4.2", more, "aggregation")
    last = latest("aggregation-changelog-4.2")
    yield Case(
        "flipped-newest-zip-uncommitted",
        "aggregation-changelog-4.2",
        (newest, *delete_logs(commits=[last])),
        "aggregation",
    )


def _described() -> Iterator[Case]:
    """State schemas and operator metadata that still can be read, beside the checksum that Hadoop kept of them."""
    for name, damage in {
        "schema-type": replace(_SCHEMA, '"long"', '"byte"'),
        "schema-name": replace(_SCHEMA, '"name":"count"', '"name":"coumt"'),
        "schema-unknown": replace(_SCHEMA, '"long"', '"lonh"'),
        "operator-metadata-partitions": replace("state/0/_metadata/metadata", '"numPartitions":2', '"numPartitions":3'),
    }.items():
        sample = "aggregation-changelog-4.2"
        yield Case(f"flipped-{name}-stale-crc", sample, (dict(damage) | {"keep_crc": True},), "aggregation")


_DESCRIPTIONS: tuple[tuple[str, str, int], ...] = (
    ("aggregation-hdfs-3.5", f"{P0}/_metadata/schema", 6),
    ("aggregation-changelog-4.2", f"{P0}/_metadata/schema", 6),
    ("join-changelog-4.2", f"{P0}/left-keyWithIndexToValue/_metadata/schema", 4),
    ("tws-rocksdb-4.2", "state/0/_stateSchema/default/[0-9]*", 6),
    ("aggregation-changelog-4.2", "state/0/_metadata/metadata", 6),
    ("tws-rocksdb-4.2", "state/0/_metadata/v2/[0-9]*", 4),
)
"""A sample, files that describe its state, and how many damages of one byte."""


def _in_descriptions() -> Iterator[Case]:
    """As on a storage without hidden checksums: nothing but what they say shows that they were changed."""
    for sample, pattern, count in _DESCRIPTIONS:
        rng = Random(f"{SEED}-{sample}-{pattern}")
        root = SAMPLES / sample
        files = sorted(root.glob(pattern)) if root.is_dir() else []
        for number in range(count if files else 0):
            file = rng.choice(files)
            at = rng.randrange(file.stat().st_size)
            damage = flip(str(file.relative_to(root)), at, _pattern(rng, 1), keep_crc=False)
            kind = "schema" if "chema" in pattern else "metadata"
            yield Case(f"flipped-{sample}-{kind}-{number:02}", sample, (*HOMES[sample], damage), QUERIES[sample])


def cases() -> Iterator[Case]:
    yield from _random()
    yield from _in_the_checksum("aggregation-hdfs-3.5", ("6.delta",))
    zipped = SAMPLES / "aggregation-changelog-4.2" / P0
    if zipped.is_dir():
        first = min(path.name for path in _files(zipped, "9.zip/SSTs"))
        yield from _in_the_checksum("aggregation-changelog-4.2", ("10.changelog", "9.zip", f"SSTs/{first}"))
    yield from _in_the_checksum("aggregation-hdfs-4.2", ("8.snapshot",))
    yield from _ends()
    yield from _older()
    yield from _described()
    yield from _in_descriptions()
