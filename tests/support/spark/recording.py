"""Runs all cases of a matrix on the installed Spark and records what came of them.

`python -m tests.support.spark.recording`.

    python -m tests.support.spark.recording [NAME ...]

Needs Java, Maven for Kafka and its connector, pyspark and delta-spark, and takes some minutes for each name. `make
test` runs a few of the cases, and looks at what was recorded of all of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tests.support.places import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = {
    "changelog": "tests/migrate/switching",
    "continuity": "tests/migrate/continuity",
    "sink-mismatches": "tests/live/sink/mismatches_repaired",
    "kafka-delta": "tests/live/sink/kafka_delta",
    "source-remedies": "tests/live/remedies_followed",
    "sink-remedies": "tests/live/sink/remedies_followed",
    "repaired": "tests/changes/oracle/repaired",
    "transform": "tests/migrate/transforming",
}
"""The module that has `recorded(spark, folder)`, an answer for each case; they are beside it, in JSON."""


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_file(name).read_text())["cases"]
    return found


def digest(rows: Iterable[Any]) -> str:
    """How many rows, and which; nothing for none."""
    found = sorted(json.dumps(row, sort_keys=True) for row in rows)
    return f"{len(found)} {hashlib.sha256(json.dumps(found).encode()).hexdigest()[:12]}" if found else ""


def _file(name: str) -> Path:
    return ROOT / f"{FILES[name]}.json"


def _record(name: str, spark: SparkSession, folder: Path) -> None:
    run: Callable[[SparkSession, Path], dict[str, Any]] = import_module(FILES[name].replace("/", ".")).recorded
    cases = json.dumps(run(spark, folder))
    for path, instead in ((str(folder), "/folder"), (sys.prefix, "/python"), (str(ROOT), "/project")):
        cases = cases.replace(path, instead)
    lines = [f"  {json.dumps(case)}: {json.dumps(told)}" for case, told in json.loads(cases).items()]
    versions = {package: version(package) for package in ("pyspark", "delta-spark")}
    text = f'{{\n "versions": {json.dumps(versions)},\n "cases": {{\n' + ",\n".join(lines) + "\n }\n}\n"
    _file(name).write_text(text)


def main(names: list[str]) -> None:
    """Record some of `FILES`, or all, in one session."""
    os.environ["CKPT_TEST_ALL"] = "1"
    from tests.migrate.continuity import session
    from tests.support.services.kafka import connector_jars, kafka_broker

    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        jars = ",".join(map(str, connector_jars()))
        os.environ["CKPT_SPARK_JARS"] = jars
        if {"continuity", "kafka-delta", "source-remedies"} & {*names}:
            (folder / "broker").mkdir()
            os.environ["CKPT_KAFKA"] = stack.enter_context(kafka_broker(folder / "broker"))
        spark = session(jars)
        for name in names:
            (folder / name).mkdir()
            _record(name, spark, folder / name)
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:] or [*FILES])
