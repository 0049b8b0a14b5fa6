"""Seeded damages of one byte or 64 to the state files of samples, and which bytes no checksum covers."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

import pyarrow as pa

from tests.support.places import SAMPLE_NAMES, SAMPLES

SEED = 20261122
KINDS = ("delta", "snapshot", "changelog", "zip", "sst")
HEADER, MAGIC = 21, b"LZ4Block"
FOOTER = 53


class Damage(NamedTuple):
    """Bytes of one file, and how they are changed."""

    path: Path
    at: int
    pattern: bytes

    def apply(self) -> bytes:
        data = bytearray(self.path.read_bytes())
        for place, bits in enumerate(self.pattern, self.at):
            data[place] ^= bits
        return bytes(data)


@cache
def state_files() -> dict[str, list[Path]]:
    """The state files of undamaged samples by their kind."""
    found: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    for name in SAMPLE_NAMES:
        if not name.startswith("damaged-"):
            for path in sorted((SAMPLES / name / "state").rglob("*.*")):
                if path.suffix[1:] in found and path.name[0] != "." and path.stat().st_size:
                    found[path.suffix[1:]].append(path)
    return found


def damages(count: int) -> Iterator[Damage]:
    """So many, equally of each kind of file."""
    rng = Random(SEED)
    files = state_files()
    for number in range(count):
        path = rng.choice(files[KINDS[number % len(KINDS)]])
        width = min(rng.choice((1, 64)), path.stat().st_size)
        pattern = bytes(rng.randrange(1, 256) for _ in range(width))
        yield Damage(path, rng.randrange(path.stat().st_size - width + 1), pattern)


def uncovered(data: bytes, kind: str) -> set[int]:
    """The places of bytes that no checksum covers, and whose change does no harm in itself."""
    if kind == "sst":
        return _of_sst(data)
    if kind == "zip":
        return _of_zip(data)
    return _of_stream(data)


def same_content(before: bytes, after: bytes, kind: str) -> bool:
    """Whether a damaged file unpacks to what it was: some compressed bytes can be others that mean the same."""
    if kind == "sst":
        return False
    try:
        return _unpacked(before, kind) == _unpacked(after, kind)
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError):
        return False


def _unpacked(data: bytes, kind: str) -> list[tuple[str, bytes]]:
    if kind == "zip":
        with zipfile.ZipFile(io.BytesIO(data)) as found:
            return [(name, found.read(name)) for name in found.namelist()]
    blocks, at = [], 0
    while int.from_bytes(data[at + 9 : at + 13], "little"):
        token, stored, length = data[at + 8], *struct.unpack_from("<ii", data, at + 9)
        body = data[at + HEADER : at + HEADER + stored]
        plain = body if token & 0xF0 == 0x10 else pa.Codec("lz4_raw").decompress(body, length, asbytes=True)
        blocks.append(("", bytes(plain)))
        at += HEADER + stored
    return blocks


def _of_stream(data: bytes) -> set[int]:
    """The lower half of each token (a level, of which only one too low does harm), and the mark at the end."""
    at, found = 0, set[int]()
    while at < len(data):
        found.add(at + len(MAGIC))
        length = int.from_bytes(data[at + 9 : at + 13], "little")
        if not length:
            return found | set(range(at, len(data)))
        at += HEADER + length
    return found


def _of_sst(data: bytes) -> set[int]:
    """What pads the two handles in the footer."""
    start = len(data) - FOOTER
    at = start + 1
    for _ in range(4):
        while data[at] & 0x80:
            at += 1
        at += 1
    return set(range(at, start + 41))


def _of_zip(data: bytes) -> set[int]:
    """The central directory, which Spark does not read, and of each local header versions, times, and sizes."""
    directory = data.rindex(b"PK\x01\x02", 0, len(data))
    while (before := data.rfind(b"PK\x01\x02", 0, directory)) >= 0:
        directory = before
    found, at = set(range(directory, len(data))), 0
    while (at := data.find(b"PK\x03\x04", at, directory)) >= 0:
        found |= {at + 4, at + 5, at + 7, *range(at + 10, at + 26)}  # the descriptor after the entry counts
        found.add(at + 6)  # of the flags, two count
        at += 30
    return found
