"""An inspection as the JSON document of the contract: every key always there, null or [] where there is nothing."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ckpt.checkpoint.checkpoint import Checkpoint, Log
from ckpt.checkpoint.sources.registry import SourceView, advance
from ckpt.inspection.inspection import Inspection, RatedFinding
from ckpt.live.outlook import SourceOutlook
from ckpt.model import Operator, StateInventory, Store, Unreadable
from ckpt.restart.forecast import Forecast, SourceRange
from ckpt.versions import __version__

from .live import live_entry
from .sink import sink_entry

SCHEMA = 1
Document = dict[str, Any]
"""What JSON can hold."""


def inspection_document(inspection: Inspection) -> Document:
    """All of an inspection, keys in the order of the contract."""
    checkpoint = inspection.checkpoint
    return {
        "ckpt": tool(),
        "verdict": inspection.verdict,
        "checkpoint": checkpoint_entry(inspection),
        "batches": _batches(inspection),
        "latest": _latest(checkpoint),
        "sources": [source_entry(source, inspection.live) for source in inspection.sources],
        "restart": [restart_entry(forecast) for forecast in inspection.forecasts],
        "state": _state(checkpoint.state) if checkpoint.state is not None else None,
        "space": asdict(inspection.space),
        "sink": sink_entry(inspection.sink),
        "findings": [finding_entry(judged) for judged in inspection.findings],
    }


def tool() -> dict[str, Any]:
    """Which ckpt wrote a document, and of what shape it is."""
    return {"version": __version__, "schema": SCHEMA}


def checkpoint_entry(inspection: Inspection) -> dict[str, Any]:
    """The checkpoint of a document."""
    checkpoint = inspection.checkpoint
    return {
        "path": checkpoint.uri,
        "kind": checkpoint.kind,
        "query_id": checkpoint.query_id,
        "written_by": {
            "at_least": inspection.written_by.at_least,
            "evidence": list(inspection.written_by.evidence),
        },
        "stateful": checkpoint.stateful,
        "files": checkpoint.listing.files,
        "bytes": checkpoint.listing.bytes,
    }


def _batches(inspection: Inspection) -> dict[str, Any]:
    return {
        "offsets": _log(inspection.checkpoint.offsets),
        "commits": _log(inspection.checkpoint.commits),
        "uncommitted": list(inspection.uncommitted),
        "unplanned": list(inspection.unplanned),
        "pattern": inspection.pattern,
        "shown": [
            {
                "batch_id": batch.batch_id,
                "timestamp_ms": batch.timestamp_ms,
                "watermark_ms": batch.watermark_ms,
                "committed": batch.committed,
                "unreadable": batch.unreadable,
                "advanced": [{"amount": a.amount, "unit": a.unit} if a else None for a in batch.advanced],
            }
            for batch in inspection.batches
        ],
    }


def _log(log: Log[Any]) -> dict[str, Any]:
    versions = {entry.version for entry in log.entries.values() if not isinstance(entry, Unreadable)}
    return {
        "first": log.ids[0] if log.ids else None,
        "last": log.latest,
        "count": len(log.ids),
        "missing": [list(span) for span in log.missing],
        "unreadable": list(log.unreadable),
        "formats": [f"v{version}" for version in sorted(versions)],
    }


def _latest(checkpoint: Checkpoint) -> dict[str, Any]:
    offsets = checkpoint.offsets.readable(checkpoint.offsets.latest)
    metadata = offsets.metadata if offsets else None
    return {
        "offset_batch": checkpoint.offsets.latest,
        "committed_batch": checkpoint.commits.latest,
        "watermark_ms": metadata.watermark_ms if metadata else None,
        "timestamp_ms": metadata.timestamp_ms if metadata else None,
        "conf": dict(metadata.conf) if metadata else {},
    }


def source_entry(source: SourceView, live: Sequence[SourceOutlook] = ()) -> dict[str, Any]:
    """The position of one source, and what it has now if it was asked."""
    return {
        "index": source.index,
        "name": source.name,
        "type": source.type,
        "offset": source.offset,
        "decoded": source.decoded,
        "live": live_entry(live, source.index),
    }


def restart_entry(forecast: Forecast) -> dict[str, Any]:
    """One forecast, as the contract has it (repair plans show the same)."""
    return {
        "spark": forecast.spark,
        "progress": forecast.progress,
        "outcome": forecast.outcome,
        "batch_id": forecast.batch_id,
        "reexecutes": forecast.reexecutes,
        "sources": [range_entry(one) for one in forecast.sources],
        "error": forecast.error,
        "never_run": list(forecast.never_run),
        "because": sorted({found.diagnosis.code for found in forecast.because}),
    }


def range_entry(reading: SourceRange) -> dict[str, Any]:
    """What is read of one source."""
    return {"index": reading.index, "from": reading.start, "to": reading.end}


def grown_range(one: SourceRange) -> Document:
    """A range with how far the source goes in it."""
    grown = None if one.end is None else advance(one.start, one.end)
    return {**range_entry(one), "amount": grown.amount if grown else None, "unit": grown.unit if grown else None}


def _state(state: StateInventory) -> dict[str, Any]:
    return {
        "provider": state.provider,
        "format_version": state.format_version,
        "operators": [_operator(operator) for operator in state.operators],
    }


def _operator(operator: Operator) -> dict[str, Any]:
    return {
        "id": operator.id,
        "name": operator.name,
        "variables": [{"name": v.name, "kind": v.kind, "ttl": v.ttl} for v in operator.variables],
        "stores": [_store(store) for store in operator.stores],
    }


def _store(store: Store) -> dict[str, Any]:
    return {
        "name": store.name,
        "partitions": len(store.partitions),
        "num_keys": store.num_keys,
        "bytes": store.bytes,
        "changelog": store.changelog,
        "readable_batches": [list(span) for span in store.readable_batches],
        "newest_snapshot_version": store.newest_snapshot_version,
        "column_families": [family.name for family in store.column_families],
        "key_schema": store.key_schema,
        "value_schema": store.value_schema,
        "per_partition": [
            {
                "partition": partition.partition,
                "bytes": partition.bytes,
                "num_keys": partition.num_keys,
                "newest_version": partition.newest_version,
                "replay_versions": partition.replay_versions,
            }
            for partition in store.partitions
        ],
    }


def finding_entry(judged: RatedFinding) -> dict[str, Any]:
    """One finding, as the contract has it."""
    found = judged.finding
    return {
        "code": found.diagnosis.code,
        "name": found.diagnosis.name,
        "severity": judged.severity,
        "path": found.path,
        "meaning": judged.meaning,
        "detail": found.detail,
        "remedy": judged.remedy,
    }
