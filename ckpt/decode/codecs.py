"""What Spark's codecs (``spark.sql.streaming.stateStore.compression.codec``) made of deltas, snapshots and changelogs.

lz4: ``LZ4BlockOutputStream`` (``ckpt.formats.lz4``), whose blocks carry a checksum. zstd: a plain stream of zstd, which
may carry one. snappy: ``SnappyOutputStream`` of snappy-java, without any.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import xxhash

from ckpt.decode.trouble import WITH_SPARK, TooLarge, Undecodable
from ckpt.formats import lz4
from ckpt.formats.lz4 import COMPRESSED, HEADER_LENGTH, BadBlock, block_header, checksum_of
from ckpt.formats.pieces import Pieces

MOST_BYTES = 1 << 30
"""How much of a partition is unpacked into memory, which then takes three to four times as much."""

_SNAPPY = b"\x82SNAPPY\x00"
_PIECE = 1 << 22


def decompressed(file: Iterator[bytes], codec: str, most: int = MOST_BYTES) -> bytes:
    """What a file contains, at most so many bytes. It is given in pieces, and read as far as its codec goes.

    Raises Undecodable where it is damaged, too large or of a codec that ckpt does not know.
    """
    unpack = _CODECS.get(codec)
    if unpack is None:
        raise Undecodable(f"ckpt does not read the compression codec {codec} (it reads {', '.join(_CODECS)})")
    pieces, total = [], 0
    try:
        for piece in unpack(Pieces(file)):
            total += len(piece)
            if total > most:
                raise TooLarge(f"it unpacks to more than {most:,} bytes, too much for memory: {WITH_SPARK}")
            pieces.append(piece)
    except (BadBlock, struct.error, pa.ArrowInvalid, OSError) as error:
        raise Undecodable(f"it cannot be decompressed with {codec}: {error}") from None
    return b"".join(pieces)


def compressed(data: bytes) -> bytes:
    """Bytes as ``LZ4BlockOutputStream`` writes them."""
    return b"".join(_lz4_blocks(data)) + lz4.END


def _lz4_blocks(data: bytes) -> Iterator[bytes]:
    codec = pa.Codec("lz4_raw")
    for at in range(0, len(data), lz4.BLOCK):
        plain = data[at : at + lz4.BLOCK]
        body = codec.compress(plain, asbytes=True)
        method = COMPRESSED if len(body) < len(plain) else lz4.STORED
        checksum = checksum_of(plain, xxhash.xxh32_intdigest)
        yield lz4.block(method, body if method == COMPRESSED else plain, len(plain), checksum)


def _lz4(file: Pieces) -> Iterator[bytes]:
    codec = pa.Codec("lz4_raw")
    while True:
        method, compressed, length, checksum = block_header(file.take(HEADER_LENGTH), 0)
        body = file.take(compressed)
        if len(body) < compressed:
            raise BadBlock("a block ends early")
        if not length:
            return
        block = codec.decompress(pa.py_buffer(body), length, asbytes=True) if method == COMPRESSED else body
        if len(block) != length or checksum_of(block, xxhash.xxh32_intdigest) != checksum:
            raise BadBlock("the checksum of a block does not match")
        yield block


def _whole(file: Pieces) -> bytes:
    data = file.take(MOST_BYTES)
    if file.take(1):
        raise Undecodable(f"it has more than {MOST_BYTES:,} bytes, too many to be read without Spark")
    return data


def _zstd(file: Pieces) -> Iterator[bytes]:
    with pa.CompressedInputStream(pa.BufferReader(_whole(file)), "zstd") as stream:
        while piece := stream.read(_PIECE):
            yield piece


def _snappy(file: Pieces) -> Iterator[bytes]:
    """After a header, chunks: their length as a big-endian int, and a block of snappy."""
    codec, at, data = pa.Codec("snappy"), 16, _whole(file)
    if not data.startswith(_SNAPPY):
        raise BadBlock("it does not begin as a stream of snappy-java does")
    while at < len(data):
        if data.startswith(_SNAPPY, at):  # streams may be put one after another
            at += 16
            continue
        (length,) = struct.unpack_from(">i", data, at)
        body = data[at + 4 : at + 4 + length]
        if length <= 0 or len(body) < length:
            raise BadBlock("a block ends early")
        yield codec.decompress(body, _snappy_length(body), asbytes=True)
        at += 4 + length


def _snappy_length(body: bytes) -> int:
    """The length that a block says it unpacks to: seven bits in each byte."""
    found = 0
    for place, byte in enumerate(body[:5]):
        found |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    if found > _MOST_IN_A_BLOCK:
        raise BadBlock("an impossible length")
    return found


_MOST_IN_A_BLOCK = 1 << 25
_CODECS: dict[str, Callable[[Pieces], Iterator[Any]]] = {"lz4": _lz4, "zstd": _zstd, "snappy": _snappy}
