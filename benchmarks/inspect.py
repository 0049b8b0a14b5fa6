"""How fast ``ckpt inspect`` is, in ratios to something else that is measured in the same run, by turns.

    python benchmarks/inspect.py [--quick] [--pyspark PYTHON]

The ``ckpt`` beside the interpreter is measured, so install the project into its environment (not editable).
"""

import sys

sys.path.pop(0)  # this folder: its inspect.py would hide the one of the standard library

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from statistics import median

from benchmarks import generate
from benchmarks.measure import Command, Pairs, by_turns, heading
from tests.support.services.counting import counting_s3

IMPORTS = "import typer, pyarrow.fs"
WALK = """
import os, sys
pending = [sys.argv[1]]
while pending:
    with os.scandir(pending.pop()) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            else:
                entry.stat(follow_symlinks=False)
"""
STATE_METADATA = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.memory", "1g").getOrCreate()
assert spark.read.format("state-metadata").load(sys.argv[1]).collect()
process = spark.sparkContext._gateway.proc
spark.stop()
process.stdin.close()
process.wait()
"""
STATE = {"HDFS-backed": generate.HDFS, "RocksDB": generate.CHANGELOG}
DELAY = 50  # ms for each request to the object store


def main() -> None:
    """Print one row for each comparison."""
    asked = _arguments()
    print(heading())
    with tempfile.TemporaryDirectory(prefix="ckpt-benchmark-") as folder:
        for row in _rows(asked, Path(folder)):
            print(row, flush=True)


def _rows(asked: argparse.Namespace, folder: Path) -> Iterator[str]:
    for sample in (generate.STATELESS, generate.HDFS):
        shutil.copytree(sample, folder / sample.name)
        pairs = by_turns(_inspect(folder / sample.name), [sys.executable, "-c", IMPORTS], 1 if asked.quick else 21)
        yield _row(f"a small checkpoint ({sample.name}), against {IMPORTS}", pairs, "at most 3, aim 1.5")
    look = _inspect(folder / generate.HDFS.name)
    pairs = by_turns(look, [*look, "--names-only"], 1 if asked.quick else 21)
    yield _row(f"a small checkpoint ({generate.HDFS.name}), against --names-only", pairs, "at most 1.1")
    yield _pyspark(asked, folder / generate.HDFS.name)
    batches, partitions = (200, 20) if asked.quick else (100_000, 10_000)
    yield from _large(asked, folder, "{:,} batches", batches, generate.long_log)
    for name, sample in STATE.items():
        make = partial(generate.wide_state, sample)
        yield from _large(asked, folder, "{:,} partitions x 20 versions, " + name, partitions, make)
    yield from _object_store(asked, folder)


def _pyspark(asked: argparse.Namespace, checkpoint: Path) -> str:
    """A small stateful checkpoint, against Spark's own reader of operator metadata."""
    python = asked.pyspark or (sys.executable if find_spec("pyspark") else None)
    if asked.quick or python is None:
        why = "--quick" if asked.quick else "no pyspark: install spark-ckpt[spark], or name a --pyspark PYTHON"
        return f"pyspark reading state-metadata: not measured ({why})"
    pairs = by_turns(_inspect(checkpoint), [python, "-c", STATE_METADATA, str(checkpoint)], 3)
    return (
        f"pyspark reading state-metadata ({checkpoint.name}), against ckpt inspect\n"
        f"    wall {1 / pairs.wall:.1f}   CPU {1 / pairs.cpu:.1f}   (at least 25)"
    )


def _large(
    asked: argparse.Namespace,
    folder: Path,
    label: str,
    size: int,
    make: Callable[[Path, int], int],
) -> Iterator[str]:
    """A large checkpoint, against a bare walk of the same tree; and a tenth of it, to see that it is linear."""
    each: list[tuple[float, float]] = []
    for part in (size // 10, size):
        where = folder / "large"
        where.mkdir()
        files = make(where, part)
        pairs = by_turns(_inspect(where), [sys.executable, "-c", WALK, str(where)], 1 if asked.quick else 5)
        shutil.rmtree(where)
        ours, walk = pairs.least_cpu
        each.append((1e6 * ours / files, 1e6 * walk / files))
    yield _row(f"{label.format(part)} ({files:,} files), against a bare walk", pairs, "at most 3, aim 2; 250 MB")
    if not asked.quick:
        said = (f"{ours:.1f} us (the walk {walk:.1f} us)" for ours, walk in each)
        yield "    CPU per file: {} in a tenth of it, {} in all of it".format(*said)


def _object_store(asked: argparse.Namespace, folder: Path) -> Iterator[str]:
    """S3 behind a slow network: seconds and requests, inside this process. What was copied there is read further."""
    from ckpt.checkpoint.reader import open_checkpoint
    from ckpt.inspection.inspection import inspect

    partitions = 20 if asked.quick else 200
    for name, sample in STATE.items():
        where = folder / "s3" / "bucket"
        generate.wide_state(sample, where, partitions)
        for how in ("copied there", "written there"):
            if how == "written there":
                generate.times_of_batches(where)
            took: list[float] = []
            for _ in range(1 if asked.quick else 5):
                with counting_s3(where.parent, DELAY) as server:
                    began = time.perf_counter()
                    found = inspect(open_checkpoint("s3://bucket", storage_options=server.options))
                    took.append(time.perf_counter() - began)
            assert found.sound, found.findings
            state, asked_for = found.checkpoint.state, server.requests
            assert state is not None
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(asked_for.items()))
            yield (
                f"{partitions} partitions x 20 versions, {name}, {how}, in S3 with {DELAY} ms a request\n"
                f"    {median(took):.2f} s, {asked_for.total():,} requests ({kinds}), "
                f"{state.not_read.files:,} files known by name and size only   (written there: at most 1 s)"
            )
        shutil.rmtree(where)


def _inspect(checkpoint: Path) -> Command:
    script = Path(sys.executable).with_name("ckpt")
    if not script.exists():
        sys.exit(f"{script} is not there: install the project into this environment (python -m pip install .)")
    return [str(script), "inspect", str(checkpoint)]


def _row(label: str, pairs: Pairs, limit: str) -> str:
    wall, cpu = pairs.seconds
    took = f"{wall:.2f} s, {cpu:.2f} s CPU, peak {pairs.rss / 1e6:.0f} MB"
    return f"{label}\n    wall {pairs.wall:.2f}   CPU {pairs.cpu:.2f}   ({limit})   {took}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure ckpt inspect against other things, side by side.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, one pair each: shows that it runs")
    parser.add_argument("--pyspark", metavar="PYTHON", help="an interpreter that has pyspark 4 (default: this one)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
