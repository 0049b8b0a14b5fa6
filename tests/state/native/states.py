"""Records random state as each version of Spark writes it, and the values that Spark reads from it.

    python -m tests.state.native.states --spark 3.5=/path/to/python --spark 4.0=/path/to/python ...

starts each interpreter in turn, which need not have ckpt installed, and writes ``recorded/states-<version>.tar.xz``:
for each case its checkpoint, and its keys and values in Arrow. State of Spark 3.5, which has no reader of state, is
read by the pyspark of this interpreter. Takes about two minutes for a version.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from tests.state.native.schemas import Types, cast, kind_of, readable

FOLDER = Path(__file__).with_name("recorded")
ROOT = Path(__file__).parents[3]
VERSIONS = ("3.5", "4.0", "4.1", "4.2", "4.3")
STORES = ("hdfs", "rocksdb", "changelog")
SCHEMAS = 15
ROWS = 8
_NO_KEYS = ("MAP<", "VARIANT", "COLLATE", "INTERVAL")


@dataclass(frozen=True)
class State:
    """An aggregation that keeps the first value of columns for each key, in one kind of state store."""

    name: str
    store: str
    keys: tuple[str, ...]
    values: tuple[str, ...]
    sql: str

    @property
    def columns(self) -> tuple[list[str], list[str]]:
        """What of Spark's raw rows is compared: each with a name of its own, as the same buffers repeat theirs."""
        keys = ", ".join(f"k{place}: {kind}" for place, kind in enumerate(self.keys))
        values = ", ".join(f"c{place}: {kind}, s{place}: BOOLEAN" for place, kind in enumerate(self.values))
        renamed = [f"CAST(key AS STRUCT<{keys}>) AS key", f"CAST(value AS STRUCT<{values}>) AS value"]
        found = [f"{readable(kind, f'key.k{place}')} AS k{place}" for place, kind in enumerate(self.keys)]
        for place, kind in enumerate(self.values):
            found += [f"{readable(kind, f'value.c{place}')} AS c{place}", f"value.s{place} AS s{place}"]
        return renamed, found


def states(spark: str) -> list[State]:
    """The cases of a version: each schema in one kind of store."""
    random, types = Random(f"state of {spark}"), Types.of(spark)
    return [_state(random, types, f"{number:02}", STORES[number % len(STORES)]) for number in range(SCHEMAS)]


def _state(random: Random, types: Types, name: str, store: str) -> State:
    keys = _kinds(random, types, random.choice([1, 2, 4]), lambda kind: not any(word in kind for word in _NO_KEYS))
    values = _kinds(random, types, random.choice([1, 4, 12, 40]), lambda kind: kind != "INTERVAL")
    names = [*(f"k{place}" for place in range(len(keys))), *(f"c{place}" for place in range(len(values)))]
    rows = [
        ", ".join([str(row), *(f"CAST({cast(random, kind)} AS {kind})" for kind in (*keys, *values))])
        for row in range(ROWS)
    ]
    sql = f"SELECT * FROM VALUES {', '.join(f'({row})' for row in rows)} AS t(row, {', '.join(names)})"
    return State(name, store, tuple(keys), tuple(values), sql)


def _kinds(random: Random, types: Types, count: int, fits: Callable[[str], bool]) -> list[str]:
    """So many types. (Of calendar intervals Spark's own validation of state refuses NULL.)"""
    found: list[str] = []
    while len(found) < count:
        found += filter(fits, [kind_of(random, types)])
    return found


def write(spark: Any, state: State, folder: Path) -> None:
    """Run the query of a case for two batches, of all rows and of some again."""
    from pyspark.sql import functions as F

    from tests.support.spark.queries import STATE_STORES

    own = spark.newSession()
    for key, value in STATE_STORES[state.store].items():
        own.conf.set(key, value)
    own.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    source = own.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS - 3).option("numPartitions", 1)
    for _ in range(2):
        numbers = source.option("startTimestamp", 1_700_000_000_000).load().selectExpr(f"value % {ROWS} AS row")
        grouped = numbers.join(own.sql(state.sql), "row").groupBy(*(f"k{n}" for n in range(len(state.keys))))
        frame = grouped.agg(*(F.first(f"c{n}") for n in range(len(state.values))))
        writer = frame.writeStream.outputMode("update").format("noop").option("checkpointLocation", str(folder))
        writer.trigger(availableNow=True).start().awaitTermination()


def read(spark: Any, state: State, folder: Path) -> Any:
    """What Spark reads from a checkpoint, as an Arrow table."""
    renamed, columns = state.columns
    return spark.read.format("statestore").load(str(folder)).selectExpr(*renamed).selectExpr(*columns).toArrow()


def recorded(version: str, into: Path) -> Iterator[tuple[State, Path, Any]]:
    """The cases of a version, each with its checkpoint, unpacked, and what Spark read from it."""
    import pyarrow as pa

    with tarfile.open(FOLDER / f"states-{version}.tar.xz") as archive:
        archive.extractall(into, filter="data")
    for state in states(version):
        yield state, into / state.name, pa.ipc.open_file(into / f"{state.name}.arrow").read_all()


def _record(version: str, python: str) -> None:
    """Have the Sparks that are needed do their work, and pack what they leave."""
    with TemporaryDirectory() as folder:
        reader = python if version != "3.5" else sys.executable
        for interpreter, step in ((python, "write"), (reader, "read")):
            environment = os.environ | {"PYSPARK_PYTHON": interpreter, "PYTHONPATH": str(ROOT)}
            command = [interpreter, "-m", __name__ if __name__ != "__main__" else "tests.state.native.states", version]
            subprocess.run([*command, "--step", step, "--folder", folder], cwd=ROOT, env=environment, check=True)
        target = FOLDER / f"states-{version}.tar.xz"
        with tarfile.open(target, "w:xz", preset=9) as archive:
            for path in sorted(Path(folder).rglob("*")):
                if path.is_file() and not path.name.startswith("."):
                    archive.add(path, str(path.relative_to(folder)), filter=_anonymous)
        sys.stdout.write(f"{version}: {SCHEMAS} cases, {target.stat().st_size:,} bytes\n")


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _step(version: str, step: str, folder: Path) -> None:
    """Write or read all cases, under the Spark of this interpreter."""
    from tests.support.spark.queries import session

    spark = session(master="local[1]", spark__sql__shuffle__partitions="1", spark__sql__timeType__enabled="true")
    spark.sparkContext.setLogLevel("OFF")
    _ = spark.streams.active  # starts the coordinator of state stores, which a reader asks for
    for state in states(version):
        if step == "write":
            write(spark, state, folder / state.name)
        else:
            import pyarrow as pa

            table = read(spark, state, folder / state.name)
            with pa.ipc.new_file(folder / f"{state.name}.arrow", table.schema) as writer:
                writer.write_table(table)
    spark.stop()


def main() -> None:
    """Record what the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("version", nargs="?", choices=VERSIONS)
    parser.add_argument("--spark", action="append", default=[], metavar="VERSION=PYTHON")
    parser.add_argument("--step", choices=["write", "read"])
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    if asked.step:
        _step(asked.version, asked.step, asked.folder)
    for pair in asked.spark:
        _record(*pair.split("=", 1))


if __name__ == "__main__":
    main()
