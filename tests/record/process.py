"""The process that the Python of a Spark version runs: `python -m tests.record.process ROLE` answers jobs.

Jobs come on standard input and answers go to standard output, JSON documents, a line each; everything else that is
printed goes to standard error. Nothing here imports ckpt, which that Python may not have.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.record.packages import PACKAGE
from tests.support.spark import queries, topics


@dataclass(frozen=True)
class Role:
    """What a suite asks Spark.

    `answer` is a function of the session, a job, and a folder that is not made yet; `session` opens the session.
    """

    answer: str
    session: str = "tests.record.process:open_session"
    conf: Mapping[str, str] = field(default_factory=dict)


ORACLE = "tests.restart.oracle.starts:open_session"
SMALL = {"master": "local[1]", "spark__sql__shuffle__partitions": "1"}
ONE_CORE, SIX_CORES = {"master": "local[1]"}, {"master": "local[6]"}
BUSY = {"master": "local[2]", "spark__sql__streaming__stateStore__maintenanceInterval": "200ms"}
SIDE_BY_SIDE = {"spark__driver__memory": "3g", "spark__python__daemon__module": "tests.support.spark.daemon"}
WITH_TIME = {**SMALL, "spark__sql__timeType__enabled": "true"}

ROLES = {
    "restart": Role("tests.restart.oracle.starts:answer", ORACLE),
    "real-time": Role("tests.restart.realtime.starts:answer", ORACLE, SIX_CORES),
    "real-time-processor": Role("tests.restart.realtime.processor:answer", ORACLE, SIX_CORES),
    "continuous": Role("tests.restart.continuous.starts:answer", ORACLE, SIX_CORES),
    "continued": Role("tests.restart.oracle.starts:continue_on", ORACLE),
    "changes": Role("tests.changes.oracle.histories:answer", conf=BUSY),
    "kafka-copy": Role("tests.changes.fixes.async_gap.kafka_query:answer"),
    "kafka": Role("tests.live.kafka.cases:answer"),
    "delta": Role("tests.live.delta.starts:answer", conf=SMALL),
    "change-feed": Role("tests.live.delta.feed:answer", conf=SMALL),
    "iceberg": Role("tests.live.iceberg.starts:answer", conf=SMALL),
    "iceberg-sink": Role("tests.live.sink.iceberg_query:answer", conf=SMALL),
    "files": Role("tests.live.files.cases:answer", conf=SMALL),
    "sink-batches": Role("tests.live.sink.dropped_batches:answer", conf=ONE_CORE),
    "sink-state": Role("tests.live.sink.stateful:answer", conf=ONE_CORE),
    "known-bugs": Role("tests.inspection.bugs.cases:answer", conf=SMALL),
    "connector-bugs": Role("tests.inspection.bugs.connector_cases:answer", conf=SMALL),
    "alarms": Role("tests.inspection.alarms.starts:answer", ORACLE),
    "preflight": Role("tests.inspection.preflight.starts:answer"),
    "signatures": Role("tests.inspection.preflight.described:answer"),
    "driver-logs": Role("tests.inspection.explain.drivers:answer", ORACLE),
    "failed-programs": Role("tests.inspection.explain.programs:answer", "tests.inspection.explain.programs:session"),
    "side-by-side": Role("tests.new.rewrite.queries_side_by_side:answer", conf=SIDE_BY_SIDE),
    "points": Role("tests.new.copy.points_run:answer", conf=SIDE_BY_SIDE),
    "merge": Role("tests.new.rewrite.merged_queries:answer", conf=ONE_CORE),
    "evolve-pairs": Role("tests.new.evolve.pairs:answer"),
    "evolve": Role("tests.new.evolve.running:answer"),
    "states": Role("tests.state.native.states:answer", conf=WITH_TIME),
    "logs": Role("tests.formats.ask_spark:answer", conf=ONE_CORE),
    "export": Role("tests.state.export.matrix:answer"),
}
"""Every role by its name."""


def open_session(scratch: Path, **conf: str) -> Any:
    """Open the session that all jobs share, with the package and the broker that the environment names."""
    package = os.environ.get(PACKAGE)
    if package:
        conf |= {"spark__jars__packages": package, "spark__jars__ivy": str(scratch / "ivy")}
    if package and ":delta-" in package:
        conf["spark__sql__extensions"] = "io.delta.sql.DeltaSparkSessionExtension"
        conf["spark__sql__catalog__spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        conf["spark__databricks__delta__snapshotPartitions"] = "1"
    spark = queries.session(
        **{
            "app": "ckpt-record",
            "spark__local__dir": str(scratch / "local"),
            "spark__sql__warehouse__dir": str(scratch / "warehouse"),
            "spark__python__authenticate__socketTimeout": "120s",
            **topics.settings(),
            **conf,
        }
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def load(name: str) -> Any:
    """Return what a name such as `tests.live.files.cases:answer` stands for."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def main(role: Role) -> None:
    """Answer jobs until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    scratch, answer = Path(tempfile.mkdtemp(prefix="ckpt-oracle-")), load(role.answer)
    spark = load(role.session)(scratch, **role.conf)
    try:
        print(json.dumps({"spark": spark.version}), file=answers)
        for number, line in enumerate(sys.stdin):
            print(json.dumps(answer(spark, json.loads(line), scratch / f"{number}")), file=answers)
    finally:
        spark.stop()
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main(ROLES[sys.argv[1]])
