"""State without a schema, as Spark before 3.1 wrote it: read and rewritten with one that is stated."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.errors import CkptError, Undecodable, UsageError
from ckpt.formats.types import struct_of
from ckpt.query.description import DescribedFamily, DescribedOperator, DescribedStore, QueryDescription
from ckpt.state.reading.choose import StateDamaged
from ckpt.versions import Spark
from tests.conftest import Ckpt, CopyOf
from tests.support.places import GOLDENS, SAMPLES

COUNTS = {"key": {"value": "integer"}, "value": {"value": "integer", "count": "long"}}
OLD = GOLDENS / "checkpoint-version-2.3.1-streaming-aggregate-state-format-1"
OLD_JOIN = GOLDENS / "checkpoint-version-2.4.0-streaming-join"
needs_golden = pytest.mark.skipif(not OLD.is_dir(), reason="there is no ../shared/golden")


def stated(folder: Path, schemas: Any) -> str:
    """A file that says the schemas of the only operator."""
    path = folder / "schema.json"
    path.write_text(json.dumps(schemas if isinstance(schemas, list) else {"0": {"default": schemas}}))
    return str(path)


@needs_golden
def test_counts_of_spark_2_are_read_exported_and_rewritten(tmp_path: Path, ckpt: Ckpt) -> None:
    """Spark's own test of that checkpoint had written the values 3, 2 and 3."""
    schema = stated(tmp_path, COUNTS)
    shown = ckpt("state", "show", OLD, "--schema", schema, "-o", "json").json()
    assert [(row["key_value"], row["value_count"]) for row in shown["rows"]] == [(3, 2), (2, 1)]
    exported = ckpt("export-state", OLD, "--to", tmp_path / "export", "--schema", schema)
    assert exported.exit_code == 0
    new = tmp_path / "new"
    made = ckpt("rewrite", OLD, new, "--provider", "rocksdb", "--schema", schema)
    assert made.exit_code == 0
    assert "It is unknown whether Spark can read its rows" in " ".join(made.stdout.split())
    assert ckpt("state", "show", new, "--schema", schema, "-o", "json").json()["rows"] == shown["rows"]
    assert ckpt("state", "show", new).exit_code == 3


@needs_golden
def test_a_described_query_states_them_in_the_format_of_the_offsets(tmp_path: Path) -> None:
    """Spark of today keeps the counts alone, that of 2.3 repeated the key before them."""
    family = DescribedFamily("default", struct_of([("value", "integer")]), struct_of([("count", "long")]))
    operator = DescribedOperator("stateStoreSave", (DescribedStore("default", (family,)),))
    query = QueryDescription(Spark.V4_2, "complete", (), (operator,), None, None, {})
    query.write(str(tmp_path / "query.json"))
    of_columns = ckpt.read_state_arrow(str(OLD), schema=stated(tmp_path, COUNTS))
    assert ckpt.read_state_arrow(str(OLD), schema=str(tmp_path / "query.json")) == of_columns


SIDES = {
    side: {"key": {"field0": "integer"}, "value": {f"{side}Id": "integer", f"{side}Time": "timestamp"}}
    for side in ("left", "right")
}


@needs_golden
def test_a_join_of_spark_2_is_read_exported_and_rewritten(tmp_path: Path, ckpt: Ckpt) -> None:
    """Of its sides, or as a query of today that describes them; Spark's own test had joined 1 to 5 with 2 and 4."""
    stores = [
        DescribedStore(f"{side}-{name}", (DescribedFamily("default", struct_of(key), struct_of(value)),))
        for side in SIDES
        for name, key, value in (
            ("keyToNumValues", [("field0", "integer")], [("value", "long")]),
            (
                "keyWithIndexToValue",
                [("field0", "integer"), ("index", "long")],
                [(f"{side}Id", "integer"), (f"{side}Time", "timestamp"), ("matched", "boolean")],
            ),
        )
    ]
    operator = DescribedOperator("symmetricHashJoin", tuple(stores))
    query = QueryDescription(Spark.V4_2, "append", (), (operator,), None, None, {})
    query.write(str(tmp_path / "query.json"))
    schema, new = tmp_path / "schema.json", tmp_path / "new"
    schema.write_text(json.dumps({"0": SIDES}))
    for option in (("--schema", schema), ("--expect", tmp_path / "query.json")):
        shown = ckpt("state", "show", OLD_JOIN, "--side", "right", *option, "-o", "json").json()
        assert [(row["key_field0"], row["value_rightId"]) for row in shown["rows"]] == [(4, 4), (2, 2)]
    exported = ckpt("export-state", OLD_JOIN, "--to", tmp_path / "export", "--all-units", "--expect", schema)
    assert exported.exit_code == 0
    made = ckpt("rewrite", OLD_JOIN, new, "--provider", "rocksdb", "--schema", schema)
    assert made.exit_code == 0
    assert "It is unknown whether Spark can read its rows (CKPT319)" in " ".join(made.stdout.split())
    again = ckpt("state", "show", new, "--side", "right", "-o", "json").json()
    assert again["rows"] == shown["rows"], "by the schemas that were written into it"
    codes = [finding["code"] for finding in ckpt("inspect", new, "-o", "json").json()["findings"]]
    assert "CKPT319" in codes
    assert "CKPT321" not in codes
    refused = ckpt("rewrite", OLD_JOIN, tmp_path / "none", "--plan")
    assert refused.exit_code == 3


@needs_golden
@pytest.mark.parametrize(
    "value", [{"count": "long"}, {"value": "integer", "count": "long", "sum": "long"}, {"value": "string", "n": "long"}]
)
def test_other_columns_than_those_stored_are_refused(value: dict[str, str], tmp_path: Path) -> None:
    schema = stated(tmp_path, {**COUNTS, "value": value})
    with pytest.raises(Undecodable, match=r"the given schema: .*value"):
        ckpt.read_state_arrow(str(OLD), schema=schema)


def test_it_is_read_as_with_its_own(copy_of: CopyOf, tmp_path: Path) -> None:
    old = copy_of("aggregation-hdfs-3.5")
    (store,) = ckpt.open_checkpoint(str(old)).operators[0].stores
    shutil.rmtree(old / "state/0/0/_metadata")
    with pytest.raises(StateDamaged, match=r"or provide it"):
        ckpt.read_state_arrow(str(old))
    schema = stated(tmp_path, {"key": store.key_schema, "value": store.value_schema})
    expected = ckpt.read_state_arrow(str(SAMPLES / "aggregation-hdfs-3.5"))
    assert ckpt.read_state_arrow(str(old), schema=schema) == expected
    with pytest.raises(UsageError, match="has its own state schema"):
        ckpt.read_state_arrow(str(SAMPLES / "aggregation-hdfs-3.5"), schema=schema)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ({"k": "long"}, {"count": "long"}, "a row of value has 2 columns, and its schema 1: count"),
        ({"k": "string"}, {"count": "long", "sum": "long"}, "key.k is of another type than its schema says"),
        ({"k": "long"}, {"count": "long", "sum": "string"}, "value.sum is of another type than its schema says"),
    ],
)
def test_an_export_names_what_does_not_fit_and_is_not_left_to_spark(
    key: dict[str, str], value: dict[str, str], says: str, copy_of: CopyOf, tmp_path: Path
) -> None:
    old = copy_of("aggregation-hdfs-3.5")
    shutil.rmtree(old / "state/0/0/_metadata")
    schema = stated(tmp_path, {"key": key, "value": value})
    with pytest.raises(Undecodable, match=says):
        ckpt.export_state(str(old), to=str(tmp_path / "out"), schema=schema)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "it is not JSON"),
        ("[]", "neither a query.json nor schemas"),
        ('{"0": {"default": {"key": {"k": "long"}}}}', "neither a query.json nor schemas"),
        ('{"0": {"default": {"key": {"k": "bigint"}, "value": {"n": "long"}}}}', "Spark has no type"),
    ],
)
def test_a_file_that_states_none_is_refused(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(text)
    with pytest.raises(CkptError, match=says):
        ckpt.read_state_arrow(str(SAMPLES / "aggregation-hdfs-3.5"), schema=str(tmp_path / "schema.json"))
