"""Random state as each version of Spark writes it, and the values that Spark reads from it.

The suite `states` of `python -m tests.record` writes ``recorded/states-<version>.tar.xz``: for each case its
checkpoint, and its keys and values in Arrow.
"""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from ckpt.versions import Spark
from tests.formats.rows.schemas import Types, cast, kind_of, readable
from tests.record.suite import Whole
from tests.record.worker import Installed

FOLDER = Path(__file__).with_name("recorded")
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

    from tests.support.spark.queries import STATE_STORES, drain, own_session

    idle = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}
    own = own_session(spark, {**STATE_STORES[state.store], **idle})
    source = own.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS - 3).option("numPartitions", 1)
    for _ in range(2):
        numbers = source.option("startTimestamp", 1_700_000_000_000).load().selectExpr(f"value % {ROWS} AS row")
        grouped = numbers.join(own.sql(state.sql), "row").groupBy(*(f"k{n}" for n in range(len(state.keys))))
        frame = grouped.agg(*(F.first(f"c{n}") for n in range(len(state.values))))
        drain(frame, folder, "update", "noop")


def read(spark: Any, state: State, folder: Path) -> Any:
    """What Spark reads from a checkpoint, as an Arrow table."""
    renamed, columns = state.columns
    return spark.read.format("statestore").load(str(folder)).selectExpr(*renamed).selectExpr(*columns).toArrow()


def recorded(version: str, into: Path) -> Iterator[tuple[State, Path, Any]]:
    """The cases of a version, each with its checkpoint, unpacked, and what Spark read from it."""
    import pyarrow as pa

    with tarfile.open(_archive(version)) as archive:
        archive.extractall(into, filter="data")
    for state in states(version):
        yield state, into / state.name, pa.ipc.open_file(into / f"{state.name}.arrow").read_all()


class States(Whole):
    """A version writes its state and reads it; that of 3.5, which has no reader, this interpreter does."""

    def wanted(self, minor: str) -> list[str]:
        return [state.name for state in states(minor)]

    def recorded(self, minor: str) -> list[str]:
        return self.wanted(minor) if _archive(minor).is_file() else []

    def ask_all(self, spark: Installed) -> None:
        reader = spark if spark.minor != "3.5" else Installed(spark.minor, sys.executable, spark.log)
        with TemporaryDirectory() as folder:
            for interpreter, step in ((spark, "write"), (reader, "read")):
                interpreter.ask("states", {"do": step, "version": spark.minor, "folder": folder})
            with tarfile.open(_archive(spark.minor), "w:xz", preset=9) as archive:
                for path in sorted(Path(folder).rglob("*")):
                    if path.is_file() and not path.name.startswith("."):
                        archive.add(path, str(path.relative_to(folder)), filter=_anonymous)


def _archive(minor: str) -> Path:
    return FOLDER / f"states-{minor}.tar.xz"


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def answer(spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
    """Write or read all cases of a version."""
    folder = Path(job["folder"])
    spark.streams.active  # noqa: B018 (starts the coordinator of state stores, which a reader asks for)
    for state in states(job["version"]):
        if job["do"] == "write":
            write(spark, state, folder / state.name)
        else:
            import pyarrow as pa

            table = read(spark, state, folder / state.name)
            with pa.ipc.new_file(folder / f"{state.name}.arrow", table.schema) as writer:
                writer.write_table(table)
    return {}


SUITE = States()
VERSIONS = [minor for minor in Spark if SUITE.recorded(minor)]
