"""A text of any size as lines of bounded length, a chunk at a time."""

import codecs
import re
import zlib
from collections.abc import Iterator
from io import BytesIO
from itertools import chain
from typing import BinaryIO

from ckpt.inspection.explain.forms import clean

_CHUNK = 1 << 20
_LONGEST = 1 << 16  # characters of a line that are looked at

_GZIP = b"\x1f\x8b"
_OF_GZIP = 31  # the wbits of zlib for data in gzip format
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # how PowerShell writes what it redirects
_BLANK = re.compile(r"\n[ \t\r\n]*\n")


def read_chunks(source: str | BinaryIO) -> Iterator[list[str]]:
    """The lines of a text, or of a file that may be compressed by gzip, about a mebibyte at a time; few blank ones.

    A file is UTF-8, or UTF-16 with a byte order mark. Raises OSError, also where the compressed data is damaged.
    """
    stream = BytesIO(source.encode("utf-8", "replace")) if isinstance(source, str) else source
    held = b""
    for block in _recode(_read_blocks(stream)):
        held += block
        if len(held) >= _CHUNK:
            complete, end, held = held.rpartition(b"\n")
            if end:
                yield _split_lines(complete)
            held = held[:_CHUNK]  # of a line that does not end, only the beginning is kept
    if held:
        yield _split_lines(held)


def _recode(blocks: Iterator[bytes]) -> Iterator[bytes]:
    first = next(blocks, b"")
    if not first.startswith(_UTF_16):
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from blocks
        return
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for block in chain((first,), blocks):
        yield decoder.decode(block).encode("utf-8", "replace")


def _read_blocks(stream: BinaryIO) -> Iterator[bytes]:
    block = stream.read(_CHUNK)
    packed = block.startswith(_GZIP)
    member, whole = zlib.decompressobj(_OF_GZIP), True
    while block:
        if packed:
            try:
                yield member.decompress(block, _CHUNK)
            except zlib.error as error:
                raise OSError("its compressed data is damaged") from error
            block = member.unconsumed_tail or member.unused_data
            whole = member.eof
            if whole:
                member = zlib.decompressobj(_OF_GZIP)
        else:
            yield block
            block = b""
        block = block or stream.read(_CHUNK)
    if not whole:
        raise OSError("its compressed data ends early")


def _split_lines(raw: bytes) -> list[str]:
    return [line[:_LONGEST] for line in clean(_BLANK.sub("\n", raw.decode("utf-8", "replace")))]
