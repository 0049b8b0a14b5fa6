r"""Checksum files: Hadoop's hidden ``.N.crc`` and the JSON ``N.crc`` of Spark 4.1 and later.

Hadoop (``ChecksumFileSystem``, local paths only): ``crc\0``, the number of bytes per checksum as a
big-endian int32 (512 unless ``file.bytes-per-checksum`` says otherwise), then one big-endian CRC32 for each
such piece of the file.

Spark (``ChecksumCheckpointFileManager``, any file system, next to state files): the JSON of its class
``Checksum``, with the CRC32C as a signed 32-bit number and the size of the main file.
"""

import json
import sys
from array import array
from struct import pack, unpack_from
from typing import NamedTuple
from zlib import crc32

from ckpt.formats.extract import fields_of, long_field, text_field
from ckpt.formats.text import Damaged, json_of, lines_of, tolerant
from ckpt.model import Fault

BYTES_PER_CHECKSUM = 512
"""Hadoop's default piece (``file.bytes-per-checksum``)."""

_MAGIC = b"crc\0"


class HadoopChecksums(NamedTuple):
    """One ``.N.crc``."""

    bytes_per_checksum: int
    values: "array[int]"  # unsigned CRC32 of each piece

    def match(self, data: bytes) -> bool:
        """Tell whether these are the checksums of ``data``."""
        return self.values == _checksums(data, self.bytes_per_checksum)


class SparkChecksum(NamedTuple):
    """One ``<file>.crc`` (Spark class ``Checksum``, 4.1 and later)."""

    algorithm: str  # CRC32C
    value: int  # signed 32-bit, as Spark writes it
    size: int  # of the main file, bytes
    timestamp_ms: int


def _checksums(data: bytes, piece: int) -> "array[int]":
    return array("I", (crc32(data[start : start + piece]) for start in range(0, len(data), piece)))


def hadoop_sidecar_name(name: str) -> str:
    """``.N.crc`` for ``N`` (``ChecksumFileSystem.getChecksumFile``)."""
    return f".{name}.crc"


def sidecar(path: str) -> str:
    """The path of a file's hidden checksum file."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{hadoop_sidecar_name(name)}"


def shown_name(name: str) -> str:
    """The name of the file that a name stands for: ``N`` for ``N`` itself and for its hidden ``.N.crc``."""
    hidden = len(name) > 5 and name.startswith(".") and name.endswith(".crc")
    return name[1:-4] if hidden else name


def is_temporary(name: str) -> bool:
    """Tell whether an interrupted write left a file of this name: ``.N.<uuid>.tmp``, and ``temp-<long>`` of Spark 2."""
    number = shown_name(name).removeprefix("temp-").removeprefix("-")
    return name.endswith((".tmp", ".tmp.crc")) or ("temp-" in name and number.isdecimal())


def is_temporary_metadata(path: str) -> bool:
    """Tell whether a path of a checkpoint is what an interrupted write of ``metadata`` left."""
    return path.lstrip(".").startswith("metadata.") and is_temporary(path) and "/" not in path


def build_hadoop_sidecar(data: bytes) -> bytes:
    """The bytes of ``.N.crc`` for a file ``N`` holding ``data``."""
    values = _checksums(data, BYTES_PER_CHECKSUM)
    return _MAGIC + pack(f">i{len(values)}I", BYTES_PER_CHECKSUM, *values)


def build_spark_sidecar(data: bytes, timestamp_ms: int) -> bytes:
    """The bytes of ``<file>.crc`` for a file holding ``data``, as Spark 4.1 and later write it."""
    from ckpt.formats.checksums import crc32c  # not at the top: whoever only reads these files needs none

    value = crc32c(data)
    written = {
        "algorithm": "CRC32C",
        "value": value - (1 << 32) if value >> 31 else value,
        "mainFileSize": len(data),
        "timestampMs": timestamp_ms,
        "creator": {"executorId": "driver", "taskInfo": "ckpt"},
    }
    return json.dumps(written, separators=(",", ":")).encode()


@tolerant
def parse_hadoop_sidecar(raw: bytes) -> HadoopChecksums:
    """Read ``.N.crc``."""
    if not raw:
        raise Damaged(Fault.EMPTY, "the checksum file is empty")
    if not raw.startswith(_MAGIC):
        raise Damaged(Fault.BAD_BINARY, "it does not start like a Hadoop checksum file")
    if len(raw) < 8 or len(raw) % 4:
        raise Damaged(Fault.BAD_BINARY, "the checksum file is truncated")
    (piece,) = unpack_from(">i", raw, len(_MAGIC))
    if piece <= 0:
        raise Damaged(Fault.BAD_BINARY, f"it uses {piece} bytes per checksum")
    values = array("I", raw[8:])
    if sys.byteorder == "little":
        values.byteswap()
    return HadoopChecksums(piece, values)


@tolerant
def parse_spark_sidecar(raw: bytes) -> SparkChecksum:
    """Read ``<file>.crc``, one JSON object."""
    lines = lines_of(raw)
    if not lines:
        raise Damaged(Fault.EMPTY, "the checksum file is empty")
    fields = fields_of(json_of("\n".join(lines)))
    return SparkChecksum(
        algorithm=text_field(fields, "algorithm") or "",
        value=long_field(fields, "value"),
        size=long_field(fields, "mainFileSize"),
        timestamp_ms=long_field(fields, "timestampMs"),
    )
