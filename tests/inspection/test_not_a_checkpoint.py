"""Folders of other programs are named, and no command lists or changes them; minimal remains are checkpoints."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

import ckpt as library
from ckpt.checkpoint.reader import NotACheckpoint, read_checkpoint
from ckpt.inspection.scan.scan import discover
from ckpt.storage import open_storage
from tests.conftest import Ckpt
from tests.inspection.foreign import LEFT, TREES, build
from tests.laws.hostile.fuzz import COMMANDS, WRITING
from tests.support.files import write_files
from tests.support.places import ROOT

ID = ("--query-id", "00000000-0000-4000-8000-000000000009")
APPLY = ("--apply", "--backup", "{out}", "--grace", "0")
GIVEN = {
    **WRITING,
    "repair": [[*ID], [*ID, *APPLY], ["--leftovers", *APPLY]],
    "evolve": [["--in-place", "--to", str(ROOT / "docs" / "query.json")]],
    **{command: COMMANDS[command] for command in ("relocate", "migrate changelog", "migrate provider")},
}


def files(top: Path) -> dict[str, bytes]:
    return {str(path.relative_to(top)): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("tree", TREES)
def test_it_is_named_and_not_listed(tree: str, tmp_path: Path) -> None:
    others = build(tmp_path / "top", tree)
    for place in others:
        with pytest.raises(NotACheckpoint, match="not a checkpoint") as refused:
            library.inspect(str(place))
        assert TREES[tree][2] in str(refused.value)

    found = discover(open_storage(str(tmp_path / "top"))).checkpoints

    assert {str(tmp_path / "top" / path) for path in found}.isdisjoint(map(str, others))
    assert found == (["c"] if (tmp_path / "top" / "c").is_dir() else [])


def test_a_source_of_iceberg_in_an_object_store() -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.pipe("/shop/sources/0/offsets/0", b'{"version":1,"snapshot_id":1}')

    with pytest.raises(NotACheckpoint, match="an Iceberg source, whose checkpoint should be two folders above it"):
        library.inspect("memory://shop/sources/0")


@pytest.mark.slow
@pytest.mark.parametrize("command", GIVEN)
def test_no_command_writes(command: str, tmp_path: Path, ckpt: Ckpt) -> None:
    for number, tree in enumerate(TREES):
        place, *_ = build(tmp_path / f"top-{number}", tree)
        before = files(tmp_path / f"top-{number}")
        for options in GIVEN[command]:
            ended = ckpt(
                *command.split(), place, *(word.format(out=tmp_path / "out", room=tmp_path) for word in options)
            )
            assert ended.exit_code == 3, (tree, options, ended.stdout)
            assert "not a checkpoint" in ended.stderr
        assert files(tmp_path / f"top-{number}") == before
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("left", LEFT)
def test_what_little_is_left_is_a_checkpoint(left: str, tmp_path: Path) -> None:
    top = write_files(tmp_path / "left", LEFT[left])

    assert discover(open_storage(str(top))).checkpoints == [""]
    read_checkpoint(open_storage(str(top)))


@pytest.mark.slow
def test_tables_that_their_own_libraries_made(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
    catalogs = pytest.importorskip("pyiceberg.catalog", reason="pyiceberg is not installed")
    rows = pa.table({"id": [1, 2]})
    deltalake.write_deltalake(str(tmp_path / "delta"), rows)
    catalog = catalogs.load_catalog("c", type="sql", uri=f"sqlite:///{tmp_path}/db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("db")
    catalog.create_table("db.t", schema=rows.schema, location=f"file://{tmp_path}/iceberg").append(rows)

    assert discover(open_storage(str(tmp_path))).checkpoints == []
    for name, what in (("delta", "a Delta table"), ("iceberg", "an Iceberg table"), ("iceberg/metadata", "an Iceberg")):
        with pytest.raises(NotACheckpoint, match=what):
            library.inspect(str(tmp_path / name))


@pytest.mark.slow
def test_a_database_that_postgresql_made() -> None:
    initdb = shutil.which("initdb", path=os.pathsep.join(map(str, Path("/usr/lib/postgresql").glob("*/bin"))))
    if initdb is None:
        pytest.skip("PostgreSQL is not installed")
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        root: dict[str, Any] = (
            {"user": 65534, "group": 65534} if os.geteuid() == 0 else {}
        )  # it refuses to be run by root
        subprocess.run([initdb, "-N", "-D", f"{name}/data"], check=True, capture_output=True, cwd="/", **root)

        assert discover(open_storage(name)).checkpoints == []
        with pytest.raises(NotACheckpoint, match="PostgreSQL"):
            library.inspect(f"{name}/data/pg_multixact")


@pytest.mark.service
def test_the_logs_of_a_broker(kafka: str, run_folder: Path) -> None:
    (properties,) = run_folder.glob("kafka*/**/meta.properties")

    assert discover(open_storage(str(properties.parent))).checkpoints == []
    with pytest.raises(NotACheckpoint, match="Kafka"):
        library.inspect(str(properties.parent / "__cluster_metadata-0"))
