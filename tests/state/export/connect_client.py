"""Calls of ckpt in a session of Spark Connect, `python -m tests.state.export.connect_client URL FOLDER`.

Gives as JSON what each call answered, or its error, and of some units of state the columns and rows.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.places import SAMPLES
from tests.support.services.connect import client_packages

AGGREGATION = "aggregation-hdfs-4.2"
UNITS: dict[str, dict[str, Any]] = {
    AGGREGATION: {},
    "session-window-hdfs-3.5": {},
    "pandas-with-state-hdfs-3.5": {},
    "join-v3-changelog-4.2": {"side": "left"},
    "tws-avro-changelog-4.2": {"variable": "parityTtl"},
}
"""Units of state with columns of several types: times, texts, booleans, maps."""


def describe_frame(frame: Any) -> list[Any]:
    """Give the columns of a frame and its rows, in an order of their own."""
    return [frame.schema.simpleString(), sorted(map(str, frame.toArrow().to_pylist()))]


def make_calls(spark: Any, folder: Path) -> dict[str, Callable[[], Any]]:
    """Make the calls; each gives something that JSON has."""
    import ckpt
    from ckpt.spark.installed import Session

    sample = str(SAMPLES / AGGREGATION)
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    counts = rows.selectExpr("value % 7 AS user", "value").groupBy("user").agg({"*": "count", "value": "sum"})
    here = Session(spark=spark)

    def judge(**how: Any) -> list[Any]:
        readiness = ckpt.preflight(sample, query=counts, output_mode="update", **how)
        codes = [rated.finding.diagnosis.code for rated in readiness.warnings]
        return [readiness.go, codes, list(readiness.not_asked), [rated.finding.detail for rated in readiness.holds]]

    def judge_with(name: str, value: str) -> list[Any]:
        spark.conf.set(name, value)
        try:
            return judge()
        finally:
            spark.conf.unset(name)

    def export(**how: Any) -> Any:
        return ckpt.export_state(sample, **how).parts[0].rows

    def write() -> list[Any]:
        frame = ckpt.read_state(sample, session=spark)
        made = ckpt.write_state({"operator 0": frame}, str(folder / "written"), like=sample)
        return [unit.rows for unit in made.units]

    def save() -> int:
        ckpt.read_state(sample, session=spark).write.saveAsTable("state")
        return int(spark.table("state").count())

    return {
        "raw": lambda: describe_frame(ckpt.read_state(sample, session=spark, shape="raw")),
        "initial state": lambda: describe_frame(ckpt.read_initial_state(sample, session=spark)),
        "changes": lambda: ckpt.read_changes(sample, session=spark, first=8, last=9).columns,
        "preflight": judge,
        "preflight, another format": lambda: judge_with("spark.sql.streaming.stateStore.checkpointFormatVersion", "2"),
        "preflight, sources": lambda: judge(sources=True),
        "preflight, not streaming": lambda: ckpt.preflight(sample, query=spark.range(3)).go,
        "describe": lambda: ckpt.describe_query(counts, output_mode="update").output_mode,
        "rehearse": lambda: ckpt.rehearse(sample, to=counts).starts,
        "evolve": lambda: ckpt.evolve(sample, str(folder / "evolved"), to=counts, output_mode="update").plan.needed,
        "transform": lambda: ckpt.migrate_transform_with_state(sample, to=str(folder / "moved"), session=here).keys,
        "transform, active": lambda: ckpt.migrate_transform_with_state(sample, to=str(folder / "moved")).keys,
        "export": lambda: export(to=str(folder / "given"), session=here),
        "export, active": lambda: export(to=str(folder / "active")),
        "table": lambda: export(table="kept", session=here),
        "delta, active": lambda: export(to=str(folder / "delta"), format="delta"),
        "by Spark": lambda: export(to=str(folder / "by-spark"), engine="spark", session=here),
        "executors": lambda: ckpt.rewrite(sample, str(folder / "made"), engine=ckpt.types.Executors(here)).written,
        "write": write,
        "save": save,
    }


def main(url: str, folder: str) -> None:
    """Make all calls, and print the answers."""
    sys.path.append(str(client_packages()))
    from pyspark.sql import SparkSession

    import ckpt

    spark, answers = SparkSession.builder.remote(url).getOrCreate(), {}
    for name, call in make_calls(spark, Path(folder)).items():
        try:
            answers[name] = call()
        except ckpt.CkptError as error:
            answers[name] = f"{type(error).__name__}: {error}"
    units = {
        name: describe_frame(ckpt.read_state(str(SAMPLES / name), session=spark, **part))
        for name, part in UNITS.items()
    }
    spark.stop()
    sys.stdout.write(json.dumps({"answers": answers, "units": units}))


if __name__ == "__main__":
    main(*sys.argv[1:])
