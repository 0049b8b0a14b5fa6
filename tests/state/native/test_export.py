"""``export-state`` without Spark: no JVM, and all or nothing. That it equals Spark's is in ``test_export_live``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ckpt as ckpt_library
from ckpt.advice import Words
from ckpt.errors import CkptError
from ckpt.state.export import engines
from ckpt.state.export.request import Engine, ExportRequest
from ckpt.state.export.targets import ExportTarget, Mode
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.state.export import rows
from tests.state.native.values import rows_of
from tests.support.places import ROOT, SAMPLES
from tests.support.remedies import spoil

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another test of this process may have one."""
    monkeypatch.setattr(engines, "_session_is_active", lambda: False)


SAMPLE = "sample_checkpoints/windowed-aggregation-hdfs-4.2"


@pytest.mark.parametrize("sample", rows.ANSWERS)
def test_every_unit_of_every_sample(sample: str, ckpt: Ckpt, tmp_path: Path) -> None:
    """The rows of Spark's own reader, in a folder for each unit, and a manifest that counts them."""
    from pyarrow import parquet

    to = tmp_path / "all"
    result = ckpt("export-state", SAMPLES / sample, "--engine", "native", "--all-units", "--to", to, "-o", "json")
    assert result.exit_code == 0, result.stderr
    document = result.json()
    assert contract.disagreements(document, "export-state") == []
    assert document["engine"] == "native"
    assert [path.name for path in tmp_path.iterdir()] == ["all"]
    units = rows.units_of(SAMPLES / sample)
    assert {path.name for path in to.iterdir()} == {unit.folder for unit in units} | {"_ckpt_export.json"}
    for unit in units:
        columns = ckpt_library.read_state_arrow(str(SAMPLES / sample), **rows.choice(unit))
        table = parquet.read_table(to / unit.folder, coerce_int96_timestamp_unit="us")
        manifest = json.loads((to / unit.folder / "_ckpt_export.json").read_text())
        assert rows_of(table) == rows_of(columns)
        assert table.column_names == [field["name"] for field in manifest["schema"]["fields"]]
        assert (manifest["rows"], manifest["engine"], manifest["spark"]) == (table.num_rows, "native", None)
        assert (to / unit.folder / "_SUCCESS").read_bytes() == b""


def test_no_java_and_no_pyspark(tmp_path: Path) -> None:
    """Neither is imported or looked for, with ``auto`` as well."""
    script = (
        "import sys, ckpt\n"
        "from ckpt.state.export.request import Engine\n"
        "for engine in (Engine.NATIVE, Engine.AUTO):\n"
        f"    asked = ckpt.types.ExportRequest('{SAMPLE}', f'{tmp_path}/{{engine}}', engine=engine)\n"
        "    done = ckpt.export_state(asked)\n"
        "    assert (done.engine, done.parts[0].rows) == (Engine.NATIVE, 14)\n"
        "ckpt.read_state_arrow('sample_checkpoints/join-rocksdb-4.0', side='left')\n"
        "assert not {'pyspark', 'py4j', 'pandas'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, env={"PATH": ""}
    )
    assert done.returncode == 0, done.stderr


def damaged(copy_of: CopyOf, sample: str, folder: str) -> Path:
    checkpoint = copy_of(sample)
    for file in (checkpoint / folder).glob("*.delta"):
        spoil(file)
    return checkpoint


def test_all_or_nothing(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    """The first operator is sound, the second fails: no folder appears, and none is replaced."""
    checkpoint, to = damaged(copy_of, "dedup-aggregation-hdfs-4.2", "state/1/1"), tmp_path / "all"
    words = ["export-state", checkpoint, "--all-units", "--engine", "native", "--to", to]
    assert "state/1/1" in ckpt(*words).refusal()
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]
    sound = ckpt("export-state", SAMPLE, "--engine", "native", "--to", to, "--batch", "2")
    assert sound.exit_code == 0, sound.stderr
    before = {path.name: path.read_bytes() for path in to.iterdir()}
    failed = ckpt(*words, "--mode", "overwrite")
    assert (failed.exit_code, "state/1/1" in failed.refusal()) == (3, True)
    assert {path.name: path.read_bytes() for path in to.iterdir()} == before
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint", "all"}


def test_what_is_there_is_replaced_only_when_asked(ckpt: Ckpt, tmp_path: Path) -> None:
    to = tmp_path / "new" / "out"
    words = ["export-state", SAMPLE, "--engine", "native", "--to", to]
    assert ckpt(*words, "--batch", "2").exit_code == 0
    again = ckpt(*words)
    assert (again.exit_code, "already exists: --mode overwrite replaces it" in again.refusal()) == (2, True)
    over = ckpt(*words, "--mode", "overwrite")
    assert over.exit_code == 0, over.stderr
    assert json.loads((to / "_ckpt_export.json").read_text())["batch"] == 9
    assert [path.name for path in to.parent.iterdir()] == ["out"]


@pytest.mark.parametrize("mode", Mode)
def test_what_appears_meanwhile_is_not_changed(mode: Mode, tmp_path: Path) -> None:
    """Somebody else's folder, made while the export was written."""
    from ckpt.state.export.native import _replace_folder

    place = tmp_path / "out"

    def write() -> None:
        with _replace_folder(ExportTarget(f"file:{place}", None, mode=mode)) as folder:
            (folder / "ours").touch()
            place.mkdir()
            (place / "photo").write_text("miaow")

    with pytest.raises(CkptError):
        write()
    assert {path.name: [one.name for one in path.iterdir()] for path in tmp_path.iterdir()} == {"out": ["photo"]}


def test_a_swap_that_fails_puts_back_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ckpt.state.export.native import _replace_folder

    place, rename = tmp_path / "out", os.rename
    place.mkdir()
    (place / "_SUCCESS").touch()
    (place / "old").touch()

    def broken(one: Any, other: Any) -> None:
        if (Path(one) / "ours").exists():
            raise OSError(28, "No space left on device")
        rename(one, other)

    monkeypatch.setattr(os, "rename", broken)
    target = ExportTarget(f"file:{place}", None, mode=Mode.OVERWRITE)
    with pytest.raises(CkptError, match="is unchanged"), _replace_folder(target) as folder:
        (folder / "ours").touch()
    assert {path.name: len(list(path.iterdir())) for path in tmp_path.iterdir()} == {"out": 2}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--format", "json"], "--engine native: only Spark writes the format json"),
        (["--format", "delta"], "--engine native: only Spark writes the format delta"),
        (["--shape", "raw"], "--engine native: only Spark writes the shape raw"),
        (["--shape", "initial-state"], "--engine native: only Spark exports the shape initial-state"),
        (["--changes-from", "3"], "--engine native: only Spark exports changes"),
        (["--conf", "a=b"], "--engine native: --master, --conf or a session is given"),
        (["--master", "local"], "--engine native: --master, --conf or a session is given"),
    ],
)
def test_what_is_left_to_spark_is_refused(words: list[str], says: str, ckpt: Ckpt, tmp_path: Path) -> None:
    refused = ckpt("export-state", SAMPLE, "--engine", "native", "--to", tmp_path / "out", *words)
    assert (refused.exit_code, says in refused.refusal()) == (2, True), refused.stderr
    table = ckpt("export-state", SAMPLE, "--engine", "native", "--table", "t")
    assert (table.exit_code, "only Spark writes tables" in table.refusal()) == (2, True)
    remote = ckpt("export-state", SAMPLE, "--engine", "native", "--to", "memory://x/y", "--plan")
    assert (remote.exit_code, "only Spark writes to remote places" in remote.refusal()) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_auto_plans_with_spark_what_is_left_to_it(ckpt: Ckpt, tmp_path: Path) -> None:
    words = ["export-state", SAMPLE, "--to", tmp_path / "out", "--plan", "-o", "json"]
    native = ckpt(*words)
    assert (native.json()["engine"], native.stderr) == ("native", "")
    spark = ckpt(*words, "--format", "csv")
    assert (spark.json()["engine"], spark.stderr) == ("spark", "ckpt: with Spark: only Spark writes the format csv\n")
    conf = ckpt(*words, "--conf", "a=b")
    assert conf.json()["engine"] == "spark"
    assert ckpt(*words, "--engine", "spark").json()["engine"] == "spark"


def auto(checkpoint: str | Path, to: Path) -> Any:
    request = ExportRequest(str(checkpoint), to=str(to), engine=Engine.AUTO)
    found = engines.export_without_spark(request)
    return str(found) if isinstance(found, Words) else found.parts[0].rows


def test_auto_leaves_to_spark_what_is_large_or_not_understood(
    copy_of: CopyOf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert auto(ROOT / SAMPLE, tmp_path / "out") == 14
    other = tmp_path / "other"
    assert "cannot be read without Spark" in auto(damaged(copy_of, "aggregation-hdfs-4.2", "state/0/1"), other)
    with monkeypatch.context() as patch:
        patch.setattr(engines, "LARGEST", 100)
        assert auto(ROOT / SAMPLE, other).startswith("its state files have ")
    with monkeypatch.context() as patch:
        patch.setenv("PYSPARK_GATEWAY_PORT", "1")
        assert auto(ROOT / SAMPLE, other) == "this runs under spark-submit"
    assert not other.exists()
