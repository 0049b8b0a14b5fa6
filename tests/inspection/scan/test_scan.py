"""A scan says of every checkpoint below a root what ``ckpt inspect`` says of it alone."""

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.checkpoint.reader import open_to_look
from ckpt.errors import CkptError
from ckpt.inspection.inspection import inspect
from ckpt.inspection.scan.rows import make_row, make_unreadable_row
from ckpt.inspection.scan.scan import discover
from ckpt.storage import Folder, open_storage
from ckpt.storage.uri import NO_OPTIONS
from tests.inspection.scan.trees import build
from tests.support.places import SAMPLES
from tests.support.services.fixtures import USUAL, Upload
from tests.support.spark.live import EVERY_CASE
from tests.support.unprivileged import as_a_stranger


def assert_as_inspected(found: ckpt.types.Scan, options: dict[str, str]) -> None:
    """Each line is that of an inspection, and nothing that ckpt can inspect is called unreadable."""
    for one in found.checkpoints:
        assert one == alone(one.path, options)


def alone(path: str, options: dict[str, str]) -> ckpt.types.ScannedCheckpoint:
    """The line of a checkpoint that is looked at by itself."""
    try:
        return make_row(inspect(open_to_look(path, options)), path)  # without the trial of a repair
    except CkptError as error:
        return make_unreadable_row(path, str(error))


def folders(top: Path) -> set[str]:
    """The checkpoints of a tree, as ``build`` names them."""
    found = (path for path in top.rglob("*") if path.name[:1] == "c" and path.name[1:].isdecimal())
    return {str(path) for path in (*found, *top.glob("nested/*/inside-*")) if path.is_dir()}


@pytest.mark.parametrize("count", [40, pytest.param(300 if EVERY_CASE else 120, marks=pytest.mark.slow)])
def test_every_line_is_that_of_inspect(count: int, tmp_path: Path) -> None:
    top = build(tmp_path / "root", count, hostile=True)

    found = ckpt.scan(str(top), jobs=2)

    assert_as_inspected(found, {})
    missed = folders(top) - {one.path for one in found.checkpoints}
    for path in missed:
        with pytest.raises(CkptError):
            ckpt.open_checkpoint(path)
    assert len(found.checkpoints) > 0.9 * count
    assert found.checkpoints[0].severity == "error"


@pytest.mark.parametrize("count", [24 if EVERY_CASE else 9])
@pytest.mark.parametrize("upload", USUAL, indirect=True)
def test_a_remote_root_is_told_as_a_local_one(upload: Upload, count: int, tmp_path: Path) -> None:
    top = build(tmp_path / "root", count, hostile=False)
    uri, options = upload(top)

    there = ckpt.scan(uri, storage_options=options)

    assert_as_inspected(there, options)
    here = ckpt.scan(str(top))
    assert {one.path.removeprefix(uri): (one.verdict, one.codes, one.error) for one in there.checkpoints} == {
        one.path.removeprefix(str(top)): (one.verdict, one.codes, one.error) for one in here.checkpoints
    }


@pytest.mark.slow
def test_other_processes_say_the_same(tmp_path: Path) -> None:
    top = build(tmp_path / "root", 90, hostile=False)
    assert ckpt.scan(str(top), jobs=2).checkpoints == ckpt.scan(str(top), jobs=1).checkpoints


def test_state_that_is_all_that_is_left_is_found(copy_of) -> None:
    checkpoint = copy_of("damaged-missing-delta")
    for part in ("offsets", "commits"):
        (checkpoint / part).rename(checkpoint.parent / part)
    (checkpoint / "metadata").unlink()
    (found,) = [one for one in ckpt.scan(str(checkpoint)).checkpoints if one.path == str(checkpoint)]
    assert found.verdict == ckpt.inspect(ckpt.open_checkpoint(str(checkpoint))).verdict


def test_depth_counts_levels_below_the_root(tmp_path: Path) -> None:
    for place in ("one", "two/b", "three/b/c"):
        (tmp_path / place / "offsets").mkdir(parents=True)
    found = [discover(open_storage(str(tmp_path)), depth).checkpoints for depth in (0, 1, 2, None)]
    assert found == [[], ["one"], ["one", "two/b"], ["one", "three/b/c", "two/b"]]


def test_links_are_looked_at_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    (tmp_path / "elsewhere" / "offsets").mkdir(parents=True)
    (tmp_path / "elsewhere" / "inner" / "offsets").mkdir(parents=True)
    (tmp_path / "root" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "root" / "a" / "b" / "loop").symlink_to(tmp_path / "root")
    assert discover(open_storage(str(tmp_path / "root"))).checkpoints == ["linked"]


def test_state_and_partitions_of_tables_are_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = build(tmp_path / "root", 20, hostile=False)
    storage = open_storage(str(top))
    listed: list[str] = []
    plain = type(storage).list_level

    def noted(self: Any, path: str = "") -> Folder:
        listed.append(path)
        return plain(self, path)

    monkeypatch.setattr(type(storage), "list_level", noted)

    discover(storage)

    inside = [path for path in listed if {"state", "_delta_log"} & set(path.split("/"))]
    assert inside == []
    assert "tables/orders/_checkpoints" in listed
    assert "tables/orders/day=2026-11-22" not in listed


def test_a_root_that_is_missing_does_not_stop_the_others(tmp_path: Path) -> None:
    found = ckpt.scan([str(tmp_path / "nowhere"), str(SAMPLES / "kafka-4.2"), str(tmp_path)])
    assert [root.checkpoints for root in found.roots] == [0, 1, 0]
    assert found.problems == (
        f"{tmp_path}/nowhere does not exist: check the path",
        f"{tmp_path}: there is no checkpoint here",
    )


def test_a_folder_that_may_not_be_read_is_said(copy_of) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)
        for folder in ("closed", "open/offsets", "half/offsets"):
            (top / folder).mkdir(parents=True)
        closed = (top / "closed", top / "half" / "offsets")
        for place in closed:
            place.chmod(0)
        with as_a_stranger():
            found = ckpt.scan(name, storage_options=NO_OPTIONS)
        for place in closed:
            place.chmod(0o755)
    errors = {one.path.removeprefix(name): one.error for one in found.checkpoints}
    assert [*errors] == ["/closed", "/half", "/open"]
    assert "permission denied" in str(errors["/closed"])
    assert "permission denied" in str(errors["/half"])
    assert errors["/open"] is None
    assert [one.severity for one in found.checkpoints] == ["error", "error", "note"]


def test_only_those_with_a_batch_since_then(copy_of) -> None:
    old, new = copy_of("stateless-4.2", to="old"), copy_of("stateless-4.2", to="new")
    for path in (*old.glob("offsets/*"), *old.glob("commits/*")):
        os.utime(path, (1_000, 1_000))
    found = ckpt.scan(str(old.parent), changed_since="1970-01-01T00:33:20Z")
    assert [one.path for one in found.checkpoints] == [str(new)]
    assert found.roots[0].checkpoints == 2
