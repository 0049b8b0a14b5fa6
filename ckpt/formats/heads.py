"""The first bytes of a compressed state file, for all codecs of Spark but lzf."""

import struct
from collections.abc import Iterator

from ckpt.formats.lz4 import BadBlock, decompress_first_block

HEAD = 192 << 10
"""Bytes that surely hold the first block, which is 128 KiB long at most in zstd."""

_SNAPPY = b"\x82SNAPPY\x00"
_SNAPPY_HEADER = 16
_LONGEST_BLOCK = 1 << 25
_MOST = 1 << 17  # bytes of text and its length: no lineage is longer
_PIECE = 1 << 12


def decompress_head(head: bytes, codec: str) -> bytes:
    """The first bytes of what a file contains; ``head`` is its beginning. Raises BadBlock where none can be read."""
    match codec:
        case "lz4":
            return decompress_first_block(head)
        case "zstd":
            return _decompress_zstd(head)
        case "snappy":
            return _decompress_snappy(head)
    raise BadBlock(f"ckpt does not read the codec {codec}")


def _decompress_zstd(head: bytes) -> bytes:
    import pyarrow as pa  # not at the top: nothing else here needs it

    unpacked = b""
    try:
        with pa.CompressedInputStream(pa.BufferReader(head), "zstd") as stream:
            while len(unpacked) < _MOST and (piece := stream.read(_PIECE)):
                unpacked += piece
    except (OSError, pa.ArrowInvalid) as error:  # at the end of what there is, at the latest
        if not unpacked:
            raise BadBlock(str(error)) from None
    return unpacked


def _decompress_snappy(head: bytes) -> bytes:
    unpacked = b""
    try:
        for block in snappy_blocks(head):
            unpacked += block
            if len(unpacked) >= _MOST:
                break
    except BadBlock:
        if not unpacked:
            raise
    return unpacked


def snappy_blocks(data: bytes) -> Iterator[bytes]:
    """The blocks of a stream of snappy-java: after a header, their length as a big-endian int, and a block of snappy.

    Raises BadBlock where one cannot be decompressed.
    """
    import pyarrow as pa

    codec, at = pa.Codec("snappy"), _SNAPPY_HEADER
    if not data.startswith(_SNAPPY):
        raise BadBlock("it does not begin as a stream of snappy-java does")
    while at < len(data):
        if data.startswith(_SNAPPY, at):  # streams may be put one after another
            at += _SNAPPY_HEADER
            continue
        try:
            (length,) = struct.unpack_from(">i", data, at)
            body = data[at + 4 : at + 4 + length]
            if length <= 0 or len(body) < length:
                raise BadBlock("a block ends early")
            yield codec.decompress(body, _length(body), asbytes=True)
        except (struct.error, OSError, pa.ArrowInvalid) as error:
            raise BadBlock(str(error)) from None
        at += 4 + length


def _length(body: bytes) -> int:
    """The length that a block says it unpacks to: seven bits in each byte."""
    length = 0
    for index, byte in enumerate(body[:5]):
        length |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            break
    if length > _LONGEST_BLOCK:
        raise BadBlock("an impossible length")
    return length
