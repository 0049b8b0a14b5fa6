"""The manifest of an export: ``_ckpt_export.json`` next to the data, and the JSON of the command."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ckpt.model import Json
from ckpt.state.export.request import ExportPart
from ckpt.state.export.targets import Format
from ckpt.state.reading.columns import Columns, Shape
from ckpt.state.reading.reading import Reading
from ckpt.storage.locations import spark_uri
from ckpt.texts import mask_secrets
from ckpt.versions import __version__

SCHEMA = 1


def describe(reading: Reading, shape: Shape, columns: Columns | None) -> dict[str, Any]:
    """Describe the exported state: checkpoint, operator, batch, watermark, source offsets, settings and columns."""
    unit, moment = reading.unit, reading.moment
    return {
        "operator": {"id": unit.operator, "name": unit.operator_name},
        "unit": unit.label,
        "kind": unit.kind,
        "stores": list(unit.stores),
        "side": unit.side,
        "variable": unit.variable,
        "ttl": unit.ttl,
        "provider": unit.provider,
        "format_version": unit.format_version,
        "batch": moment.batch,
        "changes_from": reading.changes_from,
        "state_version": moment.state_version,
        "planned_ms": moment.planned_ms,
        "watermark_ms": moment.watermark_ms,
        "next_watermark_ms": moment.next_watermark_ms,
        "sources": [{"index": end.index, "name": end.name, "offset": end.offset} for end in moment.sources],
        "shape": shape,
        "columns": None
        if columns is None
        else [
            {"name": column.name, "path": ".".join(column.path), "type": column.type, "holds": column.holds}
            for column in columns.kept
        ],
        "dropped": [] if columns is None else [{"path": ".".join(d.path), "why": d.why} for d in columns.dropped],
        "options": dict(reading.options),
        "confs": [{"name": conf.name, "value": conf.value, "why": conf.why} for conf in reading.confs],
        "mounted": list(reading.mount.reasons) if reading.mount else [],
    }


def make_manifest(part: ExportPart, shape: Shape, *, schema: Json, kind: Format, spark: str | None) -> dict[str, Any]:
    """The manifest of one unit that was written.

    ``spark`` is the version of Spark that did, None where it was ckpt. ``part.rows`` is the writer's own count of the
    rows that were written; None inside a Delta commit, which has it as ``operationMetrics.numOutputRows``. ``schema``
    is that of the written rows, in Spark's JSON.
    """
    described = describe(part.reading, shape, part.columns)
    return _make_document(part.reading, {**described, "format": kind, "rows": part.rows, "schema": schema}, spark)


def make_manifest_of_all(parts: Sequence[ExportPart], *, kind: Format, spark: str | None) -> dict[str, Any]:
    """The manifest above the folders of an export of everything: which there are, and how many rows each has.

    ``parts`` are of one checkpoint at one moment.
    """
    folders = [
        {"folder": part.reading.unit.folder, "unit": part.reading.unit.label, "rows": part.rows} for part in parts
    ]
    first = parts[0].reading
    return _make_document(first, {"batch": first.moment.batch, "format": kind, "folders": folders}, spark)


def manifest_text(document: Mapping[str, Any]) -> str:
    """A manifest as its file has it."""
    return json.dumps(document, indent=2) + "\n"


def _make_document(reading: Reading, facts: Mapping[str, Any], spark: str | None) -> dict[str, Any]:
    return {
        "ckpt": {"version": __version__, "schema": SCHEMA},
        "checkpoint": mask_secrets(reading.checkpoint),
        "location": mask_secrets(spark_uri(reading.checkpoint)),
        "query_id": reading.moment.query_id,
        **facts,
        "engine": "native" if spark is None else "spark",
        "spark": spark,
    }
