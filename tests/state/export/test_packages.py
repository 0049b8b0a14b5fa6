"""Packages that Spark's own Ivy cannot load: one line with the cure, and a session with jars that are here."""

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from tests.conftest import Ckpt, Run
from tests.support.services.delta import delta_jars
from tests.support.services.fixtures import or_skip

try:
    VERSION = version("delta-spark")
    NAME = f"delta-spark_{'.'.join(version('pyspark').split('.')[:2])}_2.13"
except PackageNotFoundError as missing:
    pytest.skip(f"{missing.name} is not installed", allow_module_level=True)

pytestmark = pytest.mark.spark

SAMPLE = "sample_checkpoints/windowed-aggregation-hdfs-4.2"
PACKAGE = f"io/delta/{NAME}/{VERSION}"
POM = f"""<project><modelVersion>4.0.0</modelVersion>
<groupId>io.delta</groupId><artifactId>{NAME}</artifactId><version>{VERSION}</version></project>
"""
IVY = """<ivysettings><settings defaultResolver="folder"/><resolvers>
<filesystem name="folder"><artifact pattern="{pattern}"/></filesystem></resolvers></ivysettings>
"""


def export(ckpt_process: Ckpt, folder: Path, *words: str) -> Run:
    """Export to a Delta table, as a user whose home has the half of a repository that another tool left."""
    package = folder / "home/.m2/repository" / PACKAGE
    package.mkdir(parents=True)
    (package / f"{package.parent.name}-{package.name}.pom").write_text(POM)
    target = ("--to", folder / "table", "--format", "delta", "--master", "local[1]")
    home = {"JAVA_TOOL_OPTIONS": f"-Duser.home={folder / 'home'}"}
    return ckpt_process("export-state", "--engine", "spark", SAMPLE, *target, *words, env=home, timeout=600)


def test_a_repository_with_the_pom_and_without_the_jar(ckpt_process: Ckpt, tmp_path: Path) -> None:
    run = export(ckpt_process, tmp_path)
    assert run.exit_code == 3
    assert f"download failed: io.delta#{NAME};{VERSION}!{NAME}.jar; a local repository has the POM" in run.refusal()
    folders = [tmp_path / "home/.m2/repository" / PACKAGE, tmp_path / "home/.ivy2.5.2/cache/io.delta" / NAME]
    assert [folder for folder in folders if str(folder) not in run.refusal() or not folder.is_dir()] == []
    assert not (tmp_path / "table").exists()


def test_no_repository_has_it(ckpt_process: Ckpt, tmp_path: Path) -> None:
    settings = tmp_path / "ivy.xml"
    settings.write_text(IVY.format(pattern="/nowhere/[artifact].[ext]"))
    run = export(ckpt_process, tmp_path, "--conf", f"spark.jars.ivySettings={settings}")
    assert run.exit_code == 3
    assert f"unresolved dependency: io.delta#{NAME};{VERSION}: not found; check the name" in run.refusal()


def test_a_package_that_can_be_had_is_loaded(ckpt_process: Ckpt, tmp_path: Path) -> None:
    """From a folder, through Ivy; what it depends on is given."""
    main, others = ([jar for jar in delta() if jar.name.startswith(NAME) is own] for own in (True, False))
    settings = tmp_path / "ivy.xml"
    settings.write_text(IVY.format(pattern=f"{main[0].parent}/[artifact]-[revision].[ext]"))
    given = {"spark.jars.ivySettings": settings, "spark.jars": ",".join(map(str, others))}
    run = export(ckpt_process, tmp_path, *(word for one in given.items() for word in ("--conf", f"{one[0]}={one[1]}")))
    assert run.exit_code == 0, run.stderr
    assert "loading settings" not in run.stdout + run.stderr
    check_table(tmp_path / "table")


def delta() -> list[Path]:
    with or_skip("jars of Delta"):
        return delta_jars()


def check_table(table: Path) -> None:
    """It has the rows, and says of which batch they are."""
    commit = [json.loads(line) for line in (table / "_delta_log" / f"{0:020}.json").read_text().splitlines()]
    (info,) = [line["commitInfo"] for line in commit if "commitInfo" in line]
    assert info["operationMetrics"]["numOutputRows"] == "14"
    assert json.loads(info["userMetadata"])["batch"] == 9
