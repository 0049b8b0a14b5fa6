"""The code that ``ckpt migrate transform-with-state`` generates, looked at without running it."""

import ast
import importlib
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ckpt.checkpoint.sources.files import FileOffset
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import SourceView
from ckpt.checkpoint.sources.starts import StartFacts
from ckpt.errors import CkptError, UsageError
from ckpt.migrate.generate.processor import processor_code
from ckpt.migrate.generate.start import start_code, to_fill_in
from ckpt.migrate.handoff.starts import start_source
from ckpt.migrate.text import choose_identifiers, ddl, literal, plain, simple
from ckpt.migrate.transform import Api, TransformPlan, plan_transform, warnings_of
from ckpt.state.export.targets import Format
from ckpt.versions import Spark
from tests.changes.applying import facts
from tests.commands import contract
from tests.conftest import Ckpt
from tests.migrate.aggregating import BUFFERS, plan_of
from tests.migrate.transforming import OPERATORS, STATEFUL
from tests.support.places import SAMPLES

SPARK = Spark.V4_3
SEEN = ("file:/in/a.json", "file:/in/b%20c.json.gz")


def plan(sample: str, **wanted: Any) -> TransformPlan:
    return plan_transform(str(SAMPLES / sample), spark=SPARK, **wanted)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each sample and API."""
    folder: Path = tmp_path_factory.mktemp("generated")
    for api in Api:
        plans = {sample: plan(sample, api=api, operator=OPERATORS.get(sample)) for sample in STATEFUL}
        for name, found in (plans | {"every-aggregate": plan_of(*BUFFERS, api=api)}).items():
            place = folder / f"{name}-{api}"
            place.mkdir()
            (place / "processor.py").write_text(processor_code(found))
            (place / "start.py").write_text(start_code(found, None))
    return folder


def from_files(*seen: str) -> TransformPlan:
    """A plan whose one source is a file source that has read these files."""
    found = plan("aggregation-hdfs-4.2")
    view = SourceView(0, None, SourceType.FILE, {"logOffset": 3}, {}, record=FileOffset(3))
    return replace(found, handoff=replace(found.handoff, sources=(start_source(view, StartFacts(seen)),)))


@pytest.mark.slow
@pytest.mark.parametrize("api", ["few", "many"])
def test_code_of_a_file_source_is_formatted_typed_and_clean(api: str, types: Path, tmp_path: Path) -> None:
    found = from_files(*(SEEN if api == "few" else (f"file:/in/{n}.json" for n in range(301))))
    (tmp_path / "processor.py").write_text(processor_code(found))
    (tmp_path / "start.py").write_text(start_code(found, None))
    assert ("/seen_0" in start_code(found, None)) == (api == "many")
    assert len(start_code(found, None)) < 20_000
    for words in (("format", "--check"), ("check",)):
        ran = tool("ruff", *words, "--isolated", str(tmp_path))
        assert ran.returncode == 0, ran.stdout
    typed(tmp_path, types)


@pytest.mark.parametrize(
    ("names", "known"),
    [
        (("a.json",), "json"),
        (("a.csv.gz", "b.csv"), "csv"),
        (("part-0.snappy.parquet", "part-1.zstd.parquet"), "parquet"),
        (("a.json", "b.csv"), ""),
        (("part-00000",), ""),
        (("a.log",), ""),
    ],
)
def test_the_format_of_a_file_source_is_what_all_names_say_or_to_be_filled_in(
    names: tuple[str, ...], known: str
) -> None:
    found = from_files(*(f"file:/in/{name}" for name in names))
    assert f'SOURCE_0_FORMAT = "{known}"' in start_code(found, None)
    assert ("SOURCE_0_FORMAT" in to_fill_in(found)) == (not known)


def test_a_migration_says_which_sinks_drop_batches_of_a_new_query() -> None:
    told = " ".join(map(str, warnings_of(plan("aggregation-hdfs-4.2"))))
    assert "Sink file: Use a new output folder" in told
    assert "Sink foreachBatch with txnAppId: Choose another txnAppId" in told
    assert "Sink delta" not in told


def test_two_migrations_in_one_process_have_a_processor_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    samples = {"counts": "aggregation-hdfs-4.2", "joins": "join-hdfs-3.5"}
    for name, sample in samples.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "processor.py").write_text(processor_code(plan(sample)))
        (tmp_path / name / "start.py").write_text(start_code(plan(sample), None))
    counts, joins = (importlib.import_module(f"{name}.start") for name in samples)
    assert counts.processor.OUTPUT_SCHEMA == "`key` bigint, `count` bigint, `sum` bigint"
    assert counts.processor.OUTPUT_SCHEMA != joins.processor.OUTPUT_SCHEMA
    assert sys.modules[counts.processor.__name__] is counts.processor  # as sending it by value requires
    assert sys.modules[joins.processor.__name__] is joins.processor


def tool(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_it_is_formatted_and_clean(generated: Path) -> None:
    for words in (("format", "--check"), ("check",)):
        ran = tool("ruff", *words, "--isolated", str(generated))
        assert ran.returncode == 0, ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "sample",
    [
        "windowed-aggregation-hdfs-4.2-pandas",
        "tws-rocksdb-4.2-row",
        "session-window-changelog-4.2-pandas",
        "every-aggregate-pandas",
        "every-aggregate-row",
    ],
)
def test_it_is_typed(sample: str, generated: Path, types: Path) -> None:
    typed(generated / sample, types)


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where mypy keeps what it knows of the standard library from one of its runs to the next."""
    return tmp_path_factory.mktemp("types")


def typed(folder: Path, types: Path) -> None:
    files = (str(folder / name) for name in ("start.py", "processor.py"))
    words = ["--strict", f"--cache-dir={types}", "--config-file=", *_UNTYPED, *files]
    ran = subprocess.run([sys.executable, "-m", "mypy", *words], cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


_UNTYPED = ("--follow-imports=silent", "--ignore-missing-imports", "--allow-subclassing-any", "--allow-untyped-calls")


@pytest.mark.slow
@pytest.mark.parametrize(("zone", "code"), [("UTC", 0), ("Europe/Berlin", 1)])
@pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark is not installed")
def test_python_in_a_zone_of_its_own_is_refused_where_times_would_shift(zone: str, code: int, generated: Path) -> None:
    command = [sys.executable, "-c", "import processor; processor.utc()"]
    folder = generated / "windowed-aggregation-hdfs-4.2-pandas"
    environment = {**os.environ, "TZ": zone}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran.stderr
    assert ("TZ=UTC" in ran.stderr) == bool(code)


def test_a_key_called_state_is_no_other_column_s_name() -> None:
    found = plan("aggregation-hdfs-4.2")
    keys = tuple(replace(key, name="state") for key in found.shape.keys)
    changed = replace(found, initial=replace(found.initial, shape=replace(found.shape, keys=keys)))
    assert 'state.alias("state_of_key")' in start_code(changed, None)
    assert 'initialState["state_of_key"]' in processor_code(changed)


NASTY = ['a"b', "a'b", "a\\b", "a\nb", '"""', "class", "1st", "größe", "a b", "{x}", "", "handle", "a-b", "a_b"]


@pytest.mark.parametrize("name", NASTY)
def test_whatever_a_name_is_its_literal_is_it(name: str) -> None:
    assert ast.literal_eval(literal(name)) == name
    assert "\n" not in literal(name)
    assert '"""' not in plain(name)
    assert "\n" not in plain(name)


def test_attributes_are_identifiers_each_once() -> None:
    found = [*choose_identifiers(NASTY, ["handle"]).values()]
    assert len(found) == len(NASTY)
    assert all(one.isidentifier() and one.isascii() for one in found)
    assert len(set(found)) == len(found)
    assert "handle" not in found


def test_types_in_the_words_of_sql() -> None:
    inner = {"type": "struct", "fields": [{"name": "a`b", "type": "long"}, {"name": "c", "type": "decimal(10,2)"}]}
    kind: Any = {"type": "map", "keyType": "string", "valueType": {"type": "array", "elementType": inner}}
    assert ddl(kind) == "map<string,array<struct<`a``b`:bigint,`c`:decimal(10,2)>>>"
    assert simple(kind) == "map<string,array<struct<a`b:bigint,c:decimal(10,2)>>>"


@pytest.mark.parametrize("name", NASTY)
def test_code_survives_names_from_a_checkpoint(name: str) -> None:
    found = plan("tws-rocksdb-4.2")
    shape = found.shape
    state = tuple(replace(column, variable=column.variable and f"{column.variable}{name}") for column in shape.state)
    keys = tuple(replace(key, name=f"{key.name}{name}") for key in shape.keys)
    initial = replace(found.initial, shape=replace(shape, keys=keys, state=state))
    changed = replace(found, initial=initial)
    for code in (processor_code(changed), start_code(changed, f"s3a://bucket/{name}")):
        compile(code, "generated", "exec")


@pytest.mark.parametrize("sample", STATEFUL)
def test_a_plan_is_told_as_published_and_nothing_is_written(sample: str, tmp_path: Path, ckpt: Ckpt) -> None:
    before = facts(SAMPLES / sample)
    words = ["migrate", "transform-with-state", f"sample_checkpoints/{sample}", "--to", str(tmp_path / "new"), "--plan"]
    words += ["--operator", str(OPERATORS[sample])] if sample in OPERATORS else []
    run = ckpt(*words, "-o", "json")
    if run.exit_code == 3:
        assert "Spark can read since" in run.stderr
        return
    assert run.exit_code == 1
    assert contract.disagreements(run.json(), "migrate transform-with-state") == []
    assert "PLANNED" in ckpt(*words).stdout
    assert not (tmp_path / "new").exists()
    assert facts(SAMPLES / sample) == before


@pytest.mark.parametrize(
    "words", [["sample_checkpoints/stateless-4.2"], ["sample_checkpoints/join-hdfs-3.5", "--batch", "99"]]
)
def test_a_refusal_is_a_document_too(words: list[str], tmp_path: Path, ckpt: Ckpt) -> None:
    words = ["migrate", "transform-with-state", *words, "--to", str(tmp_path / "new"), "--plan"]
    run = ckpt(*words, "-o", "json")
    assert run.exit_code == 3
    assert run.stderr == ""
    assert contract.disagreements(run.json(), "migrate transform-with-state") == []
    assert ckpt(*words).refusal() == f"ckpt: {run.json()['refused']}"


def test_what_cannot_be_is_said_in_one_line(tmp_path: Path, ckpt: Ckpt) -> None:
    inside, taken = SAMPLES / "join-hdfs-3.5", tmp_path / "taken"
    (taken / "something").mkdir(parents=True)
    for words, code, told in (
        ((inside, "--to", inside / "new"), 2, "is in the checkpoint"),
        ((inside, "--to", taken), 2, "already exists"),
        (("sample_checkpoints/stateless-4.2", "--to", tmp_path / "n"), 3, "no state/ to migrate"),
        (("sample_checkpoints/dedup-aggregation-hdfs-4.2", "--to", tmp_path / "n"), 2, "--operator"),
        (("sample_checkpoints/join-hdfs-3.5", "--to", tmp_path / "n", "--batch", "99"), 3, "no offsets/99"),
        (("sample_checkpoints/join-hdfs-3.5", "--to", tmp_path / "n", "--format", "csv"), 2, "parquet or delta"),
    ):
        run = ckpt("migrate", "transform-with-state", *words, "--plan")
        assert run.exit_code == code
        assert told in run.stderr
        assert run.stderr.count("\n") == 1


def test_the_row_api_needs_a_spark_that_has_it() -> None:
    with pytest.raises(CkptError, match=r"needs pyspark 4\.1"):
        plan_transform(str(SAMPLES / "aggregation-hdfs-4.2"), api=Api.ROW, spark=Spark.V4_0)
    with pytest.raises(UsageError):
        plan("aggregation-hdfs-4.2", kind=Format.JSON)


def test_a_null_key_is_spoken_of_where_pandas_mixes_it_up() -> None:
    told = " ".join(map(str, warnings_of(plan("windowed-aggregation-hdfs-4.2"))))
    assert "A NULL in key key stops" in told
    assert "window_start" not in told
    assert "NULL" not in " ".join(map(str, warnings_of(plan("windowed-aggregation-hdfs-4.2", api=Api.ROW))))


def test_a_buffer_that_only_spark_can_read_is_warned_of() -> None:
    """`tests/state/export/test_damaged.py` shows that Spark calls that of collect_list so."""
    found = plan("aggregation-hdfs-4.2")
    last = found.shape.state[-1]
    for name, kind, said in (("buf", "binary", True), ("buf_2", "binary", True), ("max", "binary", False)):
        state = (*found.shape.state[:-1], replace(last, name=name, type=kind))
        changed = replace(found, initial=replace(found.initial, shape=replace(found.shape, state=state)))
        assert (f"{name} holds bytes" in " ".join(map(str, warnings_of(changed)))) == said


def test_other_operators_are_named_as_left_out() -> None:
    told = " ".join(map(str, warnings_of(plan("dedup-aggregation-hdfs-4.2", operator=1))))
    assert "other stateful operators: 0" in told


def test_a_hand_over_that_is_refused_refuses_the_migration(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(SAMPLES / "aggregation-hdfs-4.2", checkpoint)
    newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    lines = newest.read_text().splitlines()
    newest.write_text("\n".join([*lines[:2], '{"somebody":"else"}']))
    with pytest.raises(CkptError, match="no new query can continue here: source 0"):
        plan_transform(str(checkpoint), spark=SPARK)
