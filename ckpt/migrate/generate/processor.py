"""``processor.py``: the state of the new query, how it is loaded, and the place for the user's logic."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from ckpt.migrate import aggregates
from ckpt.migrate.aggregates import KeptAggregate
from ckpt.migrate.text import choose_identifiers, columns, explode, fill_code, literal, plain
from ckpt.migrate.transform import Api, TimeMode, TransformPlan
from ckpt.migrate.variables import OperatorFamily, Variable, VariableForm
from ckpt.state.reading.columns import Holds

_WIDTH = 88  # as `ruff format` has it


def describe_plan(plan: TransformPlan) -> dict[str, Any]:
    """Describe a plan to both templates: flags, values and lines, by the names that they have there."""
    timed, windows = plan.time_mode is TimeMode.EVENT_TIME, plan.family is OperatorFamily.WINDOWS
    kept = plan.aggregates if plan.folds else ()
    choosing = [each for each in kept if each.aggregate.chooses]
    return {
        "checkpoint": plain(plan.initial.checkpoint),
        "batch": plan.initial.moment.batch,
        "operator": plan.shape.operator,
        "family": plan.family,
        "pandas": plan.api is Api.PANDAS,
        "timed": timed,
        "windows": windows,
        "dated": timed or windows,  # rows need their time
        "sessions": timed and plan.family is OperatorFamily.SESSIONS,
        "times": plan.times,
        "state": bool(plan.shape.state),
        "packed": plan.packed,
        "inputs": plan.inputs,
        "folds": plan.folds,
        "emits_on_close": plan.folds and timed and windows,
        "choosing": bool(choosing),
        "blanks": ("INPUT",) * plan.folds + ("IGNORE_NULLS",) * bool(choosing),  # dictionaries to be filled in
        "inputs_to_fill_in": (
            line for each in kept for line in (f"    # {plain(each.meaning)}", f'    {literal(each.name)}: "",')
        ),
        "ignore_nulls": [f"    {literal(each.name)}: None," for each in choosing],
        "input_types": (line for each in kept for line in _write_types(each)),
    }


def _write_types(kept: KeptAggregate) -> Iterator[str]:
    opening, kinds = f"{literal(kept.name)}: [", [literal(kind) for kind in kept.takes]
    line = f"    {opening}{', '.join(kinds)}],"
    yield from [line] if len(line) <= _WIDTH else explode(opening, kinds, "],", 4)


def fold_inputs(plan: TransformPlan) -> Iterator[str]:
    """Write the calls that take the inputs of a row into the buffers."""
    for kept, buffers in _place_aggregates(plan):
        name = literal(kept.name)
        ignore = f", IGNORE_NULLS[{name}]" if kept.aggregate.chooses else ""
        assert kept.aggregate.fold is not None  # of a plan that folds
        opening = f"                {buffers} = {kept.aggregate.fold.__name__}("
        words = f"row[{name}]{ignore}, *{buffers}"
        line = f"{opening}{words})"
        yield from [line] if len(line) <= _WIDTH else [opening, f"{' ' * 20}{words}", f"{' ' * 16})"]


def write_results(plan: TransformPlan) -> Iterator[str]:
    """Write the entries of a row of results."""
    for index, key in enumerate(plan.shape.keys):
        yield f"            {literal(key.name)}: key[{index}],"
    for kept, buffers in _place_aggregates(plan):
        result = kept.aggregate.result
        value = f"{result.__name__}(*{buffers})" if result else f"{buffers.partition(':')[0]}]"
        yield f"            {literal(kept.name)}: {value},"


def list_functions(plan: TransformPlan) -> list[Callable[..., Any]]:
    """List the functions of the aggregates, each once."""
    known = [kept.aggregate for kept in plan.aggregates if plan.folds]
    needed = [function for aggregate in known for function in (aggregate.fold, aggregate.result) if function]
    if {aggregates.fold_max, aggregates.fold_min} & set(needed):
        needed.insert(0, aggregates.ordered)
    return list(dict.fromkeys(needed))


def _place_aggregates(plan: TransformPlan) -> Iterator[tuple[KeptAggregate, str]]:
    begin = 0
    for kept in plan.aggregates if plan.folds else ():
        end = begin + len(kept.columns)
        yield kept, f"kept[{begin}:{end}]"
        begin = end


_TAKEN = ("handle", "init", "update", "expired", "close", "handleInitialState", "handleInputRows", "handleExpiredTimer")
_GETTERS = {VariableForm.VALUE: "getValueState", VariableForm.LIST: "getListState", VariableForm.MAP: "getMapState"}
_CLOSED = {  # families whose operator removed state by the watermark, and the variable that it removed
    OperatorFamily.WINDOWS: "buffers",
    OperatorFamily.WITHIN_WATERMARK: "seen",
}


def processor_code(plan: TransformPlan) -> str:
    """The whole file, with a line end at its end."""
    return fill_code("processor.template", describe_plan(plan) | _collect_values(plan))


def _collect_values(plan: TransformPlan) -> dict[str, Any]:
    """Collect what ``processor.template`` shows of a plan besides ``describe_plan``."""
    shape, variables, family = plan.shape, plan.variables, plan.family
    pandas, timed = plan.api is Api.PANDAS, plan.time_mode is TimeMode.EVENT_TIME
    closes = _CLOSED.get(family) if timed else None
    milliseconds = timed and family in (OperatorFamily.SESSIONS, OperatorFamily.WINDOWS)
    functions = list_functions(plan)
    compares = aggregates.ordered in functions
    places = {column.holds: literal(column.name) for column in shape.state}
    attributes = choose_identifiers((variable.name for variable in variables), _TAKEN)
    emitted = [(key.name, key.type) for key in shape.keys]
    if plan.folds:
        emitted += [(kept.name, kept.type) for kept in plan.aggregates]
    elif family in (OperatorFamily.AGGREGATION, OperatorFamily.WINDOWS):
        emitted += variables[0].fields
    begins = [begin for kept in plan.aggregates for begin in kept.aggregate.begin.split(", ")]
    alone = [f"        begin = ({begins[0]},)"] if begins else []  # as a formatter writes a tuple of one
    ttl = [f"    {literal(variable.name)}: 0," for variable in variables if variable.ttl]
    return {
        "sets_zone": pandas and plan.times,
        "datetime": f"datetime{', timedelta' * milliseconds}" if milliseconds or compares else "",
        "decimals": aggregates.fold_decimals in functions,
        "compares": compares,
        "output_schema": literal(columns(emitted) or "`everything` int"),
        "ttl": ttl,
        "keys": ", ".join(plain(key.name) for key in shape.keys) or "none: all rows are one group",
        "declarations": (line for each in variables for line in _declare(each, attributes[each.name])),
        "logic": "continues the aggregates" if plan.folds else "your logic: these two methods",
        "rows": "pd.DataFrame" if pandas else "Row",
        "row_of_key": "pd.DataFrame([key])" if pandas else "Row(user=key[0])",
        "counts": family in (OperatorFamily.AGGREGATION, OperatorFamily.WINDOWS),
        **{each.name: each is family for each in OperatorFamily},
        "meanings": [f"        - {plain(kept.meaning)}" for kept in plan.aggregates],
        "begins": alone if len(begins) == 1 else explode("begin = (", begins, ")", 8),
        "folds_of_row": fold_inputs(plan),
        "closes": closes,
        "results": write_results(plan),
        "first": ".iloc[0]" if pandas else "",
        "loads": (line for each in variables for line in _load(each, f"self.{attributes[each.name]}", family)),
        "timers": places.get(Holds.TIMERS),
        "timeout": places.get(Holds.TIMEOUT) if plan.time_mode is not TimeMode.NONE else None,
        "clears_timeouts": family is OperatorFamily.GROUP_STATE and plan.time_mode is not TimeMode.NONE,
        "window_end": next((index for index, key in enumerate(shape.keys) if key.name == "window_end"), None),
        "functions": (line for each in functions for line in ("", "", inspect.getsource(each).rstrip())),
        "milliseconds": milliseconds,
    }


def _declare(variable: Variable, attribute: str) -> Iterator[str]:
    words = [literal(variable.name)]
    words += [literal(columns(variable.key))] if variable.form is VariableForm.MAP else []
    words.append(literal(columns(variable.fields)))
    words += [f"TTL_MS[{literal(variable.name)}]"] if variable.ttl else []
    yield from explode(f"self.{attribute} = handle.{_GETTERS[variable.form]}(", words, ")", 8)


def _load(variable: Variable, target: str, family: OperatorFamily) -> Iterator[str]:
    columns_of_row = [f"row[{literal(column)}]" for column in variable.columns]
    only_true = variable.spread and family is OperatorFamily.DEDUPLICATION
    values = {
        "target": target,
        "column": columns_of_row[0] if not variable.spread else "",
        "parts": list(explode("value = [", columns_of_row, "]", 8)) if variable.spread and not only_true else [],
        "alive": f" and row[{literal(variable.expires)}] > now" if variable.expires else "",
        "ttl": variable.ttl,
        **{form.name: form is variable.form and not variable.spread for form in VariableForm},
        "DEDUPLICATION": only_true,
        "GROUP_STATE": family is OperatorFamily.GROUP_STATE,
    }
    yield fill_code("load.template", values).removesuffix("\n")
