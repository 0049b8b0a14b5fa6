"""docs/sql.md: its tables, from their declarations."""

from typing import Any

import pyarrow as pa

from ckpt.tables.log_tables import TABLES, Needs

from .places import DOCS

PAGE = DOCS / "sql.md"
_HEAD = "## Tables\n"
_READS = {
    Needs.LOGS: "Reads the logs, and does not list or open state files.",
    Needs.NAMES: "Lists all files and opens none.",
    Needs.INSPECTION: "Reads as much as `ckpt inspect`.",
}
_TYPES = {pa.string(): "VARCHAR", pa.int64(): "BIGINT", pa.int32(): "INTEGER", pa.bool_(): "BOOLEAN"}


def sql_page() -> str:
    """Return the page with the tables as they are declared."""
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(_HEAD)
    parts = [head, _HEAD]
    for table in TABLES.values():
        parts.append(f"\n### {table.name}\n\n{table.meaning[0].upper()}{table.meaning[1:]}.\n{_READS[table.needs]}\n\n")
        parts.append("| column | type | meaning |\n|---|---|---|\n")
        parts += [f"| `{column.name}` | {_name(column.type)} | {column.meaning} |\n" for column in table.columns]
    return "".join(parts)


def _name(kind: Any) -> str:
    if pa.types.is_list(kind):
        return f"{_name(kind.value_type)}[]"
    return "TIMESTAMP" if pa.types.is_timestamp(kind) else _TYPES[kind]
