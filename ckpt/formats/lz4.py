"""The LZ4 block stream in which Spark compresses deltas and changelogs, as far as ckpt looks into it or writes it.

``LZ4BlockOutputStream`` of lz4-java (Spark's ``LZ4CompressionCodec``): blocks of a 21-byte header (``LZ4Block``, a
token, compressed length, decompressed length, checksum; the ints little-endian) and their data; an empty block ends it.
"""

import struct

MAGIC = b"LZ4Block"
HEADER_LENGTH = 21
STORED, COMPRESSED = 0x10, 0x20  # upper half of the token: how the data of the block is stored
_LARGEST_BLOCK = 1 << 25  # lz4-java's own limit
BLOCK = 1 << 15  # spark.io.compression.lz4.blockSize
_LEVEL = 5  # lower half of the token: 2**(10 + 5) bytes in a block
_SEED = 0x9747B28C  # LZ4BlockOutputStream.DEFAULT_SEED
_CHECKSUM_BITS = 0x0FFFFFFF  # lz4-java's StreamingXXHash32.asChecksum drops the uppermost four
_PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_WORD = 0xFFFFFFFF


class BadBlock(ValueError):
    """Bytes that are no LZ4 block."""


def block_header(data: bytes, at: int) -> tuple[int, int, int, int]:
    """Method, compressed and decompressed length, and checksum of the block whose header begins at ``at``.

    Raises BadBlock where none does.
    """
    if data[at : at + len(MAGIC)] != MAGIC or len(data) < at + HEADER_LENGTH:
        raise BadBlock("no block header")
    token, compressed, decompressed, checksum = struct.unpack_from("<BiiI", data, at + len(MAGIC))
    method = token & 0xF0
    if method not in (STORED, COMPRESSED) or not 0 <= compressed <= _LARGEST_BLOCK * 2:
        raise BadBlock("an impossible block header")
    if not 0 <= decompressed <= _LARGEST_BLOCK:
        raise BadBlock("an impossible block header")
    return method, compressed, decompressed, checksum


def block_ends(data: bytes) -> tuple[int, bool]:
    """Walk the blocks: return where the last complete one ends, and whether that was the empty block of the end."""
    end = 0
    while True:
        try:
            _, compressed, decompressed, _ = block_header(data, end)
        except BadBlock:
            return end, False
        after = end + HEADER_LENGTH + compressed
        if after > len(data):
            return end, False
        end = after
        if decompressed == 0:
            return end, True


def decompress_first_block(data: bytes) -> bytes:
    """Decompress the first block. Raises BadBlock if it is incomplete or not LZ4."""
    method, compressed, decompressed, _ = block_header(data, 0)
    body = data[HEADER_LENGTH : HEADER_LENGTH + compressed]
    if len(body) < compressed:
        raise BadBlock("the block ends early")
    if method == STORED:
        return body
    try:
        return _decompress(body, decompressed)
    except IndexError:
        raise BadBlock("the block ends early") from None


def store_block(data: bytes) -> bytes:
    """A complete stream that holds some bytes as they are."""
    blocks = [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)]
    return b"".join(block(STORED, piece, len(piece), checksum_of(piece)) for piece in blocks) + END


def checksum_of(block: bytes) -> int:
    """The checksum of a block's plain bytes."""
    return xxhash32(block) & _CHECKSUM_BITS


def block(method: int, body: bytes, length: int, checksum: int) -> bytes:
    """One block: ``body`` is what ``length`` bytes are stored as."""
    return MAGIC + struct.pack("<Biii", method | _LEVEL, len(body), length, checksum) + body


END = block(STORED, b"", 0, 0)
"""The empty block at the end of a stream."""


def xxhash32(data: bytes, seed: int = _SEED) -> int:
    """The 32-bit xxHash of some bytes."""
    first, second, third, fourth, fifth = _PRIMES
    at, end = 0, len(data)
    if end >= 16:
        lanes = [seed + first + second, seed + second, seed, seed - first]
        while at <= end - 16:
            words = struct.unpack_from("<4I", data, at)
            lanes = [
                _rotate(lane + word * second & _WORD, 13) * first & _WORD
                for lane, word in zip(lanes, words, strict=True)
            ]
            at += 16
        mixed = sum(_rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
    else:
        mixed = seed + fifth
    mixed = mixed + end & _WORD
    while at <= end - 4:
        mixed = _rotate(mixed + struct.unpack_from("<I", data, at)[0] * third & _WORD, 17) * fourth & _WORD
        at += 4
    for byte in data[at:]:
        mixed = _rotate(mixed + byte * fifth & _WORD, 11) * first & _WORD
    mixed = (mixed ^ mixed >> 15) * second & _WORD
    mixed = (mixed ^ mixed >> 13) * third & _WORD
    return mixed ^ mixed >> 16


def _rotate(word: int, by: int) -> int:
    return (word << by | word >> 32 - by) & _WORD


def _decompress(body: bytes, length: int) -> bytes:
    """Undo LZ4 block compression. Raises IndexError or BadBlock where the bytes do not make sense."""
    out = bytearray()
    at = 0
    while at < len(body):
        token = body[at]
        literals, at = read_length(body, at + 1, token >> 4)
        out += body[at : at + literals]
        at += literals
        if at >= len(body):
            break
        offset = body[at] | body[at + 1] << 8
        repeat, at = read_length(body, at + 2, token & 15)
        repeat += 4
        if not 0 < offset <= len(out) or len(out) + repeat > length:
            raise BadBlock("an impossible repetition")
        start = len(out) - offset
        pattern = bytes(out[start : start + repeat])
        out += (pattern * (repeat // len(pattern) + 1))[:repeat]
    if len(out) != length:
        raise BadBlock("not as long as its header says")
    return bytes(out)


def read_length(body: bytes, at: int, nibble: int) -> tuple[int, int]:
    """Read a length whose first four bits are ``nibble``, and say where it ends."""
    if nibble == 15:
        more = 255
        while more == 255:
            more = body[at]
            nibble += more
            at += 1
    return nibble, at
