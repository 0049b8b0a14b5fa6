"""Every byte of an LZ4 block stream: deltas, changelogs and HDFS-backed snapshots.

Judged as ``LZ4BlockInputStream`` of lz4-java does, which knows a damaged header from a whole one, compares the checksum
of each block, and continues after an empty one. The stream is never in memory as a whole.
"""

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from ckpt.formats.checksums import of_lz4_block
from ckpt.formats.compression import HEADER_LENGTH, STORED, Corrupt, read_block_header, unpack_block

SMALL_BLOCK = 1 << 13
"""Bytes of a compressed block up to which ckpt unpacks it by itself, rather than import pyarrow for it."""

_SKIPPED = 1 << 20  # bytes at a time


class Pieces:
    """A file that is read in pieces, from its beginning."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.at = 0  # of the next byte
        self._pieces = pieces
        self._held = b""
        self._from = 0

    def take(self, count: int) -> bytes:
        """The next bytes; fewer where the file ends."""
        end = self._from + count
        if end <= len(self._held):
            taken, self._from = self._held[self._from : end], end
            self.at += count
            return taken
        parts, missing = [self._held[self._from : self._from + count]], count
        self._from += len(parts[0])
        while (missing := missing - len(parts[-1])) and (piece := next(self._pieces, b"")):
            parts.append(piece[:missing])
            self._held, self._from = piece, len(parts[-1])
        taken = b"".join(parts)
        self.at += len(taken)
        return taken

    def skip(self, count: int) -> int:
        """Pass over the next bytes; how many there were."""
        left = count
        while left and (skipped := len(self.take(min(left, _SKIPPED)))):
            left -= skipped
        return count - left


class LeadsOutside(Corrupt):
    """A block that repeats bytes from before its beginning.

    lz4-java refuses it in Spark 4.0 and later. In 3.5 it copies whatever is in memory there, and accepts the block if
    the checksum still matches.
    """


@dataclass(slots=True)
class Stream:
    """How far a stream could be read."""

    length: int = 0  # of the decompressed data, bytes
    end: int = 0  # of the last block with data, in the file
    tail: bytes = b""  # the last bytes of the data
    marked: bool = False  # the last block read was the empty one of the end
    wrong: str | None = None  # why what follows the last good block is no block
    cut: bool = False  # that is a block which the file does not hold to its end

    def blocks(self, pieces: Pieces) -> Iterator[bytes]:
        """The decompressed blocks. Raises Corrupt where a block is complete and does not match its checksum."""
        while header := pieces.take(HEADER_LENGTH):
            at = pieces.at - len(header)
            if len(header) < HEADER_LENGTH:
                self.wrong, self.cut = f"the {len(header)} bytes from byte {at:,} on are not a block", True
                return
            try:
                method, stored, length, checksum = read_block_header(header)
            except Corrupt as error:
                self.wrong = f"the header of the block at byte {at:,} {error}"
                return
            self.marked = length == 0
            if self.marked:
                continue
            most = length + length // 255 + 16  # that LZ4 makes of so many bytes; what is longer is not held
            body = pieces.take(stored) if stored <= most else b""
            if len(body) < stored and (stored <= most or pieces.skip(stored) < stored):
                self.wrong, self.cut = f"the block at byte {at:,} is truncated", True
                return
            block = body if method == STORED else _decompress(body, length, at)
            if of_lz4_block(block) != checksum:
                raise Corrupt(f"the block at byte {at:,} does not match its checksum")
            self.length, self.end = self.length + length, pieces.at
            self.tail = (self.tail + block[-8:])[-8:]
            yield block


def _decompress(body: bytes, length: int, at: int) -> bytes:
    if len(body) > SMALL_BLOCK or "pyarrow" in sys.modules:
        import pyarrow as pa  # not at the top: it takes longer than a look at a small checkpoint

        with suppress(pa.ArrowInvalid, OSError):
            unpacked: bytes = pa.Codec("lz4_raw").decompress(body, length, asbytes=True)
            if len(unpacked) == length:
                return unpacked
    kind: type[Corrupt] = Corrupt
    with suppress(Corrupt):
        unpacked, outside = unpack_block(body, length)
        if not outside and len(body) <= SMALL_BLOCK:
            return unpacked
        kind = LeadsOutside if outside else Corrupt
    raise kind(f"the block at byte {at:,} cannot be decompressed")
