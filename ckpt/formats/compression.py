"""The streams in which Spark compresses deltas and changelogs, as far as ckpt looks into them or writes them by itself.

lz4 is ``LZ4BlockOutputStream`` of lz4-java (Spark's ``LZ4CompressionCodec``): blocks of a 21-byte header (``LZ4Block``,
a token, compressed length, decompressed length, checksum; the ints little-endian) and their data; an empty block ends
it. snappy is ``SnappyOutputStream`` of snappy-java, zstd a plain stream, lzf ``LZFOutputStream`` of compress-lzf.
"""

import struct
from collections.abc import Callable, Iterator, Mapping

HEAD = 192 << 10
"""Bytes that surely hold the first block, which is 128 KiB long at most in zstd."""

MAGIC = b"LZ4Block"
HEADER_LENGTH = 21
STORED, COMPRESSED = 0x10, 0x20  # upper half of the token: how the data of the block is stored
_LARGEST_BLOCK = 1 << 25  # lz4-java's own limit
BLOCK = 1 << 15  # spark.io.compression.lz4.blockSize
_LEVEL = 5  # lower half of the token: 2**(10 + 5) bytes in a block
_LEAST_LEVEL = 10  # LZ4BlockOutputStream.COMPRESSION_LEVEL_BASE
SEED = 0x9747B28C  # LZ4BlockOutputStream.DEFAULT_SEED
CHECKSUM_BITS = 0x0FFFFFFF  # lz4-java's StreamingXXHash32.asChecksum drops the uppermost four
_PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_WORD = 0xFFFFFFFF
_SNAPPY = b"\x82SNAPPY\x00"
_SNAPPY_HEADER = 16
_SNAPPY_VERSIONS = struct.pack(">ii", 1, 1)  # of the stream, and the oldest that can read it
_LZF, _LZF_STORED, _LZF_COMPRESSED = b"ZV", 0, 1
_LZF_CHUNK = (1 << 16) - 1  # LZFChunk.MAX_CHUNK_LEN
_LZF_LITERALS = 32
_MOST = 1 << 17  # bytes of text and its length: no lineage is longer
_PIECE = 1 << 12
_LONGEST_VARINT = 63  # bits


class Corrupt(ValueError):
    """Bytes that do not match their checksum, or are not of their format: the text says where."""


def read_block_header(data: bytes, at: int = 0) -> tuple[int, int, int, int]:
    """Method, stored and decompressed length, and checksum of the block at ``at``.

    Raises Corrupt as ``LZ4BlockInputStream.refill`` does.
    """
    if len(data) < at + HEADER_LENGTH:
        raise Corrupt("is truncated")
    token, stored, length, checksum = struct.unpack_from("<BiiI", data, at + len(MAGIC))
    method = token & 0xF0
    if not data.startswith(MAGIC, at):
        raise Corrupt("does not begin with LZ4Block")
    if method not in (STORED, COMPRESSED):
        raise Corrupt("names an unknown compression method")
    impossible = length > 1 << _LEAST_LEVEL + (token & 0x0F) or length < 0 or stored < 0
    impossible |= (length == 0) is not (stored == 0) or (method == STORED and length != stored)
    if impossible or (length == 0 and checksum):
        raise Corrupt("has impossible lengths")
    return method, stored, length, checksum


def block_ends(data: bytes) -> tuple[int, bool]:
    """Walk the blocks: return where the last complete one ends, and whether that was the empty block of the end."""
    end = 0
    while True:
        try:
            _, stored, length, _ = read_block_header(data, end)
        except Corrupt:
            return end, False
        after = end + HEADER_LENGTH + stored
        if after > len(data):
            return end, False
        end = after
        if length == 0:
            return end, True


def decompress_first_block(data: bytes) -> bytes:
    """Decompress the first block. Raises Corrupt if it is incomplete or not LZ4."""
    method, stored, length, _ = read_block_header(data)
    body = data[HEADER_LENGTH : HEADER_LENGTH + stored]
    if len(body) < stored:
        raise Corrupt("the block ends early")
    if method == STORED:
        return body
    unpacked, outside = unpack_block(body, length)
    if outside:
        raise Corrupt("an impossible repetition")
    return unpacked


def store_block(data: bytes) -> bytes:
    """A complete stream that holds some bytes as they are."""
    blocks = [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)]
    return b"".join(make_block(STORED, piece, len(piece), checksum_of(piece)) for piece in blocks) + END_MARK


def make_block(method: int, body: bytes, length: int, checksum: int) -> bytes:
    """One block: ``body`` is what ``length`` bytes are stored as."""
    return MAGIC + struct.pack("<Biii", method | _LEVEL, len(body), length, checksum) + body


END_MARK = make_block(STORED, b"", 0, 0)
"""The last bytes of a complete stream: the header of an empty block."""


def checksum_of(data: bytes) -> int:
    """The checksum of a block's plain bytes: their 32-bit xxHash, without its uppermost bits."""
    first, second, third, fourth, fifth = _PRIMES
    at, end = 0, len(data)
    if end >= 16:
        lanes = [SEED + first + second, SEED + second, SEED, SEED - first]
        while at <= end - 16:
            pairs = zip(lanes, struct.unpack_from("<4I", data, at), strict=True)
            lanes = [_rotate(lane + word * second & _WORD, 13) * first & _WORD for lane, word in pairs]
            at += 16
        mixed = sum(_rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
    else:
        mixed = SEED + fifth
    mixed = mixed + end & _WORD
    while at <= end - 4:
        mixed = _rotate(mixed + struct.unpack_from("<I", data, at)[0] * third & _WORD, 17) * fourth & _WORD
        at += 4
    for byte in data[at:]:
        mixed = _rotate(mixed + byte * fifth & _WORD, 11) * first & _WORD
    mixed = (mixed ^ mixed >> 15) * second & _WORD
    mixed = (mixed ^ mixed >> 13) * third & _WORD
    return (mixed ^ mixed >> 16) & CHECKSUM_BITS


def _rotate(word: int, by: int) -> int:
    return (word << by | word >> 32 - by) & _WORD


def unpack_block(body: bytes, length: int) -> tuple[bytes, bool]:
    """Undo LZ4 block compression; also whether the block repeats bytes from before its beginning, which are zeros here.

    Raises Corrupt where anything else is wrong.
    """
    out, outside, at = bytearray(), False, 0
    try:
        while True:
            token = body[at]
            literals, at = _read_length(body, at + 1, token >> 4)
            out += body[at : at + literals]
            at += literals
            if at >= len(body):
                break
            offset = body[at] | body[at + 1] << 8
            repeat, at = _read_length(body, at + 2, token & 15)
            repeat += 4
            if len(out) + repeat > length:
                raise Corrupt("an impossible repetition")
            outside |= not 0 < offset <= len(out)
            start = len(out) - offset
            pattern = bytes(out[start : start + repeat]) if 0 < offset <= len(out) else b"\0"
            out += (pattern * (repeat // len(pattern) + 1))[:repeat]
    except IndexError:
        raise Corrupt("the block ends early") from None
    if at > len(body) or len(out) != length:
        raise Corrupt("not as long as its header says")
    return bytes(out), outside


def _read_length(body: bytes, at: int, nibble: int) -> tuple[int, int]:
    """Read a length whose first four bits are ``nibble``, and say where it ends."""
    if nibble == 15:
        more = 255
        while more == 255:
            more = body[at]
            nibble += more
            at += 1
    return nibble, at


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of up to 64 bits, seven in each byte, and where it ends. Raises IndexError where there is none."""
    number = data[at]
    at += 1
    if number < 0x80:
        return number, at
    number, shift, byte = number & 0x7F, 7, data[at]
    while byte >= 0x80:
        number |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if shift > _LONGEST_VARINT:
            raise IndexError
        byte = data[at]
    return number | byte << shift, at + 1


def decompress_head(head: bytes, codec: str) -> bytes:
    """The first bytes of what a file contains; ``head`` is its beginning. Raises Corrupt where none can be read."""
    if codec == "lz4":
        return decompress_first_block(head)
    if codec not in BLOCKS:
        raise Corrupt(f"ckpt does not read the codec {codec}")
    unpacked = b""
    try:
        for block in BLOCKS[codec](head, _PIECE):
            unpacked += block
            if len(unpacked) >= _MOST:
                break
    except Corrupt:  # at the end of what there is, at the latest
        if not unpacked:
            raise
    return unpacked


def _zstd_blocks(data: bytes, piece: int) -> Iterator[bytes]:
    """The data of a stream of zstd, so many bytes at a time. Raises Corrupt."""
    import pyarrow as pa  # not at the top: nothing else here needs it

    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            while block := stream.read(piece):
                yield block
    except (OSError, pa.ArrowInvalid) as error:
        raise Corrupt(str(error)) from None


def _snappy_blocks(data: bytes, _: int) -> Iterator[bytes]:
    """The blocks of snappy-java: behind a header each is its length, a big-endian int, and snappy. Raises Corrupt."""
    import pyarrow as pa

    codec, at = pa.Codec("snappy"), _SNAPPY_HEADER
    if not data.startswith(_SNAPPY):
        raise Corrupt("it does not begin like a snappy-java stream")
    while at < len(data):
        if data.startswith(_SNAPPY, at):  # streams may be put one after another
            at += _SNAPPY_HEADER
            continue
        try:
            (length,) = struct.unpack_from(">i", data, at)
            body = data[at + 4 : at + 4 + length]
            if length <= 0 or len(body) < length:
                raise Corrupt("a block ends early")
            unpacked, _ = read_varint(body, 0)
            if unpacked > _LARGEST_BLOCK:
                raise Corrupt("an impossible length")
            yield codec.decompress(body, unpacked, asbytes=True)
        except (struct.error, IndexError, OSError, pa.ArrowInvalid) as error:
            raise Corrupt(str(error)) from None
        at += 4 + length


def _lzf_chunks(data: bytes, _: int) -> Iterator[bytes]:
    """The chunks of compress-lzf: ``ZV``, how it is stored, one or two lengths of two bytes. Raises Corrupt."""
    at = 0
    while at < len(data):
        head = data[at : at + 7]
        if not head.startswith(_LZF) or len(head) < 5 or head[2] not in (_LZF_STORED, _LZF_COMPRESSED):
            raise Corrupt("it has no LZF chunk where one should begin")
        compressed = head[2] == _LZF_COMPRESSED
        at += 7 if compressed else 5
        end = at + int.from_bytes(head[3:5], "big")
        body, at = data[at:end], end
        if at > len(data):
            raise Corrupt("a chunk ends early")
        yield _unpack_lzf(body, int.from_bytes(head[5:7], "big")) if compressed else body


def _unpack_lzf(body: bytes, length: int) -> bytes:
    """Undo LZF: literals after how many they are, or the distance and length of what is repeated. Raises Corrupt."""
    out, at = bytearray(), 0
    try:
        while at < len(body):
            control = body[at]
            at += 1
            if control < _LZF_LITERALS:
                out += body[at : at + control + 1]
                at += control + 1
                continue
            repeat = (control >> 5) + 2
            if repeat == 9:
                repeat += body[at]
                at += 1
            start = len(out) - ((control & 0x1F) << 8) - body[at] - 1
            at += 1
            if start < 0:
                raise Corrupt("an impossible repetition")
            pattern = bytes(out[start : start + repeat])
            out += (pattern * (repeat // len(pattern) + 1))[:repeat]
    except IndexError:
        raise Corrupt("the chunk ends early") from None
    if len(out) != length:
        raise Corrupt("not as long as its header says")
    return bytes(out)


def snappy_stream(data: bytes) -> bytes:
    """Bytes as a stream of snappy-java."""
    import pyarrow as pa

    codec = pa.Codec("snappy")
    blocks = (codec.compress(data[at : at + BLOCK], asbytes=True) for at in range(0, len(data), BLOCK))
    return _SNAPPY + _SNAPPY_VERSIONS + b"".join(len(block).to_bytes(4, "big") + block for block in blocks)


def lzf_stream(data: bytes) -> bytes:
    """Bytes as a stream of compress-lzf that holds them as they are."""
    chunks = (data[at : at + _LZF_CHUNK] for at in range(0, len(data), _LZF_CHUNK))
    return b"".join(_LZF + bytes([_LZF_STORED]) + len(chunk).to_bytes(2, "big") + chunk for chunk in chunks)


BLOCKS: Mapping[str, Callable[[bytes, int], Iterator[bytes]]] = {
    "zstd": _zstd_blocks,
    "snappy": _snappy_blocks,
    "lzf": _lzf_chunks,
}
"""How the data of a whole file is read, but for lz4; some give so many bytes at a time."""
