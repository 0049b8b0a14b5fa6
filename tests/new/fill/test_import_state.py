"""``ckpt import-state`` without Spark: what was exported and edited is the state of a new checkpoint, or refused."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

import ckpt
from ckpt.errors import CkptError, UsageError
from ckpt.new.rewrite.writing import NewState
from ckpt.state.export.targets import MANIFEST
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.new.rewrite import continuing
from tests.new.rewrite.continuing import state
from tests.new.rewrite.test_rewrite import STATEFUL, refusable, state_of
from tests.state.native.states import VERSIONS, recorded
from tests.support.places import SAMPLES
from tests.support.spark.live import EVERY_CASE

QUICK = ("aggregation-hdfs-4.2", "session-window-changelog-4.2")
EACH = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in STATEFUL]
AGGREGATION = SAMPLES / "aggregation-hdfs-4.2"


def frames(sample: str, shape: str) -> dict[str, Any]:
    """All state of a sample, by the labels of its units."""
    return continuing.frames(SAMPLES / sample, shape)


def exported(sample: Path, to: Path) -> Path:
    """All state of a checkpoint, as the command writes it."""
    ckpt.export_state(
        ckpt.types.ExportRequest(str(sample), to=str(to), all_units=True, engine=ckpt.types.Engine.NATIVE)
    )
    return to


def written(making: pytest.MonkeyPatch) -> dict[tuple[int, str, int], list[tuple[bytes, bytes]]]:
    """What is put into the stores from now on: of each partition keys and values."""
    found = {}
    own = NewState.make_files

    def watched(self: NewState, operator: Any, store: Any, partition: int, rows: Any, families: Any, *more: Any) -> Any:
        found[operator.id, store.name, partition] = sorted(rows.list_pairs())
        return own(self, operator, store, partition, rows, families, *more)

    making.setattr(NewState, "make_files", watched)
    return found


@pytest.mark.parametrize(
    ("sample", "shape"),
    [
        pytest.param(name, shape, marks=() if name in QUICK else pytest.mark.slow, id=f"{name}-{shape}")
        for row, name in enumerate(STATEFUL)
        for column, shape in enumerate(["flat", "raw"])
        if EVERY_CASE or name in QUICK or row % 2 == column
    ],
)
def test_what_was_read_is_written_byte_for_byte(
    sample: str, shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``ckpt rewrite`` moves the bytes of Spark: the same keys and values, in the same partitions and families."""
    if refusable(sample, {}):
        made = ckpt.write_state(frames(sample, shape), str(tmp_path / "new"), like=str(SAMPLES / sample))
        assert made.refused
        assert not (tmp_path / "new").exists()
        return
    stores = written(monkeypatch)
    ckpt.rewrite(str(SAMPLES / sample), str(tmp_path / "moved"))
    moved = dict(stores)
    made = ckpt.write_state(frames(sample, shape), str(tmp_path / "new"), like=str(SAMPLES / sample))
    assert made.written
    assert stores == moved
    assert state(tmp_path / "new") == state_of(sample)
    assert ckpt.state_verify(str(tmp_path / "new")).damages == ()


def imported(checkpoint: Path, shape: str, new: Path) -> str | None:
    """Write the state of one unit; why it was refused."""
    rows = {"operator 0": ckpt.read_state_arrow(str(checkpoint), shape=shape)}
    try:
        ckpt.write_state(rows, str(new), like=str(checkpoint))
    except CkptError as error:
        return str(error)
    return None


@pytest.mark.slow
@pytest.mark.parametrize("version", [version for version in VERSIONS if version != "3.5"])
def test_random_state_of_every_version_is_written_byte_for_byte(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each key in the partition where Spark put it; the flat shape, or a refusal to guess."""
    stores, flat = written(monkeypatch), 0
    for case, folder, _ in islice(recorded(version, tmp_path), 0, None, 1 if EVERY_CASE else 2):
        ckpt.rewrite(str(folder), str(tmp_path / f"{case.name} moved"))
        moved = dict(stores)
        for shape in ("raw", "flat"):
            refused = imported(folder, shape, tmp_path / f"{case.name} {shape}")
            assert refused is None or (shape == "flat" and "whether it is NULL or a struct of NULLs" in refused)
            if refused is None:
                assert stores == moved, case.name
                flat += shape == "flat"
    assert flat > 0


@pytest.mark.parametrize("sample", EACH)
def test_export_import_export(sample: str, ckpt: Ckpt, tmp_path: Path) -> None:
    """The round trip through files, by the command; in other partitions, too, than they came from."""
    if refusable(sample, {"partitions": 3}):
        return
    export = exported(SAMPLES / sample, tmp_path / "export")
    words = ("import-state", export, tmp_path / "new", "--like", SAMPLES / sample, "--partitions", 3)
    run = ckpt(*words, "-o", "json")
    assert run.exit_code == 0, run.stderr
    assert contract.disagreements(run.json(), "import-state") == []
    again = exported(tmp_path / "new", tmp_path / "again")
    for folder in filter(Path.is_dir, export.iterdir()):
        before, after = (parquet.read_table(place / folder.name) for place in (export, again))
        assert sorted(map(str, before.to_pylist())) == sorted(map(str, after.to_pylist()))
    assert ckpt("state", "verify", tmp_path / "new").exit_code == 0
    assert ckpt("inspect", tmp_path / "new").exit_code == 0


@pytest.mark.parametrize(
    "form", [{"provider": "rocksdb", "partitions": 5}, {"provider": "rocksdb", "format_version": 2}], ids=str
)
def test_it_is_kept_in_the_form_that_is_asked_for(form: dict[str, Any], tmp_path: Path) -> None:
    made = ckpt.write_state(
        frames("aggregation-hdfs-4.2", "flat"), str(tmp_path / "new"), like=str(AGGREGATION), **form
    )
    assert (made.new.provider, made.written) == ("rocksdb", True)
    assert state(tmp_path / "new") == state(AGGREGATION)
    assert ckpt.state_verify(str(tmp_path / "new")).damages == ()


def test_an_edit_is_the_state(tmp_path: Path) -> None:
    """Rows are removed, changed and added, with the types that pandas makes of them."""
    table = ckpt.read_state_arrow(str(AGGREGATION))
    pandas = table.to_pandas()
    pandas = pandas[pandas.key_key != 3]
    pandas.loc[pandas.key_key == 4, "value_count"] = 400
    pandas.loc[len(table)] = [1_000_000, 1, 2]
    ckpt.write_state({"operator 0": pandas.astype("int32")}, str(tmp_path / "new"), like=str(AGGREGATION))
    found = {row["key_key"]: row["value_count"] for row in ckpt.read_state_arrow(str(tmp_path / "new")).to_pylist()}
    before = {row["key_key"]: row["value_count"] for row in table.to_pylist()}
    del before[3]
    assert found == {**before, 4: 400, 1_000_000: 1}
    assert ckpt.state_show(str(tmp_path / "new"), key={"key": "1000000"}).rows


def test_nothing_of_a_removed_key_is_left(tmp_path: Path) -> None:
    """Of a person who is to be forgotten."""
    old = str(SAMPLES / "pandas-with-state-changelog-4.2")
    ckpt.write_state({"operator 0": _named(["Ada Lovelace", "Grace Hopper"])}, str(tmp_path / "both"), like=old)
    rows = ckpt.read_state_arrow(str(tmp_path / "both"))
    kept = rows.filter(pc.not_equal(rows["value_groupState_last"], "Ada Lovelace"))
    ckpt.write_state({"operator 0": kept}, str(tmp_path / "new"), like=str(tmp_path / "both"), provider="hdfs")
    data = b"".join(path.read_bytes() for path in (tmp_path / "new").rglob("*") if path.is_file())
    assert b"Grace Hopper" in data
    assert b"Ada Lovelace" not in data


def _named(names: list[str]) -> Any:
    count = len(names)
    columns = {"key_key": range(count), "value_groupState_rows": [1] * count, "value_groupState_last": names}
    return pa.table({**columns, "value_timeoutTimestamp": [-1] * count})


ROW: dict[str, Any] = {"key_key": [1, 2], "value_count": [1, 1], "value_sum": [5, 5]}


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({**ROW, "key_key": [7, 7]}, "operator 0, row 2: its key is that of row"),
        ({**ROW, "value_count": [1, None]}, "row 2: value_count is NULL, but must not be"),
        ({**ROW, "value_count": ["1", "2"]}, "value_count has the Arrow type string, but Spark's type is long"),
        ({**ROW, "value_count": [1.0, 2.0]}, "value_count has the Arrow type double"),
        ({"key_key": [1], "value_count": [1]}, "the column value_sum is missing"),
        ({**ROW, "value_max": [1, 1]}, "the column value_max is not in the state"),
        (
            {**ROW, "value_sum": pa.array([1, 2**64 - 1], pa.uint64())},
            "row 2: value_sum has a value that does not fit long",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_number(columns: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(CkptError) as refused:
        ckpt.write_state({"operator 0": pa.table(columns)}, str(tmp_path / "new"), like=str(AGGREGATION))
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not any(path.is_file() for path in (tmp_path / "new").rglob("*"))


def test_keys_are_as_spark_compares_them(copy_of: CopyOf, tmp_path: Path) -> None:
    """Zero has one sign there."""
    checkpoint = copy_of("dedup-changelog-4.3")
    for schema in checkpoint.rglob("_metadata/schema"):
        schema.write_bytes(schema.read_bytes().replace(b"\0W{", b"\0Y{").replace(b'"type":"long"', b'"type":"double"'))
    twice = {"operator 0": pa.table({"key_key": [0.0, -0.0]})}
    with pytest.raises(CkptError, match="row 2: its key is that of row"):
        ckpt.write_state(twice, str(tmp_path / "new"), like=str(checkpoint))
    once = {"operator 0": pa.table({"key_key": [-0.0, 1.0]})}
    ckpt.write_state(once, str(tmp_path / "new"), like=str(checkpoint))
    assert sorted(map(str, ckpt.read_state_arrow(str(tmp_path / "new"))["key_key"].to_pylist())) == ["0.0", "1.0"]


@pytest.mark.parametrize("column", ["key_key", "value_key", "key_sessionStartTime", "value_session_window_start"])
def test_a_session_says_its_key_twice_and_the_same(column: str, tmp_path: Path) -> None:
    given = frames("session-window-changelog-4.2", "flat")["operator 0"]
    place, values = given.column_names.index(column), given[column].to_pylist()
    values[1] = values[1] + 100 if isinstance(values[1], int) else values[1].replace(year=1999)
    table = given.set_column(place, column, pa.array(values, given[column].type))
    with pytest.raises(CkptError, match="row 2: its value repeats the key, but the two differ"):
        ckpt.write_state(
            {"operator 0": table}, str(tmp_path / "new"), like=str(SAMPLES / "session-window-changelog-4.2")
        )


def test_a_join_never_guesses_whether_a_row_was_joined(tmp_path: Path) -> None:
    """The old checkpoint says it of its rows, and a column of others."""
    like, given = str(SAMPLES / "join-v3-changelog-4.2"), frames("join-v3-changelog-4.2", "flat")
    left = given["operator 0, left side"]
    new = left.slice(0, 1).set_column(2, "value_left_value", pa.array([777]))
    more = pa.concat_tables([left, new])
    with pytest.raises(CkptError, match=r"left side, row 31: it is unknown whether it was already joined"):
        ckpt.write_state({**given, "operator 0, left side": more}, str(tmp_path / "new"), like=like)
    told = more.append_column("matched", pa.array([None] * len(left) + [True]))
    made = ckpt.write_state({**given, "operator 0, left side": told}, str(tmp_path / "new"), like=like)
    assert [one.rows for one in made.units] == [len(left) + 1, 15]
    assert ckpt.state_verify(str(tmp_path / "new")).damages == ()


def test_a_value_with_a_time_to_live_has_one(tmp_path: Path) -> None:
    given = frames("tws-rocksdb-4.2", "flat")
    name, column = "operator 0, variable recentTtl", "list_element_ttlExpirationMs"
    table = given[name]
    times = pa.array([None, *table[column].to_pylist()[1:]], pa.int64())
    given[name] = table.set_column(table.column_names.index(column), column, times)
    with pytest.raises(CkptError, match=r"variable recentTtl, row 1: ttlExpirationMs is NULL"):
        ckpt.write_state(given, str(tmp_path / "new"), like=str(SAMPLES / "tws-rocksdb-4.2"))


def test_what_the_flat_shape_does_not_say_is_not_guessed(tmp_path: Path) -> None:
    """NULL, or a struct of NULLs."""
    table = _named(["x", "y"])
    empty = table.set_column(1, "value_groupState_rows", pa.array([1, None], pa.int64()))
    empty = empty.set_column(2, "value_groupState_last", pa.array(["x", None]))
    like = str(SAMPLES / "pandas-with-state-changelog-4.2")
    with pytest.raises(CkptError, match=r"row 2: the flat shape does not show of value.groupState .* shape raw"):
        ckpt.write_state({"operator 0": empty}, str(tmp_path / "new"), like=like)


def edit(manifest: str, **changes: object) -> Callable[[Path], None]:
    """What gives a manifest of an export other values."""

    def change(export: Path) -> None:
        file = export / manifest
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))

    return change


def cut(export: Path) -> None:
    file = next((export / "operator-0").glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:100])


def again(export: Path) -> None:
    file = next((export / "operator-0").glob("*.parquet"))
    shutil.copy(file, file.with_name("twice.parquet"))


def refuse(ckpt: Ckpt, export: Path, new: Path) -> str:
    """The one line with which an import is refused; it leaves no file."""
    run = ckpt("import-state", export, new, "--like", AGGREGATION)
    assert run.exit_code == 3, run
    assert not any(path.is_file() for path in new.rglob("*"))
    return run.refusal()


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (edit(MANIFEST, batch=3), "has the state of batch 3, but the newest committed batch of"),
        (edit(f"operator-0/{MANIFEST}", planned_ms=5), "has the state of a different batch 9:"),
        (edit(MANIFEST, query_id="another"), "is from a different query than"),
        (edit(f"operator-0/{MANIFEST}", shape="initial-state"), "has the shape initial-state"),
        (lambda export: (export / "operator-0/_delta_log").mkdir(), "is not a Delta table that deltalake reads"),
        (lambda export: (export / "operator-0/day=1").mkdir(), "it contains day=1"),
        (lambda export: (export / "operator-0/rows.csv").write_text("key\n1\n"), "it contains rows.csv"),
        (cut, "cannot be read as Parquet"),
        (again, "twice.parquet: its key is that of row"),
        (
            lambda export: shutil.rmtree(export / "operator-0"),
            "the folder operator-0 is missing, but its _ckpt_export.json names it",
        ),
        (shutil.rmtree, "does not exist"),
    ],
)
def test_what_is_no_export_of_it_is_refused_in_a_line(damage: Any, told: str, ckpt: Ckpt, tmp_path: Path) -> None:
    export = exported(AGGREGATION, tmp_path / "export")
    damage(export)
    assert told in refuse(ckpt, export, tmp_path / "new")


def test_rows_that_an_export_has_lost_are_counted(ckpt: Ckpt, tmp_path: Path) -> None:
    """Whoever has edited it may have removed rows; nobody meant to lose a file."""
    export = exported(AGGREGATION, tmp_path / "export")
    whole = len(parquet.read_table(export / "operator-0"))
    lost = max((export / "operator-0").glob("*.parquet"), key=lambda file: len(parquet.read_table(file)))
    rest = whole - len(parquet.read_table(lost))
    given = ("import-state", export, tmp_path / "new", "--like", AGGREGATION)
    assert "export had" not in ckpt(*given, "--plan").stdout
    lost.unlink()
    assert f"{rest} rows; the export had {whole}" in ckpt(*given, "--plan").stdout
    told = ckpt(*given, "-o", "json").json()["units"][0]
    assert (told["rows"], told["exported"]) == (rest, whole)


_READ = """
import os, sys
from ckpt.new.fill.export_folder import open_export
export = open_export(sys.argv[1], {})
(label,) = export.units
threads = len(os.listdir("/proc/self/task"))
for path in export.list_files(label):
    export.read_file(label, path)
sys.exit(len(os.listdir("/proc/self/task")) - threads)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="no /proc tells how many threads there are")
def test_no_thread_is_left_that_reads_while_python_ends(tmp_path: Path) -> None:
    """One that frees a buffer of Python then aborts the process: 3 of 124 refused readings ended by SIGABRT."""
    exported(AGGREGATION, tmp_path / "export")
    assert subprocess.run([sys.executable, "-c", _READ, str(tmp_path / "export")], check=False).returncode == 0


def test_another_checkpoint_is_refused(ckpt: Ckpt, tmp_path: Path) -> None:
    export = exported(AGGREGATION, tmp_path / "export")
    for sample, told in (
        ("join-changelog-4.2", "has no rows of operator 0, left side"),
        ("dedup-hdfs-4.0", "is from a different query"),
        ("stateless-4.2", "no state"),
        ("aggregation-hdfs-3.5", "is from a different query"),
    ):
        run = ckpt("import-state", export, tmp_path / "new", "--like", SAMPLES / sample)
        assert (run.exit_code, told in " ".join((run.stdout + run.stderr).split())) == (3, True), run
        assert not (tmp_path / "new").exists()


def test_a_plan_checks_every_row_and_writes_nothing(ckpt: Ckpt, tmp_path: Path) -> None:
    export = exported(AGGREGATION, tmp_path / "export")
    words = ("import-state", export, tmp_path / "new", "--like", AGGREGATION, "--plan")
    planned = ckpt(*words, "-o", "json").json()
    assert (planned["written"], planned["units"][0]["rows"]) == (False, 7)
    again(export)
    assert ckpt(*words).exit_code == 3
    assert not (tmp_path / "new").exists()


def test_new_is_neither_full_nor_inside(ckpt: Ckpt, tmp_path: Path) -> None:
    export = exported(AGGREGATION, tmp_path / "export")
    words = ("import-state", export, "--like", AGGREGATION)
    assert ckpt(*words, export / "new").exit_code == 2
    (tmp_path / "new").mkdir()
    (tmp_path / "new/mine").write_text("mine")
    run = ckpt(*words, tmp_path / "new")
    assert (run.exit_code, run.stderr.count("\n")) == (3, 1)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["mine"]


def test_a_frame_is_one_of_arrow_pandas_or_spark(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="list is neither an Arrow table"):
        ckpt.write_state({"operator 0": [1]}, str(tmp_path / "new"), like=str(AGGREGATION))


def test_damage_that_a_reader_meets_is_said_as_everywhere(copy_of: CopyOf, tmp_path: Path) -> None:
    """``ckpt.read_state_batches`` reads while its rows are written."""
    checkpoint = copy_of("aggregation-hdfs-4.2")
    rows = ckpt.read_state_batches(checkpoint)
    for delta in (checkpoint / "state/0/1").glob("*.delta"):
        delta.write_bytes(delta.read_bytes()[:-20] + b"\xff" * 20)
    with pytest.raises(CkptError, match=r"state/0/1/\d+\.delta"):
        ckpt.write_state({"operator 0": rows}, tmp_path / "new", like=AGGREGATION)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_without_a_zone_are_in_utc(unit: str, tmp_path: Path) -> None:
    """As pandas and DuckDB write what an export has; a time finer than Spark's is refused by its row."""
    sample = SAMPLES / "windowed-aggregation-hdfs-4.2"
    to = exported(sample, tmp_path / "state")
    (file,) = {*(to / "operator-0").glob("part-00000*.parquet")}
    table = parquet.read_table(file)
    for name in ("key_window_start", "key_window_end"):
        at = table.column_names.index(name)
        table = table.set_column(at, name, table.column(name).cast(pa.timestamp(unit)))
    parquet.write_table(table, file)
    ckpt.import_state(str(to), str(tmp_path / "new"), like=str(sample))
    assert state(tmp_path / "new") == state(sample)
    if unit == "ns":
        numbers = pa.array([time + 1 for time in table.column("key_window_start").cast(pa.int64()).to_pylist()])
        parquet.write_table(table.set_column(0, "key_window_start", numbers.cast(pa.timestamp("ns"))), file)
        with pytest.raises(CkptError, match=r"row 1, .*key_window_start has a value that does not fit timestamp"):
            ckpt.import_state(str(to), str(tmp_path / "other"), like=str(sample))


def test_duckdb_writes_rows_that_can_be_imported(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    sample = SAMPLES / "windowed-aggregation-hdfs-4.2"
    folder = exported(sample, tmp_path / "state") / "operator-0"
    duckdb.sql(f"COPY (SELECT * FROM '{folder}/*.parquet') TO '{tmp_path}/all.parquet'")
    for file in folder.glob("*.parquet"):
        file.unlink()
    (tmp_path / "all.parquet").rename(folder / "all.parquet")
    ckpt.import_state(str(tmp_path / "state"), str(tmp_path / "new"), like=str(sample))
    assert state(tmp_path / "new") == state(sample)
