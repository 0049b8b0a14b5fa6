"""``ckpt rewrite --where`` and ``--drop-keys``: rows are there with all they have, and nothing of others is left."""

import sys
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import ckpt
from ckpt.errors import CkptError, UsageError
from ckpt.extras import install_command
from ckpt.formats.rows.types import arrow_type
from ckpt.formats.types import array_of, map_of, struct_of
from ckpt.model import Json
from ckpt.new.rewrite.filtering import can_take, choose_dropping, parse_condition
from tests.conftest import Ckpt
from tests.new.rewrite.continuing import frames, rows, state
from tests.new.rewrite.test_rewrite import STATEFUL
from tests.state.native.states import recorded
from tests.support.places import SAMPLES
from tests.support.spark.live import EVERY_CASE

QUICK = ("tws-rocksdb-4.2", "join-v3-changelog-4.2", "session-window-changelog-4.2")
WITHOUT = ("-killed-", "limit")  # no columns
WRITTEN = [name for name in STATEFUL if not any(part in name for part in WITHOUT)]
BY_KEY = ("join", "tws")

Tables = dict[str, Any]


def literal(value: Any) -> str:
    if isinstance(value, str):
        return "'{}'".format(value.replace("'", "''"))
    return f"'{value.isoformat()}'" if isinstance(value, datetime) else str(value)


def middle(tables: Tables, prefix: str) -> tuple[str, Any]:
    """A column that the first unit has with that prefix, and a value of it that not all rows have."""
    table = next(iter(tables.values()))
    for name in table.column_names:
        values = sorted(set(table.column(name).drop_null().to_pylist())) if name.startswith(prefix) else []
        if len(values) > 1:
            return name, values[len(values) // 2]
    raise AssertionError(f"no column {prefix}... of the sample has two values")


def expected(tables: Tables, name: str, value: Any) -> Tables:
    """What ``name >= value`` keeps, as Arrow compares; units of operators that have no such column keep all."""

    def kept(table: Any) -> Any:
        if name not in table.column_names:
            return table
        return table.filter(pc.greater_equal(table.column(name), pa.scalar(value, table.column(name).type)))

    return {label: kept(table) for label, table in tables.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sample", "prefix"),
    [
        pytest.param(name, prefix, marks=() if name in QUICK else pytest.mark.slow)
        for name in WRITTEN
        for prefix in ("key_", "value_")
        if prefix == "key_" or not name.startswith((*BY_KEY, "dedup-hdfs", "dedup-changelog", "real-time-aggregation"))
    ],
)
def test_what_is_kept_is_what_arrow_keeps(sample: str, prefix: str, tmp_path: Path) -> None:
    """In the old form, and by another provider in other partitions."""
    there = frames(SAMPLES / sample)
    name, value = middle(there, prefix)
    for place, form in enumerate(forms(sample)):
        new, where = tmp_path / str(place), f"{name} >= {literal(value)}"
        made = ckpt.rewrite(str(SAMPLES / sample), str(new), where=where, **form)
        assert made.written, made.refused
        wanted = expected(there, name, value)
        assert state(new) == {label: sorted(map(str, table.to_pylist())) for label, table in wanted.items()}
        assert {unit.unit.label: unit.rows for unit in made.units} == {label: len(of) for label, of in wanted.items()}
        dropped = sum(unit.dropped or 0 for unit in made.units)
        assert dropped == sum(len(table) - len(wanted[label]) for label, table in there.items())
        assert any(one.dropped for one in made.units)
        assert ckpt.state_verify(str(new)).damages == (), "timers, TTL indexes and counts are those of the rows"


def forms(sample: str) -> list[dict[str, Any]]:
    if sample.endswith("3.5"):
        return [{}]
    families = sample.startswith(("tws", "join-v3", "join-v4"))
    return [{}, {"partitions": 3, "provider": "rocksdb" if families or "hdfs" in sample else "hdfs"}]


DAY = 86_400_000_000
BATCH = pa.record_batch(
    {
        "i": pa.array([1, 2, None]),
        "s": pa.array(["x", "\u00e9\0", None]),
        "d": pa.array([float("nan"), -0.0, 1e300]),
        "t": pa.array([0, 2**63 - 1, -(2**63)], pa.timestamp("us", "UTC")),
        "n": pa.array([0, 366 * DAY, None], pa.timestamp("us")),
        "l": pa.array([[1, 2], [], None]),
        "m": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "c": pa.array([Decimal("1" * 38), Decimal(-1), None], pa.decimal128(38, 0)),
        "b": pa.array([b"\xff", b"", None]),
        "a": pa.array([0, 2**31 - 1, -(2**31)], pa.date32()),
        "f": pa.array([0.1, 0.5, None], pa.float32()),
        "o": pa.array([True, False, None]),
    }
)
X, _ = True, False


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("i > 1", [_, X, _]),
        ("NOT i > 1", [X, _, _]),
        ("i IS NULL OR I = 1", [X, _, X]),
        ("i NOT IN (2, NULL)", [_, _, _]),
        ("o", [X, _, _]),
        ("s LIKE 'x%' -- a remark", [X, _, _]),
        ("length(s) = 2", [_, X, _]),
        ("d = 'NaN'::DOUBLE OR d = 0", [X, X, _]),
        ("d > 5", [X, _, X]),
        ("t >= '1970-01-01'", [X, X, _]),
        ("t = TIMESTAMPTZ '1970-01-01 01:00:00+01'", [X, _, _]),
        ("t = TIMESTAMP '1970-01-01'", [X, _, _]),
        ("n < TIMESTAMP '1971-01-01' - INTERVAL 1 DAY", [X, _, _]),
        ("year(n) = 1971", [_, X, _]),
        ("list_contains(l, 2) AND m['k'] = 1", [X, _, _]),
        ("c = 11111111111111111111111111111111111111", [X, _, _]),
        ("b = '\\xFF'::BLOB", [X, _, _]),
        ("a = '1970-01-01'", [X, _, _]),
        ("f = 0.1", [X, _, _]),
        ("CASE WHEN i = 1 THEN s = 'x' END", [X, _, _]),
        ("coalesce(i, 0) BETWEEN 0 AND 1", [X, _, X]),
    ],
)
def test_a_condition_is_true_or_not(condition: str, kept: list[bool]) -> None:
    found = parse_condition(condition)
    found.check("", BATCH.schema)
    assert found.holds(BATCH).tolist() == kept


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("true) UNION SELECT (i = 1", "it is not one condition"),
        ("i > 1), (true", "it is not one condition"),
        ("i > 1) FROM state WHERE (true", "it is not one condition"),
        ("i > 1) ORDER BY (1", "it is not one condition"),
        ("i > 1) LIMIT (1", "it is not one condition"),
        ("i > 1; DROP TABLE state", 'syntax error at or near ";"'),
        ("i > 1)); COPY (SELECT 1) TO '/tmp/x", "unterminated"),
        ("(SELECT true)", "no subquery"),
        ("i IN (SELECT 1)", "no subquery"),
        ("FROM '/etc/passwd'", "no subquery"),
        ("row_number() OVER () > 1", "no window"),
        ("COLUMNS(*) > 1", "no star"),
        ("#1 > 1", "no positional reference"),
        ("i -> i > 1", "no lambda"),
        ("count(*) > i", "count_star is not one of the functions"),
        ("random() > i", "random is not one of the functions"),
        ("now() > t", "now is not one of the functions"),
        ("age(t) > INTERVAL 1 DAY", "age is not one of the functions"),
        ("getenv('HOME') = s", "getenv is not one of the functions"),
        ("read_text('/etc/passwd') = s", "read_text is not one of the functions"),
        ("nullif(nextval('x'), 1) = i", "nextval is not one of the functions"),
        ("state.i > 1", "no column state.i"),
        ("i > 1 /*", "unterminated"),
        ("(i > 1", "syntax error"),
        ("true", "it names no column"),
        ("'x'", "it names no column"),
        (" ", "it is empty"),
        ("i > 1\0", "it is empty, or has characters that are not valid text"),
        ("i = '\udcff'", "it is empty, or has characters that are not valid text"),
        ("i = ?", "where"),
        ("NOT (" * 2000 + "o" + ")" * 2000, "where"),
        ("i", "has type BIGINT, but it must be a condition"),
        ("i > n", "Cannot compare"),
        ("upper(i, 2) = 'x'", "No function matches"),
        ("abs(DISTINCT i) > 1", "DISTINCT"),
    ],
)
def test_all_else_is_refused(condition: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_condition(condition).check("", BATCH.schema)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_row_without_a_result_is_an_error() -> None:
    with pytest.raises(CkptError, match=r"the condition s::INT > 1 has no result for a row: .*'x'"):
        parse_condition("s::INT > 1").holds(BATCH)


@pytest.mark.parametrize(
    ("kind", "fit"),
    [
        ("long", True),
        ("timestamp_ntz", True),
        ("decimal(38,18)", True),
        ("varchar(3)", True),
        (array_of("string"), True),
        (map_of("string", struct_of([("x", "date")])), True),
        ("string collate UTF8_LCASE", False),
        ("interval year to month", False),
        ("interval day", False),
        ("interval", False),
        ("time(6)", False),
        ("variant", False),
        (array_of("variant"), False),
        ({"type": "udt", "sqlType": "long"}, False),
    ],
)
def test_what_duckdb_compares_as_spark_does(kind: Json, fit: bool) -> None:
    assert can_take(kind) is fit


@pytest.mark.slow
def test_every_type_that_spark_stores_can_be_used_or_is_named(tmp_path: Path) -> None:
    """Random state of Spark 4.3: each column alone (each twelfth); kept are the rows where it is not NULL."""
    refused = set()
    for number, (_, folder, _) in enumerate(recorded("4.3", tmp_path)):
        table = ckpt.read_state_arrow(str(folder), shape="flat")
        for name in table.column_names if EVERY_CASE else table.column_names[number % 12 :: 12]:
            new = str(tmp_path / f"{number}-{name}")
            try:
                made = ckpt.rewrite(str(folder), new, where=f"{name} IS NOT NULL AND {name} = {name}")
            except UsageError as error:
                refused.add(str(error).partition(f"a condition cannot use {name}, by its type: ")[2].partition(" ")[0])
            else:
                assert made.units[0].rows == table.num_rows - table.column(name).null_count, name
    assert {"variant", "interval"} <= refused or not EVERY_CASE
    assert all(one.startswith(("variant", "interval", "time(", "{")) for one in refused), "each of them is named"


def test_an_operator_without_such_a_column_keeps_all(ckpt: Ckpt, tmp_path: Path) -> None:
    words = ("rewrite", SAMPLES / "dedup-aggregation-hdfs-4.2", "--where", "value_count > 6 OR Key_Part < 2")
    planned = ckpt(*words, tmp_path / "new", "--plan")
    assert "operator 0  the condition is checked for each row" in planned.stdout
    assert "operator 1  it has no such columns: nothing is left out" in planned.stdout
    run = ckpt(*words, tmp_path / "new", "-o", "json")
    assert run.exit_code == 0, run.stderr
    assert [(one["dropped"], one["judged"]) for one in run.json()["units"]] == [(2, "row"), (None, None)]
    page = ckpt(*words, tmp_path / "other").stdout
    assert "2 rows, and 2 rows left out" in page
    assert "25 rows; it has no such columns: nothing is left out" in page


def test_a_join_is_judged_by_key(ckpt: Ckpt, tmp_path: Path) -> None:
    words = ("rewrite", SAMPLES / "join-changelog-4.2", tmp_path / "new", "--plan", "--where", "key_field0=1")
    assert ckpt(*words).stdout.count("the condition is checked for each key") == 2
    assert {one["judged"] for one in ckpt(*words, "-o", "json").json()["units"]} == {"key"}


@pytest.mark.parametrize(
    ("sample", "where", "code", "said"),
    [
        ("aggregation-hdfs-4.2", "user = 1", 2, "are operator 0 (stateStoreSave): key_key, value_count, value_sum"),
        ("join-changelog-4.2", "value_left > 1", 2, "there are operator 0 (symmetricHashJoin): key_field0"),
        ("limit-hdfs-4.2", "value_count > 1", 2, "there are operator 0 (globalLimit): none"),
        ("aggregation-hdfs-4.2", "current_date > '2020-01-01'", 2, "no operator has the columns current_date"),
        ("dedup-aggregation-hdfs-4.2", "key_key LIKE '1'", 2, "--where: for operator"),
        ("aggregation-hdfs-4.2", "(key_key || 'x')::INT > 1", 3, "has no result for a row"),
    ],
)
def test_a_condition_that_does_not_apply_is_refused_and_leaves_nothing(
    sample: str, where: str, code: int, said: str, ckpt: Ckpt, tmp_path: Path
) -> None:
    run = ckpt("rewrite", SAMPLES / sample, tmp_path / "new", "--where", where)
    assert (run.exit_code, said in run.refusal()) == (code, True), run
    assert not (tmp_path / "new").exists()


def test_not_both(ckpt: Ckpt, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text('{"key": 1}')
    words = ("--where", "key_key = 1", "--drop-keys", tmp_path / "keys")
    run = ckpt("rewrite", SAMPLES / "aggregation-hdfs-4.2", tmp_path / "new", *words)
    assert (run.exit_code, run.refusal()) == (2, "ckpt: --where and --drop-keys exclude each other")


def test_without_the_extra_it_says_which(ckpt: Ckpt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    words = ("rewrite", SAMPLES / "aggregation-hdfs-4.2", tmp_path / "new")
    run = ckpt(*words, "--where", "key_key = 1")
    assert (run.exit_code, run.refusal()) == (
        3,
        f"ckpt: a condition in SQL needs duckdb: {install_command('sql')}",
    )
    assert ckpt(*words).exit_code == 0


# Keys.


@pytest.mark.slow
@pytest.mark.parametrize(
    "sample", [pytest.param(name, marks=() if name in QUICK[:2] else pytest.mark.slow) for name in WRITTEN]
)
def test_nothing_is_left_of_the_keys_and_everything_of_others(sample: str, tmp_path: Path) -> None:
    old = rows(SAMPLES / sample)
    keys = sorted({key for unit in old.values() for key, _ in unit if key})[:3:2]
    made = ckpt.rewrite(str(SAMPLES / sample), str(tmp_path / "new"), drop_keys=[dict(key) for key in keys])
    assert made.written, made.refused
    assert rows(tmp_path / "new") == {unit: [row for row in of if row[0] not in keys] for unit, of in old.items()}
    assert sum(unit.dropped or 0 for unit in made.units) == sum(key in keys for of in old.values() for key, _ in of) > 0
    assert ckpt.state_verify(str(tmp_path / "new")).damages == (), (
        "timers, TTL indexes and counts are those of the rows"
    )


def test_an_operator_without_such_a_key_keeps_all(ckpt: Ckpt, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text('{"key": 2}\n\n{"key_key": "4"}\n{"key": null}\n')
    run = ckpt("rewrite", SAMPLES / "dedup-aggregation-hdfs-4.2", tmp_path / "new", "--drop-keys", file, "-o", "json")
    assert run.exit_code == 0, run.stderr
    assert [unit["dropped"] for unit in run.json()["units"]] == [None, 2]
    assert run.json()["unseen_keys"] == [{"key": None}]


def test_a_page_names_keys_that_no_row_has(ckpt: Ckpt, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text('{"key": 2}\n{"key": 222}\n{"key_key": 2}\n')
    run = ckpt("rewrite", SAMPLES / "aggregation-hdfs-4.2", tmp_path / "new", "--drop-keys", file)
    page = " ".join(run.stdout.split())
    assert "6 rows, and 1 row left out" in page
    assert '1 of the 3 keys to be left out is in no row: - {"key": "222"}' in page


@pytest.mark.parametrize(
    ("kind", "values", "text", "left_out"),
    [
        ("double", [float("nan"), 0.0, -0.0, None], "NaN", [0]),
        ("float", [float("nan"), 0.0, -0.0, None], "-0.0", [1, 2]),
        ("float", [0.1, 0.1000001], "0.1", [0]),
        ("double", [float("inf"), float("-inf")], "-Infinity", [1]),
        ("date", [2**31 - 1, -(2**31), 0, None], "1970-01-01", [2]),
        ("timestamp", [2**63 - 1, -(2**63), 0, None], "1970-01-01T01:00:00+01:00", [2]),
        ("timestamp_ntz", [2**63 - 1, 0, None], "1970-01-01", [1]),
        ("time(6)", [1_000, None], None, [1]),
        (array_of("long"), [[1], None, []], None, [1]),
        ("boolean", [True, False, None], "false", [1]),
        ("binary", [b"\0\xff", b""], "AP8=", [0]),
        ("string", ["e\u0301", "\u00e9", "\u00e9 "], "\u00e9", [1]),
    ],
)
def test_a_value_is_left_out_as_spark_compares_it(
    kind: Json, values: list[Any], text: str | None, left_out: list[int]
) -> None:
    column = pa.array(values, arrow_type(kind))
    found = choose_dropping([("k", kind)], [{"k": text}]).find_left_out(column, [("k", kind, column)], 0)
    assert found.nonzero()[0].tolist() == left_out


def test_a_column_that_may_be_either_of_two_is_refused() -> None:
    kinds = [("a", struct_of([("b", "long")])), ("a_b", "long"), ("c", "long")]
    with pytest.raises(ckpt.UsageError, match="two key columns are called a_b"):
        choose_dropping(kinds, [{"a_b": "1"}])
    assert choose_dropping(kinds, [{"c": "1"}]).values


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"user": 1}', "no operator has the columns user in its key; there are operator 0 (stateStoreSave): key"),
        ('{"key": "x"}', "--drop-keys: x is not a valid long for key"),
        ('{"key": NaN}', "NaN is not a valid long for key"),
        ('{"key": 1, "key_key": 2}', "a key has two values of key"),
        ('{"key": 1, "key": 2}', "line 1 is not a JSON object"),
        ("key=1", "line 1 is not a JSON object of columns and values"),
        ('{"key": 1}\n{}', "line 2 is not a JSON object"),
        ("", "it has no key"),
        (None, "No such file or directory"),
    ],
)
def test_a_file_that_says_no_keys_is_refused(text: str | None, said: str, ckpt: Ckpt, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    if text is not None:
        file.write_text(text)
    run = ckpt("rewrite", SAMPLES / "aggregation-hdfs-4.2", tmp_path / "new", "--drop-keys", file)
    assert run.exit_code == 2
    assert said in run.refusal()
    assert not (tmp_path / "new").exists()
