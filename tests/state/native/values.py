"""Rows of Arrow as Spark writes them in JSON (``to_json``)."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any


def rows_of(table: Any) -> list[str]:
    """The rows of a table as text that can be compared, sorted."""
    return sorted(json.dumps(_shown(row), sort_keys=True) for row in table.to_pylist())


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shown(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_shown(inner) for inner in value]
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}Z"
    return value
