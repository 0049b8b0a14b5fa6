"""A text of any size as lines of bounded length, a chunk at a time, each with what a log writer said of it."""

import codecs
import json
import re
import zlib
from collections.abc import Iterator
from enum import IntEnum
from io import BytesIO
from itertools import chain
from typing import BinaryIO

_CHUNK = 1 << 20
_LONGEST = 1 << 16  # characters of a line that are looked at

_GZIP = b"\x1f\x8b"
_OF_GZIP = 31  # the wbits of zlib for data in gzip format
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # how PowerShell writes what it redirects
_BLANK = re.compile(r"\n[ \t\r\n]*\n")
_TIME = r"(?:\d{2,4}[-/]\d{2}[-/]\d{2}[ T])?\d{2}:\d{2}:\d{2}[^\s\]]{0,12}"
_HEAD = re.compile(
    rf"[\[(]?{_TIME}[\])]?(?: +\[[^\]]{{0,80}}\])? +\[?(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b"
)
# What others put in front of every line: Airflow, and container runtimes.
_WRAPPED = re.compile(
    r"^(?:\[\d{4}-\d\d-\d\d[^\]]{0,40}\] \{[^}]{1,80}\} \w{1,10} - |"
    r"\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:\d\d) std(?:out|err) [FP] )"
)
_WRAPPING = ("] {", " std")  # a text without any of these has no such line


class Level(IntEnum):
    """How much a record of a log says of a failure; what no log writer wrote, such as a traceback, is ``ERROR``."""

    ERROR = 0
    WARNING = 1
    INFO = 2


_TEXTS = ("msg", "message", "log", "textPayload")  # of Spark's log, other loggers, Docker, Google Cloud
_LEVELS = {"WARN": Level.WARNING, "WARNING": Level.WARNING} | dict.fromkeys(("TRACE", "DEBUG", "INFO"), Level.INFO)


def read_chunks(source: str | BinaryIO) -> Iterator[list[str]]:
    """The lines of a text, or of a file that may be compressed by gzip, about a mebibyte at a time; few blank ones.

    A file is UTF-8, or UTF-16 with a byte order mark. Raises OSError, also where the compressed data is damaged.
    """
    stream = BytesIO(source.encode("utf-8", "replace")) if isinstance(source, str) else source
    rest = b""
    for block in _recode(_read_blocks(stream)):
        complete, end, rest = (rest + block).rpartition(b"\n")
        if end:
            yield _split_lines(complete)
        rest = rest[:_LONGEST]  # of a line that does not end, only the beginning is kept
    if rest:
        yield _split_lines(rest)


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
    text = _BLANK.sub("\n", raw.decode("utf-8", "replace").replace("\r\n", "\n"))
    lines = [line[:_LONGEST] for line in text.split("\n")]
    return [_WRAPPED.sub("", line, count=1) for line in lines] if any(mark in text for mark in _WRAPPING) else lines


def level_of(line: str) -> Level | None:
    """The level of the record that the line begins; None where it continues one."""
    head = _HEAD.match(line)
    return _LEVELS.get(head[1], Level.ERROR) if head else None


def unpack(line: str) -> tuple[Level | None, list[str]]:
    """A line that holds a whole record as JSON, or with its line ends escaped, as the lines of that record."""
    if line.startswith("{"):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict) and not record.keys().isdisjoint((*_TEXTS, "exception")):
            return _unpack_record(record)
    if "\\n\\tat " in line:
        return level_of(line), line.replace("\\n", "\n").replace("\\t", "\t").split("\n")
    return level_of(line), [line]


def _unpack_record(record: dict[str, object]) -> tuple[Level | None, list[str]]:
    """A record of a structured log; one of several lines may have a level in the first of them."""
    level = record.get("level")
    texts = [next((text for key in _TEXTS if isinstance(text := record.get(key), str)), "")]
    match record.get("exception"):
        case {"class": thrown, **more}:
            texts.append(f"{thrown}: {more.get('msg')}")
            match more.get("stacktrace"):
                case list(frames):
                    known = (frame for frame in frames if isinstance(frame, dict))
                    texts += (f"\tat {frame.get('class')}.{frame.get('method')}" for frame in known)
                case str(frames):
                    texts.append(frames)
    lines = "\n".join(texts).split("\n")
    return (_LEVELS.get(level, Level.ERROR) if isinstance(level, str) else level_of(lines[0])), lines
