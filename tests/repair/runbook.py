"""What the runbook shows of Spark: `python -m tests.repair.runbook` writes it anew, from a real Kafka query."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.oracle.record import Worker
from tests.places import ROOT
from tests.services.kafka import connector_jars, kafka_broker

MODULE = "tests.repair.kafka_query"
TOPIC = "orders"  # that the sample read
RECORDS = 6000


def generate() -> ModuleType:
    """docs/generate.py."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def starting(driver: Worker) -> Callable[[Path], str]:
    """What starts the query of the runbook, to which the topic holds the rest of the records."""

    def start(checkpoint: Path) -> str:
        job = {"do": "resume", "from": TOPIC, "to": "runbook", "checkpoint": str(checkpoint)}
        ran = driver.ask(job)
        if ran["error"] is not None:
            return f"pyspark.errors.exceptions.captured.StreamingQueryException: {_first_line(ran['error'])}"
        return "\n".join(_told(batch) for batch in ran["batches"])

    return start


def _first_line(error: str) -> str:
    return error.strip().splitlines()[0]


def _told(batch: dict[str, Any]) -> str:
    ends = [" ".join(f"{TOPIC}/{p}={offset}" for p, offset in batch[side][TOPIC].items()) for side in ("from", "to")]
    return f"batch {batch['batch']}: from {ends[0]} to {ends[1]}"


def main() -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory() as scratch, kafka_broker(Path(scratch)) as servers:
        environment = {"CKPT_SPARK_JARS": ",".join(map(str, connector_jars())), "CKPT_KAFKA": servers}
        with Worker(sys.executable, Path(scratch, "driver.log"), MODULE, environment) as driver:
            driver.ask({"do": "fill", "topic": TOPIC, "count": RECORDS})
            module = generate()
            module.RUNBOOK.write_text(module.runbook(starting(driver)), encoding="utf-8")


if __name__ == "__main__":
    main()
