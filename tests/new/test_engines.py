"""Whoever makes state of a new checkpoint, one process, several or Spark's executors: it is the same, or nothing."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from pyarrow import parquet

import ckpt
from ckpt.errors import CkptError, UsageError
from ckpt.query.description import DescribedBuffer
from tests.conftest import CopyOf
from tests.new.evolve.columns import COLUMN_CASES
from tests.new.evolve.record import ask, check
from tests.new.evolve.running import Answering
from tests.new.evolve.test_command import COUNT, SUM, describe_aggregates
from tests.new.fill.test_import_state import AGGREGATION, exported, frames
from tests.new.rewrite.continuing import rows, state
from tests.support.places import SAMPLES
from tests.support.spark.live import Here

MORE, NONE = [("key", "long"), ("more", "string")], list[tuple[str, str]]()
Make: TypeAlias = Callable[..., Any]


def rewrite(sample: str | Path, new: Path, **form: Any) -> ckpt.types.Rewrite:
    return ckpt.rewrite(str(SAMPLES / sample), str(new), **form)


def import_state(sample: str, new: Path, **form: Any) -> ckpt.types.Rewrite:
    export = new.with_name("export")
    if not export.exists():
        exported(SAMPLES / sample, export)
    return ckpt.import_state(str(export), str(new), like=str(SAMPLES / sample), **form)


def evolve(checkpoint: Path, new: Path, key: list[tuple[str, str]], engine: Any) -> ckpt.types.EvolvePlan:
    """Add an aggregate, give the others another order and the rows another key."""
    describe_aggregates(new.with_suffix(".old"), COUNT, SUM)
    describe_aggregates(new.with_suffix(".new"), SUM, DescribedBuffer("max", "long", True), COUNT, key=key)
    plan, _ = ckpt.evolve(
        str(checkpoint),
        str(new),
        to=str(new.with_suffix(".new")),
        from_query=str(new.with_suffix(".old")),
        engine=engine,
        default={"more": "x"} if key == MORE else {},
        accept_from_now_on=True,
    )
    return plan


def list_files(folder: Path) -> list[str]:
    """List the files of a checkpoint, without the ids that are new each time."""
    paths = (str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    return sorted(re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", path) for path in paths)


def check_alike(make: Make, sample: str, form: dict[str, Any], folder: Path, **engine: Any) -> None:
    """What is made so, and what this process makes alone."""
    if "drop_keys" in form:
        key = dict(next(key for unit in rows(SAMPLES / sample).values() for key, _ in unit if key))
        form = {**form, "drop_keys": [key, dict.fromkeys(key, "-1")]}
    here, there = make(sample, folder / "here", jobs=1, **form), make(sample, folder / "there", **engine, **form)
    assert there.written
    assert rows(folder / "there") == rows(folder / "here")
    assert [(unit.rows, unit.dropped) for unit in there.units] == [(unit.rows, unit.dropped) for unit in here.units]
    leaves_out = {"where", "drop_keys"} & form.keys()
    assert there.unseen == here.unseen == tuple(form.get("drop_keys", ())[1:])
    if leaves_out:
        assert all(sum(unit.rows or 0 for unit in made.units) for made in (here, there))
        assert sum(unit.dropped or 0 for unit in there.units) > 0
    else:
        assert state(folder / "there") == state(SAMPLES / sample)
    assert ckpt.state_verify(str(folder / "there")).damages == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "sample", "form"),
    [
        (rewrite, "aggregation-hdfs-4.2", {"where": "value_count % 2 = 0 AND key_key <> 3"}),
        (rewrite, "join-v3-changelog-4.2", {"where": "key_field0 % 3 = 0", "partitions": 3}),
        (rewrite, "tws-format2-4.3", {"where": "key_key % 2 = 1", "partitions": 3}),
        (rewrite, "aggregation-hdfs-4.2", {"drop_keys": (), "provider": "rocksdb", "partitions": 3}),
        (rewrite, "join-v3-changelog-4.2", {"drop_keys": ()}),
        (rewrite, "tws-format2-4.3", {"drop_keys": (), "partitions": 3}),
        (import_state, "aggregation-hdfs-4.2", {"partitions": 4}),
    ],
)
def test_processes_make_what_one_does(
    make: Make, sample: str, form: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("rewrite", "fill"):
        monkeypatch.setattr(f"ckpt.new.{package}.state._WORTH_A_PROCESS", 1)
    check_alike(make, sample, form, tmp_path, jobs=2)
    with pytest.raises(UsageError, match="`jobs`"):
        make(sample, tmp_path / "none", jobs=0)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("make", "sample", "form"),
    [
        (rewrite, "aggregation-hdfs-4.2", {"provider": "rocksdb", "partitions": 5}),
        (rewrite, "join-changelog-4.2", {"provider": "hdfs"}),
        (rewrite, "join-v3-changelog-4.2", {"format_version": 2}),
        (rewrite, "limit-hdfs-4.2", {"provider": "rocksdb", "partitions": 3}),
        (rewrite, "tws-format2-4.3", {"partitions": 7}),
        (rewrite, "tws-rocksdb-4.2", {"drop_keys": (), "partitions": 3}),
        (rewrite, "aggregation-hdfs-4.2", {"where": "value_count > 13 AND key_key <> 3", "partitions": 3}),
        (import_state, "aggregation-hdfs-4.2", {"provider": "rocksdb", "partitions": 5}),
        (import_state, "session-window-changelog-4.2", {"partitions": 2}),
        (import_state, "join-changelog-4.2", {"provider": "hdfs"}),
        (import_state, "join-v3-changelog-4.2", {"partitions": 3}),
        (import_state, "limit-hdfs-4.2", {"provider": "rocksdb", "partitions": 3}),
        (import_state, "tws-format2-4.3", {"partitions": 7}),
    ],
)
def test_executors_make_what_one_process_does(
    make: Make, sample: str, form: dict[str, Any], by: Any, tmp_path: Path
) -> None:
    check_alike(make, sample, form, tmp_path, engine=by)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("sample", "key"),
    [
        ("aggregation-hdfs-4.2", [("key", "long")]),
        ("aggregation-changelog-4.2", MORE),
        ("aggregation-format2-4.2", NONE),
    ],
    ids=["columns", "keys that move", "groups that merge"],
)
def test_executors_evolve_as_one_machine_does(sample: str, key: list[tuple[str, str]], by: Any, tmp_path: Path) -> None:
    for name, who in (("here", None), ("there", by)):
        plan = evolve(SAMPLES / sample, tmp_path / name, key, who)
        assert (plan.written, plan.refused) == (True, None)
    assert rows(tmp_path / "there") == rows(tmp_path / "here")
    assert list_files(tmp_path / "there") == list_files(tmp_path / "here")
    assert ckpt.state_verify(str(tmp_path / "there")).damages == ()


@pytest.mark.spark
def test_the_changed_query_continues(by: Any, spark: Any, tmp_path: Path) -> None:
    case = next(case for case in COLUMN_CASES if case.name == "a key column and an aggregate")
    minor = ".".join(spark.version.split(".")[:2])
    check(case, ask(Here(spark, Answering().answer), case, minor, tmp_path / "case", by))


@pytest.mark.spark
@pytest.mark.parametrize(
    "make",
    [
        *(partial(rewrite, partitions=partitions) for partitions in (2, 5)),
        *(partial(evolve, key=key) for key in ([("key", "long")], MORE)),
    ],
    ids=["fewer", "more", "made", "divided"],
)
def test_damaged_state_is_refused_and_nothing_is_left(make: Make, by: Any, copy_of: CopyOf, tmp_path: Path) -> None:
    """An executor's error is reported like the driver's own, and files that other tasks have written are removed."""
    checkpoint = copy_of("aggregation-hdfs-4.2")
    file = checkpoint / "state/0/1/8.snapshot"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(CkptError, match=r"state/0/1/8\.snapshot"):
        make(checkpoint, tmp_path / "new", engine=by)
    assert not (tmp_path / "new").exists()


@pytest.mark.spark
@pytest.mark.parametrize("twice", [True, False])
def test_a_row_that_is_refused_is_named_and_nothing_is_left(twice: bool, by: Any, tmp_path: Path) -> None:
    export = exported(AGGREGATION, tmp_path / "export")
    file = max(export.rglob("*.parquet"), key=lambda path: parquet.read_metadata(path).num_rows)
    table = parquet.read_table(file)
    again, without = pa.concat_tables([table, table.slice(0, 1)]), table.drop_columns([table.column_names[-1]])
    parquet.write_table(again if twice else without, file)
    said = set()
    for engine in (None, by):
        with pytest.raises(CkptError) as refusal:
            ckpt.import_state(str(export), str(tmp_path / "new"), like=str(AGGREGATION), partitions=4, engine=engine)
        said.add(str(refusal.value))
        assert not (tmp_path / "new").exists()
    (text,) = said
    assert file.name in text
    if twice:
        assert f"row {len(again)}, " in text
        assert text.endswith("its key is that of row 1")


@pytest.mark.spark
def test_dataframes_stay_where_they_are(by: Any, spark: Any, tmp_path: Path) -> None:
    """One unit's rows are in a DataFrame, the others' in memory of the driver."""
    from pyspark.sql.pandas.types import from_arrow_schema

    old = SAMPLES / "tws-rocksdb-4.2"
    given = frames(old.name, "flat")
    label = max(given, key=lambda name: given[name].num_rows)
    spread = spark.createDataFrame(given[label].to_pandas(), from_arrow_schema(given[label].schema)).repartition(3)
    made = ckpt.write_state({**given, label: spread}, str(tmp_path / "new"), like=str(old), partitions=3, engine=by)
    assert made.written
    assert state(tmp_path / "new") == state(old)
    planned = ckpt.write_state({**given, label: spread}, str(tmp_path / "x"), like=str(old), engine=by, partitions=3)
    assert [unit.rows for unit in planned.units] == [unit.rows for unit in made.units]


@pytest.mark.spark
def test_a_plan_checks_every_row_and_writes_nothing(by: Any, tmp_path: Path) -> None:
    export = exported(AGGREGATION, tmp_path / "export")
    made = ckpt.import_state(str(export), str(tmp_path / "new"), like=str(AGGREGATION), plan=True, engine=by)
    assert not made.written
    assert [unit.rows for unit in made.units] == [len(frames("aggregation-hdfs-4.2", "flat")["operator 0"])]
    assert not (tmp_path / "new").exists()
