"""How fast ``ckpt export-state`` is, against the shortest script that reads the same state with bare Spark.

    python benchmarks/export.py [--keys 2000000] [--pairs 5]

Both run by turns in one session, whose start is not counted; ours plans, reads, flattens, counts, writes Parquet and
its manifest, theirs is ``spark.read.format("statestore").load(path).write.parquet(out)``. The middle ratio counts.
The driver has 1 GiB for RocksDB, and 6 GiB for HDFS-backed state, which Spark holds in memory as a whole.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path = [str(ROOT), *(path for path in sys.path if Path(path).resolve() != ROOT / "benchmarks")]

PARTITIONS = 8
DRIVER = {"rocksdb": "1g", "hdfs": "6g"}
LIMIT, AIM = 1.15, 1.05


def main() -> None:
    """Measure each store at a tenth of the size and at the whole, each in a process of its own."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--keys", type=int, default=2_000_000)
    asked.add_argument("--pairs", type=int, default=5)
    asked.add_argument("--store", choices=sorted(DRIVER), help="one store only")
    asked.add_argument("--here", help=argparse.SUPPRESS)
    words = asked.parse_args()
    if words.here:
        sys.stdout.write(json.dumps(measure(words.here, words.keys, words.pairs)) + "\n")
        return
    print(f"{platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for store in [words.store] if words.store else sorted(DRIVER):
        rows = {}
        for keys in (words.keys // 10, words.keys):
            with tempfile.TemporaryDirectory(prefix="ckpt-bench-") as folder:
                call = [sys.executable, __file__, "--here", store, "--keys", str(keys), "--pairs", str(words.pairs)]
                done = subprocess.run(call, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
            rows[keys] = json.loads(done.stdout.splitlines()[-1])
            print(f"{store}, {keys:,} keys, driver {DRIVER[store]}: {told(rows[keys])}")
        tenth, whole = (median(rows[keys]["ours"]) for keys in rows)
        print(f"{store}: ten times the keys take {whole / tenth:.1f} times as long")


def told(row: dict[str, Any]) -> str:
    """One row of the result."""
    ratios = [a / b for a, b in zip(row["ours"], row["theirs"], strict=True)]
    return (
        f"{median(ratios):.2f} times bare Spark ({min(ratios):.2f} to {max(ratios):.2f}; limit {LIMIT}, aim {AIM}), "
        f"{median(row['ours']):.1f} s against {median(row['theirs']):.1f} s"
    )


def measure(store: str, keys: int, pairs: int) -> dict[str, Any]:
    """Make a checkpoint with that many keys, and export it by turns; seconds of each run."""
    from pyspark.sql import SparkSession

    from ckpt.export.reading import Question, plan_readings
    from ckpt.export.targets import Format, Mode, Shape, Target
    from ckpt.spark import export as exporting

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", DRIVER[store]).config("spark.log.level", "ERROR")
    spark = builder.config("spark.sql.shuffle.partitions", str(PARTITIONS)).getOrCreate()
    checkpoint, out = Path.cwd() / "checkpoint", Path.cwd() / "out"
    fill(spark, store, keys, checkpoint)

    def ours() -> int:
        (reading,) = plan_readings(Question(str(checkpoint)))
        found = exporting.shaped(spark, reading, Shape.FLAT)
        (done,) = exporting.export(spark, [found], Target(f"file:{out}", None, Format.PARQUET, Mode.ERROR))
        return done.rows

    def theirs() -> int:
        spark.read.format("statestore").load(str(checkpoint)).write.parquet(str(out))
        return keys

    seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
    for turn in range(pairs + 1):  # the first turn warms up
        for name, run in (("ours", ours), ("theirs", theirs)) if turn % 2 else (("theirs", theirs), ("ours", ours)):
            began = time.perf_counter()
            rows = run()
            if turn:
                seconds[name].append(time.perf_counter() - began)
            if rows != keys:
                raise SystemExit(f"{rows} rows of {keys} keys")
            shutil.rmtree(out)
    spark.stop()
    return seconds


def fill(spark: Any, store: str, keys: int, checkpoint: Path) -> None:
    """Run a query that keeps a count and a sum for each of so many keys."""
    name = {"rocksdb": "RocksDB", "hdfs": "HDFSBacked"}[store]
    provider = f"org.apache.spark.sql.execution.streaming.state.{name}StateStoreProvider"
    own = spark.newSession()
    own.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
    own.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
    rows = own.readStream.format("rate-micro-batch").option("rowsPerBatch", keys).option("numPartitions", 4).load()
    counts = rows.groupBy("value").agg({"*": "count", "timestamp": "max"})
    query = counts.writeStream.outputMode("update").format("noop").option("checkpointLocation", str(checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main()
