"""How fast ``ckpt export-state`` is, in ratios to the shortest bare-Spark script that writes the same state.

    python benchmarks/export.py [--keys N] [--pairs N] [--folder FOLDER]

Both run by turns in one session, which is started before. The ``ckpt`` beside the interpreter exports once more,
with a driver of 1 GiB, in a process of its own.
"""

import sys

sys.path.pop(0)  # this folder: its inspect.py would hide the one of the standard library

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.many_keys import PROVIDERS, made as many_keys
from benchmarks.measure import Pairs, Run, alternated, heading
from ckpt.spark import export as exporting
from ckpt.spark.installed import Session, find_pyspark_version
from ckpt.spark.session import open_session
from ckpt.state.export.targets import Format, Mode, choose_target
from ckpt.state.reading.columns import Shape
from ckpt.state.reading.reading import StateRequest, plan_readings

MEMORY = {"spark.driver.memory": "4g"}  # HDFS-backed state is held in memory, partition by partition
LIMITED = "spark.driver.memory=1g"


def main() -> None:
    """Print one row for each comparison."""
    asked = _arguments()
    print(heading())
    with tempfile.TemporaryDirectory(prefix="ckpt-benchmark-") as temporary:
        folder = Path(asked.folder or temporary)
        sizes = (asked.keys // 10, asked.keys)
        made = {(provider, keys): many_keys(folder, provider, keys) for provider in asked.providers for keys in sizes}
        with open_session(Session(conf=MEMORY)) as spark:
            for provider in asked.providers:
                for row in _rows(spark, provider, {keys: made[provider, keys] for keys in sizes}, asked.pairs):
                    print(row, flush=True)
        print(_limited(made["RocksDB", asked.keys], asked.keys, folder / "limited"))


def _rows(spark: SparkSession, provider: str, checkpoints: dict[int, Path], times: int) -> Iterator[str]:
    """Export and script, for few keys and for many; and the time that a key takes in either."""
    per_key = []
    for keys, checkpoint in checkpoints.items():
        pairs = _compared(spark, checkpoint, keys, times)
        wall, cpu = pairs.seconds
        per_key.append((wall / keys, cpu / keys))
        took = "wall {:.2f} to {:.2f}, ".format(*pairs.spread) + f"{wall:.2f} s, {cpu:.2f} s CPU"
        yield (
            f"{keys:,} keys, {provider}, to Parquet, against bare Spark\n"
            f"    wall {pairs.wall:.2f}   CPU {pairs.cpu:.2f}   (at most 1.15, aim 1.05)   {took}"
        )
    (few_wall, few_cpu), (many_wall, many_cpu) = per_key
    yield (
        f"    time per key, against that of a tenth: wall {many_wall / few_wall:.2f}   CPU {many_cpu / few_cpu:.2f}"
        "   (at most 1)"
    )


def _compared(spark: SparkSession, checkpoint: Path, keys: int, times: int) -> Pairs:
    """Both by turns; each has to write every key, and what it wrote is removed before the next."""
    ours, theirs = checkpoint.with_suffix(".ours"), checkpoint.with_suffix(".theirs")
    export = partial(_export, spark, checkpoint, ours)
    script = partial(_script, spark, checkpoint, theirs)
    return alternated(partial(_cost, spark, export, ours, keys), partial(_cost, spark, script, theirs, keys), times)


def _export(spark: SparkSession, checkpoint: Path, to: Path) -> None:
    """What ``ckpt export-state CHECKPOINT --to TO`` does besides starting a session, with somebody who watches."""
    place = choose_target(str(to), None, Format.PARQUET, Mode.ERROR, str(checkpoint))
    readings = plan_readings(StateRequest(str(checkpoint)), None, find_pyspark_version())
    shaped = [exporting.shape_reading(spark, one, Shape.FLAT) for one in readings]
    exporting.write_exports(spark, shaped, place, lambda done, total: None)


def _script(spark: SparkSession, checkpoint: Path, to: Path) -> None:
    """The least that one would write without ckpt."""
    _ = spark.streams  # Spark 4.2.0 fails otherwise in a session that has not streamed
    spark.read.format("statestore").load(str(checkpoint)).write.parquet(str(to))


def _cost(spark: SparkSession, run: Callable[[], None], written: Path, keys: int) -> Run:
    """What a run cost, its Spark and this process together. Raises RuntimeError where rows are missing."""
    spark.sparkContext._jvm.System.gc()
    cpu, began = _cpu(spark), time.perf_counter()
    run()
    cost = Run(time.perf_counter() - began, _cpu(spark) - cpu)
    rows = sum(pq.read_metadata(path).num_rows for path in written.glob("*.parquet"))
    shutil.rmtree(written)
    if rows != keys:
        raise RuntimeError(f"{written.name}: {rows:,} rows of {keys:,} keys")
    return cost


def _cpu(spark: SparkSession) -> float:
    """CPU time of the JVM and of this process so far, in seconds."""
    jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().info().totalCpuDuration()
    return jvm.get().toMillis() / 1000 + time.process_time()


def _limited(checkpoint: Path, keys: int, to: Path) -> str:
    """The command itself, with a driver of 1 GiB."""
    script = Path(sys.executable).with_name("ckpt")
    if not script.exists():
        sys.exit(f"{script} is not there: install the project into this environment (python -m pip install .)")
    command = [str(script), "export-state", str(checkpoint), "--to", str(to), "--conf", LIMITED, "-o", "json"]
    began = time.perf_counter()
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"{command[:2]} exited with {ran.returncode}: {ran.stderr[-2000:]}")
    wall = time.perf_counter() - began
    shutil.rmtree(to)
    (export,) = json.loads(ran.stdout)["exports"]
    if export["rows"] != keys:
        raise RuntimeError(f"{export['rows']:,} rows of {keys:,} keys")
    return f"{keys:,} keys, RocksDB, with {LIMITED}: exported in {wall:.1f} s, start of the session included"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure ckpt export-state against bare Spark, side by side.")
    parser.add_argument("--keys", type=int, default=2_000_000, help="keys of state, and a tenth of it (2,000,000)")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of runs that count (5)")
    parser.add_argument("--providers", nargs="+", choices=PROVIDERS, default=list(PROVIDERS), help="of state (both)")
    parser.add_argument("--folder", help="where checkpoints are made and stay, for another run (default: temporary)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
