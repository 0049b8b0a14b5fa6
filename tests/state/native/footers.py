"""Records what Spark writes into the footers of Parquet files: its own schema, and the columns of the file.

``python -m tests.state.native.footers FOLDER ...`` looks at every Parquet file below some folders that tests have left
(exports, initial state, tables), and writes each schema once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_name("recorded") / "footers.json"


def footer(path: Path | str) -> dict[str, Any]:
    """Spark's schema, and the columns as Parquet has them."""
    from pyarrow import parquet

    file = parquet.ParquetFile(path)
    kept = (file.metadata.metadata or {}).get(b"org.apache.spark.sql.parquet.row.metadata", b"null")
    return {"schema": json.loads(kept), "columns": str(file.schema).partition("{")[2].splitlines()}


def main(folders: list[str]) -> None:
    """Collect them from files that Spark wrote; pyarrow names itself in those that ckpt did."""
    from pyarrow import parquet

    found = {}
    for path in sorted(path for folder in folders for path in Path(folder).rglob("*.parquet")):
        if parquet.ParquetFile(path).metadata.created_by.startswith("parquet-mr"):
            one = footer(path)
            if one["schema"] is not None:
                found[json.dumps(one)] = one
    RECORD.write_text(json.dumps(sorted(found.values(), key=json.dumps), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
