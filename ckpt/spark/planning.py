"""One batch of an unstarted query, planned by Spark as a restart plans it, in a folder of ours: nothing is executed.

``IncrementalExecution`` reads and writes the description of state (operator metadata, schemas) while it plans. Sources
are not opened. Which classes and arguments there are depends on the version, so both are looked up.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from ckpt.errors import UsageError
from ckpt.model import Json
from ckpt.query.compare_checkpoint import SparkAnswer
from ckpt.query.reader_options import ANSI, CASES, keep_reader
from ckpt.settings import SESSION_TIME_ZONE
from ckpt.spark.connect import NO_PLAN, require_classic
from ckpt.spark.jobs import list_causes, words_of

_STREAMING = "org.apache.spark.sql.execution.streaming."
_INCREMENTAL = ("runtime.IncrementalExecution", "IncrementalExecution")
_METADATA = ("checkpointing.OffsetSeqMetadata", "OffsetSeqMetadata")
_WATERMARKS = ("runtime.WatermarkPropagator", "operators.stateful.WatermarkPropagator", "WatermarkPropagator")
_WRITERS = ("operators.stateful.StateStoreWriter", "StateStoreWriter")
_ADAPTIVE = "spark.sql.adaptive.enabled"  # a streaming query turns it off
_LISTS = "spark.sql.optimizer.inSetConversionThreshold"  # longer ones become sets, whose values no JSON of a plan has
_INFERRING = "spark.sql.constraintPropagation.enabled"  # Spark adds conditions that follow from those of the query
_CLOCK = re.compile(r"\b(current_timestamp|current_date|current_time|localtimestamp|now)\(")
_PARSER = "spark.sql.legacy.timeParserPolicy"
_CORRUPT = "spark.sql.columnNameOfCorruptRecord"
_DECIDING = (SESSION_TIME_ZONE, _PARSER, ANSI, CASES)
OUTPUT_MODES = ("append", "update", "complete")


class Refusal(Exception):
    """Spark refuses a query or a batch of it."""

    def __init__(self, answer: SparkAnswer) -> None:
        super().__init__(answer.words)
        self.answer = answer


def check_streaming(frame: DataFrame, output_mode: str) -> None:
    """Raise UsageError for a frame that is not streaming, and for no mode of Spark."""
    if not frame.isStreaming:
        raise UsageError.of("{--frame} is not streaming: give the data frame whose writeStream starts the query")
    if output_mode.lower() not in OUTPUT_MODES:
        raise UsageError.of("{--output-mode} must be one of {modes}", modes=", ".join(OUTPUT_MODES))


@dataclass(frozen=True)
class Planner:
    """An unstarted query whose batches are planned with the settings of its session, and those that a log records."""

    frame: DataFrame
    output_mode: str
    recorded: Mapping[str, str] | None = None  # None: no log, a new query

    def __post_init__(self) -> None:
        """Refuse what is no unstarted streaming query of a classic session."""
        require_classic(self.frame.sparkSession, NO_PLAN)
        check_streaming(self.frame, self.output_mode)

    @property
    def leaves(self) -> Iterator[Any]:
        """The query's streaming sources: a pre-order walk, which is the order of the offset log."""
        leaves = self.logical.collectLeaves()
        for number in range(leaves.size()):
            leaf = leaves.apply(number)
            if leaf.isStreaming():
                yield leaf

    def read_options(self, leaf: Any) -> dict[str, str]:
        """The options of the reader of a source, names in small letters; they may hold secrets."""
        match leaf.getClass().getSimpleName():
            case "StreamingRelationV2":
                options = leaf.extraOptions()
            case "StreamingRelation":
                return {name.lower(): value for name, value in self.read_map(leaf.dataSource().options()).items()}
            case _:
                return {}
        return {str(name).lower(): str(options[name]) for name in options}

    def read_map(self, options: Any) -> dict[str, str]:
        """A map of Scala; its values may hold secrets."""
        converters = self._jvm.scala.collection.JavaConverters  # the one that Scala 2.12 has too
        own = converters.mapAsJavaMapConverter(options).asJava()
        return {str(name): str(own[name]) for name in own}

    def keep_reader(self, kind: str, options: Mapping[str, str], schema: Json) -> dict[str, str]:
        """The options of a reader of files that decide rows and values, with the settings that it falls back on."""
        session, kind = self.session, kind.lower()
        return keep_reader(
            kind.removesuffix("fileformat"),
            options,
            schema,
            zone=session[SESSION_TIME_ZONE],
            parser=self.parses_times,
            corrupt=str(self.frame.sparkSession.conf.get(_CORRUPT)),
        )

    @property
    def session(self) -> dict[str, str]:
        """The settings of the session that decide values, and that no log of offsets records."""
        return {name: str(self.frame.sparkSession.conf.get(name)) for name in _DECIDING}

    @property
    def parses_times(self) -> str:
        """``legacy`` where times are parsed as Spark 2 did; else nothing: the other policies differ in errors alone."""
        policy = self.session[_PARSER].lower()
        return policy if policy == "legacy" else ""

    @property
    def logical(self) -> Any:
        """The query's analysed plan."""
        return self.frame._jdf.queryExecution().analyzed()

    @property
    def reads_clock(self) -> bool:
        """True if the query asks for the time: the plan then has the time of planning."""
        return _CLOCK.search(str(self.logical.toString())) is not None

    def check(self) -> None:
        """Raise Refusal where Spark has no such query in this output mode."""
        checker = self._jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
        with _translate_refusals():
            checker.checkForStreaming(self.logical, self._mode)

    @property
    def expressions(self) -> Any:
        """Spark's package of expressions."""
        return self._jvm.org.apache.spark.sql.catalyst.expressions

    @property
    def state_writer(self) -> Any:
        """Spark's interface of stateful operators that write state."""
        return self._load_class(self._find_class_name(_WRITERS))

    def plan(self, folder: Path, batch: int, *, inferring: bool = True) -> Any:
        """The physical plan of a batch that is the first of a run on ``folder``. Raises Refusal.

        Without ``inferring`` its filters are those of the query alone; schemas of state may then differ.
        """
        with _translate_refusals():
            session, metadata = self._open_session()
            if not inferring:
                session.sessionState().conf().setConfString(_INFERRING, "false")
            return self._make_execution(session, metadata, folder, batch).executedPlan()

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings that a new query would record; the recorded ones instead if there are any."""
        session, _ = self._open_session()
        kind = self._find_class(_METADATA)
        try:
            recording = kind.apply(0, 0, session.sessionState().conf())
        except Py4JError:  # before Spark 4.0
            recording = kind.apply(0, 0, session.conf())
        return {name: value for name, value in json.loads(recording.json())["conf"].items() if value is not None}

    @property
    def _jvm(self) -> Any:
        return self.frame.sparkSession._jvm

    @property
    def _mode(self) -> Any:
        modes = self._jvm.org.apache.spark.sql.streaming.OutputMode
        return getattr(modes, self.output_mode.capitalize())()

    def _open_session(self) -> tuple[Any, Any]:
        """A session of its own, with the settings that a restart takes from the log; and the metadata of that log."""
        session = self.frame.sparkSession._jsparkSession.cloneSession()
        conf = session.sessionState().conf()
        conf.setConfString(_ADAPTIVE, "false")
        conf.setConfString(_LISTS, str(2**31 - 1))
        kind = self._find_class(_METADATA)
        line = {"batchWatermarkMs": 0, "batchTimestampMs": int(time.time() * 1000), "conf": dict(self.recorded or {})}
        metadata = kind.apply(json.dumps(line))
        if self.recorded is not None:
            try:
                kind.setSessionConf(metadata, conf)
            except Py4JJavaError:
                raise
            except Py4JError:  # before Spark 4.0 it takes the session's ``RuntimeConfig``
                kind.setSessionConf(metadata, session.conf())
        return session, metadata

    def _find_class(self, names: tuple[str, ...]) -> Any:
        return _find_attribute(self._jvm, self._find_class_name(names))

    def _find_class_name(self, names: tuple[str, ...]) -> str:
        for name in names:
            try:
                self._load_class(_STREAMING + name)
            except Py4JJavaError:
                continue
            return _STREAMING + name
        raise self._refuse_version()

    def _load_class(self, name: str) -> Any:
        loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        return self._jvm.java.lang.Class.forName(name, True, loader)

    def _refuse_version(self) -> UsageError:
        version = self.frame.sparkSession.version
        return UsageError(f"ckpt cannot read how Spark {version} plans streaming queries")

    def _make_execution(self, session: Any, metadata: Any, folder: Path, batch: int) -> Any:
        jvm = self._jvm
        name = self._find_class_name(_INCREMENTAL)
        constructors = self._load_class(name).getConstructors()
        longest = max(constructors, key=lambda kind: len(kind.getParameterTypes()))
        # The booleans: isFirstBatch, isTerminatingTrigger (4.1), isRealTimeMode (4.3).
        first = iter((True, False, False))
        values = {
            "SparkSession": lambda: session,
            "LogicalPlan": lambda: self.logical,
            "OutputMode": lambda: self._mode,
            "String": lambda: str(folder / "state"),
            "UUID": jvm.java.util.UUID.randomUUID,
            "long": lambda: batch,
            "Option": lambda: jvm.scala.Option.apply(None),
            "OffsetSeqMetadata": lambda: metadata,
            "OffsetSeqMetadataBase": lambda: metadata,
            "WatermarkPropagator": lambda: self._find_class(_WATERMARKS).noop(),
            "boolean": lambda: next(first),
            "Map": lambda: jvm.scala.collection.mutable.HashMap(),
            "Value": lambda: jvm.org.apache.spark.sql.execution.CommandExecutionMode.ALL(),
        }
        words = [kind.getSimpleName() for kind in longest.getParameterTypes()]
        if any(word not in values for word in words):
            raise self._refuse_version()
        return _find_attribute(jvm, name)(*(values[word]() for word in words))


def _find_attribute(jvm: Any, name: str) -> Any:
    return reduce(getattr, name.split("."), jvm)


@contextmanager
def _translate_refusals() -> Iterator[None]:
    try:
        yield
    except PySparkException as error:
        raise Refusal(SparkAnswer(_ask_condition(error), words_of(error))) from error
    except Py4JJavaError as error:
        conditions = [*filter(None, map(_ask_condition, list_causes(error.java_exception)))]
        raise Refusal(SparkAnswer(conditions[-1] if conditions else None, words_of(error))) from error


def _ask_condition(error: Any) -> str | None:
    """Ask an exception, of Python or of the JVM, for its error condition; None: it has none."""
    for method in ("getCondition", "getErrorClass"):  # as it is called since Spark 4.0, and before
        with suppress(AttributeError, Py4JError):
            condition: str | None = getattr(error, method)()
            return condition
    return None
