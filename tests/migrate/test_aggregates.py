"""Aggregates whose buffers tell them: the generated processor continues them as if nothing had happened."""

from contextlib import nullcontext
from decimal import Decimal
from itertools import product
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest

from ckpt.migrate import aggregates
from ckpt.migrate.generate.processor import processor_code
from ckpt.migrate.generate.start import start_code, to_fill_in
from ckpt.migrate.transform import Api
from tests.migrate import aggregating
from tests.migrate.aggregating import ALL, BUFFERS, FILES, STOP, plan_of, same

COUNT, SUM = ("count", "long", False), ("sum", "long", True)


@pytest.mark.parametrize(
    ("buffers", "names"),
    [
        ([COUNT, SUM], ["count", "sum"]),
        ([SUM, COUNT], ["sum", "count"]),
        ([("sum", "double", True), ("count", "long", True), COUNT], ["avg", "count"]),
        ([SUM, ("count", "long", True)], ["sum", "count"]),  # as 4.3 records it; an average has no sum of long
        ([("sum", "double", True), COUNT], ["sum", "count"]),
        ([("sum", "decimal(20,2)", True), ("isEmpty", "boolean", False), COUNT], ["sum", "count"]),
        ([("n", "double", False), ("avg", "double", False), ("m2", "double", False)], ["stddev_samp"]),
        ([("first", "string", True), ("valueSet", "boolean", True), ("max", "date", True)], ["first", "max"]),
        ([("max", "long", True), ("max", "string", True)], ["max", "max_2"]),
    ],
)
def test_buffers_that_tell_their_aggregate(buffers: list[tuple[str, str, bool]], names: list[str]) -> None:
    found = plan_of(*buffers)
    assert [kept.name for kept in found.aggregates] == names
    assert found.folds
    assert "INPUT" in to_fill_in(found)


@pytest.mark.parametrize(
    "buffers",
    [
        [("sum", "double", True), ("count", "long", True)],  # or a sum and a count, where all may be NULL as of 4.3
        [("sum", "decimal(20,2)", True), ("count", "long", True)],
        [("sum", "long", True), ("isEmpty", "boolean", False)],
        [("buf", "binary", True)],
        [("n", "double", False), ("avg", "double", False), ("m2", "double", False), ("m3", "double", False)],
        [("max", {"type": "array", "elementType": "long", "containsNull": True}, True)],
        [("max", "long", True), ("count", "long", True), ("isEmpty", "boolean", False)],
    ],
)
def test_where_one_is_not_told_the_logic_is_the_user_s(buffers: list[tuple[str, Any, bool]]) -> None:
    found = plan_of(SUM, *buffers)
    (kept, *_) = [kept for kept in found.aggregates if kept.aggregate.fold is None]
    assert not found.folds
    assert "INPUT" not in to_fill_in(found)
    assert "INPUT" not in start_code(found, None)
    code = processor_code(found)
    assert "As generated, it changes no state" in code
    assert "- sum_0: of integers; a decimal(8,2) or shorter was added as CAST(x * 100 AS BIGINT)" in code
    assert f"        - {kept.meaning}" in code


@pytest.mark.parametrize(("more", "name"), [(("m3",), "skewness"), (("m3", "m4"), "kurtosis")])
def test_more_moments_are_no_stddev(more: tuple[str, ...], name: str) -> None:
    found = plan_of(SUM, *((buffer, "double", False) for buffer in ("n", "avg", "m2", *more)))
    assert [kept.name for kept in found.aggregates] == ["sum", "n_1"]
    assert name in found.aggregates[1].meaning
    assert "stddev" not in processor_code(found)


def test_every_aggregate_of_the_table_is_told_in_one_query() -> None:
    found = plan_of(*BUFFERS)
    assert found.folds
    assert {kept.aggregate for kept in found.aggregates} == {one for one in aggregates.TABLE if one.fold}


@pytest.mark.parametrize(("version", "starts"), [("4.0.5", False), ("4.1.4", False), ("4.2.0", True), ("4.10.1", True)])
def test_it_does_not_start_where_integers_beside_nulls_are_floats(version: str, starts: bool) -> None:
    code = start_code(plan_of(*BUFFERS), None)
    body = code[code.index("    version = rows.sparkSession") : code.index("    inputs = F.struct")]
    scope: dict[str, Any] = {"StartError": RuntimeError}
    exec(f"def check(rows: Any) -> None:\n{body}", {"Any": Any}, scope)
    check = FunctionType(scope["check"].__code__, scope)
    rows = SimpleNamespace(sparkSession=SimpleNamespace(version=version))
    with nullcontext() if starts else pytest.raises(RuntimeError, match=r"Spark 4\.2 or later"):
        check(rows)


def test_a_leaf_of_a_struct_is_no_buffer() -> None:
    found = plan_of(SUM)
    (column,) = found.shape.state
    object.__setattr__(column, "path", ("value", "max", "sum"))
    assert not found.folds


def test_a_sum_of_decimals_is_of_ten_digits_less() -> None:
    def takes(kind: str) -> list[str]:
        return list(plan_of(("sum", kind, True), ("isEmpty", "boolean", False)).aggregates[0].takes)

    assert takes("decimal(20,2)") == ["decimal(10,2)"]
    assert takes("decimal(38,4)") == [f"decimal({digits},4)" for digits in range(28, 39)]


FOLDS = [
    ("count", "fold_count", [(0,), None, 1, None], (1,), None),
    ("sum of NULLs", "fold_sum", [(None,), None], (None,), None),
    ("sum", "fold_sum", [(None,), None, 2**62, None, 1], (2**62 + 1,), None),
    ("decimals", "fold_decimals", [(Decimal(0), True), None], (Decimal(0), True), None),
    ("30 digits", "fold_decimals", [(Decimal(10**30), False), Decimal("0.01")], (Decimal(f"1{'0' * 30}.01"), False), 1),
    ("overflow", "fold_decimals", [(None, False), Decimal(1), None], (None, False), None),
    ("avg", "fold_avg", [(0.0, 0), None, 1, 2], (3.0, 2), 1.5),
    ("avg of NULLs", "fold_avg", [(0.0, 0), None], (0.0, 0), None),
    ("max", "fold_max", [(None,), None, 1, None, 3, 2], (3,), None),
    ("max of texts", "fold_max", [(None,), "\uffff", "\U0001f600", "a"], ("\U0001f600",), None),
    ("min", "fold_min", [(None,), None, 3, None, 1, 2], (1,), None),
    ("moments", "fold_moments", [(0.0, 0.0, 0.0), 1, None, 3], (2.0, 2.0, 2.0), 2**0.5),
    ("moments of one", "fold_moments", [(0.0, 0.0, 0.0), 1], (1.0, 1.0, 0.0), None),
]


@pytest.mark.parametrize(("fold", "steps", "kept", "result"), [one[1:] for one in FOLDS], ids=[one[0] for one in FOLDS])
def test_values_are_taken_in_as_spark_does(fold: str, steps: list[Any], kept: Any, result: Any) -> None:
    buffers = steps[0]
    for value in steps[1:]:
        buffers = getattr(aggregates, fold)(value, *buffers)
    assert buffers == kept
    (makes,) = {one.result for one in aggregates.TABLE if one.fold is getattr(aggregates, fold)}
    if makes is not None and fold != "fold_decimals":
        assert makes(*buffers) == result


@pytest.mark.parametrize(("total", "value"), [(2**63 - 1, 1), (-(2**63), -1)])
def test_a_sum_that_overflows_fails(total: int, value: int) -> None:
    with pytest.raises(OverflowError):
        aggregates.fold_sum(value, total)


def test_nan_is_more_than_any_number() -> None:
    nan = float("nan")
    for values in ((1.0, nan, 2.0), (nan, 1.0, 2.0), (1.0, 2.0, nan)):
        most: Any = (None,)
        least: Any = (None,)
        for value in values:
            most, least = aggregates.fold_max(value, *most), aggregates.fold_min(value, *least)
        assert most[0] != most[0]
        assert least == (1.0,)


@pytest.mark.parametrize(("ignores", "first", "last"), [(False, None, None), (True, "a", "b")])
def test_first_and_last_ignore_nulls_if_they_did(ignores: bool, first: Any, last: Any) -> None:
    begin: Any = (None, False)
    found = {"first": begin, "last": begin}
    for value in (None, "a", "b", None):
        found["first"] = aggregates.fold_first(value, ignores, *found["first"])
        found["last"] = aggregates.fold_last(value, ignores, *found["last"])
    assert found == {"first": (first, True), "last": (last, True)}
    assert aggregates.fold_first(None, True, *begin) == aggregates.fold_last(None, True, *begin) == begin


@pytest.fixture(scope="module")
def found(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return aggregating.found(spark, tmp_path_factory.mktemp("aggregating"))


@pytest.mark.spark
@pytest.mark.parametrize("api", list(Api))
def test_the_results_are_those_of_an_aggregation_that_never_stopped(api: Api, found: dict[str, Any]) -> None:
    if api.value not in found:
        pytest.skip("this Spark has no transformWithState of rows")
    control, one = found["control"]["answers"], found[api.value]
    assert one["error"] == ""
    assert one["new"] == sum(len({row["key"] for row in aggregating.rows(file)}) for file in range(STOP, FILES))
    assert one["answers"].keys() == control.keys()
    names = list(ALL)[1:]
    scaled = names.index("sum_4")
    for group, name in product(control, names):
        place = names.index(name)
        given, wanted = one["answers"][group][place], control[group][place]
        if place == scaled and wanted is not None and group not in found["before"]:
            wanted = int(wanted * 100)
        assert same(given, wanted, nan_is_null=api is Api.PANDAS), (group, name, given, wanted)


@pytest.mark.spark
@pytest.mark.parametrize("api", list(Api))
def test_the_state_is_that_of_an_aggregation_that_never_stopped(api: Api, found: dict[str, Any]) -> None:
    if api.value not in found:
        pytest.skip("this Spark has no transformWithState of rows")
    control, kept = found["control"]["state"], found[api.value]["state"]
    assert [row[0] for row in kept] == [row[0] for row in control] == [1, 2, 3, 4, 5, 6, 7, 8]
    for given, wanted in zip(kept, control, strict=True):
        assert len(given) == len(wanted)
        assert all(map(same, given, wanted)), (given, wanted)


@pytest.mark.spark
def test_windows_are_put_out_at_each_change_in_update_mode(found: dict[str, Any]) -> None:
    """In append mode, once: ``test_continuity.py``."""
    one = found["windows"]
    assert one["error"] == ""
    assert one["before"]
    assert one["after"]
    assert sorted(one["before"] + one["after"], key=repr) == sorted(one["control"], key=repr)


@pytest.mark.spark
def test_it_does_not_start_while_an_input_is_missing_or_of_another_type(found: dict[str, Any]) -> None:
    assert found["refusals"] == [
        f"fill in {', '.join(f'INPUT of {name}' for name in ALL)}, IGNORE_NULLS of first, IGNORE_NULLS of first_2, "
        "IGNORE_NULLS of last, IGNORE_NULLS of last_2 in start.py",
        "fill in IGNORE_NULLS of first, IGNORE_NULLS of first_2, IGNORE_NULLS of last, IGNORE_NULLS of last_2 in "
        "start.py",
        "INPUT of sum_4 is decimal(8,2), and what it had in the old query is kept as that of tinyint or smallint or "
        "int or bigint: see the comment at INPUT",
    ]
