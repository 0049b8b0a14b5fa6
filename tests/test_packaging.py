"""What is shipped is what is in the tree, and it works where nothing but its own dependencies is installed."""

import importlib
import json
import os
import pkgutil
import pydoc
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.metadata import metadata, version
from pathlib import Path

import pytest

import ckpt
from ckpt.versions import NEWEST
from tests.support.places import ROOT, SAMPLES

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def packages_in_the_tree() -> set[str]:
    homes = {"ckpt": "ckpt", "ckpt_commands": "commands"}
    return {
        ".".join([name, *init.parent.relative_to(ROOT / home).parts])
        for name, home in homes.items()
        for init in (ROOT / home).rglob("__init__.py")
    }


def test_every_folder_of_code_is_a_package() -> None:
    for top in ("ckpt", "commands"):
        for module in (ROOT / top).rglob("*.py"):
            assert (module.parent / "__init__.py").is_file(), module


def test_the_version_is_spelled_once_everywhere() -> None:
    assert version("spark-ckpt") == ckpt.__version__ == PROJECT["project"]["version"]
    assert (
        f"## {ckpt.__version__}, " in (ROOT / "CHANGELOG.md").read_text()
        or "Unreleased" in (ROOT / "CHANGELOG.md").read_text()
    )


def modules() -> list[str]:
    return [one.name for one in pkgutil.walk_packages(ckpt.__path__, "ckpt.") if not one.name.endswith("__main__")]


@pytest.mark.parametrize("name", ["ckpt", *modules()])
def test_public_names_are_sorted_and_there(name: str) -> None:
    module = importlib.import_module(name)
    names = list(getattr(module, "__all__", ()))
    assert names == sorted(names)
    assert all(hasattr(module, one) for one in names)


def test_the_library_says_what_is_public() -> None:
    assert "open_checkpoint" in ckpt.__all__
    assert "inspect" in ckpt.__all__


def test_help_of_the_library_fits_a_screen_or_two_and_names_every_call_once() -> None:
    text = pydoc.plain(pydoc.render_doc(ckpt))
    about, _, after = text.partition("\n    Look ")
    assert len(text.splitlines()) < 70
    named = re.findall(r"\b\w+\b", after.partition("A call that")[0])
    assert {name for name in ckpt.__all__ if named.count(name) != 1} == {"Spark"}, (
        "list it in ckpt/__init__.py (Spark is a word of sentences too)"
    )
    assert 'ckpt.inspect("sample_checkpoints/kafka-4.2")' in about
    assert "Raises:" in pydoc.plain(pydoc.render_doc(ckpt.inspect))
    assert ckpt.inspect("sample_checkpoints/kafka-4.2").verdict in about
    names: dict[str, object] = {}
    exec("from ckpt import *", names)
    assert set(ckpt.__all__) <= names.keys()


def test_the_base_needs_no_spark() -> None:
    needed = {one.partition(">")[0].strip() for one in PROJECT["project"]["dependencies"]}
    assert needed == {"typer", "tabulate", "pyarrow"}
    assert {"spark", "delta"} <= PROJECT["project"]["optional-dependencies"].keys()
    assert metadata("spark-ckpt")["Requires-Python"] == ">=3.11"


def test_the_extra_takes_every_spark_that_ckpt_knows() -> None:
    (pyspark,) = (one for one in PROJECT["project"]["optional-dependencies"]["spark"] if one.startswith("pyspark"))
    major, minor = map(int, NEWEST.split("."))
    assert pyspark.endswith(f",<{major}.{minor + 1}")


# A plain install, into an environment of its own.


def build_wheel(folder: Path, made: int) -> Path:
    """A wheel, built from a copy of the tree whose files have a time."""
    source = folder / "tree"
    for top in ("ckpt", "commands", "deploy", "docs/man"):
        shutil.copytree(ROOT / top, source / top, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / file, source / file)
    for path in source.rglob("*"):
        os.utime(path, (made, made))
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", folder / "wheel", source)
    (built,) = (folder / "wheel").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("source"), 1_700_000_000)


@pytest.fixture(scope="module")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` of a virtual environment with the wheel and what it asks for."""
    home = tmp_path_factory.mktemp("plain") / "venv"
    venv.create(home)
    pip(sys.executable, "--python", home / "bin" / "python", "install", wheel)
    return home / "bin"


def pip(python: Path | str, *words: object) -> None:
    done = subprocess.run(
        [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr


def run(*words: object, cwd: Path) -> str:
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_two_builds_have_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        assert build_wheel(tmp_path, 1_600_000_000).read_bytes() == wheel.read_bytes()
    finally:
        os.umask(before)


@pytest.mark.slow
def test_the_wheel_holds_the_packages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {"ckpt/py.typed", "ckpt/spark/log4j2.properties"} <= set(names)
    templates = {f"ckpt/migrate/templates/{path.name}" for path in (ROOT / "ckpt/migrate/templates").iterdir()}
    assert len(templates) > 2
    assert templates <= set(names)
    data, info = (f"spark_ckpt-{ckpt.__version__}.{kind}" for kind in ("data", "dist-info"))
    assert {name.partition("/")[0] for name in names} == {"ckpt", "ckpt_commands", data, info}
    shared = {f"man/man1/{page.name}" for page in (ROOT / "docs" / "man").iterdir()}
    completions = {
        "bash-completion/completions/ckpt",
        "zsh/site-functions/_ckpt",
        "fish/vendor_completions.d/ckpt.fish",
    }
    assert {name for name in names if name.startswith(data)} == {
        f"{data}/data/share/{name}" for name in shared | completions
    }
    assert f"{info}/sboms/spark-ckpt.cdx.json" in names
    for package in packages_in_the_tree():
        assert f"{package.replace('.', '/')}/__init__.py" in names


@pytest.mark.slow
def test_a_plain_install_runs_the_main_job(plain: Path, tmp_path: Path) -> None:
    assert "inspect" in run(plain / "ckpt", "--help", cwd=tmp_path)
    assert run(plain / "ckpt", "--version", cwd=tmp_path) == f"ckpt {ckpt.__version__}\n"
    document = json.loads(run(plain / "ckpt", "inspect", SAMPLES / "join-rocksdb-4.0", "-o", "json", cwd=tmp_path))
    assert document["verdict"] == "Restarts with new batch 6"
    assert run(plain / "python", "-m", "ckpt", "inspect", SAMPLES / "join-rocksdb-4.0", cwd=tmp_path)


@pytest.mark.slow
def test_every_module_can_be_imported_without_extras(plain: Path, wheel: Path, tmp_path: Path) -> None:
    script = (
        "import importlib, pkgutil, ckpt, ckpt_commands\n"
        "for top in (ckpt, ckpt_commands):\n"
        "    for one in pkgutil.walk_packages(top.__path__, top.__name__ + '.'):\n"
        "        needs_spark = one.name.startswith('ckpt.spark.') and one.name != 'ckpt.spark.installed'\n"
        "        if one.name.endswith(('__main__', '.bridge', '.storage.hdfs')) or needs_spark:\n"
        "            continue\n"
        "        try:\n"
        "            print(importlib.import_module(one.name).__name__)\n"
        "        except ckpt.CkptError as error:\n"
        "            print('refused', one.name, error)\n"
        "try:\n"
        "    import commands\n"
        "except ImportError:\n"
        "    print('no commands')\n"
    )
    printed = run(plain / "python", "-c", script, cwd=tmp_path).split("\n")
    assert "ckpt_commands.inspect" in printed
    assert "ckpt.storage.arrow" in printed
    assert "no commands" in printed
    refused = [line for line in printed if line.startswith("refused")]
    named = f"-m pip install 'spark-ckpt[native] @ file://{wheel}'"  # no index may have what came from a file
    assert all(line.endswith(named) for line in refused)
    packages = {".".join(line.split()[1].split(".")[1:3]) for line in refused}
    assert {package for package in packages if not package.startswith("formats.")} <= {
        "new.carry_over",
        "new.exchange",
        "new.fill",
        "new.fitting",
        "new.rewrite",
        "tables.answers",
        "tables.state",
        "state.export",
        "state.native",
        "state.verify",
    }


def test_a_setting_of_spark_is_spelled_in_one_module() -> None:
    spelled = re.compile(r"(?<!`)(?<!py)(?<!apache\.)\bspark\.sql\.(?:shuffle|streaming|session)\.")
    files = [file for package in ("ckpt", "commands") for file in (ROOT / package).rglob("*.py")]
    assert [file.name for file in files if spelled.search(file.read_text())] == ["settings.py"]
