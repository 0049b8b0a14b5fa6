"""What comes before a migration, `python -m tests.migrate.continuity FOLDER CASE...`, and the migration.

A case is `kind-source-stop`. The process writes the input before the stop, runs the old queries of the cases that
stop cleanly, writes the rest, runs the controls, and starts the old queries of the cases that are killed: each hangs in
the batch behind the stop, with its offsets logged and its state written, and nothing in its sink. Then it says `ready`
and waits for its SIGKILL. `new` then migrates every case and runs the generated query to the end of the input.

A control is the same query that nobody stops. Whether a batch without rows runs where the other one stops, as after a
clean stop, or none, as after a kill, makes a difference to Spark, so there is one for either: the control of a clean
stop waits in its batch without rows until the rest of the input is there.

`CKPT_KAFKA` names a broker, and `CKPT_SPARK_JARS` the jars of the connector.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.migrate.continuity_input import STOP
from tests.migrate.continuity_new import fill_in, imported
from tests.migrate.continuity_old import KINDS
from tests.migrate.continuity_sources import SOURCES, Input
from tests.support.cli import invoke
from tests.support.spark import live, queries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

STOPS = ("clean", "killed")
ALL = 6
PATIENCE_S = 300


def split(case: str) -> tuple[str, str, str]:
    """Kind, source and stop."""
    kind, source, stop = case.rsplit("-", 2)
    return kind, source, stop


class Run:
    """An old query, or its control, whose rows go to a file for each batch."""

    def __init__(self, spark: SparkSession, folder: Path, case: str, control: bool) -> None:
        kind, source, _ = split(case)
        self._spark, self._kind = spark, KINDS[kind]
        self._rows = self._kind.build(Input(folder / "input").read(spark, source))
        self._folder = folder / case / ("control" if control else "old")
        self._folder.mkdir(parents=True)
        self.hangs, self.goes_on = threading.Event(), threading.Event()

    def start(self, hang_at: int | None = None, **trigger: Any) -> StreamingQuery:
        """Start it; batch `hang_at` computes its rows and state, and hands them to nobody until it `goes_on`."""

        def put(batch: DataFrame, number: int) -> None:
            rows = [json.dumps(row.asDict(), sort_keys=True) for row in batch.collect()]
            if number == hang_at:
                self.hangs.set()
                if not self.goes_on.wait(4 * PATIENCE_S):
                    raise TimeoutError("neither went on nor was killed")
            (self._folder / f"{number}.json").write_text("".join(f"{row}\n" for row in rows))

        writer = self._rows.writeStream.foreachBatch(put).outputMode(self._kind.output_mode)
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        with _set(self._spark, self._kind.conf):
            return writer.trigger(**trigger).start() if trigger else writer.start()

    def until_it_hangs(self, **trigger: Any) -> StreamingQuery:
        """Start it, and wait until batch `STOP` hangs."""
        query = self.start(STOP, **trigger)
        if not self.hangs.wait(PATIENCE_S):
            raise TimeoutError(f"{self._folder} does not come to batch {STOP}: {query.exception()}")
        return query

    def all(self) -> None:
        """Run it over everything that there is, to its end."""
        query = self.start(availableNow=True)
        if not query.awaitTermination(PATIENCE_S):
            raise TimeoutError(f"{self._folder} does not end")


@contextmanager
def _set(spark: SparkSession, conf: dict[str, str]) -> Iterator[None]:
    """Settings for a query: it takes those of its start."""
    before = {key: spark.conf.get(key, None) for key in conf}
    try:
        for key, value in conf.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


def old(spark: SparkSession, folder: Path, cases: list[str]) -> None:
    """Before the migration; never returns."""
    sources = {split(case)[1] for case in cases}
    clean, killed = ([case for case in cases if split(case)[2] == stop] for stop in STOPS)
    place = Input(folder / "input")
    place.add(spark, 0, STOP, sources)
    waiting = []
    for case in clean:
        Run(spark, folder, case, control=False).all()
        if KINDS[split(case)[0]].watermark:
            control = Run(spark, folder, case, control=True)
            waiting.append((control, control.until_it_hangs()))
    place.add(spark, STOP, ALL, sources)
    for control, query in waiting:
        control.goes_on.set()
        query.processAllAvailable()
        query.stop()
    for case in cases:
        if case in killed or not KINDS[split(case)[0]].watermark:
            Run(spark, folder, case, control=True).all()
    for case in killed:
        Run(spark, folder, case, control=False).until_it_hangs(availableNow=True)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    time.sleep(PATIENCE_S)


def new(spark: SparkSession, folder: Path, cases: list[str]) -> None:
    """The migration, and what comes after it."""
    for case in cases:
        kind, source, _ = split(case)
        place, run, generated = Input(folder / "input"), folder / case / "new", folder / case / "generated"
        ckpt("migrate", "transform-with-state", folder / case / "old" / "checkpoint", "--to", generated)
        fill_in(generated, kind, source, place, run)
        if not imported(generated).start(spark.newSession()).awaitTermination(PATIENCE_S):
            raise TimeoutError(f"{case} does not end")


def recorded(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Run every case, those of a source together."""
    from tests.migrate.continuity_cases import EVERY, run

    ended = {}
    for source in SOURCES:
        (folder / source).mkdir()
        for case in run(spark, folder / source, [case for case in EVERY if split(case)[1] == source]):
            answers = {"old": case.old.total(), "new": case.new.total(), "control": case.control.total()}
            rows = {"rows": case.rows(), "answers": answers, "lost": case.lost, "surplus": case.surplus}
            ended[case.case] = {**rows, "batches": case.batches}
            newest = max(case.batches["old"]["offsets"])
            assert case.state_version == newest + 1, "of a batch that was killed too, which is not to be taken"
    return {case: ended[case] for case in EVERY}


def ckpt(*words: object) -> None:
    """Run the command in this process, so that it works with the session that is there."""
    done = invoke(*words)
    if done.exit_code:
        raise RuntimeError(done.output)


def session(jars: str) -> SparkSession:
    """A session with Delta and Kafka, as `tests.support.spark.live` has one for a whole test run."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = queries.session("continuity", **live.settings(jars))
    spark.sparkContext.setLogLevel("ERROR")
    return spark


if __name__ == "__main__":
    old(session(os.environ["CKPT_SPARK_JARS"]), Path(sys.argv[1]), sys.argv[2:])
