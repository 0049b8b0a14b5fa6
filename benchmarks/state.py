"""How fast state is read without Spark, in ratios to the shortest scripts that do the same with Spark.

    python benchmarks/state.py [--keys N] [--pairs N] [--folder FOLDER]

The ``ckpt`` beside the interpreter is measured, so install the project into its environment (not editable). All are
whole processes, and take turns.
"""

import sys

sys.path.pop(0)  # this folder: its inspect.py would hide the one of the standard library

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from statistics import median

import pyarrow.parquet as pq
import pyspark

from benchmarks.many_keys import PROVIDERS, made
from benchmarks.measure import Command, Pairs, by_turns, circumstances

CKPT = Path(sys.executable).with_name("ckpt")
SUBMIT = Path(pyspark.__file__).parent / "bin/spark-submit"
COLUMN = "_groupingexpression"  # as Spark calls the key of ``many_keys``
_SESSION = """
import sys, time
from pyspark.sql import SparkSession
settings = {"spark.ui.enabled": "false", "spark.driver.memory": "4g", "spark.log.level": "ERROR"}
spark = SparkSession.builder.master("local[*]").config(map=settings).getOrCreate()
_ = spark.streams  # Spark 4.2.0 fails otherwise in a session that has not streamed
state = spark.read.format("statestore")
"""
LOOK_UP = f"""{_SESSION}
assert len(state.load(sys.argv[1]).where(f"key.{COLUMN} = '{{sys.argv[2]}}'").collect()) == 1
process = spark.sparkContext._gateway.proc
spark.stop()
process.stdin.close()
process.wait()
"""
EXPORT = f"""{_SESSION}
def cpu():
    jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().info().totalCpuDuration()
    return jvm.get().toMillis() / 1000 + time.process_time()
wall, used = time.perf_counter(), cpu()
state.load(sys.argv[1]).write.mode("overwrite").parquet(sys.argv[2])
with open(sys.argv[3], "a") as file:
    print(time.perf_counter() - wall, cpu() - used, file=file)
spark.stop()
"""


def main() -> None:
    """Print one row for each comparison."""
    asked = _arguments()
    if not CKPT.exists():
        sys.exit(f"{CKPT} is not there: install the project into this environment (python -m pip install .)")
    os.environ["PYSPARK_DRIVER_PYTHON"] = os.environ["PYSPARK_PYTHON"] = sys.executable
    print(circumstances())
    print("how many times as long the other takes: the middle one of several pairs of runs, taken by turns\n")
    with tempfile.TemporaryDirectory(prefix="ckpt-benchmark-") as temporary:
        folder = Path(asked.folder or temporary)
        for provider in asked.providers:
            few, many = ((keys, made(folder, provider, keys)) for keys in (asked.keys // 10, asked.keys))
            for row in _rows(provider, few, many, Path(temporary), asked.pairs):
                print(row, flush=True)


def _rows(provider: str, few: tuple[int, Path], many: tuple[int, Path], temporary: Path, times: int) -> Iterator[str]:
    """One key, everything, and what each key takes of few and of many."""
    keys, checkpoint = many
    key = f"user-{keys * 2 // 3:010}"
    _must_find(checkpoint, key)
    one = by_turns(_look_up(checkpoint, key), [sys.executable, "-c", LOOK_UP, str(checkpoint), key], times)
    yield (
        f"one key of {keys:,}, {provider}, against pyspark\n"
        f"    wall {1 / one.wall:.0f}   CPU {1 / one.cpu:.0f}   (at least 40; 0.5 s of CPU)   {_took(one)}"
    )
    every, inside = _exports(checkpoint, keys, temporary, times)
    yield (
        f"{keys:,} keys, {provider}, to Parquet, against spark-submit\n"
        f"    wall {1 / every.wall:.1f}   CPU {1 / every.cpu:.1f}   (at least 5)   {_took(every)}\n"
        "    without Spark's session wall {:.1f}   CPU {:.1f}   (at least 1.5)".format(*inside)
    )
    export, look = _export(checkpoint, temporary / "all"), _look_up(checkpoint, key)
    tenth = _export(few[1], temporary / "tenth")
    least = [by_turns(command, look, times).least_cpu for command in (export, tenth)]
    each = [1e6 * (all_of_it - start) / some for (all_of_it, start), some in zip(least, (keys, few[0]), strict=True)]
    yield "    CPU per key, without that of a look-up: {:.2f} us; in a tenth of it {:.2f} us".format(*each)


def _look_up(checkpoint: Path, key: str) -> Command:
    return [str(CKPT), "state", "show", str(checkpoint), "--key", f"{COLUMN}={key}", "-o", "json"]


def _must_find(checkpoint: Path, key: str) -> None:
    rows = json.loads(subprocess.run(_look_up(checkpoint, key), capture_output=True, check=True).stdout)["rows"]
    if [row["value_count"] for row in rows] != [1]:
        raise RuntimeError(f"{checkpoint.name}: {key} has the rows {rows}")


def _export(checkpoint: Path, to: Path) -> Command:
    return [str(CKPT), "export-state", str(checkpoint), "--engine", "native", "--mode", "overwrite", "--to", str(to)]


def _exports(checkpoint: Path, keys: int, temporary: Path, times: int) -> tuple[Pairs, tuple[float, float]]:
    """Export and script; and the same without the start and end of the script's session."""
    to, theirs, took, script = (temporary / name for name in ("ours", "theirs", "took", "script.py"))
    script.write_text(EXPORT)
    submit: Command = [str(SUBMIT), str(script), str(checkpoint), str(theirs), str(took)]
    pairs = by_turns(_export(checkpoint, to), submit, times)
    for written in (to, theirs):
        rows = sum(pq.read_metadata(path).num_rows for path in written.glob("*.parquet"))
        if rows != keys:
            raise RuntimeError(f"{written.name}: {rows:,} rows of {keys:,} keys")
    runs = [tuple(map(float, line.split())) for line in took.read_text().splitlines()][-times:]
    took.unlink()
    both = list(zip(runs, pairs.ours, strict=True))
    return pairs, (median(wall / run.wall for (wall, _), run in both), median(cpu / run.cpu for (_, cpu), run in both))


def _took(pairs: Pairs) -> str:
    wall, cpu = pairs.seconds
    return f"{wall:.2f} s, {cpu:.2f} s CPU (least {pairs.least_cpu[0]:.2f}), peak {pairs.rss / 1e6:.0f} MB"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure state without Spark against Spark, side by side.")
    parser.add_argument("--keys", type=int, default=2_000_000, help="keys of state, and a tenth of it (2,000,000)")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of runs that count (5)")
    parser.add_argument("--providers", nargs="+", choices=PROVIDERS, default=list(PROVIDERS), help="of state (both)")
    parser.add_argument("--folder", help="where checkpoints are made and stay, for another run (default: temporary)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
