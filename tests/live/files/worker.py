"""Starts queries of files, for `record.py`: JSON jobs and answers, a line each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.live.files.cases import Query
from tests.restart.oracle import worker
from tests.support.spark import queries

_MADE: dict[Path, Query] = {}


def session(scratch: Path) -> Any:
    return queries.session(
        app="ckpt-files",
        master="local[1]",
        spark__sql__shuffle__partitions="1",
        spark__ui__showConsoleProgress="false",
        spark__sql__warehouse__dir=str(scratch / "warehouse"),
    )


def answer(spark: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Of `make` and `start`: see `Query`."""
    place = Path(job["place"])
    if job["do"] == "make":
        _MADE[place] = Query(spark, place)
        _MADE[place].make()
        return {}
    error, rows = _MADE[place].start(Path(job["checkpoint"]), job["options"])
    return {"error": error, "rows": rows}


if __name__ == "__main__":
    worker.serve(lambda spark, job, _: answer(spark, job), session)
