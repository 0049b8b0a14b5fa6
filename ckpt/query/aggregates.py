"""Knows aggregate functions by Spark's class: how groups are merged, and what is made of what.

The only place that names functions. State of any other function is kept, added and removed as its description says,
and is never merged.
"""

from collections.abc import Mapping
from enum import StrEnum

from ckpt.formats.types import fields_of
from ckpt.model import Json
from ckpt.query.description import DescribedAggregate
from ckpt.query.reader_options import list_leaf_types


class Merge(StrEnum):
    """How the buffers of several groups become that of one, as ``mergeExpressions`` of Spark's class does it."""

    COUNT = "count"  # numbers are added
    SUM = "sum"  # likewise, NULL where no group has a row; the second column of decimals is true if no group has one
    AVERAGE = "average"  # a sum and a count; a sum that is NULL has overflowed
    LEAST = "least"
    GREATEST = "greatest"
    BIT_AND = "bit-and"
    BIT_OR = "bit-or"
    BIT_XOR = "bit-xor"
    MOMENTS = "moments"  # n, average, and central moments from the second on: Chan's formulas
    COMOMENTS = "comoments"  # n, averages of x and y, their comoment, and maybe both second moments
    REGISTERS = "registers"  # ten of 6 bits in a long: the greatest of each
    LIST = "list"  # all elements
    SET = "set"  # all different elements
    ALIKE = "alike"  # all groups have the same value


_MERGES: Mapping[str, Merge] = {
    "Count": Merge.COUNT,
    "Sum": Merge.SUM,
    "Average": Merge.AVERAGE,
    "Min": Merge.LEAST,
    "Max": Merge.GREATEST,
    "BitAndAgg": Merge.BIT_AND,
    "BitOrAgg": Merge.BIT_OR,
    "BitXorAgg": Merge.BIT_XOR,
    **dict.fromkeys(("StddevSamp", "StddevPop", "VarianceSamp", "VariancePop", "Skewness", "Kurtosis"), Merge.MOMENTS),
    **dict.fromkeys(("Corr", "CovPopulation", "CovSample"), Merge.COMOMENTS),
    "HyperLogLogPlusPlus": Merge.REGISTERS,
    "CollectList": Merge.LIST,
    "CollectSet": Merge.SET,
}
MADE_OF: Mapping[str, tuple[tuple[str, int], ...]] = {
    "Average": (("Sum", 0), ("Count", 0)),
    "Count": (("Average", 1),),
}
"""Functions whose columns are those of others with the same argument: of each the class and the number of its column.

A sum of decimals has two columns and is left out: whether it has overflowed is kept otherwise.
"""
_NUMBERS = frozenset({"byte", "short", "integer", "long", "float", "double"})
_ORDERED = _NUMBERS | {"boolean", "date", "timestamp", "timestamp_ntz", "string", "binary"}
_COLLECTED = _ORDERED | {"decimal"}
_EQUAL = _COLLECTED - {"float", "double", "binary"}
"""Types whose equality in a set of Spark is known to ckpt; that of NaN, -0.0 and binary values is not."""


def find_merge(aggregate: DescribedAggregate) -> Merge | None:
    """Find how groups of a function are merged; None where ckpt does not know."""
    merge = _MERGES.get(aggregate.function)
    kinds = [buffer.type for buffer in aggregate.buffers]
    names = [str(kind).partition("(")[0] for kind in kinds if fields_of(kind) is None]
    if len(names) != len(kinds) or not names or aggregate.distinct:
        return None
    match merge:
        case Merge.SUM | Merge.AVERAGE:
            return merge if names[0] in ("long", "double", "decimal") else None
        case Merge.LEAST | Merge.GREATEST:
            collated = " collate " in str(aggregate.result)  # which its buffer does not say
            return merge if names[0] in _ORDERED | {"decimal"} and not collated else None
        case Merge.LIST | Merge.SET:
            element = find_element(aggregate)
            known = _COLLECTED if merge is Merge.LIST else frozenset() if isinstance(element, dict) else _EQUAL
            leaves = {*list_leaf_types(element)}
            return merge if leaves and leaves <= known and names == ["binary"] else None
    return merge


def find_element(aggregate: DescribedAggregate) -> Json:
    """Find the type of the elements that a function collects into an array; None for another function."""
    result = aggregate.result
    return result.get("elementType") if isinstance(result, dict) and result.get("type") == "array" else None
