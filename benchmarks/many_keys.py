"""A checkpoint with a great many keys of state, written by a real query: one batch, one row for each key.

python -m benchmarks.many_keys PROVIDER KEYS CHECKPOINT
"""

import shutil
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession, functions as F

import ckpt

PARTITIONS = 8
_STATE = "org.apache.spark.sql.execution.streaming.state."
PROVIDERS = {"RocksDB": _STATE + "RocksDBStateStoreProvider", "HDFS-backed": _STATE + "HDFSBackedStateStoreProvider"}


ROOT = Path(__file__).resolve().parent.parent


def made(folder: Path, provider: str, keys: int) -> Path:
    """Such a checkpoint in a folder, made in a process of its own unless an earlier run left it there."""
    where = folder / f"{provider}-{keys}"
    if not all(path.exists() for path in (where / "commits" / "0", *described(where))):
        shutil.rmtree(where, ignore_errors=True)
        command = [sys.executable, "-m", "benchmarks.many_keys", provider, str(keys), str(where)]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError(f"{command[:3]} exited with {ran.returncode}: {ran.stderr[-2000:]}")
    return where


def described(checkpoint: Path) -> tuple[Path, Path]:
    """The files of the descriptions of the query, and of one with an aggregate more."""
    old, new = (checkpoint.with_name(f"{checkpoint.name}-{name}.json") for name in ("old", "new"))
    return old, new


def main(provider: str, keys: int, checkpoint: str) -> None:
    """Run one batch of a streaming aggregation."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "4g",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        "spark.sql.streaming.stateStore.providerClass": PROVIDERS[provider],
    }
    spark = SparkSession.builder.master("local[*]").config(map=settings).getOrCreate()
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", keys).load()
    user = F.concat(F.lit("user-"), F.lpad("value", 10, "0")).alias("user")
    aggregates = [F.count("*").alias("events"), F.sum("value").alias("amount"), F.max("timestamp").alias("last")]
    totals = rows.groupBy(user).agg(*aggregates)
    more = rows.groupBy(user).agg(F.min("value").alias("least"), *aggregates)
    for frame, path in zip((totals, more), described(Path(checkpoint)), strict=True):
        ckpt.describe_query(frame, output_mode="update").write(str(path))
    writer = totals.writeStream.format("noop").outputMode("update").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
