"""A Spark session that starts queries and reads state: JSON jobs on standard input, JSON answers, a line each.

`{"do": "start", "query", "checkpoint", "store", "conf", "times"}` is answered by `{"committed": [batch, ...],
"error"}`, `{"do": "read", "checkpoint"}` by `{"state", "error"}`, as Spark's own state reader tells it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.spark import answers, queries


def start(spark: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Start a query some times, one after the other; `committed` are the batches that this added."""
    checkpoint, error = Path(job["checkpoint"]), None
    before = _committed(checkpoint)
    try:
        for _ in range(job["times"]):
            query = queries.QUERIES[job["query"]]
            started = queries.start(spark, query, checkpoint, store=job["store"], conf=job["conf"])
            started.awaitTermination()
            _forget_state(spark)
    except Exception as failure:
        error = str(failure)
    return {"committed": sorted(_committed(checkpoint) - before), "error": error}


def read(spark: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Everything that the state reader says of the newest batch."""
    try:
        return {"state": answers.answer(spark, Path(job["checkpoint"]), False)["operators"], "error": None}
    except Exception as failure:
        return {"state": None, "error": str(failure)}


def _committed(checkpoint: Path) -> set[int]:
    return {int(path.name) for path in checkpoint.glob("commits/[0-9]*")}


def _forget_state(spark: Any) -> None:
    """Have the next start load its state from files."""
    stores = getattr(spark._jvm.org.apache.spark.sql.execution.streaming.state, "StateStore$")
    getattr(stores, "MODULE$").unloadAll()


def main() -> None:
    """Answer jobs until standard input ends; whatever else is printed goes to standard error."""
    told = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = queries.session(master="local[1]", spark__python__authenticate__socketTimeout="120s")
    spark.sparkContext.setLogLevel("OFF")
    try:
        print(json.dumps({"spark": spark.version}), file=told)
        for line in sys.stdin:
            job = json.loads(line)
            print(json.dumps({"start": start, "read": read}[job["do"]](spark, job)), file=told)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
