"""The body of a generated processor whose buffers tell which aggregates wrote them, and the inputs of these."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from ckpt.migrate import aggregates
from ckpt.migrate.aggregates import KeptAggregate
from ckpt.migrate.generate.text import explode, literal, plain
from ckpt.migrate.transform import Api, TransformPlan

WIDTH = 88  # as `ruff format` has it
WHERE_EMITTED = """
# From start.py, which sets it: OUTPUT_MODE Append emits a window once, when it closes.
EMIT_ON_CLOSE = True"""
IGNORED = """
# From start.py, which sets it.
IGNORE_NULLS: dict[str, Any] = {}"""

WITH_INPUTS = '''

def with_inputs(rows: DataFrame) -> DataFrame:
    """Rows with the inputs of the aggregates in one struct, which keeps numbers and NULLs exact."""
    version = rows.sparkSession.version
    if tuple(map(int, version.split(".")[:2])) < (4, 2):
        raise StartError(
            f"this is Spark {version}, and processor.py continues aggregates with Spark 4.2 or later: "
            "Spark 4.0 turns integers beside NULLs into floats"
        )
    inputs = F.struct(*(F.expr(text).alias(name) for name, text in INPUT.items()))
    rows = rows.withColumn("{inputs}", inputs)
    for name, kinds in INPUT_TYPES.items():
        found = rows.select(f"{inputs}.`{name}`").schema[0].dataType.simpleString()
        if kinds and found not in kinds:
            raise StartError(
                f"INPUT of {name} is {found}, and what it had in the old query is kept as "
                f"that of {' or '.join(kinds)}: see the comment at INPUT"
            )
    return rows'''

FILLED_IN = """
    empty = [f"INPUT of {name}" for name, text in INPUT.items() if not text]"""
FILLED_IN_IGNORE = """
    unsaid = [name for name, ignores in IGNORE_NULLS.items() if ignores is None]
    empty += [f"IGNORE_NULLS of {name}" for name in unsaid]"""
FILLED_IN_END = """
    if empty:
        raise StartError(f"fill in {', '.join(empty)} in start.py")"""


def name_blanks(plan: TransformPlan) -> tuple[str, ...]:
    """The names of dictionaries in ``start.py`` that are to be filled in."""
    return ("INPUT",) * plan.folds + ("IGNORE_NULLS",) * bool(_find_choosing(plan))


def check_filled_in(plan: TransformPlan) -> str:
    """The check that they are."""
    ignored = FILLED_IN_IGNORE * bool(_find_choosing(plan))
    return f"{FILLED_IN}{ignored}{FILLED_IN_END}" if plan.folds else ""


def constants(plan: TransformPlan) -> Iterator[str]:
    """The dictionaries that are to be filled in, empty."""
    if not plan.folds:
        return
    yield "# What each aggregate of the old query was of: a column of prepare(), or SQL of its columns."
    yield "INPUT = {"
    for kept in plan.aggregates:
        yield f"    # {plain(kept.meaning)}"
        yield f'    {literal(kept.name)}: "",'
    yield "}"
    if choosing := _find_choosing(plan):
        yield "# True for those that left out NULLs, False for the others."
        yield "IGNORE_NULLS: dict[str, Any] = {"
        yield from (f"    {literal(kept.name)}: None," for kept in choosing)
        yield "}"


def types(plan: TransformPlan) -> Iterator[str]:
    """The types that inputs may have."""
    if not plan.folds:
        return
    yield "# The types that fit the buffers; none for any."
    yield "INPUT_TYPES: dict[str, list[str]] = {"
    for kept in plan.aggregates:
        opening, kinds = f"{literal(kept.name)}: [", [literal(kind) for kind in kept.takes]
        line = f"    {opening}{', '.join(kinds)}],"
        yield from [line] if len(line) <= WIDTH else explode(opening, kinds, "],", 4)
    yield "}"


def imports(plan: TransformPlan) -> Iterator[str]:
    """The imports that the functions need, but for datetime."""
    needed = _list_functions(plan)
    if aggregates.fold_decimals in needed:
        yield "from decimal import Context, Decimal"
    if aggregates.ordered in needed:
        yield "from math import isnan"


def compares(plan: TransformPlan) -> bool:
    """True if the functions need datetime."""
    return aggregates.ordered in _list_functions(plan)


def declare_handed_over(plan: TransformPlan, *, closes: bool) -> Iterator[str]:
    """Constants of ``processor.py`` that ``start.py`` sets."""
    if plan.folds and closes:
        yield WHERE_EMITTED
    if _find_choosing(plan):
        yield IGNORED


def hand_over(plan: TransformPlan, *, closes: bool) -> Iterator[str]:
    """Where ``start.py`` does so."""
    if plan.folds and closes:
        yield '    processor.EMIT_ON_CLOSE = OUTPUT_MODE.lower() == "append"'
    if _find_choosing(plan):
        yield "    processor.IGNORE_NULLS = IGNORE_NULLS"


def update(plan: TransformPlan, *, closes: bool) -> Iterator[str]:
    """The body of ``update``."""
    yield '        """Take the new rows of a key into its buffers, as the old query did."""'
    yield "        # the buffers of a key without rows"
    begins = [begin for kept in plan.aggregates for begin in kept.aggregate.begin.split(", ")]
    yield from explode("begin = (", begins, ")", 8)
    yield "        kept = list(self.buffers.get() or begin)"
    if plan.api is Api.PANDAS:
        yield "        for frame in rows:"
        yield f"            for row in map(plain, frame[{literal(plan.inputs)}]):"
    else:
        yield "        for one in rows:"
        yield f"            for row in [plain(one[{literal(plan.inputs)}])]:"
    for kept, begin, end in _place_aggregates(plan):
        name = literal(kept.name)
        ignore = f", IGNORE_NULLS[{name}]" if kept in _find_choosing(plan) else ""
        opening = f"                kept[{begin}:{end}] = {_name(kept.aggregate.fold)}("
        words = f"row[{name}]{ignore}, *kept[{begin}:{end}]"
        line = f"{opening}{words})"
        yield from [line] if len(line) <= WIDTH else [opening, f"{' ' * 20}{words}", f"{' ' * 16})"]
    yield "        self.buffers.update(tuple(kept))"
    if closes:
        yield "        if not EMIT_ON_CLOSE:"
        yield "            yield self.results(key)"
    else:
        yield "        yield self.results(key)"


def expired(*, closes: bool) -> Iterator[str]:
    """The last lines of ``expired``."""
    if not closes:
        yield "        return iter(())"
        return
    yield "        if EMIT_ON_CLOSE:"
    yield "            yield self.results(key)"


def results(plan: TransformPlan) -> Iterator[str]:
    """The method that makes a row of the results."""
    rows = "pd.DataFrame" if plan.api is Api.PANDAS else "Row"
    yield f"    def results(self, key: tuple[Any, ...]) -> {rows}:"
    yield '        """The results of a key, as OUTPUT_SCHEMA has them."""'
    yield "        kept = self.buffers.get() or ()"
    items = [f"{literal(key.name)}: key[{index}]" for index, key in enumerate(plan.shape.keys)]
    for kept, begin, end in _place_aggregates(plan):
        result = kept.aggregate.result
        value = f"{_name(result)}(*kept[{begin}:{end}])" if result else f"kept[{begin}]"
        items.append(f"{literal(kept.name)}: {value}")
    yield from explode("found = {", items, "}", 8)
    yield "        return pd.DataFrame([found])" if plan.api is Api.PANDAS else "        return Row(**found)"
    yield ""


def functions(plan: TransformPlan) -> Iterator[str]:
    """The functions of the aggregates, each once."""
    yield from ("", "", "Buffers = tuple[Any, ...]")
    for function in _list_functions(plan):
        yield from ("", "", inspect.getsource(function).rstrip())


def _list_functions(plan: TransformPlan) -> list[Callable[..., Any]]:
    known = [kept.aggregate for kept in plan.aggregates if plan.folds]
    needed = [function for aggregate in known for function in (aggregate.fold, aggregate.result) if function]
    if {aggregates.fold_max, aggregates.fold_min} & set(needed):
        needed.insert(0, aggregates.ordered)
    return list(dict.fromkeys(needed))


def _find_choosing(plan: TransformPlan) -> list[KeptAggregate]:
    return [kept for kept in plan.aggregates if plan.folds and kept.aggregate.chooses]


def _place_aggregates(plan: TransformPlan) -> Iterator[tuple[KeptAggregate, int, int]]:
    """Each with its place among the buffers."""
    begin = 0
    for kept in plan.aggregates:
        end = begin + len(kept.columns)
        yield kept, begin, end
        begin = end


def _name(function: Callable[..., Any] | None) -> str:
    return function.__name__ if function else ""
