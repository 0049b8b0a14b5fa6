"""Driver logs of real failing queries: the suite `driver-logs` of `python -m tests.record`.

Each is the whole log, at the level INFO, of one query that is started on a checkpoint of `tests/restart/oracle/cases`
in a session of its own, with the traceback that Python prints for it. Paths and names of the machine are replaced.
"""

from __future__ import annotations

import gzip
import re
import socket
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.record.suite import Whole
from tests.record.worker import Installed, Worker

LOGS = Path(__file__).parent / "logs"
WAIT_S = 60
CASES = {
    "3.5": (
        "changelog-changelog-1-missing-uncommitted",
        "changelog-logs-commits-ahead",
        "changelog-logs-predecessor-missing-uncommitted",
        "commit-ahead-empty",
        "commit-latest-blank-line",
        "crc-orphan-commit-latest",
        "damaged-expired-deltas",
        "damaged-one-source-short",
        "changelogs-sst-all-cut-uncommitted",
    ),
    "4.0": (
        "changelog-changelog-1-missing-uncommitted",
        "changelog-operator-metadata-unknown-operator-uncommitted",
        "commit-ahead-v9",
        "damaged-expired-deltas",
        "damaged-tws-missing-schema",
        "damaged-file-source-log-hole",
        "metadata-empty-uncommitted",
        "offset-latest-only-v1-uncommitted",
    ),
    "4.1": (
        "changelog-changelog-1-empty-uncommitted",
        "changelog-logs-commits-ahead",
        "commit-ahead-json-cut-early",
        "crc-orphan-commit-latest",
        "damaged-missing-join-store",
        "flipped-aggregation-changelog-4.0-changelog-02",
        "metadata-garbage-uncommitted",
        "made-tws-avro-changelog-4.2-moved",
    ),
    "4.2": (
        "changelog-logs-metadata-missing",
        "changelog-logs-predecessor-missing-uncommitted",
        "changelog-operator-gone-uncommitted",
        "damaged-missing-sst",
        "flipped-aggregation-rocksdb-4.2-sst-00",
        "commit-latest-blank-line",
        "damaged-one-source-short",
        "metadata-directory",
    ),
    "4.3": (
        "changelog-logs-commits-ahead",
        "changelog-logs-metadata-missing",
        "commit-ahead-empty",
        "damaged-expired-deltas",
        "damaged-truncated-sst",
        "flipped-schema-type-stale-crc",
        "snapshots-of-4.0-no-older-changelogs",
        "contents-join-changelog-rows-missing",
        "changelog-logs-logs-gone-state-left",
    ),
}

HEALTHY = {
    "3.5": "made-aggregation-hdfs-4.2-whole",
    "4.0": "made-join-hdfs-3.5-uncommitted",
    "4.1": "made-dedup-aggregation-hdfs-4.2-uncommitted",
    "4.2": "made-join-v3-changelog-4.2-whole",
    "4.3": "made-aggregation-rocksdb-4.2-whole",
}
"""Cases that do not fail: their logs hold no error."""


def answer(spark: Any, job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Start a query as a program would that prints what it ends with; the log goes to standard error."""
    from tests.restart.oracle import cases
    from tests.support.spark import mutations, queries

    case = next(one for one in cases.CASES if one.name == job["case"])
    folder.mkdir(parents=True)
    checkpoint = mutations.copy_of(case.folder, folder / "ck", case.mutations)
    query = queries.QUERIES[case.query]
    if query.inputs:
        queries.write_input_files(folder / "inputs" / query.name, 20)
    ended = True
    with logged(spark):
        trigger = {"processingTime": "300 milliseconds"}
        where: dict[str, Any] = {"store": case.settings, "inputs": folder / "inputs", "trigger": trigger}
        handle = queries.start(spark, query, checkpoint, **where)
        ended = handle.awaitTermination(WAIT_S if job["fails"] else 6)
        handle.stop()
    return {"failed": ended, "folder": str(folder)}


@contextmanager
def logged(spark: Any) -> Iterator[None]:
    """Log at the level INFO; an error is printed as Python prints it."""
    spark.sparkContext.setLogLevel("INFO")
    try:
        yield
    except Exception:
        traceback.print_exc()
    time.sleep(0.5)
    spark.sparkContext.setLogLevel("OFF")


def record_log(worker: Worker, log: Path, job: dict[str, Any], path: Path) -> dict[str, Any]:
    """Ask a worker, and keep what it logs meanwhile; its answer."""
    before = log.stat().st_size
    answer = worker.ask(job)
    with log.open("rb") as file:
        file.seek(before)
        text = file.read().decode(errors="replace")
    path.write_bytes(gzip.compress(neutral(text, answer["folder"]).encode(), 9, mtime=0))
    return answer


class Drivers(Whole):
    """Logs of queries that fail, and of one that does not; a version without a list of its own has the newest one's."""

    def wanted(self, minor: str) -> list[str]:
        return [*CASES.get(minor, CASES[max(CASES)]), HEALTHY.get(minor, HEALTHY[max(HEALTHY)])]

    def recorded(self, minor: str) -> list[str]:
        names = (path.name[len(f"{minor}-") : -len(".log.gz")] for path in LOGS.glob(f"{minor}-*.log.gz"))
        return [name for name in names if not name.startswith("program-")]  # those are of the suite `failed-programs`

    def ask_all(self, spark: Installed) -> None:
        *_, healthy = names = self.wanted(spark.minor)
        with TemporaryDirectory(prefix="ckpt-drivers-") as scratch:
            log = Path(scratch) / "log"
            with Worker(spark.python, log, "driver-logs") as worker:
                for name in names:
                    job = {"case": name, "fails": name != healthy}
                    answer = record_log(worker, log, job, LOGS / f"{spark.minor}-{name}.log.gz")
                    assert answer["failed"] == job["fails"], name


def neutral(text: str, folder: str) -> str:
    """A log without what belongs to the machine."""
    scratch = str(Path(folder).parent)
    text = text.replace(folder, "/data").replace(scratch, "/scratch")
    text = re.sub(r"(?:/[^\s:\"'/]+)+?/site-packages/", "/site-packages/", text)
    text = re.sub(rf"{re.escape(str(Path(__file__).parents[3]))}/", "/app/", text)
    text = re.sub(r"/[^\s:\"']*?/lib/python3", "/lib/python3", text)
    return re.sub(rf"\b{re.escape(socket.gethostname())}\b", "driver", text)


def read() -> dict[str, str]:
    """Every recorded log, by its name."""
    return {
        path.name.removesuffix(".log.gz"): gzip.decompress(path.read_bytes()).decode()
        for path in sorted(LOGS.glob("*.log.gz"))
    }


SUITE = Drivers()
