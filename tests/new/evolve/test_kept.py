"""State that stays as it is while its description changes, or that a query needs no longer."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.formats.operators import OperatorName
from ckpt.formats.types import fields_of
from ckpt.inspection.preflight import PlannedStart, judge_start
from ckpt.query.compare_checkpoint import find_misfit
from ckpt.query.description import DescribedOperator, QueryDescription
from ckpt.types import EvolvePlan
from tests.new.evolve.record import describe_operators
from tests.new.evolve.test_fields import describe, rows_of
from tests.support.places import SAMPLES


def evolve(old: str, new: Path, query: QueryDescription) -> EvolvePlan:
    same = [f"{number}={number}" for number in range(len(query.sources))]
    plan, _ = ckpt.evolve(old, str(new), to=query, jobs=1, map_source=same)
    return plan


@pytest.mark.parametrize("sample", ["windowed-aggregation-hdfs-4.2", "aggregation-format2-4.2", "dedup-hdfs-4.0"])
def test_a_query_that_keeps_no_state_any_more_starts(sample: str, tmp_path: Path) -> None:
    """The logs of the new checkpoint do not look as if state was lost: no watermark rises, no commit names state."""
    query = replace(describe(sample), operators=())
    plan = evolve(str(SAMPLES / sample), tmp_path / "new", query)

    assert (plan.refused, plan.written, plan.verdict.value) == (None, True, "full")
    new = ckpt.open_checkpoint(str(tmp_path / "new"))
    assert new.stateful is False
    assert judge_start(new, PlannedStart(query=query)).go


def may_be_null(operator: DescribedOperator) -> DescribedOperator:
    """Let every column of the values be NULL."""
    stores = []
    for store in operator.stores:
        texts = (json.dumps(family.value).replace('"nullable": false', '"nullable": true') for family in store.families)
        pairs = zip(store.families, map(json.loads, texts), strict=True)
        stores.append(replace(store, families=tuple(replace(family, value=value) for family, value in pairs)))
    return replace(operator, stores=tuple(stores))


@pytest.mark.parametrize("sample", ["join-changelog-4.2", "aggregation-hdfs-4.2"])
def test_a_column_that_may_be_null_now_keeps_its_rows(sample: str, tmp_path: Path) -> None:
    """As of an inner join that becomes an outer one; Spark compares the schemas, which are written anew."""
    old: Any = ckpt.open_checkpoint(str(SAMPLES / sample))
    query = describe(sample)
    sources = query.sources * len(old.offsets.newest.sources)
    query = replace(query, operators=tuple(map(may_be_null, query.operators or ())), sources=sources)
    misfit = find_misfit(query, old)
    assert misfit is not None
    assert misfit.diagnosis.code == "CKPT436"

    plan = evolve(old.uri, tmp_path / "new", query)
    assert (plan.refused, [part.change.value for part in plan.operators]) == (None, ["changed"])
    assert find_misfit(query, ckpt.open_checkpoint(str(tmp_path / "new"))) is None
    new: Any = ckpt.open_checkpoint(str(tmp_path / "new"))
    if sample.startswith("join"):  # Spark infers at each start which columns are never NULL: none may be fixed
        assert all(field["nullable"] for store in new.operators[0].stores for field in store.value_schema["fields"])
    parts = [{"operator": 0, "store": store.name} for store in old.operators[0].stores]
    for part in parts:
        assert rows_of(str(tmp_path / "new"), **part) == rows_of(old.uri, **part)


def test_another_interface_and_output_mode_keep_all_variables(tmp_path: Path) -> None:
    ckpt.copy(str(SAMPLES / "tws-rocksdb-4.2"), str(tmp_path / "old"))
    query = describe("tws-rocksdb-4.2")
    (operator,) = query.operators or ()
    assert operator.name == OperatorName.TRANSFORM_IN_PANDAS
    rows = replace(operator, name=str(OperatorName.TRANSFORM_IN_PYTHON), output_mode="Append")
    before: Any = ckpt.open_checkpoint(str(tmp_path / "old")).operators[0]
    changed = replace(rows, output_mode="Append" if before.properties["outputMode"] == "Update" else "Update")
    assert find_misfit(replace(query, operators=(changed,)), ckpt.open_checkpoint(str(tmp_path / "old"))) is not None

    plan = evolve(str(tmp_path / "old"), tmp_path / "new", replace(query, operators=(changed,)))
    assert (plan.refused, [part.change.value for part in plan.operators]) == (None, ["same"])
    after: Any = ckpt.open_checkpoint(str(tmp_path / "new")).operators[0]
    assert (after.name, after.properties["outputMode"]) == (changed.name, changed.output_mode)
    assert after.variables == before.variables


def test_a_time_mode_with_timers_is_refused(tmp_path: Path) -> None:
    ckpt.copy(str(SAMPLES / "tws-event-time-changelog-4.2"), str(tmp_path / "old"))
    query = describe("tws-event-time-changelog-4.2")
    operators = tuple(replace(each, time_mode="ProcessingTime") for each in query.operators or ())
    plan = evolve(str(tmp_path / "old"), tmp_path / "new", replace(query, operators=operators))
    assert "time mode ProcessingTime, but EventTime" in str(plan.refused)


def test_spark_itself_changes_fields_of_avro(tmp_path: Path) -> None:
    ckpt.copy(str(SAMPLES / "tws-avro-changelog-4.2"), str(tmp_path / "old"))
    old: Any = ckpt.open_checkpoint(str(tmp_path / "old"))
    family = next(own for own in old.operators[0].stores[0].column_families if own.name[0] != "$")
    fields = family.value_schema["fields"]
    more: Any = {
        "type": "struct",
        "fields": [*fields, {"name": "more", "type": "string", "nullable": True, "metadata": {}}],
    }
    query = describe("tws-avro-changelog-4.2", values={family.name: more})
    assert find_misfit(query, old) is None
    plan = evolve(old.uri, tmp_path / "new", query)
    assert (plan.refused, plan.needed, plan.written) == (None, False, False)
    assert not (tmp_path / "new").exists()
    assert "NOTHING TO CHANGE" in str(plan)
    other: Any = {"type": "struct", "fields": [{**fields[0], "type": "boolean"}]}
    narrowed = describe("tws-avro-changelog-4.2", values={family.name: other})
    assert find_misfit(narrowed, old) is not None
    assert "Avro does not read" in str(evolve(old.uri, tmp_path / "other", narrowed).refused)


def test_the_reasons_of_all_operators_come_at_once(tmp_path: Path) -> None:
    sample = str(SAMPLES / "dedup-aggregation-hdfs-4.2")
    more = {"name": "more", "type": "string", "nullable": True, "metadata": {}}
    operators = []
    for operator in describe_operators(sample):
        (store,) = operator.stores
        (family,) = store.families
        key: Any = {"type": "struct", "fields": [*(fields_of(family.key) or ()), more]}
        store = replace(store, families=(replace(family, key=key),))
        operators.append(replace(operator, stores=(store,)))
    query = replace(describe("aggregation-hdfs-4.2"), operators=tuple(operators))
    plan = evolve(sample, tmp_path / "new", query)
    assert all(f"operator {number} (" in str(plan.refused) for number in range(2))
    assert plan.begins_empty is not None
    assert [*plan.begins_empty.map_operator] == ["-=0", "-=1"]
