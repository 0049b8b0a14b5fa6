"""Facts of a plan for both templates, and the aggregates that a generated processor continues by itself."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from ckpt.migrate import aggregates
from ckpt.migrate.aggregates import KeptAggregate
from ckpt.migrate.generate.text import explode, literal, plain
from ckpt.migrate.transform import Api, TimeMode, TransformPlan
from ckpt.migrate.variables import OperatorFamily

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
        opening = f"                {buffers} = {_name(kept.aggregate.fold)}("
        words = f"row[{name}]{ignore}, *{buffers}"
        line = f"{opening}{words})"
        yield from [line] if len(line) <= _WIDTH else [opening, f"{' ' * 20}{words}", f"{' ' * 16})"]


def write_results(plan: TransformPlan) -> Iterator[str]:
    """Write the entries of a row of results."""
    for index, key in enumerate(plan.shape.keys):
        yield f"            {literal(key.name)}: key[{index}],"
    for kept, buffers in _place_aggregates(plan):
        result = kept.aggregate.result
        value = f"{_name(result)}(*{buffers})" if result else f"{buffers.partition(':')[0]}]"
        yield f"            {literal(kept.name)}: {value},"


def list_functions(plan: TransformPlan) -> list[Callable[..., Any]]:
    """List the functions of the aggregates, each once."""
    known = [kept.aggregate for kept in plan.aggregates if plan.folds]
    needed = [function for aggregate in known for function in (aggregate.fold, aggregate.result) if function]
    if {aggregates.fold_max, aggregates.fold_min} & set(needed):
        needed.insert(0, aggregates.ordered)
    return list(dict.fromkeys(needed))


def copy_functions(plan: TransformPlan) -> Iterator[str]:
    """Copy the functions of the aggregates as they are in ckpt."""
    for function in list_functions(plan):
        yield from ("", "", inspect.getsource(function).rstrip())


def _place_aggregates(plan: TransformPlan) -> Iterator[tuple[KeptAggregate, str]]:
    """Give each aggregate with its buffers as code."""
    begin = 0
    for kept in plan.aggregates if plan.folds else ():
        end = begin + len(kept.columns)
        yield kept, f"kept[{begin}:{end}]"
        begin = end


def _name(function: Callable[..., Any] | None) -> str:
    return function.__name__ if function else ""
