"""Logs that sources and the file sink keep in addition to the offsets.

``sources/<k>/N`` and ``N.compact`` of a file source (``FileStreamSourceLog``),
``_spark_metadata/N[.compact]`` under the output of a file sink (``FileStreamSinkLog``): ``v1``, then one line
of JSON for each file. ``sources/<k>/0`` of a Kafka source (its initial offsets) and of a rate source (when it
was created). Delta, socket and rate-micro-batch sources log nothing here.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from ckpt.formats.extract import fields_of, flag_field, long_field, text_field
from ckpt.formats.text import Damaged, json_of, quoted, read_versioned, tolerant, version_of
from ckpt.model import Fault, Json

NEWEST_VERSION = 1
"""The highest version line that a known Spark reads in any of these files."""

_MODIFIED = re.compile(rb'"modificationTime":([0-9]{1,18})[,}]')
_Entry = TypeVar("_Entry")


class SourceFile(NamedTuple):
    """A file that a file source has read or is reading (Spark class ``FileStreamSource.FileEntry``)."""

    path: str  # a URI, percent-encoded
    timestamp_ms: int  # when the file was last modified
    log_offset: int  # the entry of the source log that first named it (``batchId``, which is not a batch of the query)


@tolerant
def parse_source_log(raw: bytes) -> tuple[SourceFile, ...]:
    """Read one file of a file source's log; a compacted one names the files of all entries up to its own."""
    return _entries(raw, _source_file)


@tolerant
def parse_sink_log(raw: bytes) -> tuple[str, ...]:
    """Read one file of ``_spark_metadata``: the URIs, percent-encoded, of files that a file sink has written."""
    return _entries(raw, _sink_path)


def find_modification_times(head: bytes) -> list[int]:
    r"""Find when the files were written that the first bytes of a file of ``_spark_metadata`` name, in ms since 1970.

    >>> find_modification_times(b'v1\n{"path":"file:/a","modificationTime":5}\n{"path":"fi')
    [5]
    """
    return [int(digits) for digits in _MODIFIED.findall(head)]


@tolerant
def parse_kafka_start(raw: bytes) -> Json:
    """Read ``sources/<k>/0`` of a Kafka source (``KafkaSourceInitialOffsetWriter``): topic to partition to offset.

    One byte is skipped (0), then come ``v1``, a line end, JSON. Spark 2.1.0 wrote no version line (SPARK-19517).
    """
    text = raw[1:].decode("utf-8", errors="replace")
    if not text:
        raise Damaged(Fault.EMPTY, "the file is empty")
    if text[0] != "v":
        return json_of(text)
    line, end, body = text.partition("\n")
    if not end:
        reason = f"its first line is {quoted(line)}, and nothing follows it"
        raise Damaged(Fault.INCOMPLETE, reason, "failed to detect the log file version line")
    version_of(line, NEWEST_VERSION)
    return json_of(body)


@tolerant
def parse_first_source_file(raw: bytes) -> str:
    r"""Read the first line of ``sources/<k>/0`` of a file, Kafka or rate source that no offsets name yet.

    >>> parse_first_source_file("sources/0/0", b"\0v1\n{}")
    'v1'
    >>> parse_first_source_file("sources/0/0", b"\n").reason
    "its first line is '', not a version such as v1"
    """
    text = raw.removeprefix(b"\0").decode("utf-8", errors="replace")
    if not text:
        raise Damaged(Fault.EMPTY, "the file is empty")
    line = text.split("\n", 1)[0]
    if text[0] == "{":
        json_of(text)  # of Kafka, by Spark 2.1.0
    else:
        version_of(line, NEWEST_VERSION)
    return line


def _entries(raw: bytes, entry: Callable[[Mapping[str, Json]], _Entry]) -> tuple[_Entry, ...]:
    """The entries of a log of files (``CompactibleFileStreamLog.deserialize``)."""
    with read_versioned(raw, NEWEST_VERSION) as (_, lines):
        return tuple(entry(fields_of(json_of(line))) for line in lines)


def _source_file(fields: Mapping[str, Json]) -> SourceFile:
    return SourceFile(
        path=text_field(fields, "path") or "",
        timestamp_ms=long_field(fields, "timestamp"),
        log_offset=long_field(fields, "batchId"),
    )


def _sink_path(fields: Mapping[str, Json]) -> str:
    """The path in an entry (Spark class ``SinkFileStatus``); Spark reads all fields of the entry."""
    path = text_field(fields, "path")
    long_field(fields, "size")
    flag_field(fields, "isDir")
    for name in ("modificationTime", "blockReplication", "blockSize"):
        long_field(fields, name)
    text_field(fields, "action")
    return path or ""
