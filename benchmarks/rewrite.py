"""How long `ckpt rewrite` takes, in ratios to a plain export of the same state, and to Spark's own repartitioning.

And how long `ckpt evolve` takes to add an aggregate, in ratios to `ckpt rewrite`.

    python benchmarks/rewrite.py [--keys N] [--pairs N] [--folder FOLDER]

The ``ckpt`` beside the interpreter is measured, so install the project into its environment (not editable). All are
whole processes, and take turns. Spark repartitions state of RocksDB only, and in place: each time a copy.
"""

import sys

sys.path.pop(0)  # this folder: its inspect.py would hide the one of the standard library

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import argparse
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import partial

from benchmarks.many_keys import PARTITIONS, described, made
from benchmarks.measure import Command, Pairs, Run, alternated, circumstances, run
from benchmarks.state import CKPT

REPARTITION = """
import sys
from pyspark.sql import SparkSession
settings = {"spark.ui.enabled": "false", "spark.driver.memory": "4g", "spark.log.level": "ERROR"}
spark = SparkSession.builder.master("local[*]").config(map=settings).getOrCreate()
_ = spark.streams
spark._streamingCheckpointManager.repartition(sys.argv[1], int(sys.argv[2]))
process = spark.sparkContext._gateway.proc
spark.stop()
process.stdin.close()
process.wait()
"""
MORE = PARTITIONS + 1


def main() -> None:
    """Print one row for each comparison."""
    asked = _arguments()
    if not CKPT.exists():
        sys.exit(f"{CKPT} is not there: install the project into this environment (python -m pip install .)")
    os.environ["PYSPARK_DRIVER_PYTHON"] = os.environ["PYSPARK_PYTHON"] = sys.executable
    print(circumstances())
    print("how many times as long ckpt rewrite takes: the middle one of several pairs of runs, taken by turns\n")
    with tempfile.TemporaryDirectory(prefix="ckpt-benchmark-") as temporary:
        room, folder = Path(temporary), Path(asked.folder or temporary)
        hdfs, rocksdb = (made(folder, provider, asked.keys) for provider in ("HDFS-backed", "RocksDB"))
        to_rocksdb = [str(CKPT), "rewrite", str(hdfs), "--provider", "rocksdb"]
        spread = [str(CKPT), "rewrite", str(rocksdb), "--partitions", str(MORE)]
        on_spark = [*to_rocksdb, "--engine", "spark"]
        theirs = partial(_repartitioned, rocksdb, room)
        comparisons = (
            ("HDFS-backed to RocksDB, against an export", to_rocksdb, partial(_exported, hdfs, room), 3),
            ("HDFS-backed to RocksDB, against Spark's repartitioning of RocksDB", to_rocksdb, theirs, 1),
            ("the same by Spark's executors, against Spark's repartitioning", on_spark, theirs, 1),
            (f"RocksDB, {PARTITIONS} to {MORE} partitions, against Spark's own", spread, theirs, 1),
        )
        for what, ours, other, limit in comparisons if not asked.only_evolve else ():
            pairs = alternated(partial(_written, ours, room), other, asked.pairs)
            print(f"{asked.keys:,} keys, {what}\n    {_said(pairs, limit)}", flush=True)
        for provider, checkpoint in (("hdfs", hdfs), ("rocksdb", rocksdb)):
            plain = [str(CKPT), "rewrite", str(checkpoint), "--provider", provider, "--new-id"]
            pairs = alternated(partial(_evolved, checkpoint, room), partial(_written, plain, room), asked.pairs)
            what = f"{provider}, an aggregate more (evolve), against rewrite"
            print(f"{asked.keys:,} keys, {what}\n    {_said(pairs, 1.3)}", flush=True)


def _written(command: Command, room: Path) -> Run:
    return _into(lambda new: [*command, str(new)], room)


def _exported(checkpoint: Path, room: Path) -> Run:
    return _into(lambda new: [str(CKPT), "export-state", str(checkpoint), "--to", str(new)], room)


def _evolved(checkpoint: Path, room: Path) -> Run:
    old, new = map(str, described(checkpoint))
    command = [str(CKPT), "evolve", str(checkpoint), "--from-query", old, "--to", new, "--accept-from-now-on"]
    return _into(lambda into: [*command, str(into)], room)


def _into(command: Callable[[Path], Command], room: Path) -> Run:
    """Run what writes a new folder, which is then removed."""
    new = room / "new"
    found = run(command(new))
    shutil.rmtree(new)
    return found


def _repartitioned(checkpoint: Path, room: Path) -> Run:
    copy = shutil.copytree(checkpoint, room / "copy")
    found = run([sys.executable, "-c", REPARTITION, str(copy), str(MORE)])
    assert (copy / "state/0" / str(PARTITIONS)).is_dir(), "Spark has not repartitioned it"
    shutil.rmtree(copy)
    return found


def _said(pairs: Pairs, limit: int) -> str:
    (wall, cpu), theirs = pairs.seconds, pairs.theirs
    took = f"{wall:.1f} s and {cpu:.1f} s of CPU; the other's least wall time {min(one.wall for one in theirs):.1f} s"
    return f"wall {pairs.wall:.2f}   CPU {pairs.cpu:.2f}   (at most {limit})   {took}, peak {pairs.rss >> 20} MiB"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--only-evolve", action="store_true", help="only the rows of ckpt evolve")
    parser.add_argument("--folder", help="where the checkpoints are kept from run to run")
    return parser.parse_args()


if __name__ == "__main__":
    main()
