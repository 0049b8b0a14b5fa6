"""``ckpt copy --since`` and ``--keep``: the same files as a full copy, and points that are complete or not there."""

import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.checkpoint.points import list_points, parse_point
from ckpt.errors import NotFound, StorageError
from ckpt.formats.offsets import UNFINISHED
from ckpt.storage import open_storage
from ckpt.storage.remote_writer import RemoteWriter
from tests.changes.killing import killed, stops
from tests.changes.prune.aged import aged
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.new.copy.test_copy import files
from tests.support.places import SAMPLES
from tests.support.services.counting import counting_s3
from tests.support.spark.live import EVERY_CASE

SAMPLE = "aggregation-changelog-4.2"
STORES = [SAMPLE, "aggregation-hdfs-4.2", "aggregation-format2-4.2", "file-source-4.2"]
OLD = "2026-11-01T00-00-00Z-batch-3"


@pytest.mark.parametrize("sample", [*STORES, "tws-rocksdb-4.2"])
def test_a_copy_since_another_is_a_full_one(sample: str, tmp_path: Path) -> None:
    old, full, new = (tmp_path / name for name in ("old", "all", "new"))
    newest = ckpt.open_checkpoint(str(SAMPLES / sample)).commits.ids[-1]
    ckpt.copy(str(SAMPLES / sample), str(old), batch=newest - (newest > 5))
    whole = ckpt.copy(str(SAMPLES / sample), str(full))
    made = ckpt.copy(str(SAMPLES / sample), str(new), since=str(old))
    placed = [path for path in files(full) if "/_metadata/v2/" in path]  # they name their own place
    for path, data in files(full).items():
        assert (new / path).stat().st_mtime_ns == (full / path).stat().st_mtime_ns
        if path not in placed:
            assert (new / path).read_bytes() == data
        elif "/." not in path:
            assert (new / path).read_bytes() == data.replace(bytes(full), bytes(new))
    assert files(new).keys() == files(full).keys()
    assert (made.files, made.bytes) == (whole.files, whole.bytes)
    assert made.bytes > made.linked > made.bytes // 3
    shared = [path for path in files(new) if (old / path).exists() and os.path.samefile(new / path, old / path)]
    assert sum(len((new / path).read_bytes()) for path in shared) == made.linked
    assert not {*shared} & {*placed}
    assert [f.outcome for f in made.inspection.forecasts] == [f.outcome for f in whole.inspection.forecasts]
    before = files(new)
    shutil.rmtree(old)
    assert files(new) == before


def test_the_same_size_and_time_is_not_the_same_file(copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint, old, new = copy_of("aggregation-hdfs-4.2"), tmp_path / "old", tmp_path / "new"
    ckpt.copy(str(checkpoint), str(old))
    file = old / "state/0/0/9.delta"
    times = file.stat()
    other = bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:]
    file.write_bytes(other)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    ckpt.copy(str(checkpoint), str(new), since=str(old))
    assert (new / "state/0/0/9.delta").read_bytes() == (checkpoint / "state/0/0/9.delta").read_bytes() != other
    assert file.read_bytes() == other
    os.utime(old / "metadata", (1, 1))
    made = ckpt.copy(str(checkpoint), str(tmp_path / "again"), since=str(old))
    assert not os.path.samefile(old / "metadata", tmp_path / "again" / "metadata"), "a link has one time only"
    assert abs((tmp_path / "again" / "metadata").stat().st_mtime - (checkpoint / "metadata").stat().st_mtime) < 0.01
    assert made.linked


def test_where_no_point_can_be_made_no_folder_is_left(copy_of: CopyOf, ckpt: Ckpt, tmp_path: Path) -> None:
    checkpoint, there = copy_of("damaged-missing-join-store"), tmp_path / "there"
    there.mkdir()
    for folder in (there, tmp_path / "points"):
        run = ckpt("copy", checkpoint, folder, "--keep", "last=2", "--batch", 5)
        assert run.exit_code == 2
        assert ckpt("copy", checkpoint, folder, "--keep", "last=2").exit_code == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([checkpoint.name, "there"])
    assert not [*there.iterdir()]


def test_without_links_bytes_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ckpt.copy(str(SAMPLES / SAMPLE), str(tmp_path / "old"))
    link = os.link

    def refuse(source: str, *args: object, **how: object) -> None:
        if str(source).startswith(str(tmp_path / "old")):
            raise OSError(18, "Invalid cross-device link")
        link(source, *args, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", refuse)
    made = ckpt.copy(str(SAMPLES / SAMPLE), str(tmp_path / "new"), since=str(tmp_path / "old"))
    assert made.linked == 0
    assert files(tmp_path / "new") == files(tmp_path / "old")


def test_an_earlier_copy_elsewhere_or_missing(tmp_path: Path) -> None:
    ckpt.copy(str(SAMPLES / SAMPLE), "memory://since/old")
    made = ckpt.copy(str(SAMPLES / SAMPLE), str(tmp_path / "new"), since="memory://since/old")
    assert made.linked == 0
    with pytest.raises(NotFound):
        ckpt.copy(str(SAMPLES / SAMPLE), str(tmp_path / "other"), since=str(tmp_path / "none"))
    assert not (tmp_path / "other").exists()


def test_the_storage_copies_and_one_that_cannot_gets_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    ckpt.copy(str(SAMPLES / SAMPLE), "memory://linked/old", batch=8)
    written: list[int] = []
    create = RemoteWriter.create_from

    def count(self: RemoteWriter, path: str, pieces: object, attributes: object = None) -> None:
        written.append(1)
        create(self, path, pieces)  # type: ignore[arg-type]

    monkeypatch.setattr(RemoteWriter, "create_from", count)
    made = ckpt.copy(str(SAMPLES / SAMPLE), "memory://linked/new", since="memory://linked/old")
    assert made.bytes > made.linked > made.bytes // 2
    assert 0 < len(written) < made.files // 3
    from ckpt.storage.bridge import FsspecBackend

    def fail(self: FsspecBackend, source: str, path: str) -> None:
        self.file_system.pipe_file(self.join(path), b"half")
        raise OSError("too large to be copied")

    monkeypatch.setattr(FsspecBackend, "copy_from", fail)
    made = ckpt.copy(str(SAMPLES / SAMPLE), "memory://linked/bytes", since="memory://linked/old")
    assert (made.linked, made.inspection.sound) == (0, True)


@pytest.mark.slow
def test_points_on_other_storage() -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    folder = "memory://kept/points"
    for expected in (1, 2, 2):
        made = ckpt.copy(str(SAMPLES / SAMPLE), folder, keep="last=2")
        assert len(made.points) == expected
        time.sleep(1)
    assert len(made.removed) == 1
    assert sorted(path.rpartition("/")[2] for path in memory.ls("/kept/points", detail=False)) == sorted(made.points)
    (row,) = ckpt.scan(folder).checkpoints
    assert row.points == made.points


@pytest.mark.parametrize("words", [{}, {"since": "s3://new/old"}, {"keep": "last=1"}], ids=str)
def test_requests_to_s3_are_few(words: dict[str, Any], copy_of: CopyOf, tmp_path: Path) -> None:
    """A file is read, looked for, put or copied there, and read again; many are listed, and removed, at a time."""
    pytest.importorskip("pyarrow", "21", reason="earlier ones put a file in three requests")
    bucket, written = copy_of(SAMPLE, to="served/bucket"), tmp_path / "written"
    written.mkdir()
    with counting_s3(bucket.parent, written=written) as s3:
        options: Any = {"storage_options": s3.options}
        for place in ("new/old", f"new/kept/{OLD}"):
            ckpt.copy("s3://bucket", f"s3://{place}", batch=8 if place == "new/old" else 3, **options)
        s3.requests.clear()
        made = ckpt.copy("s3://bucket", "s3://new/kept" if "keep" in words else "s3://new/full", **words, **options)
        asked = s3.requests
    assert (asked["COPY"] > 0) == (made.linked > 0) == bool(words)
    more = 25 * len(made.removed)  # for its offsets, one by one, and the lock; the rest goes in two requests
    assert 0 < asked["PUT"] + asked["COPY"] - made.files <= 1 + more
    assert asked["HEAD"] <= asked["GET"] + asked["PUT"] + more
    assert asked["LIST"] <= 6 + more
    assert asked["DELETE"] <= more
    assert asked["POST"] == 2 * len(made.removed)


# One run of a schedule.


def prepare(folder: Path) -> None:
    """Two points, and what interrupted runs left."""
    for name, batch in ((OLD, 3), ("2026-11-01T06-00-00Z-batch-5", 5)):
        ckpt.copy(str(SAMPLES / SAMPLE), str(folder / name), batch=batch)
    left = folder / "2026-11-01T07-00-00Z-batch-6"
    shutil.copytree(folder / OLD, left)
    (left / "offsets" / "3").write_bytes(UNFINISHED)
    (folder / ".2026-11-01T07-30-00Z-batch-6.ckpt.tmp" / "offsets").mkdir(parents=True)
    others = SAMPLES / "aggregation-hdfs-4.2"
    ckpt.copy(str(others), str(folder / "2026-11-01T01-00-00Z-batch-9"))  # of another query
    ckpt.copy(str(others), str(folder / "live"))
    (folder / "notes.txt").write_text("mine")


def test_a_run_makes_a_point_and_removes_by_the_rule(tmp_path: Path, ckpt: Ckpt) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    prepare(folder)
    words = ("copy", f"sample_checkpoints/{SAMPLE}", folder, "--keep", "hourly=2")
    before = files(folder)
    planned = ckpt(*words, "--plan", "-o", "json").json()
    assert files(folder) == before
    assert planned["removed"] == [OLD]
    run = ckpt(*words, "-o", "json")
    assert run.exit_code == 0
    made = run.json()
    assert contract.disagreements(made, "copy") == []
    assert made["removed"] == [OLD]
    assert made["points"][:-1] == ["2026-11-01T06-00-00Z-batch-5"]
    point = parse_point(made["points"][-1])
    assert point is not None
    assert (point.batch, made["linked"] > 0) == (9, True)
    others = {"2026-11-01T01-00-00Z-batch-9", "live", "notes.txt"}
    assert {path.name for path in folder.iterdir()} == {*made["points"], *others}
    page = ckpt("scan", folder, "--all").stdout
    assert "2 points, 2026-11-01 to 20" in page
    assert "1 point, 2026-11-01" in page
    rows = ckpt("scan", folder, "-o", "json").json()["checkpoints"]
    assert sorted(len(row["points"]) for row in rows) == [0, 1, 2]


def test_a_run_that_goes_without_a_folder(tmp_path: Path, ckpt: Ckpt) -> None:
    words = ("copy", f"sample_checkpoints/{SAMPLE}", tmp_path / "kept", "--keep", "daily=7")
    page = ckpt(*words, "--plan")
    assert page.exit_code == 0
    assert not (tmp_path / "kept").exists()
    assert "--keep daily=7" in page.stdout
    assert ckpt(*words).exit_code == 0


@pytest.mark.parametrize("words", [("--batch", "3"), ("--new-id",), ("--since", "x")])
def test_what_does_not_go_with_a_schedule(words: tuple[str, ...], tmp_path: Path, ckpt: Ckpt) -> None:
    run = ckpt("copy", f"sample_checkpoints/{SAMPLE}", tmp_path / "kept", "--keep", "daily=7", *words)
    assert run.exit_code == 2
    assert run.stderr.count("\n") == 1
    assert not (tmp_path / "kept").exists()
    run = ckpt("copy", f"sample_checkpoints/{SAMPLE}", tmp_path / "kept", "--keep", "dayly=7")
    assert (run.exit_code, run.stderr.count("\n")) == (2, 1)


def test_two_runs_do_not_meet(tmp_path: Path) -> None:
    from ckpt.storage.local_writer import open_writer

    folder = tmp_path / "kept"
    folder.mkdir()
    with open_writer(str(folder)).lock(), pytest.raises(StorageError, match="another ckpt process"):
        ckpt.copy(str(SAMPLES / SAMPLE), str(folder), keep="daily=7")
    assert files(folder) == {}


def test_a_checkpoint_without_an_id_has_no_points(copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of(SAMPLE)
    (checkpoint / "metadata").unlink()
    with pytest.raises(ckpt.CkptError, match="no file has the id"):
        ckpt.copy(str(checkpoint), str(tmp_path / "kept"), keep="daily=7")


@pytest.mark.slow
def test_a_kill_at_any_change_leaves_complete_points_alone(tmp_path: Path) -> None:
    """What is listed as a point is whole at every moment; the next run removes the rest, and only that."""
    template, folder = tmp_path / "template", tmp_path / "kept"
    template.mkdir()
    prepare(template)
    whole = files(template)
    shutil.copytree(SAMPLES / SAMPLE, tmp_path / "full")
    ckpt.copy(str(SAMPLES / SAMPLE), str(tmp_path / "copy"))
    full = files(tmp_path / "copy")

    def run() -> object:
        return ckpt.copy(str(SAMPLES / SAMPLE), str(folder), keep="hourly=2")

    def must_be_whole() -> int:
        kept, unfinished = list_points(open_storage(str(folder)))
        names = [point.name for points in kept.values() for point in points]
        for name in names:
            now = {path: data for path, data in files(folder / name).items() if not path.endswith(".ckpt.tmp")}
            old = {path.removeprefix(f"{name}/"): data for path, data in whole.items() if path.startswith(f"{name}/")}
            assert now == (old or full), name
        assert {"2026-11-01T06-00-00Z-batch-5", "2026-11-01T01-00-00Z-batch-9"} <= set(names)
        for path in ("live", "notes.txt"):
            assert (folder / path).exists()
        for name in unfinished:
            if files(folder / name) and not name.startswith("."):
                assert not any(f.outcome.runs for f in ckpt.inspect(str(folder / name)).forecasts)
        return len(names)

    shutil.copytree(template, folder)
    seen, at = set[int](), 0
    for at in stops(run):
        if EVERY_CASE or at % 4 == 0:
            seen.add(must_be_whole())
    assert at > 200
    assert seen == {3, 4}
    for crash in (3, 40, at // 2, at - 60, at - 5):
        shutil.rmtree(folder)
        shutil.copytree(template, folder)
        assert killed(crash, run)
        must_be_whole()
        run()
        assert list_points(open_storage(str(folder)))[1] == []
        must_be_whole()


@pytest.mark.parametrize(
    "where", [pytest.param(kind, marks=pytest.mark.service) for kind in ("s3_uri", "azure_uri", "gcs_uri", "hdfs_uri")]
)
def test_points_on_real_storage(where: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Object stores copy the files that are the same; a point that is removed leaves nothing; a query goes back."""
    uri, options = request.getfixturevalue(where)(aged(SAMPLE, tmp_path / "uploaded", 3))
    folder, old = f"{uri}-kept", open_storage(f"{uri}-kept", options)
    ckpt.copy(str(SAMPLES / SAMPLE), f"{folder}/{OLD}", batch=3, to_storage_options=options or None)
    made = []
    for _ in range(3):
        made.append(ckpt.copy(uri, folder, keep="last=2", storage_options=options))
        time.sleep(1)
    if where != "hdfs_uri":
        assert made[0].linked > 0
        assert min(each.linked for each in made[1:]) > made[0].bytes // 2
    assert set(old.list_level().folders) == set(made[-1].points), "nothing is left of the others"
    (row,) = ckpt.scan(folder, storage_options=options).checkpoints
    assert row.points == made[-1].points
    ckpt.copy(str(SAMPLES / SAMPLE), f"{folder}/{OLD}", batch=3, to_storage_options=options or None)
    at = datetime(2026, 11, 2, tzinfo=UTC)
    plan, receipt = ckpt.rewind(
        uri,
        to_batch=at,
        from_=folder,
        apply=True,
        grace=0,
        accept_skip=True,
        accept_replay=True,
        storage_options=options,
    )
    assert receipt.applied, (receipt.problem, plan.refused)
    assert ckpt.open_checkpoint(uri, storage_options=options).commits.ids[-1] == 3
