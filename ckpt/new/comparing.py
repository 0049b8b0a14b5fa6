"""State files of a copy, compared with their checksum files while both are read to be written."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from zlib import crc32

from ckpt.checkpoint.checkpoint import STATE
from ckpt.formats import sidecars
from ckpt.formats.statefiles import CHECKSUM
from ckpt.model import Unreadable


@dataclass(slots=True)
class _Sums:
    """Checksums of a file, as far as it was read."""

    hadoop: "array[int]" = field(default_factory=lambda: array("I"))
    rest: bytes = b""  # the end of what was read, too short for a checksum of Hadoop
    spark: int = 0  # CRC32C, unsigned; 0 where no package computes it
    size: int = 0


@dataclass(slots=True)
class ReadSums:
    """Sums of the state files that were read, and their checksum files."""

    _sums: dict[str, _Sums] = field(default_factory=dict)
    _checksum_files: dict[str, bytes] = field(default_factory=dict)

    def add(self, path: str, piece: bytes, *, first: bool = True) -> None:
        """Take note of a file, or of a piece of one."""
        if not path.startswith(f"{STATE}/"):
            return
        if path.endswith(CHECKSUM):
            self._checksum_files[path] = piece if first else self._checksum_files[path] + piece
            return
        sums = self._sums[path] = _Sums() if first else self._sums[path]
        data = sums.rest + piece
        ends = range(sidecars.BYTES_PER_CHECKSUM, len(data) + 1, sidecars.BYTES_PER_CHECKSUM)
        sums.hadoop.extend(crc32(data[end - sidecars.BYTES_PER_CHECKSUM : end]) for end in ends)
        sums.rest = data[len(ends) * sidecars.BYTES_PER_CHECKSUM :]
        sums.size += len(piece)
        if find_spec("google_crc32c") is not None:
            from ckpt.formats.checksums import crc32c

            sums.spark = crc32c(piece, sums.spark)

    def find_wrong(self) -> Iterator[str]:
        """Files that one of their checksum files is not of."""
        for path, sums in sorted(self._sums.items()):
            folder, _, name = path.rpartition("/")
            hidden = self._checksum_files.get(f"{folder}/{sidecars.hadoop_sidecar_name(name)}")
            own = self._checksum_files.get(path + CHECKSUM)
            if _differs(None if hidden is None else sidecars.parse_hadoop_sidecar(path, hidden), sums) or _differs(
                None if own is None else sidecars.parse_spark_sidecar(path, own), sums
            ):
                yield path


def _differs(recorded: sidecars.HadoopChecksums | sidecars.SparkChecksum | Unreadable | None, sums: _Sums) -> bool:
    match recorded:
        case sidecars.HadoopChecksums(bytes_per_checksum=piece, values=values):
            own = sums.hadoop + array("I", [crc32(sums.rest)] if sums.rest else [])
            return piece == sidecars.BYTES_PER_CHECKSUM and values != own
        case sidecars.SparkChecksum(algorithm="CRC32C", value=value, size=size):
            return size != sums.size or (sums.spark != 0 and value & 0xFFFFFFFF != sums.spark)
        case _:
            return isinstance(recorded, Unreadable)
