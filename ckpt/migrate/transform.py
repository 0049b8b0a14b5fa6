"""``ckpt migrate transform-with-state``: from a stateful query to one of transformWithState, without losing a row.

Spark takes state into a new query only as "initial state": one row for each key, handed to the processor in the first
batch. The plan brings together the frame of that state, where the sources go on, and the settings of the new query.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from ckpt import settings
from ckpt.advice import Code, Words
from ckpt.checkpoint.times import BatchOrTime
from ckpt.errors import CkptError, UsageError
from ckpt.migrate.aggregates import KeptAggregate, aggregates_of
from ckpt.migrate.book import BOOK
from ckpt.migrate.handoff.plan import Handoff, handoff
from ckpt.migrate.variables import WINDOW, OperatorFamily, Variable, family_of, find_opaque, variables_of
from ckpt.model import Operator
from ckpt.restart.sinks import SINKS
from ckpt.state.export.targets import ExportTarget, Format
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.columns import BLURRED, Holds, type_names
from ckpt.state.reading.initial import InitialColumn, InitialPlan, InitialShape, plan_initial_state
from ckpt.state.reading.reading import StateRequest
from ckpt.texts import instant
from ckpt.values import Value
from ckpt.versions import NEWEST, Spark, first_with


class Api(StrEnum):
    """How the processor is handed rows."""

    PANDAS = "pandas"  # transformWithStateInPandas
    ROW = "row"  # transformWithState, since Spark 4.1


class TimeMode(StrEnum):
    """Spark's ``TimeMode``: what its timers go by."""

    NONE = "None"
    PROCESSING_TIME = "ProcessingTime"
    EVENT_TIME = "EventTime"


INITIAL_STATE, PROCESSOR, START = "initial_state", "processor.py", "start.py"
"""Files and folders that a migration writes below its target folder."""

OLDEST_ROW_API = first_with(lambda rules: rules.row_processors)
NULL_IS_SAFE = ("string", "boolean", "binary", "decimal")  # types of keys that are NULL for themselves in pandas too
_FORMATS = (Format.PARQUET, Format.DELTA)


class TransformRefused(CkptError):
    """No new query can continue from a checkpoint; ``handoff`` is what is known of it."""

    def __init__(self, handoff: Handoff, reason: Words) -> None:
        super().__init__(reason)
        self.handoff = handoff


@dataclass(frozen=True)
class TransformPlan:
    """A new query before it is written."""

    handoff: Handoff
    api: Api
    format: Format
    initial: InitialPlan
    operators: tuple[Operator, ...]  # all that the old query had

    @property
    def shape(self) -> InitialShape:
        """The columns of the initial state."""
        return self.initial.shape

    @property
    def family(self) -> OperatorFamily:
        """The kind of operator that has the state."""
        return family_of(self.shape)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The state variables of the new query."""
        return variables_of(self.shape)

    @property
    def packed(self) -> str:
        """The column in which all that is no key is handed to the processor."""
        return self._free("state", "state_of_key", "all_state_of_key")

    @property
    def inputs(self) -> str:
        """The column in which the inputs of its aggregates are handed to the processor."""
        return self._free("inputs", "inputs_of_row", "all_inputs_of_row")

    def _free(self, *names: str) -> str:
        taken = {key.name.lower() for key in self.shape.keys}
        return next(name for name in names if name not in taken)

    @cached_property
    def aggregates(self) -> tuple[KeptAggregate, ...]:
        """The writer of an aggregation's buffers; those of sessions only the user can merge."""
        grouped = self.family in (OperatorFamily.AGGREGATION, OperatorFamily.WINDOWS)
        return aggregates_of(self.initial) if grouped else ()

    @property
    def folds(self) -> bool:
        """True if all aggregates are known, so that the new query can continue them by itself."""
        return bool(self.aggregates) and all(kept.aggregate.fold for kept in self.aggregates)

    @property
    def columns(self) -> tuple[InitialColumn, ...]:
        """The columns of the initial state as a file format has to hold them."""
        return (*self.shape.keys, *self.shape.state)

    @property
    def watermark_ms(self) -> int:
        """Up to where the old query would have called rows late once it had been idle; 0 where it had no watermark."""
        return max(self.initial.moment.next_watermark_ms or 0, self.initial.moment.watermark_ms or 0)

    @property
    def time_mode(self) -> TimeMode:
        """As recorded of transformWithState, and otherwise as the state suggests."""
        recorded = self._read_property("timeMode")
        if recorded is not None:
            return {mode.lower(): mode for mode in TimeMode}.get(recorded.lower(), TimeMode.NONE)
        if any(column.holds is Holds.TIMEOUT for column in self.shape.state):
            return TimeMode.EVENT_TIME if self.watermark_ms else TimeMode.PROCESSING_TIME
        untimed = (OperatorFamily.AGGREGATION, OperatorFamily.GROUP_STATE, OperatorFamily.TRANSFORM)
        return TimeMode.EVENT_TIME if self.watermark_ms and self.family not in untimed else TimeMode.NONE

    @property
    def output_mode(self) -> str:
        """As recorded of transformWithState; no other operator says."""
        suggested = "Update" if self.family is OperatorFamily.AGGREGATION else "Append"
        return self._read_property("outputMode") or suggested

    def _read_property(self, name: str) -> str | None:
        properties = self.operator.properties if self.family is OperatorFamily.TRANSFORM else None
        value = properties.get(name) if isinstance(properties, dict) else None
        return value if isinstance(value, str) else None

    @property
    def operator(self) -> Operator:
        """The operator whose state is taken."""
        return next(operator for operator in self.operators if operator.id == self.shape.operator)

    @property
    def shuffle_partitions(self) -> str | None:
        """How many partitions the old query had its state in; None where that is not recorded."""
        checkpoint = self.handoff.inspection.checkpoint
        log = checkpoint.offsets.readable(self.initial.moment.batch)
        count = log.metadata.conf.get(settings.SHUFFLE_PARTITIONS) if log and log.metadata else None
        return count if count and count.isdecimal() else None

    @property
    def unsafe_keys(self) -> tuple[str, ...]:
        """Names of key columns whose NULLs pandas does not keep apart from other keys; a window is never NULL."""
        never = WINDOW if self.family is OperatorFamily.WINDOWS else ()
        unsafe = (key.name for key in self.shape.keys if not str(key.type).startswith(NULL_IS_SAFE))
        return tuple(name for name in unsafe if name not in never)

    @property
    def times(self) -> bool:
        """True if key or state hold times that depend on a time zone in Python."""
        return any("timestamp" in type_names(column.type) for column in self.columns)


@dataclass(frozen=True, slots=True)
class TransformMigration(Value):
    """A new query of transformWithState: planned, or written with the state of so many keys."""

    plan: TransformPlan
    target: ExportTarget
    keys: int | None = None  # None where nothing was written


def warnings_of(plan: TransformPlan) -> Iterator[Words]:
    """List what has to be known before the new query is started."""
    yield from plan.handoff.doubts
    if plan.watermark_ms > (plan.initial.moment.watermark_ms or 0):
        yield BOOK.text("transform_watermark", watermark=instant(plan.watermark_ms))
    others = [other for other in plan.operators if other.id != plan.shape.operator]
    if others:
        listed = ", ".join(f"{other.id} ({other.name or 'unknown'})" for other in others)
        yield BOOK.text("transform_others", listed=listed)
    if plan.family is OperatorFamily.JOIN:
        yield BOOK.text("transform_join")
    if plan.family in (OperatorFamily.AGGREGATION, OperatorFamily.WINDOWS, OperatorFamily.SESSIONS) and (
        bytes_only := find_opaque(plan.variables)
    ):
        yield BOOK.text("transform_bytes", variables=" and ".join(bytes_only))
    if plan.family is OperatorFamily.SESSIONS:
        yield BOOK.text("transform_sessions")
    if any(variable.ttl for variable in plan.variables):
        yield BOOK.text("transform_ttl")
    if plan.family is not OperatorFamily.TRANSFORM and plan.time_mode is not TimeMode.NONE:
        yield BOOK.text("transform_time_mode", mode=plan.time_mode, family=plan.family)
    if plan.api is Api.PANDAS and plan.unsafe_keys:
        yield BOOK.text("transform_null_keys", keys=" or ".join(plan.unsafe_keys))
    dropping = [other.kind for other in SINKS if other.drops_new_query]
    about = [sink for sink in plan.handoff.sinks if sink.kind in dropping]
    yield from (BOOK.text("transform_sink", kind=sink.kind, meaning=sink.meaning) for sink in about)
    for dropped in plan.shape.dropped:
        if plan.family is OperatorFamily.GROUP_STATE and dropped.why == BLURRED and len(dropped.path) == 2:
            yield BOOK.text("transform_group_state")
            continue
        yield BOOK.text("transform_dropped", dropped=".".join(dropped.path), why=dropped.why)


def plan_transform(
    uri: str,
    storage_options: Mapping[str, str] | None = None,
    *,
    batch: BatchOrTime | None = None,
    operator: int | None = None,
    kind: Format = Format.PARQUET,
    api: Api = Api.PANDAS,
    spark: Spark = NEWEST,
) -> TransformPlan:
    """Plan a new query that continues after a batch, as ``ckpt.migrate_transform_with_state`` does; starts no JVM.

    ``spark`` reads the state, and is to run the new query. Raises UsageError; TransformRefused where no new query
    can continue here; CkptError where the state cannot be read, or the API is not there; and what ``handoff``
    raises.
    """
    if kind not in _FORMATS:
        raise UsageError(BOOK.text("transform_format", format=kind.value))
    if api is Api.ROW and not spark.at_least(OLDEST_ROW_API):
        install = Code(f"pip install 'pyspark>={OLDEST_ROW_API}'")
        parts = {"api": api.value, "oldest": OLDEST_ROW_API, "spark": spark, "install": install}
        raise CkptError(BOOK.text("transform_row_api", **parts))
    continuation = handoff(uri, storage_options=storage_options, batch=batch)
    if continuation.inspection.checkpoint.state is None and continuation.refused is None:
        raise TransformRefused(continuation, BOOK.text("transform_no_state", uri=uri))
    if continuation.refused is not None:
        raise TransformRefused(continuation, BOOK.text("transform_refused", uri=uri, why=continuation.refused))
    chosen = batch if continuation.batch is None else continuation.batch
    initial = plan_initial_state(StateRequest(uri, RequestedPart(operator), batch=chosen), storage_options, spark)
    plan = TransformPlan(continuation, api, kind, initial, continuation.inspection.checkpoint.operators)
    for column in plan.columns:
        if "`" in column.name:
            raise CkptError(f"{uri}: column {column.name}: ckpt writes no code for a name with a backquote")
    return plan
