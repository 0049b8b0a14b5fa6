"""``commits/N``: batch N is done (Spark class ``CommitLog``).

Version 1: ``{"nextBatchWatermarkMs":..}`` (Spark 2.x up to 2.3 wrote ``{}``). Version 2 (4.0 and later, state store
checkpoint format 2) adds ``stateUniqueIds``: operator to an array over partitions of arrays over stores. Version 3 (4.2
and later) adds ``sinkMetadataMap``, which must not be empty. A file that is only ``v1`` or ``v2`` is accepted, as is
text after the JSON.
"""

import json
from collections.abc import Mapping

from ckpt.formats.extract import fields_of, long_field, object_field, text_field
from ckpt.formats.names import parse_java_long
from ckpt.formats.operators import expect_type
from ckpt.formats.text import Damaged, json_of, quoted, read_versioned, tolerant
from ckpt.model import CommitLog, Fault, Json, SinkCommit

NEWEST_VERSION = 3
"""The highest version line that a known Spark reads (``CommitLog.MAX_VERSION``)."""

_UniqueIds = dict[int, tuple[tuple[str, ...], ...]]


@tolerant
def parse_commit_log(raw: bytes) -> CommitLog:
    """Read one file of ``commits/``, as ``CommitLog.readCommitMetadata`` does."""
    says = "Incomplete log file in the offset commit log"
    with read_versioned(raw, NEWEST_VERSION, says, trims=True) as (version, lines):
        fields = fields_of(json_of(lines[0] if lines else "{}"))
        watermark = None if fields.get("nextBatchWatermarkMs") is None else long_field(fields, "nextBatchWatermarkMs")
        return CommitLog(version, watermark, _unique_ids(fields, version), _sinks(fields) if version >= 3 else ())


def format_commit_log(log: CommitLog) -> bytes:
    """The bytes of a file of ``commits/``: those it was read from, if Spark wrote them."""
    value: dict[str, object] = {}
    if log.next_watermark_ms is not None:
        value["nextBatchWatermarkMs"] = log.next_watermark_ms
    if log.state_unique_ids is not None:
        value["stateUniqueIds"] = log.state_unique_ids
    if log.version >= 3:
        value["sinkMetadataMap"] = {sink.name: _sink_value(sink) for sink in log.sinks}
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return f"v{log.version}\n{text}".encode()


def _unique_ids(fields: Mapping[str, Json], version: int) -> _UniqueIds | None:
    """``Option[Map[Long, Array[Array[String]]]]``: another shape reads as none; an odd operator id fails.

    In version 1, 4.0 and 4.1 write an empty object, other versions nothing.
    """
    value = fields.get("stateUniqueIds")
    if not isinstance(value, dict) or (version == 1 and value):
        return None
    unique_ids: _UniqueIds = {}
    for key, partitions in value.items():
        operator = parse_java_long(key)
        if operator is None:
            reason = f"stateUniqueIds in its JSON names the operator {quoted(key)}"
            raise Damaged(Fault.BAD_JSON, reason, "For input string")
        try:
            unique_ids[operator] = tuple(tuple(map(_unique_id, _array(stores))) for stores in _array(partitions))
        except TypeError:
            return None
    return unique_ids


def _array(value: Json) -> list[Json]:
    return [] if value is None else expect_type(list, value)


def _unique_id(value: Json) -> str:
    if isinstance(value, bool | list | dict):
        raise TypeError
    return "" if value is None else str(value)


def _sinks(fields: Mapping[str, Json]) -> tuple[SinkCommit, ...]:
    named = object_field(fields, "sinkMetadataMap")
    if not named:
        says = "requires a non-empty" if "sinkMetadataMap" in fields else "No usable value for json"
        raise Damaged(Fault.INCOMPLETE, "its JSON names no sink", says)
    return tuple(_sink(name, fields_of(value)) for name, value in named.items())


def _sink(name: str, fields: Mapping[str, Json]) -> SinkCommit:
    """One ``SinkMetadataInfo``; ``commitOffset`` is a text that holds JSON, or ``-`` for none."""
    _, provider, api_version = (text_field(fields, key) for key in ("sinkName", "providerName", "apiVersion"))
    active = fields.get("isActive", True)
    return SinkCommit(
        name=name,
        commit_offset=text_field(fields, "commitOffset") if "commitOffset" in fields else "-",
        provider=provider,
        active=active if isinstance(active, bool) else None,
        api_version=api_version,
    )


def _sink_value(sink: SinkCommit) -> dict[str, Json]:
    return {
        "sinkName": sink.name,
        "commitOffset": sink.commit_offset,
        "providerName": sink.provider,
        "apiVersion": sink.api_version,
        "isActive": sink.active,
    }
