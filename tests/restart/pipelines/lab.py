"""A declarative pipeline of a Spark version: its server (Spark Connect, a Derby metastore), its runs, and its rows."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq

START_S, RUN_S = 180.0, 600.0
TABLES = "storage/_checkpoints/spark_catalog/default"
_SPEC = """name: recorded
storage: file://{folder}/storage
catalog: spark_catalog
database: default
libraries:
  - glob: {{include: "transformations/**"}}
configuration: {{spark.sql.shuffle.partitions: "2"}}
"""
_HEAD = """from pyspark import pipelines as dp
from pyspark.sql import SparkSession
spark = SparkSession.active()


def read(folder):
    reader = spark.readStream.schema("k STRING, n INT").option("maxFilesPerTrigger", 1)
    return reader.json("file://{folder}/in/" + folder)
"""
_TABLE = """

@dp.table
def {name}():
    return read("{name}"){more}
"""
_TWO = """

dp.create_streaming_table("{name}")


@dp.append_flow(target="{name}", name="{name}_a")
def {name}_a():
    return read("{name}_a")


@dp.append_flow(target="{name}", name="{name}_b")
def {name}_b():
    return read("{name}_b")
"""
_UNION = """

dp.create_streaming_table("{name}")


@dp.append_flow(target="{name}", name="{name}_all")
def {name}_all():
    return read("{name}_a").union(read("{name}_b"))
"""
_SINK = """

dp.create_sink("{name}", "parquet", {{"path": "file://{folder}/out"}})


@dp.append_flow(target="{name}", name="into_{name}")
def into_{name}():
    return read("{name}")
"""
_ORDINARY = """import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "2")
for word in sys.argv[3:]:
    table, keyed = word.split("=")
    reader = spark.readStream.schema("k STRING, n INT").option("maxFilesPerTrigger", 1)
    rows = reader.json("file://" + sys.argv[2] + "/in/" + table)
    rows = rows.dropDuplicates(["k"]) if keyed == "True" else rows
    writer = rows.writeStream.option("checkpointLocation", sys.argv[2] + "/ordinary/" + table)
    writer.trigger(availableNow=True).toTable(table).awaitTermination()
"""


class Pipeline:
    """A pipeline in a folder of its own, whose server runs as long as this is entered."""

    def __init__(self, python: str, home: Path, folder: Path, log: Path) -> None:
        self.python, self.home, self.folder, self.log = python, home, folder, log
        for name in ("project/transformations", "storage", "in"):
            (folder / name).mkdir(parents=True)
        (folder / "project/spark-pipeline.yml").write_text(_SPEC.format(folder=folder))

    def __enter__(self) -> Self:
        for lock in ("db.lck", "dbex.lck"):  # of a server that was killed
            (self.folder / "metastore" / lock).unlink(missing_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        metastore = f"jdbc:derby:;databaseName={self.folder}/metastore;create=true"
        java = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dderby.system.home={self.folder}"
        settings = {
            "spark.connect.grpc.binding.port": self.port,
            "spark.ui.enabled": "false",
            "spark.sql.catalogImplementation": "hive",
            "spark.sql.warehouse.dir": f"{self.folder}/warehouse",
            "spark.hadoop.javax.jdo.option.ConnectionURL": metastore,
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": java,
        }
        confs = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
        server = "org.apache.spark.sql.connect.service.SparkConnectServer"
        submit = ["nice", str(self.home / "bin/spark-submit"), "--master", "local[2]", *confs, "--class", server]
        self.server = self._start([*submit, "spark-internal"], self.folder)
        until = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.5).close()
                return self
            except OSError:
                assert time.monotonic() < until, "the server did not start"
                time.sleep(0.3)

    def __exit__(self, *_: object) -> None:
        os.killpg(self.server.pid, signal.SIGKILL)
        self.server.wait()

    def _start(self, words: list[str], where: Path) -> subprocess.Popen[bytes]:
        more = {"SPARK_HOME": str(self.home), "PYSPARK_PYTHON": self.python, "SPARK_NO_DAEMONIZE": "1"}
        more |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_REMOTE": f"sc://127.0.0.1:{self.port}"}
        if "spark-internal" in words:
            del more["SPARK_REMOTE"]
        log = self.log.open("ab")
        return subprocess.Popen(words, cwd=where, env=os.environ | more, stdout=log, stderr=log, start_new_session=True)

    def define(
        self,
        tables: Mapping[str, bool],
        two: Iterable[str] = (),
        union: Iterable[str] = (),
        sinks: Iterable[str] = (),
    ) -> None:
        """Declare tables of one flow each, with or without a dropDuplicates, tables with two flows, and sinks.

        ``union``: tables that had two flows, and have the union of their sources in one.
        """
        more = {True: '.dropDuplicates(["k"])', False: ""}
        parts = [_HEAD.format(folder=self.folder)]
        parts += [_TABLE.format(name=name, more=more[keyed]) for name, keyed in tables.items()]
        parts += [_TWO.format(name=name) for name in two]
        parts += [_UNION.format(name=name) for name in union]
        parts += [_SINK.format(name=name, folder=self.folder) for name in sinks]
        (self.folder / "project/transformations/tables.py").write_text("".join(parts))

    def put(self, table: str, number: int, size: int = 4) -> None:
        """Put a file with so many new rows into the folder that a flow reads; each row has a key of its own.

        What the second flow of a table reads has other numbers.
        """
        folder = self.folder / "in" / table
        folder.mkdir(exist_ok=True)
        first = number * size + 1000 * table.endswith("_b")
        numbers = range(first, first + size)
        hidden = folder / f".{number}.json"
        hidden.write_text("".join(json.dumps({"k": f"k{n}", "n": n}) + "\n" for n in numbers))
        hidden.rename(folder / f"{number}.json")

    def run(self, *words: str) -> dict[str, str]:
        """Run the pipeline, and return the errors of the flows that failed, by their names."""
        begins = self.log.stat().st_size if self.log.is_file() else 0
        process = self._start([self.python, str(self.home / "pipelines/cli.py"), *words], self.folder / "project")
        process.wait(RUN_S)
        text = self.log.read_bytes()[begins:].decode(errors="replace")
        (self.folder / f"run-{time.time_ns()}.log").write_text(text)
        return read_failures(text)

    def run_ordinary(self, tables: Mapping[str, bool]) -> None:
        """Run ordinary queries into tables, with their checkpoints in ``ordinary/``."""
        words = [f"{name}={keyed}" for name, keyed in tables.items()]
        remote = f"sc://127.0.0.1:{self.port}"
        process = self._start([self.python, "-c", _ORDINARY, remote, str(self.folder), *words], self.folder)
        assert process.wait(RUN_S) == 0, "the ordinary queries failed"

    def flow(self, table: str, flow: str | None = None) -> Path:
        """Return the folder of the checkpoints of a flow."""
        return self.folder / TABLES / table / (flow or table)

    def count_rows(self, table: str) -> list[int]:
        """Return how many rows a table has, and how many numbers are among them."""
        return read_table(self.folder / "warehouse" / table)


def read_table(folder: Path) -> list[int]:
    """Return how many rows the output of a file sink has, and how many numbers are among them."""
    files: set[str] = set()
    for log in (folder / "_spark_metadata").glob("[0-9]*"):
        files |= {json.loads(line)["path"] for line in log.read_text().splitlines()[1:]}
    numbers: Counter[int] = Counter()
    for file in files:
        numbers.update(pq.read_table(unquote(urlsplit(file).path), partitioning=None).column("n").to_pylist())
    return [numbers.total(), len(numbers)]


def read_failures(text: str) -> dict[str, str]:
    """Find the flows that failed for good in what a run printed, with the error of each."""
    failures: dict[str, str] = {}
    pattern = r"Flow '?[\w.`]*?(\w+)`?'? has FAILED more than \d+ times and will not be restarted\.\n(.*?)(?=\n=== |\Z)"
    for match in re.finditer(pattern, text, re.S):
        failures[match[1]] = match[2].strip()
    return failures
