"""transformWithState of Scala in real-time mode, and what Spark's allow-list has: the suite `real-time-processor`.

`Counting.scala` is compiled with the jars of the Spark that is asked; its query counts the rows of `orders` by the last
digit of their keys. Each step starts it once more, on more rows.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.record.answers import Document, OneFile
from tests.record.suite import Whole, a_broker, dated
from tests.record.worker import Installed, Worker
from tests.support.spark import plans, queries, topics

ANSWERS = OneFile(Path(__file__).with_name("processor.json"), lambda document: json.dumps(document, indent=1))
MORE_ROWS = 40
HISTORIES = {
    "real-time": ("realtime", "realtime", "sync", "realtime", "sync"),
    "micro-batches-of-format-2": ("format2", "realtime", "realtime", "sync"),
    "micro-batches-of-format-1": ("changelog", "realtime"),
    "micro-batches-of-format-1-rewritten": ("changelog", "rewrite", "realtime", "realtime", "sync"),
    "python": ("format2", "realtime"),
    "pandas": ("format2", "realtime"),
    "python-from-the-beginning": ("realtime",),
    "pandas-from-the-beginning": ("realtime",),
}
"""The starts of each checkpoint, one after the other: a mode, or micro-batches with a kind of state store."""
IN_PYTHON = ("python", "pandas")
ALLOWED = "org.apache.spark.sql.execution.streaming.runtime.RealTimeModeAllowlist$"


class Processor(Whole):
    """Every history, on one broker."""

    partly = True  # 4.3 is the first version that has it

    def wanted(self, minor: str) -> Iterable[str]:
        return ["allowed", *HISTORIES] if minor >= "4.3" else []

    def recorded(self, minor: str) -> Iterable[str]:
        answers: Document = ANSWERS.read(minor)["answers"]
        return answers

    def ask_all(self, spark: Installed) -> None:
        answers: Document = {}
        with TemporaryDirectory(prefix="ckpt-processor-") as folder, a_broker(spark.minor) as services:
            services[topics.JARS] += f",{compile_scala(spark.jars, Path(folder))}"
            with Worker(spark.python, spark.log, "real-time-processor", services) as session:
                answers["allowed"] = session.ask({"do": "allowed"})
                for name, steps in HISTORIES.items():
                    answers[name] = {"steps": [*_follow(session, name, Path(folder, name), steps)]}
        ANSWERS.write(spark.minor, {**dated(spark), "answers": answers})


def compile_scala(jars: Path, folder: Path) -> Path:
    """Compile `Counting.scala` with the compiler that Spark brings."""
    classes = folder / "classes"
    classes.mkdir()
    source = str(Path(__file__).with_name("Counting.scala"))
    words = ["java", "-Xmx768m", "-cp", f"{jars}/*", "scala.tools.nsc.Main", "-usejavacp", "-d", str(classes), source]
    subprocess.run(words, check=True, timeout=600)
    return Path(shutil.make_archive(str(folder / "counting"), "zip", classes)).rename(folder / "counting.jar")


def _follow(session: Worker, history: str, checkpoint: Path, steps: tuple[str, ...]) -> Iterable[Document]:
    """Start a query once for each step, and say what became of it and of its counts."""
    import ckpt

    for step in steps:
        if step == "rewrite":
            new = checkpoint.with_name(f"{checkpoint.name}-new")
            ckpt.rewrite(str(checkpoint), str(new), provider="rocksdb", format_version=2)
            checkpoint = new
            continue
        answer = session.ask({"do": "start", "history": history, "step": step, "checkpoint": str(checkpoint)})
        counts = {}
        if answer["outcome"] in ("resumes", "starts-fresh") and not history.startswith(IN_PYTHON):
            rows = ckpt.read_state_arrow(str(checkpoint), batch=answer["batch"], variable="counted").to_pylist()
            counts = dict(sorted((str(row["key_value"]), row["value_value"]) for row in rows))
            (operator,) = ckpt.inspect(str(checkpoint)).checkpoint.operators
            answer["operator"] = operator.name
        yield {"step": step, **answer, "counts": counts}


def answer(spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
    """Say what the allow-list has, or start the query."""
    if job["do"] == "allowed":
        return _read_allowed(spark)
    from tests.restart.oracle import observe

    step = job["step"]
    read = spark.read.format("kafka").options(**topics.options(), subscribe="orders").load().count()
    if Path(job["checkpoint"]).exists():
        topics.fill(spark, "orders", read + MORE_ROWS, read)
        read += MORE_ROWS
    build = {"python": _in_python, "pandas": _in_pandas}.get(job["history"].partition("-")[0], _in_scala)
    query = queries.Query("counting", build, "update", needs="kafka")
    mode = "sync" if step in (*queries.STATE_STORES, "sync") else "realtime"
    store = step if step in queries.STATE_STORES else None
    sink = "noop" if mode == "sync" else "console"
    answer = observe.observe(spark, query, Path(job["checkpoint"]), mode, store=store, sink=sink)
    ends = answer["sources"][0]["to"]["orders"] if answer["sources"] else None
    return {"rows": read, "ends": ends} | {key: answer[key] for key in ("outcome", "batch", "error")}


def _read_allowed(spark: Any) -> dict[str, Any]:
    """Read the two lists of the class: they are private."""
    jvm = spark._jvm
    chosen = jvm.java.lang.Class.forName(ALLOWED)
    one = chosen.getField("MODULE$").get(None)
    found = {}
    for name in ("allowedSinks", "allowedOperators"):
        field = chosen.getDeclaredField(name)
        field.setAccessible(True)
        of_java = jvm.scala.jdk.javaapi.CollectionConverters.asJava(field.get(one))
        found[name] = sorted(of_java)
    return found


def _in_scala(spark: Any, folder: Path) -> Any:
    from pyspark.sql import DataFrame

    of = spark._jvm.Counting.of(plans.kafka_orders(spark, folder)._jdf)
    return DataFrame(of, spark)


def _in_python(spark: Any, folder: Path) -> Any:
    grouped = plans.kafka_orders(spark, folder).selectExpr("right(CAST(key AS STRING), 1) AS digit").groupBy("digit")
    return grouped.transformWithState(_processor(), "digit string, total bigint", "Update", "None")


def _in_pandas(spark: Any, folder: Path) -> Any:
    grouped = plans.kafka_orders(spark, folder).selectExpr("right(CAST(key AS STRING), 1) AS digit").groupBy("digit")
    return grouped.transformWithStateInPandas(_processor(), "digit string, total bigint", "Update", "None")


def _processor() -> Any:
    """A processor that keeps nothing."""
    from pyspark.sql.streaming import StatefulProcessor

    class Nothing(StatefulProcessor):
        def init(self, handle: Any) -> None: ...

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
            yield from ()

        def close(self) -> None: ...

    return Nothing()


SUITE = Processor()
