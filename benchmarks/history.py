"""How fast the history of one key is read, of many keys with 100 versions, written by a real query.

    python benchmarks/history.py [--keys N] [--versions N] [--runs N] [--folder FOLDER]

The first batch writes all keys, each later one changes 20,000 and the one that is asked for. The ``ckpt`` beside the
interpreter is measured, as a whole process, so install the project into its environment (not editable).
"""

import sys

sys.path.pop(0)  # this folder: its inspect.py would hide the one of the standard library

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import argparse
import json
import subprocess
import tempfile
import time
from statistics import median

from benchmarks.many_keys import PARTITIONS, PROVIDERS
from benchmarks.measure import circumstances, run

CKPT = Path(sys.executable).with_name("ckpt")
COLUMN = "_groupingexpression"  # as Spark calls the key
CHANGED = 20_000  # keys in each later batch
KEY = 1_333_333
_FORKED = "--make"


def main() -> None:
    """Print one row for each kind of state store."""
    asked = _arguments()
    print(circumstances())
    with tempfile.TemporaryDirectory(prefix="ckpt-benchmark-") as temporary:
        for provider in asked.providers:
            checkpoint = Path(asked.folder or temporary) / f"history-{provider}-{asked.keys}-{asked.versions}"
            if not (checkpoint / "commits" / str(asked.versions)).exists():
                words = [provider, str(asked.keys), str(asked.versions), str(checkpoint)]
                subprocess.run([sys.executable, __file__, _FORKED, *words], check=True)
            command = [str(CKPT), "state", "history", str(checkpoint), "--key", f"{COLUMN}={KEY}", "--limit", "1000"]
            document = json.loads(subprocess.run([*command, "-o", "json"], capture_output=True, check=True).stdout)
            runs = [run(command) for _ in range(asked.runs)]
            wall, cpu, peak = (median(getattr(each, name) for each in runs) for name in ("wall", "cpu", "rss"))
            print(
                f"one key of {asked.keys:,}, {provider}, {asked.versions} versions after the first: "
                f"{len(document['events'])} events, known after {document['known_after']}\n"
                f"    wall {wall:.2f} s (under 2)   CPU {cpu:.2f} s   peak {peak / 1e6:.0f} MB"
            )


def make(provider: str, keys: int, versions: int, checkpoint: str) -> None:
    """Run the query: a batch of all keys, and so many more."""
    from pyspark.sql import SparkSession, functions as F

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "4g",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        "spark.sql.streaming.stateStore.providerClass": PROVIDERS[provider],
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.minBatchesToRetain": str(versions),
    }
    spark = SparkSession.builder.master("local[*]").config(map=settings).getOrCreate()
    for rows, until in ((keys, 0), (CHANGED, versions)):
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
        number = F.expr(f"IF(value >= {keys} AND value % 1000 = 0, {KEY}, value * 7919 % {keys})")
        totals = source.load().groupBy(number.alias("user")).agg(F.count("*").alias("n"), F.sum("value").alias("sum"))
        writer = totals.writeStream.format("noop").outputMode("update").option("checkpointLocation", checkpoint)
        query = writer.trigger(**({"processingTime": "0 seconds"} if until else {"availableNow": True})).start()
        while query.isActive and until and not (Path(checkpoint) / "commits" / str(until)).exists():
            time.sleep(0.2)
        if until:
            query.stop()
        query.awaitTermination()
    spark.stop()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure how fast the history of a key is read.")
    parser.add_argument("--keys", type=int, default=2_000_000, help="keys of state (2,000,000)")
    parser.add_argument("--versions", type=int, default=100, help="versions after the first (100)")
    parser.add_argument("--runs", type=int, default=5, help="runs that count (5)")
    parser.add_argument("--providers", nargs="+", choices=PROVIDERS, default=list(PROVIDERS), help="of state (both)")
    parser.add_argument("--folder", help="where checkpoints are made and stay, for another run (default: temporary)")
    return parser.parse_args()


if __name__ == "__main__":
    if sys.argv[1:2] == [_FORKED]:
        make(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        main()
