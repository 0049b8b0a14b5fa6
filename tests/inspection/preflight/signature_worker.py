"""One Spark: describes the queries of `signatures.py`, and starts some of them on the checkpoint of their base.

`python -m tests.inspection.preflight.signature_worker FOLDER`, run by `record.py` under each Python.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import ckpt
from tests.inspection.preflight import signatures, worker
from tests.support.spark import queries

ROWS = [
    {"k": n % 4, "id": n % 7, "g": "xyz"[n % 3], "v": n, "v2": n * 3, "d": n, "t": f"2024-01-01T00:00:{n % 20:02}Z"}
    for n in range(24)
]


def describe(spark: Any, folder: Path, change: signatures.Changed | str) -> Any:
    """The unstarted query of a change, or of a base, and its description."""
    base = change if isinstance(change, str) else change.base
    query, opened = (signatures.BASES[base], None) if isinstance(change, str) else (change.query, change.read)
    for name, value in () if isinstance(change, str) else change.conf:
        spark.conf.set(name, value)
    frame = signatures.build(spark, folder, query, opened)
    return frame, query.mode, ckpt.describe_query(frame, output_mode=query.mode)


def open_session(session: Any) -> Any:
    """A session of its own, in UTC."""
    spark = session.newSession()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return spark


def start(frame: Any, mode: str, checkpoint: Path) -> str | None:
    """Start a query for what is there: the error, or None."""
    error: str | None = worker.start(frame, mode, checkpoint)["error"]
    worker.forget(frame.sparkSession)
    return error


def write_input(folder: Path, number: int) -> None:
    """Write a file into each source's folder."""
    for place in range(2):
        (folder / f"in{place}").mkdir(parents=True, exist_ok=True)
        rows = ({**row, "t2": row["t"]} for row in ROWS[number * 12 : number * 12 + 12])
        (folder / f"in{place}" / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, price in (("prices", 10), ("discounts", 3)):
        (folder / "tables" / name).mkdir(parents=True, exist_ok=True)
        prices = ({"item": item, "price": item * price} for item in range(4))
        (folder / "tables" / name / "1.json").write_text("".join(json.dumps(row) + "\n" for row in prices))


def main() -> None:
    """Describe all queries into FOLDER/queries; a line of JSON for each on standard output."""
    folder = Path(sys.argv[1])
    told = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    session = queries.session("signatures")
    session.sparkContext.setLogLevel("OFF")
    spark = open_session(session)
    minor = ".".join(spark.version.split(".")[:2])
    print(json.dumps({"spark": spark.version}), file=told)
    (folder / "queries").mkdir(parents=True)
    write_input(folder, 0)
    wanted = signatures.changes(minor)
    started = [change for change in wanted if signatures.is_started(change, minor)]
    for base in signatures.BASES:
        frame, mode, described = describe(spark, folder, base)
        (folder / "queries" / f"{base}.json").write_text(described.to_json())
        needed = minor == signatures.ALL or any(change.base == base for change in started)
        error = start(frame, mode, folder / "bases" / base) if needed else None
        print(json.dumps({"id": base, "error": error}), file=told)
    write_input(folder, 1)
    for change in wanted:
        frame, mode, described = describe(open_session(session) if change.conf else spark, folder, change)
        (folder / "queries" / f"{change.id.replace(': ', '-')}.json").write_text(described.to_json())
        error = None
        if change in started:
            shutil.copytree(folder / "bases" / change.base, folder / "try")
            error = start(frame, mode, folder / "try")
            shutil.rmtree(folder / "try")
        print(json.dumps({"id": change.id, "error": error, "started": change in started}), file=told)
    session.stop()


if __name__ == "__main__":
    main()
