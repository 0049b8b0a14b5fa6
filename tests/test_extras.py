"""The command that adds an extra works for how ckpt was installed; ``--version -v`` says what is there."""

import json
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from ckpt import extras
from tests.conftest import Ckpt
from tests.support.places import ROOT, SAMPLES

PYTHON = f"{sys.executable} -m pip install"


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ({}, f"{PYTHON} 'spark-ckpt[native]'"),
        ({"url": "file:///my%20code", "dir_info": {}}, f"{PYTHON} '/my code[native]'"),
        ({"url": "file:///code", "dir_info": {"editable": True}}, f"{PYTHON} -e '/code[native]'"),
        (
            {"url": "file:///w/spark_ckpt-0.1.0-py3-none-any.whl", "archive_info": {}},
            f"{PYTHON} 'spark-ckpt[native] @ file:///w/spark_ckpt-0.1.0-py3-none-any.whl'",
        ),
        (
            {"url": "https://host/ckpt.git", "vcs_info": {"vcs": "git", "commit_id": "0a1b"}},
            f"{PYTHON} 'spark-ckpt[native] @ git+https://host/ckpt.git@0a1b'",
        ),
    ],
    ids=["index", "folder", "editable", "wheel", "repository"],
)
def test_the_command_names_where_ckpt_came_from(
    monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any], command: str
) -> None:
    monkeypatch.setattr(extras, "_read_file", {"direct_url.json": json.dumps(origin)}.get)
    monkeypatch.setattr("shutil.which", lambda name: "/elsewhere/pip")
    assert extras.install_command("native") == command


def test_pip_of_an_activated_environment_is_not_spelled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "_read_file", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: str(Path(sys.executable).parent / "pip"))
    assert extras.install_command("html") == "pip install 'spark-ckpt[html]'"


def test_uv_installs_where_it_left_no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "_read_file", {"INSTALLER": "uv\n"}.get)
    assert extras.install_command("html") == f"uv pip install -p {sys.executable} 'spark-ckpt[html]'"


def test_nothing_can_be_added_to_a_single_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    archive = tmp_path / "ckpt.pyz"
    zipfile.ZipFile(archive, "w").close()
    monkeypatch.setattr(sys, "argv", [str(archive), "inspect"])
    assert extras.install_command("html").startswith("this ckpt is a single file")


def test_the_smaller_of_two_packages_is_asked_for(tmp_path: Path) -> None:
    """Without either, an export to local Parquet needs the extra native, not Spark."""
    hidden = "import sys; sys.modules |= dict.fromkeys(('google_crc32c', 'pyspark')); import ckpt.__main__"
    words = ["export-state", str(SAMPLES / "aggregation-rocksdb-4.2"), "--to", str(tmp_path / "exported")]
    done = subprocess.run([sys.executable, "-c", hidden, *words], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.endswith("[native]'\n")
    assert not (tmp_path / "exported").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "says", "extra"),
    [
        (("--format", "delta"), "only Spark writes the format delta, and pyspark is not installed", "delta"),
        (("--format", "delta", "--engine", "spark"), "pyspark is not installed", "delta"),
        (("--format", "json"), "only Spark writes the format json, and pyspark is not installed", "spark"),
        (("--changes-from", "3"), "only Spark exports changes, and pyspark is not installed", "spark"),
        (("--engine", "spark"), "pyspark is not installed", "spark"),
    ],
)
def test_an_export_that_only_spark_makes_says_why_and_what_brings_all_of_it(
    options: tuple[str, ...], says: str, extra: str, tmp_path: Path
) -> None:
    hidden = (
        "import sys; sys.modules |= dict.fromkeys(('delta', 'pyspark')); import ckpt.spark.installed as installed; "
    )
    hidden += "installed.find_spec = lambda name: None; import ckpt.__main__"
    words = ["export-state", str(SAMPLES / "aggregation-rocksdb-4.2"), "--to", str(tmp_path / "exported"), *options]
    done = subprocess.run([sys.executable, "-c", hidden, *words], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (3, "")
    assert says in done.stderr
    assert done.stderr.endswith(f"[{extra}]'\n")


@pytest.mark.slow
def test_all_of_the_library_can_be_looked_at_without_pyspark() -> None:
    """``help``, ``dir`` and each name; what needs Spark says so when it is called."""
    program = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "delta"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Hidden())
import ckpt, ckpt.spark.installed
ckpt.spark.installed.find_spec = lambda name: None
help(ckpt)
for name in dir(ckpt):
    help(getattr(ckpt, name))
for name in dir(ckpt.types):
    getattr(ckpt.types, name)
for call in (ckpt.describe_query, lambda frame: ckpt.rehearse("x", to=frame)):
    try:
        call(None)
    except ckpt.types.SparkMissing as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout.count("[spark]'") == 2


def test_a_bug_report_says_what_is_installed(ckpt: Ckpt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ckpt.spark.installed.find_java", lambda: None)
    run = ckpt("--version", "-v")
    lines = dict(line.split(maxsplit=1) for line in run.stdout.splitlines() if not line.startswith("extra"))
    assert lines.keys() == {"ckpt", "Python", "system", "Java", "pyarrow", "tabulate", "typer"}
    assert lines["ckpt"] == version("spark-ckpt")
    assert lines["Java"] == "not installed"
    assert "extra native    google-crc32c " in run.stdout
