"""``offsets/N``: the position of each source at the end of batch N (Spark class ``OffsetSeqLog``).

Version 1 (all versions): ``v1``, a line of JSON (``OffsetSeqMetadata``), then one line for each source in the
order of the query, ``-`` for a source without an offset. Version 2 (4.2 and later, ``OffsetMap``): source
lines are ``<name>:<json>`` and the JSON has ``sourceMetadataInfo``. Spark does not parse source lines when it
reads the log; each source does that later. Continuous processing leaves the second line empty
(``ContinuousExecution.addOffset``).
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ckpt import settings
from ckpt.formats.extract import fields_of, long_field, object_field, text_field, text_map
from ckpt.formats.text import NO_VERSION, Damaged, json_of, quoted, read_versioned, tolerant, trimmed
from ckpt.model import Fault, Json, OffsetLog, OffsetMetadata, SourceOffset

NEWEST_VERSION = 2
"""The highest version line that a known Spark reads (``OffsetSeqLog.MAX_VERSION``)."""

UNFINISHED = b"ckpt has not finished this checkpoint\n"
"""Placeholder for the newest offsets of a checkpoint that ckpt writes, until all else is there: no Spark starts on it.

To each version it is a log with a malformed version line (``MetadataVersionUtil.validateVersion``).
"""

CHANGING = b"ckpt has not finished a change of this checkpoint\n"
"""Placeholder for the newest offsets while sources are changed in place: no Spark starts on it, as with the other."""

NAMING = {settings.SOURCE_EVOLUTION: "true", settings.OFFSET_LOG_FORMAT: "2"}
"""Settings that a query with named sources records (4.2 and later)."""

MOST_SOURCES = 1000
"""More lines than that are garbage, and not worth keeping: a query with as many sources was never seen."""

_VOID = "-"  # OffsetSeqLog.SERIALIZED_VOID_OFFSET


@tolerant
def parse_offset_log(raw: bytes) -> OffsetLog:
    """Read one file of ``offsets/``, as ``OffsetSeqLog.deserialize`` does."""
    if raw == UNFINISHED:
        raise Damaged(Fault.UNFINISHED, "ckpt did not finish writing this checkpoint", NO_VERSION)
    if raw == CHANGING:
        raise Damaged(Fault.UNFINISHED_CHANGE, "ckpt did not finish changing this checkpoint", NO_VERSION)
    if raw.startswith(b"\xac\xed\x00\x05"):
        reason = "Spark 2.0 wrote it in Java serialization; it is not damaged, but later versions cannot read it"
        raise Damaged(Fault.JAVA_SERIALIZED, reason, "Input length = 1")  # for its first byte
    with read_versioned(raw, NEWEST_VERSION) as (version, lines):
        if not lines:
            raise Damaged(Fault.INCOMPLETE, "nothing follows its version line", "next on empty iterator")
        if len(lines) > MOST_SOURCES + 1:
            reason = f"it has {len(lines) + 1} lines, but no query has so many sources"
            raise Damaged(Fault.BAD_JSON, reason, "sources in the checkpoint offsets and now there are")
        sources = _read_named_sources(lines[1:]) if version == 2 else tuple(_source(None, line) for line in lines[1:])
        return OffsetLog(version, _metadata(trimmed(lines[0]), version), sources)


def format_offset_log(log: OffsetLog) -> bytes:
    """The bytes of a file of ``offsets/``: those it was read from, if Spark wrote them."""
    lines = [f"v{log.version}", "" if log.metadata is None else _metadata_text(log.metadata)]
    for source in log.sources:
        text = _VOID if source.text is None else source.text
        lines.append(text if source.name is None else f"{source.name}:{text}")
    return "\n".join(lines).encode("utf-8")


def drop_blank_sources(log: OffsetLog) -> OffsetLog:
    """An offset file without the blank lines at its end, which Spark takes for sources."""
    last = max((i for i, source in enumerate(log.sources) if source.text is None or source.text.strip()), default=0)
    return replace(log, sources=log.sources[: last + 1])


def drop_watermark(log: OffsetLog) -> OffsetLog:
    """An offset file of a query that keeps no state, for which no watermark ever rises."""
    if log.metadata is None or log.metadata.watermark_ms == 0:
        return log
    fields = {**_fields_in(log.metadata), "batchWatermarkMs": 0}
    return replace(log, metadata=replace(log.metadata, watermark_ms=0, text=_write(fields)))


def plan_before(log: OffsetLog) -> OffsetLog:
    """An offset file of a batch that was planned a millisecond earlier, and is the same otherwise."""
    if log.metadata is None or log.metadata.timestamp_ms <= 0:
        return log
    time_ms = log.metadata.timestamp_ms - 1
    fields = {**_fields_in(log.metadata), "batchTimestampMs": time_ms}
    return replace(log, metadata=replace(log.metadata, timestamp_ms=time_ms, text=_write(fields)))


def format_for_names(log: OffsetLog, *, named: bool) -> OffsetLog:
    """An offset file with the version and the recorded settings of a query whose sources have names, or have none.

    Spark takes the recorded settings, not those of the session: with names and without these two settings it takes the
    folders for numbers again, and reads everything twice (``OffsetSeqMetadata``, 4.2).
    """
    log = replace(log, version=2 if named else 1)
    if log.metadata is None:
        return log
    fields = _fields_in(log.metadata)
    conf = {name: value for name, value in text_map(fields, "conf").items() if name not in NAMING}
    conf |= NAMING if named else {}
    fields["conf"] = dict(conf)
    fields.pop("sourceMetadataInfo", None)
    if named:
        fields["sourceMetadataInfo"] = {}
    return replace(log, metadata=replace(log.metadata, conf=conf, text=_write(fields)))


def record_settings(log: OffsetLog, recorded: Mapping[str, str]) -> OffsetLog:
    """An offset file that records other values of these settings, and is the same otherwise."""
    if log.metadata is None:
        return log
    fields = _fields_in(log.metadata)
    conf = {**text_map(fields, "conf"), **recorded}
    return replace(log, metadata=replace(log.metadata, conf=conf, text=_write({**fields, "conf": conf})))


def is_continuous(log: OffsetLog) -> bool | None:
    """Tell whether continuous processing wrote this file; None if it does not say.

    ``ContinuousExecution`` (2.3 and later) logs the offsets of its only source without metadata; a
    micro-batch always has metadata (2.1 and later, the first versions with this format).
    """
    if log.metadata is not None:
        return False
    return True if len(log.sources) == 1 and log.sources[0].text is not None else None


def _metadata(text: str, version: int) -> OffsetMetadata | None:
    if not text:
        if version >= 2:
            raise Damaged(Fault.INCOMPLETE, "its second line is empty", "VERSION_2 offset log requires metadata")
        return None
    fields = fields_of(json_of(text))
    metadata = OffsetMetadata(
        watermark_ms=long_field(fields, "batchWatermarkMs", default=0),
        timestamp_ms=long_field(fields, "batchTimestampMs", default=0),
        conf=_share_settings(tuple(text_map(fields, "conf").items())),
        text=text,
    )
    if version >= 2:
        _check_sources(fields)
    return metadata


@lru_cache(maxsize=4)
def _share_settings(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Settings as one object for all files that record the same ones: without that they are most of a long log."""
    return dict(items)


def _check_sources(fields: Mapping[str, Json]) -> None:
    """Raise Damaged where Spark does not read ``sourceMetadataInfo`` (``SourceMetadataInfo``)."""
    for value in object_field(fields, "sourceMetadataInfo").values():
        for key in ("sourceId", "providerName", "apiVersion") if value is not None else ():
            text_field(fields_of(value), key)


def _metadata_text(metadata: OffsetMetadata) -> str:
    if metadata.text is not None:
        return metadata.text
    watermark_ms, time_ms, conf = metadata.watermark_ms, metadata.timestamp_ms, dict(metadata.conf)
    return _write({"batchWatermarkMs": watermark_ms, "batchTimestampMs": time_ms, "conf": conf})


def _fields_in(metadata: OffsetMetadata) -> dict[str, Json]:
    return dict(fields_of(json_of(_metadata_text(metadata))))


def _write(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def _read_named_sources(lines: list[str]) -> tuple[SourceOffset, ...]:
    """The source lines of version 2; where a name comes twice, the last line counts."""
    sources: dict[str, SourceOffset] = {}
    for line in lines:
        name, colon, text = line.partition(":")
        if not colon:
            reason = f"its source line {quoted(line)} has no name"
            raise Damaged(Fault.INCOMPLETE, reason, "Invalid OffsetMap format")
        source = _source(name, text)
        if not name.isalnum() and source.value is not None and '"' in name:
            source = replace(source, value=line)  # a line without a name: what Spark takes for one may be a secret's
        sources[name] = source
    return tuple(sources.values())


def _source(name: str | None, text: str) -> SourceOffset:
    if text == _VOID:
        return SourceOffset(name, None, None)
    try:
        value = json_of(text)  # each source takes the first value of its line
        return SourceOffset(name, text, value if _can_be_shown(value) else text)
    except Damaged as damage:
        if damage.fault is Fault.TOO_LARGE:
            raise
        return SourceOffset(name, text, None, well_formed=False, cut=damage.fault is Fault.TRUNCATED_JSON)


def _can_be_shown(value: Json) -> bool:
    """Tell whether JSON can write a value again; a number too large for a double it cannot."""
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    return True
