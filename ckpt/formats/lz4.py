"""The LZ4 block stream in which Spark compresses deltas and changelogs, as far as ckpt looks into it.

``LZ4BlockOutputStream`` of lz4-java (Spark's ``LZ4CompressionCodec``): blocks of a 21-byte header (``LZ4Block``, a
token, compressed length, decompressed length, checksum; the ints little-endian) and their data; an empty block ends it.
"""

import struct

MAGIC = b"LZ4Block"
HEADER_LENGTH = 21
_STORED, _COMPRESSED = 0x10, 0x20  # upper half of the token: how the data of the block is stored
_LARGEST_BLOCK = 1 << 25  # lz4-java's own limit


class BadBlock(ValueError):
    """Bytes that are no LZ4 block."""


def _header(data: bytes, at: int) -> tuple[int, int, int]:
    """Return method, compressed and decompressed length of the block whose header begins at ``at``."""
    if data[at : at + len(MAGIC)] != MAGIC or len(data) < at + HEADER_LENGTH:
        raise BadBlock("no block header")
    token, compressed, decompressed = struct.unpack_from("<Bii", data, at + len(MAGIC))
    method = token & 0xF0
    if method not in (_STORED, _COMPRESSED) or not 0 <= compressed <= _LARGEST_BLOCK * 2:
        raise BadBlock("an impossible block header")
    if not 0 <= decompressed <= _LARGEST_BLOCK:
        raise BadBlock("an impossible block header")
    return method, compressed, decompressed


def block_ends(data: bytes) -> tuple[int, bool]:
    """Walk the blocks: return where the last complete one ends, and whether that was the empty block of the end."""
    end = 0
    while True:
        try:
            _, compressed, decompressed = _header(data, end)
        except BadBlock:
            return end, False
        after = end + HEADER_LENGTH + compressed
        if after > len(data):
            return end, False
        end = after
        if decompressed == 0:
            return end, True


def first_block(data: bytes) -> bytes:
    """Decompress the first block. Raises BadBlock if it is incomplete or not LZ4."""
    method, compressed, decompressed = _header(data, 0)
    body = data[HEADER_LENGTH : HEADER_LENGTH + compressed]
    if len(body) < compressed:
        raise BadBlock("the block ends early")
    if method == _STORED:
        return body
    try:
        return _decompress(body, decompressed)
    except IndexError:
        raise BadBlock("the block ends early") from None


def _decompress(body: bytes, length: int) -> bytes:
    """Undo LZ4 block compression. Raises IndexError or BadBlock where the bytes do not make sense."""
    out = bytearray()
    at = 0
    while at < len(body):
        token = body[at]
        literals, at = _length(body, at + 1, token >> 4)
        out += body[at : at + literals]
        at += literals
        if at >= len(body):
            break
        offset = body[at] | body[at + 1] << 8
        repeat, at = _length(body, at + 2, token & 15)
        repeat += 4
        if not 0 < offset <= len(out) or len(out) + repeat > length:
            raise BadBlock("an impossible repetition")
        start = len(out) - offset
        pattern = bytes(out[start : start + repeat])
        out += (pattern * (repeat // len(pattern) + 1))[:repeat]
    if len(out) != length:
        raise BadBlock("not as long as its header says")
    return bytes(out)


def _length(body: bytes, at: int, nibble: int) -> tuple[int, int]:
    """Read a length whose first four bits are ``nibble``, and say where it ends."""
    if nibble == 15:
        more = 255
        while more == 255:
            more = body[at]
            nibble += more
            at += 1
    return nibble, at
