"""The first bytes of a compressed state file, for all codecs of Spark but lzf."""

import struct
from collections.abc import Iterator

from ckpt.formats.lz4 import BadBlock, first_block

HEAD = 192 << 10
"""Bytes that surely hold the first block, which is 128 KiB long at most in zstd."""

_SNAPPY = b"\x82SNAPPY\x00"
_SNAPPY_HEADER = 16
_LONGEST_BLOCK = 1 << 25
_MOST = 1 << 17  # bytes of text and its length: no lineage is longer
_PIECE = 1 << 12


def first_bytes(head: bytes, codec: str) -> bytes:
    """The first bytes of what a file contains; ``head`` is its beginning. Raises BadBlock where none can be read."""
    match codec:
        case "lz4":
            return first_block(head)
        case "zstd":
            return _zstd(head)
        case "snappy":
            return _snappy(head)
    raise BadBlock(f"ckpt does not read the codec {codec}")


def _zstd(head: bytes) -> bytes:
    import pyarrow as pa  # not at the top: nothing else here needs it

    found = b""
    try:
        with pa.CompressedInputStream(pa.BufferReader(head), "zstd") as stream:
            while len(found) < _MOST and (piece := stream.read(_PIECE)):
                found += piece
    except (OSError, pa.ArrowInvalid) as error:  # at the end of what there is, at the latest
        if not found:
            raise BadBlock(str(error)) from None
    return found


def _snappy(head: bytes) -> bytes:
    found = b""
    try:
        for block in snappy_blocks(head):
            found += block
            if len(found) >= _MOST:
                break
    except BadBlock:
        if not found:
            raise
    return found


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
    found = 0
    for place, byte in enumerate(body[:5]):
        found |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    if found > _LONGEST_BLOCK:
        raise BadBlock("an impossible length")
    return found
