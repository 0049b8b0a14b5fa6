"""Compress and decompress deltas, snapshots and changelogs (``spark.sql.streaming.stateStore.compression.codec``).

lz4: ``LZ4BlockOutputStream`` (``ckpt.formats.blockstream``), whose blocks carry a checksum. zstd: a plain stream, which
may carry one. snappy: ``SnappyOutputStream`` of snappy-java, lzf: ``LZFOutputStream`` of compress-lzf, without any.
"""

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa

from ckpt.errors import WITH_SPARK, LeftToSpark, TooLarge, Undecodable
from ckpt.formats import compression
from ckpt.formats.blockstream import Pieces, Stream
from ckpt.formats.checksums import of_lz4_block
from ckpt.formats.statefiles import LZ4

MOST_BYTES = 1 << 30
"""How much of a partition is unpacked into memory, which then takes three to four times as much."""

_PIECE = 1 << 22


def decompress(file: Iterator[bytes], codec: str, most: int = MOST_BYTES) -> bytes:
    """Decompress a file, up to so many bytes. It is given in pieces, and read as far as its codec goes.

    Raises Undecodable where it is damaged, too large or of a codec that ckpt does not know.
    """
    unpack = _CODECS.get(codec)
    if unpack is None:
        raise LeftToSpark(f"ckpt does not read the compression codec {codec} (it reads {', '.join(_CODECS)})")
    pieces, total = [], 0
    try:
        for piece in unpack(Pieces(file)):
            total += len(piece)
            if total > most:
                raise TooLarge.of(
                    "it unpacks to more than {most} bytes, too much for memory: {spark}",
                    most=f"{most:,}",
                    spark=WITH_SPARK,
                )
            pieces.append(piece)
    except (compression.Corrupt, pa.ArrowInvalid, OSError) as error:
        raise Undecodable(f"it cannot be decompressed with {codec}: {error}") from None
    return b"".join(pieces)


def compress(data: bytes, codec: str = LZ4) -> bytes:
    """Bytes as Spark writes them with a codec. Raises LeftToSpark for one that ckpt does not know.

    lzf keeps them uncompressed, which its streams may.
    """
    match codec:
        case "lz4":
            return b"".join(_lz4_blocks(data)) + compression.END_MARK
        case "zstd":
            return bytes(pa.Codec("zstd").compress(data, asbytes=True))
        case "snappy":
            return compression.snappy_stream(data)
        case "lzf":
            return compression.lzf_stream(data)
    raise LeftToSpark(f"ckpt does not write the compression codec {codec} (it writes {', '.join(_CODECS)})")


def _lz4_blocks(data: bytes) -> Iterator[bytes]:
    codec = pa.Codec("lz4_raw")
    for at in range(0, len(data), compression.BLOCK):
        plain = data[at : at + compression.BLOCK]
        body = codec.compress(plain, asbytes=True)
        method = compression.COMPRESSED if len(body) < len(plain) else compression.STORED
        checksum = of_lz4_block(plain)
        yield compression.make_block(method, body if method == compression.COMPRESSED else plain, len(plain), checksum)


def _lz4(file: Pieces) -> Iterator[bytes]:
    stream = Stream()
    yield from stream.blocks(file)
    if not stream.marked:
        raise compression.Corrupt(stream.wrong or "its end is missing")


def _whole(unpack: Callable[[bytes, int], Iterator[bytes]], file: Pieces) -> Iterator[bytes]:
    data = file.take(MOST_BYTES)
    if file.take(1):
        raise LeftToSpark(f"it has more than {MOST_BYTES:,} bytes")
    yield from unpack(data, _PIECE)


_CODECS: dict[str, Callable[[Pieces], Iterator[bytes]]] = {
    "lz4": _lz4,
    **{codec: partial(_whole, unpack) for codec, unpack in compression.BLOCKS.items()},
}
