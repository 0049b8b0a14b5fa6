"""Checkpoints with a great many keys of state, written by a real query: one batch, one row for each key.

python -m benchmarks.many_keys FOLDER KEYS...
"""

import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

PARTITIONS = 8
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_STATE = "org.apache.spark.sql.execution.streaming.state."
PROVIDERS = {"RocksDB": _STATE + "RocksDBStateStoreProvider", "HDFS-backed": _STATE + "HDFSBackedStateStoreProvider"}
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "4g",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": str(PARTITIONS),
}


def place(folder: Path, provider: str, keys: int) -> Path:
    """Where in the folder the checkpoint of so many keys lies."""
    return folder / f"{provider}-{keys}"


def is_made(checkpoint: Path) -> bool:
    """Whether its batch was committed."""
    return (checkpoint / "commits" / "0").exists()


def main(folder: Path, sizes: list[int]) -> None:
    """Make what is not there yet, for every provider."""
    spark = SparkSession.builder.master("local[*]").config(map=_SETTINGS).getOrCreate()
    for provider, name in PROVIDERS.items():
        spark.conf.set(_PROVIDER, name)
        for keys in sizes:
            checkpoint = place(folder, provider, keys)
            if not is_made(checkpoint):
                shutil.rmtree(checkpoint, ignore_errors=True)
                _run(spark, keys, checkpoint)
    spark.stop()


def _run(spark: SparkSession, keys: int, checkpoint: Path) -> None:
    """One batch of a streaming aggregation."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", keys).load()
    user = F.concat(F.lit("user-"), F.lpad("value", 10, "0")).alias("user")
    totals = rows.groupBy(user).agg(
        F.count("*").alias("events"), F.sum("value").alias("amount"), F.max("timestamp").alias("last")
    )
    writer = totals.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(word) for word in sys.argv[2:]])
