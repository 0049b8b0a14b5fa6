"""State of functions of users carried over without Spark: names, types and fields (with Spark: ``columns.py``)."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.formats.types import struct_of
from ckpt.inspection.preflight import PlannedStart, judge_start
from ckpt.model import Json
from ckpt.query.compare_checkpoint import list_families
from ckpt.query.description import DescribedFamily, DescribedOperator, DescribedSource, DescribedStore, QueryDescription
from ckpt.versions import Spark
from tests.support.places import SAMPLES

VARIABLES, GROUPS = "tws-rocksdb-4.2", "pandas-with-state-changelog-4.2"


def describe(sample: str, names: Mapping[str, str] = {}, values: Mapping[str, Json] = {}) -> QueryDescription:
    """Describe the query of a sample with other names of variables, and other schemas of values by old names."""
    (operator,) = ckpt.open_checkpoint(str(SAMPLES / sample)).operators
    stores = []
    for store in operator.stores:
        families = [_change(family, names, values) for family in list_families(store)]
        stores.append(DescribedStore(store.name, tuple(families), store.prefix_columns, 3 if operator.variables else 2))
    properties: Any = json.loads(json.dumps(operator.properties)) or {}
    for variable in properties.get("stateVariables", ()):
        variable["stateName"] = names.get(variable["stateName"], variable["stateName"])
    own = DescribedOperator(
        str(operator.name),
        tuple(stores),
        {names.get(variable.name, variable.name): variable.kind for variable in operator.variables},
        properties=properties,
        metadata_version=2 if operator.variables else 1,
    )
    return QueryDescription(Spark.V4_2, "append", (DescribedSource("rate-micro-batch"),), (own,), None, None, {})


def _change(family: DescribedFamily, names: Mapping[str, str], values: Mapping[str, Json]) -> DescribedFamily:
    name = family.name
    for old, new in names.items():
        if name == old or (name.startswith("$") and name.endswith(f"_{old}")):
            name = f"{name.removesuffix(old)}{new}"
    return replace(family, name=name, value=values.get(family.name, family.value))


@pytest.fixture
def variables(tmp_path: Path) -> str:
    """Return a checkpoint whose metadata names schema files where they are."""
    ckpt.copy(str(SAMPLES / VARIABLES), str(tmp_path / "old"))
    return str(tmp_path / "old")


def rows_of(checkpoint: str, **part: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = ckpt.read_state_arrow(checkpoint, **part).to_pylist()
    return sorted(rows, key=str)


@pytest.mark.slow
def test_variables_of_every_kind_get_other_names_and_keep_their_rows(variables: str, tmp_path: Path) -> None:
    names = {name: f"{name}Too" for name in ("recent", "last", "recentTtl", "parity", "parityTtl", "rows")}
    new = str(tmp_path / "new")
    words = [f"{old}={name}" for old, name in names.items()]

    plan, _ = ckpt.evolve(variables, new, to=describe(VARIABLES, names), map_column=words)

    assert (plan.refused, plan.verdict) == (None, "unknown")
    for old, name in names.items():
        assert rows_of(new, variable=name) == rows_of(variables, variable=old) != []
    assert rows_of(new, timers=True) == rows_of(variables, timers=True) != []
    assert ckpt.state_verify(new).damages == ()
    assert ckpt.inspect(new).sound


@pytest.mark.slow
def test_fields_of_values_and_lists_change_in_the_rows(variables: str, tmp_path: Path) -> None:
    last = struct_of([("seen", "timestamp"), ("value", "long"), ("more", "string"), ("given", "integer")])
    values = {
        "last": struct_of([("value", last), ("ttlExpirationMs", "long")]),
        "recent": struct_of([("other", "double"), ("value", "long")]),
    }
    new, query = str(tmp_path / "new"), describe(VARIABLES, values=values)
    default = {"last.given": "7"}

    plan, _ = ckpt.evolve(variables, new, to=query, default=default)
    assert plan.refused is not None
    assert "last.more is new, and NULL in the existing state" in str(plan.refused)
    plan, _ = ckpt.evolve(variables, new, to=query, default=default, accept_from_now_on=True)
    assert plan.refused is None

    before, after = rows_of(variables, variable="last"), rows_of(new, variable="last")
    added = {"value_value_more": None, "value_value_given": 7}
    assert [*after[0]] == ["key_key", "value_value_seen", "value_value_value", *added, "value_ttlExpirationMs"]
    assert sorted(before, key=key_of) == [{name: row[name] for name in before[0]} for row in sorted(after, key=key_of)]
    assert all(row.items() >= added.items() for row in after)
    lists = (ckpt.read_state_arrow(each, variable="recent") for each in (variables, new))
    old_list, new_list = (
        [list(map(str, table[name])) for name in ("key_key", "list_element_value")] for table in lists
    )
    assert old_list == new_list
    assert ckpt.read_state_arrow(new, variable="recent")["list_element_other"].null_count == len(new_list[0]) > 0
    assert ckpt.state_verify(new).damages == ()


def key_of(row: Mapping[str, Any]) -> str:
    return str(row["key_key"])


@pytest.mark.parametrize(
    ("names", "values", "words", "why"),
    [
        ({"rows": "total"}, {}, (), "variable total may be rows of the state under another name"),
        (
            {"rows": "total", "recent": "new"},
            {},
            ("recent=total", "-=new"),
            "is a ValueState, but a ListState in the state",
        ),
        ({"rows": "total"}, {}, ("nothing=total",), "nothing is not a variable in the state"),
        ({}, {"rows": struct_of([("rows", "string")])}, (), "rows.rows is string, but long in the state"),
        ({}, {"rows": struct_of([("n", "long"), ("m", "long")])}, (), "rows.n may be rows.rows of the state"),
        ({}, {"rows": struct_of([("n", "long"), ("m", "long")])}, ("rows.x=rows.n",), "rows.x is not in the state"),
        ({}, {}, ("rows=recent",), "two variables would get the rows of the same one"),
    ],
)
def test_nothing_is_guessed(
    variables: str,
    tmp_path: Path,
    names: Mapping[str, str],
    values: Mapping[str, Json],
    words: tuple[str, ...],
    why: str,
) -> None:
    plan, _ = ckpt.evolve(variables, str(tmp_path / "new"), to=describe(VARIABLES, names, values), map_column=words)
    assert why in str(plan.refused)
    assert not (tmp_path / "new").exists()


def test_the_state_of_groups_has_no_timeout_where_none_was_kept(tmp_path: Path) -> None:
    (operator,) = ckpt.open_checkpoint(str(SAMPLES / GROUPS)).operators
    (family,) = list_families(operator.stores[0])
    fields: Any = json.loads(json.dumps(family.value))["fields"]
    without: Json = {"type": "struct", "fields": [field for field in fields if field["name"] == "groupState"]}
    first, second = str(tmp_path / "first"), str(tmp_path / "second")

    plan, _ = ckpt.evolve(str(SAMPLES / GROUPS), first, to=describe(GROUPS, values={"default": without}))
    assert plan.refused is None
    plan, _ = ckpt.evolve(first, second, to=describe(GROUPS), accept_from_now_on=True)
    assert plan.refused is None

    before, after = rows_of(str(SAMPLES / GROUPS)), rows_of(second)
    (timeout,) = [name for name in before[0] if "timeout" in name.lower()]
    assert {row[timeout] for row in after} == {-1}
    kept = [{name: value for name, value in row.items() if name != timeout} for row in after]
    assert kept == sorted(({name: row[name] for name in row if name != timeout} for row in before), key=str)


def test_a_field_of_groups_with_another_name_alone_keeps_its_values(tmp_path: Path) -> None:
    (operator,) = ckpt.open_checkpoint(str(SAMPLES / GROUPS)).operators
    renamed = json.loads(json.dumps(operator.stores[0].value_schema).replace('"last"', '"newest"'))

    ckpt.evolve(str(SAMPLES / GROUPS), str(tmp_path / "new"), to=describe(GROUPS, values={"default": renamed}))

    before, after = json.dumps(rows_of(str(SAMPLES / GROUPS))), json.dumps(rows_of(str(tmp_path / "new")))
    assert (after, "newest" in after) == (before.replace("last", "newest"), True)


def test_preflight_names_a_variable_that_may_have_another_name() -> None:
    checkpoint = ckpt.open_checkpoint(str(SAMPLES / VARIABLES))

    def list_codes(query: QueryDescription) -> list[str]:
        readiness = judge_start(checkpoint, PlannedStart(None, query=query))
        return [rated.finding.diagnosis.code for rated in readiness.warnings]

    assert list_codes(describe(VARIABLES)) == []
    assert list_codes(describe(VARIABLES, {"rows": "total"})) == ["CKPT485"]


SHOWN = "value_groupState_rows"


@pytest.mark.parametrize(
    ("kinds", "words", "why", "kept"),
    [
        (("long", "string", "string"), (), None, ("", "_2")),
        (("long",), (), None, ("",)),
        (("string", "long"), (), "rows is string, but long in the state", ()),
        (("long", "long"), ("-=rows_2",), None, ("",)),
        (("long", "long", "string"), (f"-={SHOWN}_2", f"{SHOWN}_2={SHOWN}_3"), None, ("", "_2 _3")),
    ],
)
def test_fields_with_one_name_are_matched_by_their_places(
    tmp_path: Path, kinds: tuple[str, ...], words: tuple[str, ...], why: str | None, kept: tuple[str, ...]
) -> None:
    """As Spark takes them; by the names that `ckpt state show` gives them a person says otherwise."""
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    shutil.copytree(SAMPLES / GROUPS, old)
    schema = tmp_path / "old/state/0/0/_metadata/schema"
    schema.write_bytes(schema.read_bytes().replace(b'"last"', b'"rows"'))
    schema.with_name(".schema.crc").unlink()
    fields = struct_of([("rows", kind) for kind in kinds])
    timeout: Json = {"name": "timeoutTimestamp", "type": "long", "nullable": False, "metadata": {}}
    state: Json = {"name": "groupState", "type": fields, "nullable": True, "metadata": {}}
    query = describe(GROUPS, values={"default": {"type": "struct", "fields": [state, timeout]}})

    plan, _ = ckpt.evolve(old, new, to=query, map_column=words, accept_from_now_on=True)
    if why is not None:
        assert why in str(plan.refused)
        return
    assert (plan.refused, plan.verdict) == (None, "unknown")
    assert any("names of its fields repeat" in str(part.why) for part in plan.operators[0].parts)
    before, after = rows_of(old), rows_of(new)
    for names in kept:
        was, _, now = names.partition(" ")
        assert {row[SHOWN + (now or was)] for row in after} == {row[SHOWN + was] for row in before}
    assert {row[name] for row in after for name in row if name.startswith(SHOWN)} >= {None} or len(kept) == len(kinds)
    text, _ = ckpt.evolve(old, str(tmp_path / "other"), to=named(query, "more"), accept_from_now_on=True)
    assert "the old field at position 2 is not rows: map it with" in str(text.refused)


def named(query: QueryDescription, first: str) -> QueryDescription:
    """Put a field of another name in front of two others."""
    fields = struct_of([(first, "double"), ("rows", "long"), ("rows", "string")])
    state: Json = {"name": "groupState", "type": fields, "nullable": True, "metadata": {}}
    return describe(GROUPS, values={"default": {"type": "struct", "fields": [state]}})
