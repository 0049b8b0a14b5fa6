"""``processor.py``: the state of the new query, how it is loaded, and the place for the user's logic."""

from collections.abc import Iterator

from ckpt.migrate.generate import folding, helpers
from ckpt.migrate.generate.examples import show_update
from ckpt.migrate.generate.text import Identifiers, columns, explode, literal, plain
from ckpt.migrate.transform import Api, TimeMode, TransformPlan
from ckpt.migrate.variables import OperatorFamily, Variable, VariableForm
from ckpt.state.reading.columns import Holds

_TAKEN = ("handle", "init", "update", "expired", "close", "handleInitialState", "handleInputRows", "handleExpiredTimer")
_GETTERS = {VariableForm.VALUE: "getValueState", VariableForm.LIST: "getListState", VariableForm.MAP: "getMapState"}
_CLOSED = {  # families whose operator removed state by the watermark, and the variable that it removed
    OperatorFamily.WINDOWS: "buffers",
    OperatorFamily.WITHIN_WATERMARK: "seen",
}


def processor_code(plan: TransformPlan) -> str:
    """The whole file, with a line end at its end."""
    return "\n".join(_Writing(plan).lines()) + "\n"


class _Writing:
    """One file."""

    def __init__(self, plan: TransformPlan) -> None:
        self.plan = plan
        self.variables = plan.variables
        names = Identifiers(_TAKEN)
        self.attributes = {variable.name: names.of(variable.name) for variable in self.variables}
        self.pandas = plan.api is Api.PANDAS
        self.rows = "pd.DataFrame" if self.pandas else "Row"
        self.timed = plan.time_mode is TimeMode.EVENT_TIME
        self.closes = _CLOSED.get(plan.family) if self.timed else None
        self.ttl = [variable for variable in self.variables if variable.ttl]

    def lines(self) -> Iterator[str]:
        yield from self._write_head()
        yield from self._write_output()
        yield from ("", "", "class Processor(StatefulProcessor):")
        keys = ", ".join(plain(key.name) for key in self.plan.shape.keys) or "none: all rows are one group"
        yield f'    """Keeps for each key what the old query kept. Key: {keys}."""'
        yield from self._write_init()
        yield from self._write_logic()
        yield from self._write_initial_state()
        yield from self._write_spark_calls()
        yield from self._write_helpers()

    def _write_head(self) -> Iterator[str]:
        plan = self.plan
        yield '"""State and logic of the query that continues where an old one stopped.'
        yield ""
        yield f"Written by ckpt migrate transform-with-state from {plain(plan.initial.checkpoint)},"
        yield f"operator {plan.shape.operator}, batch {plan.initial.moment.batch}: {plan.family}."
        if plan.folds:
            yield "Processor.update continues the aggregates of the old query, with the inputs that"
            yield "start.py names; what is emitted is in Processor.results. start.py starts it."
        else:
            yield "Your logic goes into Processor.update and Processor.expired; the rest loads the"
            yield "state of the old query. start.py starts it."
        yield '"""'
        yield ""
        if self.pandas and plan.times:
            yield "import time"
        yield "from collections.abc import Iterator"
        if self._milliseconds or folding.compares(plan):
            yield f"from datetime import datetime{', timedelta' * self._milliseconds}"
        yield from folding.imports(plan)
        yield "from typing import Any"
        yield ""
        if self.pandas:
            yield "import pandas as pd"
        else:
            yield "from pyspark.sql import Row"
        yield "from pyspark.sql.streaming.stateful_processor import ("
        yield from (
            "    ExpiredTimerInfo,",
            "    StatefulProcessor,",
            "    StatefulProcessorHandle,",
            "    TimerValues,",
        )
        yield ")"

    def _write_output(self) -> Iterator[str]:
        shape = self.plan.shape
        emitted = [(key.name, key.type) for key in shape.keys]
        if self.plan.folds:
            emitted += [(kept.name, kept.type) for kept in self.plan.aggregates]
        elif self.plan.family in (OperatorFamily.AGGREGATION, OperatorFamily.WINDOWS):
            emitted += self.variables[0].fields
        yield ""
        yield "# What update and expired emit: change it as you like."
        yield f"OUTPUT_SCHEMA = {literal(columns(emitted) or '`everything` int')}"
        if self.timed:
            yield ""
            yield "# From start.py, which sets it before the query starts."
            yield "DELAY_MS = 0  # of the watermark"
            if self.plan.family is OperatorFamily.SESSIONS:
                yield "GAP_MS = 0  # after which a session ends"
        yield from folding.declare_handed_over(self.plan, closes=self.closes is not None)
        if self.ttl:
            yield ""
            yield "# Time to live of each variable in ms, as the old query had it: FILL IN, no checkpoint"
            yield "# records it. Loading a value restarts its time, so the new query gives the results of"
            yield "# the old one until the first value expires, and keeps loaded values longer."
            yield "TTL_MS = {"
            yield from (f"    {literal(variable.name)}: 0," for variable in self.ttl)
            yield "}"

    def _write_method(self, name: str, *parameters: str, returns: str | None = None) -> Iterator[str]:
        """The first lines of a method that is about a key."""
        words = ("self", "key: tuple[Any, ...]", *parameters)
        yield from explode(f"def {name}(", words, f") -> {returns or f'Iterator[{self.rows}]'}:", 4)

    def _write_init(self) -> Iterator[str]:
        yield ""
        yield "    def init(self, handle: StatefulProcessorHandle) -> None:"
        yield '        """Declare the state, in the types of the old query."""'
        if self.pandas and self.plan.times:
            yield "        utc()"
        yield "        self.handle = handle"
        for variable in self.variables:
            words = [literal(variable.name)]
            words += [literal(columns(variable.key))] if variable.form is VariableForm.MAP else []
            words.append(literal(columns(variable.fields)))
            words += [f"TTL_MS[{literal(variable.name)}]"] if variable.ttl else []
            opening = f"self.{self.attributes[variable.name]} = handle.{_GETTERS[variable.form]}("
            yield from explode(opening, words, ")", 8)

    def _write_logic(self) -> Iterator[str]:
        plan, closes = self.plan, self.closes is not None
        yield ""
        yield f"    # ---- {'continues the aggregates' if plan.folds else 'your logic: these two methods'} ----"
        yield ""
        yield from self._write_method("update", f"rows: Iterator[{self.rows}]", "timers: TimerValues")
        yield from folding.update(plan, closes=closes) if plan.folds else show_update(plan)
        yield ""
        yield from self._write_method("expired", "timer_ms: int", "timers: TimerValues")
        yield from self._write_expired_doc()
        yield from folding.expired(closes=closes and plan.folds)
        yield ""
        if plan.folds:
            yield from folding.results(plan)
        yield "    # ---- called by Spark ----"

    def _write_expired_doc(self) -> Iterator[str]:
        if self.closes is None:
            yield '        """A timer has fired: emit results."""'
            return
        yield '        """The watermark has passed what is kept for a key: emit results.'
        yield ""
        yield f"        Afterwards self.{self.closes} is removed, as the old operator did."
        yield '        """'

    def _write_initial_state(self) -> Iterator[str]:
        yield ""
        state = f"initialState: {self.rows}"
        yield from self._write_method("handleInitialState", state, "timerValues: TimerValues", returns="None")
        yield '        """Load what the old query kept for a key; Spark calls it in the first batch only."""'
        packed = f'initialState["{self.plan.packed}"]'
        first = f"{packed}.iloc[0]" if self.pandas else packed
        if self.plan.shape.state:
            yield f"        row = plain({first})"
        if self.ttl:
            yield "        now = timerValues.getCurrentProcessingTimeInMs()"
        for variable in self.variables:
            yield from self._load(variable)
        yield from self._write_timers()

    def _load(self, variable: Variable) -> Iterator[str]:
        target = f"self.{self.attributes[variable.name]}"
        if variable.spread:
            yield from self._load_spread(variable, target)
            return
        held = f"row[{literal(variable.columns[0])}]"
        match variable.form:
            case VariableForm.VALUE:
                alive = f" and row[{literal(variable.expires)}] > now" if variable.expires else ""
                yield f"        value = {held}"
                yield f"        if value is not None{alive}:"
                yield f"            {target}.update(tuple(value.values()))"
            case VariableForm.LIST:
                cut = "[:-1]" if variable.ttl else ""
                alive = " if one[-1] > now" if variable.ttl else ""
                yield f"        elements = [tuple(one.values()) for one in {held}]"
                if variable.ttl:
                    yield f"        elements = [one{cut} for one in elements{alive}]"
                yield "        if elements:"
                yield f"            {target}.put(elements)"
            case VariableForm.MAP:
                yield f"        for one in {held}:"
                deeper = ""
                if variable.ttl:
                    yield '            if one["expires_at_ms"] > now:'
                    deeper = "    "
                yield f'            {deeper}entry = tuple(one["key"].values()), tuple(one["value"].values())'
                yield f"            {deeper}{target}.updateValue(*entry)"

    def _load_spread(self, variable: Variable, target: str) -> Iterator[str]:
        if self.plan.family is OperatorFamily.DEDUPLICATION:
            yield f"        {target}.update((True,))"
            return
        values = [f"row[{literal(column)}]" for column in variable.columns]
        yield from explode("value = [", values, "]", 8)
        if self.plan.family is OperatorFamily.GROUP_STATE:
            yield "        if any(one is not None for one in value):"
            yield f"            {target}.update(tuple(value))"
        else:
            yield f"        {target}.update(tuple(value))"

    def _write_timers(self) -> Iterator[str]:
        """Timers that stand in the state, or that the operator had without registering them."""
        columns = {column.holds: literal(column.name) for column in self.plan.shape.state}
        if Holds.TIMERS in columns:
            yield f"        for moment in row[{columns[Holds.TIMERS]}]:"
            yield "            self.handle.registerTimer(moment)"
        if Holds.TIMEOUT in columns and self.plan.time_mode is not TimeMode.NONE:
            yield f"        if row[{columns[Holds.TIMEOUT]}] > 0:"
            yield f"            self.handle.registerTimer(row[{columns[Holds.TIMEOUT]}])"
        if self.closes is not None:
            yield "        self._close_in_time(key)"
        if self.plan.family is OperatorFamily.SESSIONS and self.timed:
            yield '        for session in row["sessions"]:'
            yield "            # a timer fires when it is before the watermark, a session ends at the watermark"
            yield '            self.handle.registerTimer(milliseconds(session["end"]) - 1)'

    def _write_spark_calls(self) -> Iterator[str]:
        yield ""
        rows = f"rows: Iterator[{self.rows}]"
        yield from self._write_method("handleInputRows", rows, "timerValues: TimerValues")
        yield '        """New rows of a key."""'
        if self.closes is not None:
            yield "        yield from self.update(key, rows, timerValues)"
            yield "        self._close_in_time(key)"
        else:
            if self.plan.family is OperatorFamily.GROUP_STATE and self.plan.time_mode is not TimeMode.NONE:
                yield "        # every call cleared the timeout of a key, and could set another"
                yield "        for moment in list(self.handle.listTimers()):"
                yield "            self.handle.deleteTimer(moment)"
            yield "        return self.update(key, rows, timerValues)"
        yield ""
        last = "expiredTimerInfo: ExpiredTimerInfo"
        yield from self._write_method("handleExpiredTimer", "timerValues: TimerValues", last)
        yield '        """A timer has fired; Spark passes the parameters by these names."""'
        yield "        moment = expiredTimerInfo.getExpiryTimeInMs()"
        if self.closes is not None:
            yield "        yield from self.expired(key, moment, timerValues)"
            yield f"        self.{self.closes}.clear()"
            yield from self._close_in_time()
        else:
            yield "        return self.expired(key, moment, timerValues)"
        yield ""
        yield "    def close(self) -> None:"
        yield '        """Nothing to close."""'

    def _close_in_time(self) -> Iterator[str]:
        """When the old operator would have removed the state of a key."""
        yield ""
        yield "    def _close_in_time(self, key: tuple[Any, ...]) -> None:"
        yield '        """Close what is kept for a key when the old operator would have removed it.'
        yield ""
        yield "        That is when the watermark reaches it; a timer fires when the watermark has passed it."
        yield '        """'
        if self.plan.family is OperatorFamily.WINDOWS:
            index = [key.name for key in self.plan.shape.keys].index("window_end")
            yield f"        self.handle.registerTimer(milliseconds(key[{index}]) - 1)"
        else:
            yield "        seen = self.seen.get()"
            yield "        if seen is not None:"
            yield "            self.handle.registerTimer(-(-seen[0] // 1000) - 1)"

    @property
    def _milliseconds(self) -> bool:
        sessions = self.plan.family is OperatorFamily.SESSIONS and self.timed
        return sessions or (self.closes is not None and self.plan.family is OperatorFamily.WINDOWS)

    def _write_helpers(self) -> Iterator[str]:
        if self.plan.shape.state:
            yield helpers.PLAIN_PANDAS if self.pandas else helpers.PLAIN_ROW
        if self.plan.folds:
            yield from folding.functions(self.plan)
        if self._milliseconds:
            yield helpers.MILLISECONDS
        if self.pandas and self.plan.times:
            yield helpers.UTC
