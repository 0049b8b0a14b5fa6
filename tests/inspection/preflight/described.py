"""Describes the queries of `signatures.py`, and starts some of them: a role of `tests/record/process.py`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import ckpt
from tests.inspection.preflight import signatures, starts

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
    error: str | None = starts.start(frame, mode, checkpoint)["error"]
    starts.forget(frame.sparkSession)
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


def answer(session: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
    """Describe all queries into `queries` of a folder; what each start failed with."""
    folder, spark = Path(job["folder"]), open_session(session)
    minor = ".".join(spark.version.split(".")[:2])
    (folder / "queries").mkdir(parents=True)
    write_input(folder, 0)
    wanted = signatures.changes(minor)
    started = [change for change in wanted if signatures.is_started(change, minor)]
    told: dict[str, Any] = {}
    for base in signatures.BASES:
        frame, mode, described = describe(spark, folder, base)
        (folder / "queries" / f"{base}.json").write_text(described.to_json())
        needed = minor == signatures.ALL or any(change.base == base for change in started)
        told[base] = {"error": start(frame, mode, folder / "bases" / base) if needed else None}
    write_input(folder, 1)
    for change in wanted:
        frame, mode, described = describe(open_session(session) if change.conf else spark, folder, change)
        (folder / "queries" / f"{change.id.replace(': ', '-')}.json").write_text(described.to_json())
        error = None
        if change in started:
            shutil.copytree(folder / "bases" / change.base, folder / "try")
            error = start(frame, mode, folder / "try")
            shutil.rmtree(folder / "try")
        told[change.id] = {"error": error, "started": change in started}
    return told
