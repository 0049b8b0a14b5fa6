"""``start.py``: a runnable query with the sources, the guards, and what is to be filled in."""

from collections.abc import Iterator
from textwrap import wrap

from ckpt import settings
from ckpt.migrate.generate import folding, guards, sources
from ckpt.migrate.generate.files_read import MOST_IN_CODE, UNREAD
from ckpt.migrate.generate.text import literal, plain, simple
from ckpt.migrate.handoff.starts import SourceStart
from ckpt.migrate.transform import INITIAL_STATE, NULL_IS_SAFE, Api, TimeMode, TransformPlan
from ckpt.migrate.variables import WINDOW, OperatorFamily

_ALL = "everything"  # the key of an operator that has none


def start_code(plan: TransformPlan, folder: str | None) -> str:
    """The whole file, with a line end at its end.

    ``folder`` is the folder that everything is written to, or None where the file finds it by its own path.
    """
    return "\n".join(_Writing(plan, folder).lines()) + "\n"


def to_fill_in(plan: TransformPlan) -> tuple[str, ...]:
    """The names of constants in the file that may not stay empty."""
    timed, windows = plan.time_mode is TimeMode.EVENT_TIME, plan.family is OperatorFamily.WINDOWS
    names = ["CHECKPOINT", *(name for start in plan.handoff.sources for name in sources.to_fill_in(start))]
    names += ["EVENT_TIME"] * (timed or windows) + ["DELAY"] * timed + ["WINDOW"] * windows
    names += ["GAP"] * (timed and plan.family is OperatorFamily.SESSIONS)
    return (*names, *folding.name_blanks(plan))


def too_many_for_code(plan: TransformPlan) -> tuple[SourceStart, ...]:
    """The sources that have read more files than ``start.py`` names."""
    return tuple(start for start in plan.handoff.sources if len(start.seen) > MOST_IN_CODE)


class _Writing:
    """One file."""

    def __init__(self, plan: TransformPlan, folder: str | None) -> None:
        self.plan = plan
        self.folder = folder
        self.starts = plan.handoff.sources
        self.filters = any(start.seen for start in self.starts)
        self.timed = plan.time_mode is TimeMode.EVENT_TIME
        self.windows = plan.family is OperatorFamily.WINDOWS
        self.sessions = plan.family is OperatorFamily.SESSIONS and self.timed
        self.keys = [(key.name, simple(key.type)) for key in plan.shape.keys] or [(_ALL, "int")]

    def lines(self) -> Iterator[str]:
        yield from self._write_head()
        yield from self._fill_in()
        yield from self._write_fixed()
        for start in self.starts:
            yield from sources.reader(start)
        own_keys = [key for key in self.keys if not (self.windows and key[0] in WINDOW) and key[0] != _ALL]
        join = self.plan.family is OperatorFamily.JOIN
        yield from sources.prepare(self.starts, own_keys, join=join, event_time=self.timed or self.windows)
        yield guards.SINK
        yield guards.START_ERROR
        if self.filters:
            yield UNREAD
        yield from self._write_watermarks()
        yield from self._write_initial_state()
        yield guards.CHECKS.replace("{inputs}", folding.check_filled_in(self.plan))
        if self.plan.folds:
            yield folding.WITH_INPUTS.replace("{inputs}", self.plan.inputs)
        if self.timed or self.windows:
            yield guards.EVENT_TIME
        if self.plan.api is Api.PANDAS:
            safe = ", ".join(map(literal, NULL_IS_SAFE))
            yield guards.NULLS.replace("{safe}", f"({safe})")
        if self.timed:
            yield guards.MILLISECONDS
        yield from self._start()
        yield from self._write_main()

    def _write_head(self) -> Iterator[str]:
        plan = self.plan
        yield '"""Starts the query that continues where an old one stopped.'
        yield ""
        yield f"Written by ckpt migrate transform-with-state from {plain(plan.initial.checkpoint)},"
        yield f"after batch {plan.initial.moment.batch}: {plan.family}, operator {plan.shape.operator}."
        logic = "" if plan.folds else "put your logic into processor.py, "
        yield f"Fill in what no checkpoint records, {logic}then run"
        yield "python start.py, or spark-submit --py-files processor.py start.py with the packages"
        yield "that sources and sink need. The old checkpoint is not touched."
        for fact in self._write_facts():
            yield ""
            yield from wrap(plain(fact), 88, break_long_words=False, break_on_hyphens=False)
        yield '"""'
        yield ""
        yield "import os"
        if self.filters:
            yield "import re"
        yield "import sys"
        if self.filters:
            yield "from collections.abc import Sequence"
        yield "from importlib import import_module"
        yield "from importlib.util import module_from_spec, spec_from_file_location"
        yield "from pathlib import Path"
        yield from ("from typing import Any", "", "from pyspark import cloudpickle")
        yield f"from pyspark.sql import {'Column, ' * self.filters}DataFrame, SparkSession"
        yield "from pyspark.sql import functions as F"
        yield "from pyspark.sql.streaming.query import StreamingQuery"
        yield "from pyspark.sql.streaming.readwriter import DataStreamWriter"
        yield guards.OWN_PROCESSOR

    def _write_facts(self) -> Iterator[str]:
        plan = self.plan
        if any(variable.ttl for variable in plan.variables):
            yield (
                "Loading restarts the time to live: Spark cannot load the remaining time. The new query gives the "
                "results of the old one until the first value expires; expired values are not loaded."
            )
        if self.timed:
            yield (
                "A new query starts with watermark 0. start.py drops rows that the old query would have dropped as "
                "late; timers older than the old watermark fire as soon as the new watermark has passed them."
            )
        yield from plan.handoff.doubts

    def _fill_in(self) -> Iterator[str]:
        yield from ("", "", "# ---- fill in: no checkpoint records it ----", "")
        yield 'CHECKPOINT = ""  # a new folder, not that of the old query: an absolute path or URI'
        for start in self.starts:
            yield from sources.constants(start, self._write_path)
        yield ""
        if self.timed or self.windows:
            yield 'EVENT_TIME = ""  # the column of prepare() that says when a row happened'
        if self.timed:
            yield '# As in withWatermark of the old query: "10 minutes".'
            yield 'DELAY = ""'
        if self.windows:
            yield "# As in window() of the old query; SLIDE stays empty if windows do not overlap."
            yield from ('WINDOW = ""', 'SLIDE = ""')
        if self.sessions:
            yield 'GAP = ""  # as in session_window() of the old query: "5 minutes"'
        yield from folding.constants(self.plan)
        yield f'OUTPUT_MODE = "{self.plan.output_mode}"'
        yield "# A file sink needs a new output folder: it drops batch ids that it knows, whoever writes."
        yield 'SINK_FORMAT = "console"'
        yield "SINK_OPTIONS: dict[str, str] = {}"
        yield '# availableNow ends when all data is read; {"processingTime": "1 minute"} keeps running.'
        yield 'TRIGGER: dict[str, Any] = {"availableNow": True}'

    def _write_fixed(self) -> Iterator[str]:
        plan = self.plan
        yield from ("", "# ---- from the checkpoint ----", "")
        yield f"INITIAL_STATE = {self._write_path(INITIAL_STATE)}"
        yield f'INITIAL_STATE_FORMAT = "{plan.format}"'
        yield f"OLD_QUERY = {literal(plan.initial.moment.query_id or '')}  # its id"
        yield "# The grouping key: rows must have these columns in exactly these types."
        yield "KEYS = {"
        yield from (f"    {literal(name)}: {literal(kind)}," for name, kind in self.keys)
        yield "}"
        yield from self._write_time_mode()
        yield "SETTINGS = {"
        yield "    # transformWithState keeps its state in RocksDB"
        yield f'    "{settings.PROVIDER_CLASS}": ('
        yield f'        "{settings.ROCKSDB_PROVIDER}"'
        yield "    ),"
        if plan.shuffle_partitions is not None:
            yield "    # as in the old query; you can change them, but only before the first batch"
            yield f'    "{settings.SHUFFLE_PARTITIONS}": "{plan.shuffle_partitions}",'
        if plan.times:
            yield "    # in a zone with daylight saving time two hours of keys would become one"
            yield f'    "{settings.SESSION_TIME_ZONE}": "UTC",'
            yield f'    "{settings.EXECUTOR_TIME_ZONE}": "UTC",'
        yield "}"
        yield from folding.types(self.plan)
        yield "NEEDED = ["
        yield from (f'    "{name}",' for name in to_fill_in(self.plan) if name not in folding.name_blanks(self.plan))
        yield "]"

    def _write_path(self, name: str) -> str:
        """A path in the folder of the file, as code."""
        if self.folder is None:
            return f'f"file:{{Path(__file__).resolve().parent}}/{name}"'
        return literal(f"{self.folder}/{name}")

    def _write_time_mode(self) -> Iterator[str]:
        plan = self.plan
        recorded = plan.family is OperatorFamily.TRANSFORM
        why = "as recorded" if recorded else "a guess: None, ProcessingTime or EventTime"
        yield f'TIME_MODE = "{plan.time_mode}"  # {why}'
        if self.timed:
            yield f"WATERMARK_MS = {plan.watermark_ms}  # that the old query's next batch would have had"

    def _write_watermarks(self) -> Iterator[str]:
        if not (self.timed or self.windows):
            return
        yield from ("", "", "def in_time(rows: DataFrame) -> DataFrame:")
        what = {
            OperatorFamily.WINDOWS: "the end of their window",
            OperatorFamily.SESSIONS: "the end of a session of their own",
        }
        by = what.get(self.plan.family, "their event time")
        if not self.timed:
            yield '    """Give rows the window that the old query grouped them by."""'
        else:
            yield f'    """Drop rows that the old query would have dropped as late: by {by}."""'
            yield "    rows = rows.withWatermark(EVENT_TIME, DELAY)"
        if self.windows:
            yield guards.WINDOWED
            end = 'F.col("window_end")'
        elif self.sessions:
            yield guards.SESSION
            end = 'F.col("session.end")'
        else:
            end = "F.col(EVENT_TIME)"
        if self.timed:
            yield "    until = F.timestamp_millis(F.lit(WATERMARK_MS))"
            yield f"    return rows.where(F.coalesce({end} > until, F.lit(True)))"
        else:
            yield "    return rows"

    def _write_initial_state(self) -> Iterator[str]:
        yield from ("", "", "def initial_state(spark: SparkSession) -> DataFrame:")
        yield '    """The exported state, one row per key; all other columns in one struct.'
        yield ""
        yield "    A struct keeps numbers exact: pandas turns a column with NULLs into floats."
        yield '    """'
        yield "    frame = spark.read.format(INITIAL_STATE_FORMAT).load(INITIAL_STATE)"
        if not self.plan.shape.keys:
            yield f'    frame = frame.withColumn("{_ALL}", F.lit(0))'
        yield "    one_row_a_key(frame)"
        if self.plan.api is Api.PANDAS:
            yield "    no_null_keys(frame)"
        if self.plan.shape.state:
            yield "    state = F.struct("
            yield from (f"        F.col({literal(_write_column(column.name))})," for column in self.plan.shape.state)
            yield "    )"
        else:
            yield '    state = F.lit("seen")'
        yield f'    return frame.select(*KEYS, state.alias("{self.plan.packed}"))'

    def _start(self) -> Iterator[str]:
        by_clock = self.plan.time_mode is TimeMode.PROCESSING_TIME
        yield guards.START.format(empty_batches=guards.NO_EMPTY_BATCHES if by_clock else "")
        yield from ("", "", "def started(spark: SparkSession) -> StreamingQuery:")
        yield '    """Check that everything fits together, then start the query."""'
        yield "    leaves_old_alone(spark)"
        yield "    sink_takes_batches(spark)"
        yield "    first = not committed(spark)"
        read = ", ".join(f"source_{start.view.index}(spark)" for start in self.starts)
        yield f"    rows = prepare({read})"
        if not self.plan.shape.keys:
            yield f'    rows = rows.withColumn("{_ALL}", F.lit(0))'
        if self.timed or self.windows:
            yield "    has_event_time(rows)"
            yield "    rows = in_time(rows)"
        yield "    keys_fit(rows)"
        if self.plan.folds:
            yield "    rows = with_inputs(rows)"
        if self.plan.api is Api.PANDAS:
            yield "    rows = fail_at_null_keys(rows)"
        yield "    state = initial_state(spark).groupBy(*KEYS) if first else None"
        if self.timed:
            yield "    processor.DELAY_MS = milliseconds(spark, DELAY)"
        if self.sessions:
            yield "    processor.GAP_MS = milliseconds(spark, GAP)"
        yield from folding.hand_over(self.plan, closes=self.timed and self.windows)
        yield "    cloudpickle.register_pickle_by_value(processor)"
        method = "transformWithStateInPandas" if self.plan.api is Api.PANDAS else "transformWithState"
        yield f"    found = rows.groupBy(*KEYS).{method}("
        yield from (
            "        processor.Processor(),",
            "        processor.OUTPUT_SCHEMA,",
            "        OUTPUT_MODE,",
            "        TIME_MODE,",
            "        state,",
            "    )",
        )
        yield "    writer = sink(found.writeStream).outputMode(OUTPUT_MODE)"
        yield '    writer = writer.option("checkpointLocation", CHECKPOINT)'
        yield "    return writer.trigger(**TRIGGER).start()"

    def _write_main(self) -> Iterator[str]:
        yield from ("", "", "def main() -> None:", '    """Run the query until it ends."""')
        yield '    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)'
        if self.plan.times:
            yield '    os.environ["TZ"] = "UTC"'
        yield from guards.MAIN.splitlines()


def _write_column(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
