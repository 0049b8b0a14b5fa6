"""Parquet files of ckpt have the columns that Spark gave files of the same schema (``recorded/footers.json``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ckpt.state.export.native import find_parquet_obstacle, open_parquet
from ckpt.state.reading.columns import type_names
from tests.state.native.footers import RECORD, footer


def test_columns_are_those_of_spark(tmp_path: Path) -> None:
    recorded = json.loads(RECORD.read_text())
    names, left = set[str](), set[str | None]()
    for one in recorded:
        fields: dict[str, Any] = {
            field["name"]: {"type": "struct", "fields": [field]} for field in one["schema"]["fields"]
        }
        others = {name for name, field in fields.items() if find_parquet_obstacle(field) is not None}
        left |= {find_parquet_obstacle(fields[name]) for name in others}
        kept: Any = {
            "type": "struct",
            "fields": [field for field in one["schema"]["fields"] if field["name"] not in others],
        }
        open_parquet(str(tmp_path / "x.parquet"), kept).close()
        columns = [line for line in one["columns"] if not any(line.endswith(f" {name};") for name in others)]
        assert footer(tmp_path / "x.parquet") == {"schema": kept, "columns": columns}
        names |= set(type_names(kept))
    assert names >= {"boolean", "long", "double", "string", "binary", "date", "timestamp", "array", "map", "struct"}
    assert "decimal(38,2)" in names
    assert left == {"only Spark writes Parquet of the type interval day to second"}
