"""What can be planned without a JVM: units, refusals, settings, columns. Nothing here imports pyspark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.columns import flat_columns
from ckpt.state.reading.mount import is_plain
from ckpt.state.reading.reading import StateRequest, plan_readings
from ckpt.state.reading.units import state_units
from ckpt.storage.locations import spark_uri
from ckpt.versions import Spark
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.support.places import GOLDENS, ROOT, SAMPLE_NAMES, SAMPLES, golden_checkpoints


def labels(path: Path) -> list[str]:
    return [unit.label for unit in state_units(ckpt.open_checkpoint(str(path)))]


def test_units_of_each_kind_of_operator() -> None:
    assert labels(SAMPLES / "stateless-4.2") == []
    assert labels(SAMPLES / "aggregation-hdfs-3.5") == ["operator 0"]
    assert labels(SAMPLES / "dedup-aggregation-hdfs-4.2") == ["operator 0", "operator 1"]
    assert labels(SAMPLES / "join-v3-changelog-4.2") == ["operator 0, left side", "operator 0, right side"]
    assert labels(SAMPLES / "join-hdfs-3.5") == [
        "operator 0, left side",
        "operator 0, right side",
        "operator 0, store left-keyToNumValues",
        "operator 0, store left-keyWithIndexToValue",
        "operator 0, store right-keyToNumValues",
        "operator 0, store right-keyWithIndexToValue",
    ]
    assert labels(SAMPLES / "tws-event-time-changelog-4.2") == ["operator 0, variable rows", "operator 0, timers"]


@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_folders_of_units_are_unique_names(sample: str) -> None:
    folders = [unit.folder for unit in state_units(ckpt.open_checkpoint(str(SAMPLES / sample)))]
    assert len(folders) == len({folder.lower() for folder in folders})
    assert all("/" not in folder and not folder.startswith((".", "_")) for folder in folders)


@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_a_plan_is_told_as_published_or_refused_in_one_line(sample: str, ckpt: Ckpt) -> None:
    result = ckpt("export-state", f"sample_checkpoints/{sample}", "--plan", "--all-units", "-o", "json")
    if result.exit_code == 0:
        assert contract.disagreements(result.json(), "export-state") == []
    else:
        assert result.exit_code == 3
        assert f"sample_checkpoints/{sample}" in result.refusal()


@pytest.mark.parametrize("golden", golden_checkpoints())
def test_checkpoints_of_sparks_tests_are_planned_or_refused(golden: str, ckpt: Ckpt) -> None:
    result = ckpt("export-state", GOLDENS / golden, "--plan", "--all-units", "-o", "json")
    if result.exit_code == 0:
        assert contract.disagreements(result.json(), "export-state") == []
    else:
        assert result.exit_code == 3
        assert golden in result.refusal()


def test_a_plan_imports_no_pyspark() -> None:
    script = (
        "import sys, ckpt, ckpt.state.reading.reading as reading\n"
        "reading.plan_readings(reading.StateRequest('sample_checkpoints/aggregation-format2-4.2'))\n"
        "sys.exit(any(name.partition('.')[0] in ('pyspark', 'py4j', 'delta', 'pyarrow') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, timeout=60).returncode == 0


# Refusals.


@pytest.mark.parametrize(
    ("sample", "words", "says"),
    [
        ("damaged-missing-sst", [], ["CKPT303 sst-file-missing", "state/0/0/SSTs/000029", "--batch 2"]),
        ("damaged-missing-delta", [], ["CKPT301", "state/0/", "--batch 1"]),
        ("damaged-missing-changelog", [], ["CKPT301", ".changelog", "--batch 2"]),
        ("damaged-missing-zip", [], ["CKPT30", "--batch 2"]),
        ("damaged-empty-delta", [], ["CKPT302", "--batch 4"]),
        ("damaged-missing-partition", [], ["CKPT304", "no batch can be read"]),
        ("damaged-missing-unique-ids", [], ["CKPT111", "commits/7", "--batch 6"]),
        ("damaged-short-of-recorded-size", [], ["CKPT302", "--batch 6"]),
        ("damaged-missing-join-store", ["--side", "right"], ["CKPT304", "right-keyToNumValues"]),
        ("damaged-missing-state-schema", [], ["state schema", "state/0/0/", "copy of the checkpoint"]),
        ("damaged-tws-missing-schema", ["--variable", "rows"], ["state schema", "_stateSchema"]),
        ("damaged-no-commits", [], ["no state"]),
        ("stateless-4.2", [], ["normal for a stateless query"]),
        ("damaged-missing-state", [], ["a loss for any other"]),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_inspects_finding(
    sample: str, words: list[str], says: list[str], ckpt: Ckpt
) -> None:
    result = ckpt("export-state", f"sample_checkpoints/{sample}", "--to", "/nowhere", *words)
    assert result.exit_code == 3
    assert [one for one in says if one not in result.refusal()] == [], result.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "no target is named: use --to or --table"),
        (["--to", "x", "--table", "y"], "give --to or --table, not both"),
        (
            ["--plan", "--batch", "99"],
            "there is no batch 99 to read; operator 0: batches 0 to 9 can be read: --batch 9",
        ),
        (["--plan", "--operator", "7"], "available: --operator 0"),
        (["--plan", "--timers"], "available: --operator 0"),
        (["--plan", "--side", "left"], "available: --operator 0"),
        (
            ["--plan", "--side", "middle"],
            "Invalid value for '--side': 'middle' is not one of 'left', 'right'; see ",
        ),
        (["--plan", "--shape", "round"], "'round' is not one of 'raw', 'flat', 'initial-state'"),
        (["--plan", "--changes-from", "12"], "the changes end at batch 9"),
        (["--to", "sample_checkpoints/aggregation-hdfs-4.2/out"], "never exports into a checkpoint"),
        (["--to", "sample_checkpoints"], "never exports into a checkpoint"),
        (["--to", "x", "--conf", "novalue"], "write it as key=value"),
        (["--all-units", "--table", "t"], "--all-units exports every part of the state"),
        (["--plan", "--all-units", "--variable", "rows"], "--all-units is every part of the state: leave out"),
    ],
)
def test_what_makes_no_sense_is_bad_usage(words: list[str], says: str, ckpt: Ckpt) -> None:
    result = ckpt("export-state", "sample_checkpoints/aggregation-hdfs-4.2", *words)
    assert result.exit_code == 2
    assert says in result.refusal()


def test_a_choice_has_to_be_made_and_is_named(ckpt: Ckpt) -> None:
    result = ckpt("export-state", "sample_checkpoints/join-hdfs-3.5", "--plan")
    assert result.exit_code == 2
    assert "choose one: --operator 0 --side left, --operator 0 --side right; or --all-units" in result.refusal()


@pytest.mark.parametrize(
    ("sample", "words", "says"),
    [
        (
            "join-hdfs-3.5",
            ["--store", "nope"],
            "there is no --store nope; available: --store left-keyToNumValues, --store left-keyWithIndexToValue, "
            "--store right-keyToNumValues, --store right-keyWithIndexToValue",
        ),
        (
            "tws-event-time-changelog-4.2",
            ["--variable", "nope"],
            "there is no --variable nope; available: --variable rows",
        ),
        ("dedup-aggregation-hdfs-4.2", ["--operator", "2"], "no --operator 2; available: --operator 0, --operator 1"),
        ("dedup-aggregation-hdfs-4.2", ["--operator", "1", "--store", "x"], "available: --store default"),
    ],
)
def test_a_name_that_is_not_there_is_answered_by_those_that_are(
    sample: str, words: list[str], says: str, ckpt: Ckpt
) -> None:
    result = ckpt("export-state", f"sample_checkpoints/{sample}", "--plan", *words)
    assert result.exit_code == 2
    assert result.refusal().endswith(says)


@pytest.mark.parametrize(
    ("sample", "words", "version"),
    [
        ("aggregation-hdfs-4.2", [], "4.0"),
        ("aggregation-format2-4.2", [], "4.1"),
        ("join-v3-changelog-4.2", ["--side", "left"], "4.1"),
        ("tws-avro-changelog-4.2", ["--variable", "recent"], "4.2"),
        ("tws-avro-changelog-4.2", ["--variable", "last"], "4.0"),
    ],
)
def test_a_plan_says_which_spark_is_needed_where_not_every_one_reads_it(
    sample: str, words: list[str], version: str, ckpt: Ckpt
) -> None:
    command = ["export-state", f"sample_checkpoints/{sample}", "--plan", *words]
    assert ckpt(*command, "-o", "json").json()["exports"][0]["oldest_spark"] == version
    said = f"  spark     {version} or later: no earlier version can read such state\n"
    assert (said in ckpt(*command).stdout) is (version != "4.0")


def test_reasons_of_settings_fit_the_checkpoint(ckpt: Ckpt) -> None:
    said = {}
    for sample in ("aggregation-hdfs-4.2", "aggregation-rocksdb-4.2", "aggregation-format2-4.2"):
        (told,) = ckpt("export-state", f"sample_checkpoints/{sample}", "--plan", "-o", "json").json()["exports"]
        said[sample] = [(conf["value"], conf["why"]) for conf in told["confs"]]
    assert said == {
        "aggregation-hdfs-4.2": [("1", "its state is HDFS-backed, which a session set to 2 refuses")],
        "aggregation-rocksdb-4.2": [
            ("1", "the names of its state files contain no unique ids, which a session set to 2 looks for")
        ],
        "aggregation-format2-4.2": [
            ("2", "the names of its state files contain unique ids, so a session set to 1 does not find them")
        ],
    }


def test_an_older_batch_of_a_damaged_unit_can_be_planned(ckpt: Ckpt) -> None:
    result = ckpt("export-state", "sample_checkpoints/damaged-missing-sst", "--plan", "--batch", "2")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Would read operator 0, batch 2")


def test_the_log_files_of_an_old_batch_are_read(copy_of: CopyOf) -> None:
    """Opening reads the newest ten batches; the moment of an older one is told all the same."""
    (reading,) = plan_readings(StateRequest(str(SAMPLES / "aggregation-hdfs-4.2"), batch=0))
    assert reading.moment.sources[0].offset == {"offset": 10, "timestamp": 1700000001000}
    assert reading.moment.state_version == 1


def test_offsets_that_are_gone_are_named(copy_of: CopyOf, ckpt: Ckpt) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2", {"op": "write", "path": "offsets/4", "text": "hello"})
    result = ckpt("export-state", checkpoint, "--plan", "--batch", "4")
    assert result.exit_code == 3
    assert "offsets/4" in result.refusal()


# Settings and mounts.


def confs(sample: str, **wanted: Any) -> dict[str, str]:
    (reading,) = plan_readings(StateRequest(str(SAMPLES / sample), RequestedPart(**wanted)))
    return {conf.name.removeprefix("spark.sql.streaming."): conf.value for conf in reading.confs}


def test_the_format_of_state_files_is_said() -> None:
    assert confs("aggregation-format2-4.2") == {"stateStore.checkpointFormatVersion": "2"}
    assert confs("aggregation-hdfs-4.2") == {"stateStore.checkpointFormatVersion": "1"}


def test_the_file_manager_goes_with_the_version_of_spark() -> None:
    for spark, package in ((Spark.V4_0, "streaming.File"), (Spark.V4_1, "streaming.checkpointing.File")):
        (reading,) = plan_readings(
            StateRequest(str(SAMPLES / "tws-changelog-4.0"), RequestedPart(variable="rows")), {}, spark
        )
        (manager,) = [conf.value for conf in reading.confs if "FileManager" in conf.name]
        assert package in manager


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("/a/b/", "file:/a/b"),
        ("file:///a%20b", "file:/a b"),
        ("file:/a/b", "file:/a/b"),
        ("s3://bucket/a", "s3a://bucket/a"),
        ("s3://key:secret@bucket/a?region=eu-west-1", "s3a://bucket/a"),
        ("hdfs://host:9000/a/", "hdfs://host:9000/a"),
        ("abfss://c@account.dfs.core.windows.net/a", "abfss://c@account.dfs.core.windows.net/a"),
    ],
)
def test_paths_as_spark_is_given_them(uri: str, told: str) -> None:
    assert spark_uri(uri) == told


def test_which_paths_spark_opens_as_they_are() -> None:
    assert all(map(is_plain, ["file:/a-b_c.d~e", "file:/größe", "file:/日本", "s3a://b/k=v,w;x:y@z+1"]))
    assert not any(map(is_plain, ["file:/a b", "file:/a%20b", "file:/a[1]", "file:/a#b", "file:/a?b", "file:/a\tb"]))


# Columns.


def struct(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields],
    }


def names(schema: Any) -> list[str]:
    return [column.name for column in flat_columns(schema).kept]


def test_leaves_are_named_by_their_path() -> None:
    window = struct(("start", "timestamp"), ("end", "timestamp"))
    schema = struct(("key", struct(("window", window), ("user", "string"))), ("value", struct(("count", "long"))))
    assert names(schema) == ["key_window_start", "key_window_end", "key_user", "value_count"]


def test_names_that_repeat_are_numbered() -> None:
    values = struct(("sum", "long"), ("sum", "double"), ("Sum", "long"), ("sum_2", "long"))
    assert names(struct(("value", values))) == ["value_sum", "value_sum_2", "value_Sum_3", "value_sum_2_2"]


def test_names_fit_every_format() -> None:
    values = struct(("count(DISTINCT a, b)", "long"), ("x.y = `z`", "long"), ("größe", "long"))
    assert names(struct(("value", values))) == ["value_count_DISTINCT_a_b_", "value_x_y_z_", "value_größe"]


def test_void_is_left_out_and_told() -> None:
    deep = {"type": "array", "elementType": struct(("a", "long"), ("nothing", "void")), "containsNull": True}
    columns = flat_columns(struct(("value", struct(("__dummy__", "void"), ("deep", deep), ("empty", struct())))))
    assert [dropped.path for dropped in columns.dropped] == [
        ("value", "__dummy__"),
        ("value", "deep"),
        ("value", "empty"),
    ]
    assert columns.kept == ()


def test_arrays_and_maps_are_leaves() -> None:
    many = {"type": "map", "keyType": "string", "valueType": struct(("a", "long")), "valueContainsNull": True}
    assert names(struct(("value", struct(("many", many))))) == ["value_many"]
