"""``ckpt copy`` without Spark: every sample, as of each batch, on other storage, killed and refused."""

import filecmp
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ckpt.checkpoint.reader import NotACheckpoint, open_checkpoint, read_checkpoint
from ckpt.errors import CkptError, NotFound, StorageError
from ckpt.formats.offsets import UNFINISHED
from ckpt.inspection.inspection import inspect
from ckpt.new import placing
from ckpt.new.copy.copy import copy
from ckpt.new.copy.selection import CannotCopy, select_files
from ckpt.restart.findings import Outcome
from ckpt.storage import open_storage, remote_writer
from ckpt.storage.local import LocalStorage
from ckpt.versions import Progress
from tests.changes.applying import facts
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.support.places import SAMPLE_NAMES, SAMPLES
from tests.support.remedies import remove
from tests.support.services.fixtures import Upload, storage_words

BROKEN = "aggregation-changelog-4.2"


def files(top: Path) -> dict[str, bytes]:
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def version_of(path: str) -> int:
    """Of a state file, by its name."""
    stem = path.rpartition("/")[2].lstrip(".").partition(".")[0].partition("_")[0]
    return int(stem) if stem.isdecimal() and "SSTs" not in path and "_metadata" not in path else 0


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_every_sample_is_copied_as_published(sample: str, ckpt: Ckpt, tmp_path: Path) -> None:
    before, to = facts(SAMPLES / sample), tmp_path / "the copy"
    run = ckpt("copy", f"sample_checkpoints/{sample}", to, "-o", "json")
    assert facts(SAMPLES / sample) == before
    if run.exit_code == 3:
        assert sample.startswith(("damaged", "async"))
        assert run.stderr.startswith("ckpt: ")
        assert not to.exists() or files(to) == {}
        return
    document, original, copied = run.json(), files(SAMPLES / sample), files(to)
    assert contract.disagreements(document, "copy") == []
    assert (document["files"], document["bytes"]) == (len(copied), sum(map(len, copied.values())))
    different = {path for path, data in copied.items() if original.get(path) != data}
    assert all("/_metadata/v2/" in path for path in different), "only recorded places change"
    for path in copied:
        assert (to / path).stat().st_mtime_ns // 10**6 == (SAMPLES / sample / path).stat().st_mtime_ns // 10**6
        if path.startswith("state/"):
            assert version_of(path) <= document["batch"] + 1 + ("-killed-" in sample), "and of a planned batch"
    inspected = ckpt("inspect", to, "-o", "json").json()
    assert inspected["latest"]["committed_batch"] == document["batch"]
    assert inspected["latest"]["offset_batch"] - document["batch"] in (0, 1), "one that is planned keeps its range"
    assert inspected["restart"] != []
    assert not {"CKPT305", "CKPT311"} & {one["code"] for one in inspected["findings"]}
    assert any(one["batch_id"] == document["batch"] + 1 for one in inspected["restart"])


@pytest.mark.slow
@pytest.mark.parametrize("sample", ["aggregation-hdfs-4.2", BROKEN, "aggregation-format2-4.2", "file-source-4.2"])
def test_as_of_an_earlier_batch_nothing_later_is_there(sample: str, tmp_path: Path) -> None:
    state_of = read_checkpoint(open_storage(str(SAMPLES / sample))).state
    spans = state_of.operators[0].stores[0].readable_batches if state_of else ((3, 9),)
    for batch in range(spans[-1][0], spans[-1][1] + 1):
        to = tmp_path / str(batch)
        done = copy(str(SAMPLES / sample), str(to), batch=batch)
        assert done.batch == batch
        found = inspect(read_checkpoint(open_storage(str(to)), batches=0))
        assert found.checkpoint.offsets.ids[-1] == found.checkpoint.commits.ids[-1] == batch
        assert {f.batch_id for f in found.counted if f.progress is Progress.SYNC} == {batch + 1}
        state = found.checkpoint.state
        assert state is None or (state.newer is None and state.needed_version == batch + 1)


@pytest.mark.parametrize("sample", ["tws-rocksdb-4.2", "join-v4-changelog-4.3"])
def test_schemas_are_found_in_the_copy(sample: str, tmp_path: Path) -> None:
    to = tmp_path / "copy"
    copy(str(SAMPLES / sample), str(to))
    named = [path for path in to.glob("state/*/_metadata/v2/[0-9]*") if f"file:{to}/state/" in path.read_text()]
    assert named
    copied_again = select_files(open_storage(str(to)), str(tmp_path / "again"))
    assert copied_again.changed, "a copy of the copy names its own place"


def test_a_new_id(ckpt: Ckpt, tmp_path: Path) -> None:
    old, new = (
        ckpt("copy", "sample_checkpoints/stateless-4.2", tmp_path / name, *words, "-o", "json").json()
        for name, words in (("old", []), ("new", ["--new-id"]))
    )
    assert (
        old["query_id"]
        != new["query_id"]
        == ckpt("inspect", tmp_path / "new", "-o", "json").json()["checkpoint"]["query_id"]
    )
    meanings = [{one["kind"]: one["meaning"].partition(" ")[0] for one in told["sinks"]} for told in (old, new)]
    assert {kind: meaning[0] for kind, meaning in meanings[0].items()} == {
        "delta": "s",
        "iceberg": "s",
        "file": "s",
        "foreachBatch with txnAppId": "s",
        "kafka": "g",
        "foreach, foreachBatch": "g",
    }
    assert {kind for kind in meanings[0] if meanings[0][kind] != meanings[1][kind]} == {"delta", "iceberg"}
    assert "CKPT503" not in ckpt("inspect", tmp_path / "new", "-o", "json").stdout, "its checksum is right"


def test_a_file_that_is_owned_by_another_batch_is_no_part_of_it(copy_of: CopyOf, tmp_path: Path) -> None:
    """A crash left state of version 11, a snapshot even; started on it, a query would load that later."""
    checkpoint = copy_of("aggregation-hdfs-4.2")
    for partition in ("0", "1"):
        folder = checkpoint / "state" / "0" / partition
        shutil.copy(folder / "10.delta", folder / "11.delta")
        shutil.copy(folder / "10.delta", folder / "12.snapshot")
    to = tmp_path / "copy"
    copy(str(checkpoint), str(to))
    assert max(version_of(path) for path in files(to) if path.startswith("state/")) == 10


# Elsewhere.


@pytest.fixture(params=["whole", "in pieces"])
def held(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How much of a file is held at a time."""
    if request.param == "in pieces":
        monkeypatch.setattr(placing, "PIECE", 100)
        monkeypatch.setattr(remote_writer, "PIECE", 70)


@pytest.mark.slow
@pytest.mark.usefixtures("held")
def test_there_and_back_through_another_storage(memory_uri: Upload, ckpt: Ckpt, tmp_path: Path) -> None:
    for sample in ("tws-rocksdb-4.2", "aggregation-format2-4.2", "kafka-4.2"):
        here, there, back = tmp_path / sample / "a", f"memory://{tmp_path.name}/{sample}", tmp_path / sample / "b"
        here.parent.mkdir()
        copy(str(SAMPLES / sample), str(here))
        copy(str(here), there)
        copy(there, str(back))
        first, last = files(here), files(back)
        plain = {path for path in first if not path.rpartition("/")[2].startswith(".")}
        assert last.keys() == plain
        for path in plain:
            assert last[path] == first[path].replace(f"file:{here}/".encode(), f"file:{back}/".encode())
        assert ckpt("inspect", there).exit_code == ckpt("inspect", back).exit_code == 0


@pytest.fixture
def held_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files are held whole, larger ones in pieces."""
    monkeypatch.setattr(placing, "PIECE", 1000)
    monkeypatch.setattr(remote_writer, "PIECE", 700)
    sizes = [len(data) for data in files(SAMPLES / "aggregation-changelog-4.2").values()]
    assert min(sizes) < 700 < 1000 < max(sizes)


@pytest.mark.service
@pytest.mark.usefixtures("held_in_part")
def test_to_s3_and_back(s3: Any, ckpt: Ckpt, tmp_path: Path) -> None:
    uri = s3.upload(SAMPLES / "aggregation-changelog-4.2")
    bucket = uri.rpartition("/")[0]
    words = storage_words(s3.options)
    for source, to in ((uri, tmp_path / "a"), (tmp_path / "a", f"{bucket}/b"), (f"{bucket}/b", f"{bucket}/c")):
        run = ckpt("copy", source, to, *words, "-o", "json")
        assert run.exit_code == 0, run.stderr + str(run.json()["wrong_checksums"])
    copy(f"{bucket}/c", str(tmp_path / "d"), storage_options=s3.options)
    hadoops = {path for path in files(tmp_path / "a") if path.rpartition("/")[2].startswith(".")}
    assert files(tmp_path / "d") == {path: of for path, of in files(tmp_path / "a").items() if path not in hadoops}
    assert ckpt("copy", uri, f"{bucket}/b", *words).exit_code == 3, "something is there"


@pytest.mark.service
@pytest.mark.usefixtures("held_in_part")
def test_to_hdfs_and_back(hdfs: Any, hdfs_uri: Upload, ckpt: Ckpt, tmp_path: Path) -> None:
    uri, _ = hdfs_uri(SAMPLES / "aggregation-format2-4.2")
    copy(uri, f"{uri}-copy")
    assert ckpt("inspect", f"{uri}-copy").exit_code == 0
    copy(f"{uri}-copy", str(tmp_path / "back"))
    original = files(SAMPLES / "aggregation-format2-4.2")
    assert {path for path, data in files(tmp_path / "back").items() if original[path] != data} == set()


# Refused.


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("{checkpoint}/copy",), 2, "is inside the checkpoint"),
        (("{checkpoint}/..",), 2, "is inside the checkpoint"),
        (("{checkpoint}",), 2, "is inside the checkpoint"),
        (("{full}",), 3, "already exists"),
        (("{full}/x",), 3, "already exists: name a folder that does not"),
        (("{nowhere}",), 3, "already exists: name a folder that does not"),
        (("{new}/copy",), 3, "/new/copy cannot be written: create {new} first"),
        (("memory://copy",), 2, "memory://copy disappears when ckpt ends: name a permanent folder"),
        (("{new}", "--batch", 77), 3, "batch 77 has no readable offsets or commit; the oldest that can be"),
        (("{new}", "--storage-options", "a"), 2, "write it as key=value"),
    ],
)
def test_what_is_refused(
    words: tuple[Any, ...], code: int, said: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path
) -> None:
    checkpoint, full = copy_of("stateless-4.2"), tmp_path / "full"
    full.mkdir()
    full.joinpath("x").touch()
    nowhere = tmp_path / "link"
    nowhere.symlink_to(tmp_path / "gone")
    places = {"checkpoint": checkpoint, "full": full, "new": tmp_path / "new", "nowhere": nowhere}
    before = facts(tmp_path)
    run = ckpt("copy", checkpoint, *(str(word).format(**places) for word in words))
    assert run.exit_code == code
    assert said.format(**places) in run.refusal()
    shutil.rmtree(tmp_path / "new", ignore_errors=True)
    after = facts(tmp_path)
    assert {path: of for path, of in after.items() if path in before} == before


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert copy(str(SAMPLES / "stateless-4.2"), str(tmp_path / "empty")).batch == 5


@pytest.mark.parametrize("gone", ["state/0/0/10.delta", "offsets/8"])
def test_what_would_not_start_is_not_copied(gone: str, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    remove(checkpoint / gone)
    with pytest.raises(CkptError, match=r"would not start"):
        copy(str(checkpoint), str(tmp_path / "copy"))
    assert not files(tmp_path / "copy")


def test_a_planned_batch_keeps_its_range(tmp_path: Path) -> None:
    """A sink may have its rows; planned again it would be dropped with the rows that are new."""
    done = copy(str(SAMPLES / "aggregation-killed-hdfs-4.0"), str(tmp_path / "copy"))
    assert done.batch == 3
    old, new = (
        inspect(open_checkpoint(str(one))) for one in (SAMPLES / "aggregation-killed-hdfs-4.0", tmp_path / "copy")
    )
    assert [(f.outcome, f.batch_id, f.sources) for f in new.forecasts] == [
        (f.outcome, f.batch_id, f.sources) for f in old.forecasts
    ]
    assert new.forecasts[0].batch_id == 4
    with pytest.raises(CkptError, match="batch 4 is not committed"):
        copy(str(SAMPLES / "aggregation-killed-hdfs-4.0"), str(tmp_path / "other"), batch=4)


def test_an_empty_folder_or_none_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(CkptError, match="the checkpoint is empty"):
        copy(str(tmp_path / "x"), str(tmp_path / "y"))
    assert not (tmp_path / "y").exists()
    with pytest.raises((NotFound, NotACheckpoint)):
        copy(str(tmp_path / "z"), str(tmp_path / "w"))


def test_a_copy_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    copy(str(SAMPLES / "stateless-4.2"), str(tmp_path / "copy"))
    assert os.stat(tmp_path / "copy").st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("sample", "file", "hidden"),
    [
        ("aggregation-hdfs-4.2", "state/0/0/8.snapshot", True),
        ("pandas-with-state-changelog-4.2", "state/0/1/10.zip", True),
        ("aggregation-format2-4.2", "state/0/0/7_*.changelog", False),
    ],
)
@pytest.mark.parametrize("piece", [1 << 22, 512])
def test_state_that_does_not_fit_its_checksums_is_named(
    sample: str, file: str, hidden: bool, piece: int, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("ckpt.new.placing.PIECE", piece)
    checkpoint = copy_of(sample)
    assert ckpt("copy", checkpoint, tmp_path / "sound").exit_code == 0
    damaged = sorted(checkpoint.glob(file))[-1]
    beside = damaged.parent / (f".{damaged.name}.crc" if hidden else f"{damaged.name}.crc")
    data = damaged.read_bytes()
    damaged.write_bytes(data[:30] + bytes([data[30] ^ 1]) + data[31:])
    for other in (damaged.parent / f".{damaged.name}.crc", damaged.parent / f"{damaged.name}.crc"):
        if other != beside:
            other.unlink(missing_ok=True)
    assert beside.exists()
    run = ckpt("copy", checkpoint, tmp_path / "copy", "-o", "json")
    path = str(damaged.relative_to(checkpoint))
    assert (run.exit_code, run.json()["wrong_checksums"]) == (1, [path])
    assert (tmp_path / "copy" / path).read_bytes() == damaged.read_bytes()
    page = ckpt("copy", checkpoint, tmp_path / "other")
    assert (page.exit_code, path in page.stdout, "--deep" in page.stdout) == (1, True, True)


@pytest.mark.parametrize("batch", [5, 6])
def test_continuous_processing_is_copied_as_of_an_epoch(batch: int, tmp_path: Path) -> None:
    """A start with a continuous trigger continues after it."""
    copied = copy(str(SAMPLES / "continuous-kafka-4.2"), str(tmp_path / "copy"), batch=batch)
    starts = [f for f in copied.inspection.forecasts if f.progress is Progress.CONTINUOUS]
    assert {(f.outcome, f.batch_id) for f in starts} == {(Outcome.RESUMES, batch + 1)}
    assert not (tmp_path / "copy" / "offsets" / str(batch + 1)).exists()


# Interrupted: killed, while the query deletes files or writes them, or of a file that is large.


CHANGES = [["repair"], ["rewind", "--to-batch", "7"], ["repair-async"]]


def test_what_is_not_finished_says_so_and_is_not_changed(copy_of: CopyOf, ckpt: Ckpt) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    (checkpoint / "offsets/9").write_bytes(UNFINISHED)
    (checkpoint / "offsets/.9.crc").unlink(missing_ok=True)
    found = ckpt("inspect", checkpoint, "-o", "json").json()["findings"]
    assert [(finding["code"], finding["path"]) for finding in found if finding["severity"] == "error"] == [
        ("CKPT113", "offsets/9")
    ]
    assert f"Next Remove {checkpoint}, and every other" in " ".join(ckpt("inspect", checkpoint).stdout.split())
    assert "recommended" not in ckpt("repair", checkpoint).stdout
    for words in CHANGES:
        run = ckpt(*words, checkpoint, "--apply")
        assert run.exit_code == 3
        assert "was interrupted while it wrote this checkpoint" in " ".join((run.stdout + run.stderr).split())
    with pytest.raises(CannotCopy, match="was interrupted while it wrote"):
        copy(str(checkpoint), "memory://of-an-unfinished-one")


@pytest.mark.parametrize(("deleted", "batch"), [(2, 8), (8, 9)])
def test_what_the_query_deletes_meanwhile(
    deleted: int, batch: int, copy_of: CopyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look is of batch 8; before its files are read batch 9 runs, and the oldest ones go."""
    checkpoint = copy_of("aggregation-hdfs-4.2")
    aside = tmp_path / "aside"
    for path in ("offsets/9", "commits/9", "state/0/0/10.delta", "state/0/1/10.delta"):
        aside.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(checkpoint / path, aside / path)
    read_many = LocalStorage.read_many

    def moving(self: LocalStorage, requests: Any) -> Any:
        asked = list(requests)
        if aside.is_dir() and {"offsets/8", "state/0/_metadata/metadata"} <= {request.path for request in asked}:
            shutil.copytree(aside, checkpoint, dirs_exist_ok=True)
            shutil.rmtree(aside)
            for old in range(deleted):
                remove(checkpoint / "offsets" / str(old))
        return read_many(self, asked)

    monkeypatch.setattr(LocalStorage, "read_many", moving)
    result = copy(str(checkpoint), str(tmp_path / "copy"))
    assert not aside.is_dir()
    assert result.batch == batch
    left = sorted(int(path.name) for path in (tmp_path / "copy" / "offsets").glob("[0-9]*"))
    assert left == [*range(deleted, batch + 1)]
    assert inspect(read_checkpoint(open_storage(str(tmp_path / "copy")))).sound


def test_a_named_batch_whose_files_go_meanwhile_is_given_up(copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint, seen = copy_of("aggregation-hdfs-4.2"), itertools.count()
    needed = select_files(open_storage(str(checkpoint)), str(tmp_path / "copy"), batch=7).chain[-1]

    def watcher(done: int, total: int) -> None:
        if next(seen) == 0:
            (checkpoint / needed.path).unlink()

    with pytest.raises(StorageError, match="deletes old files while it runs"):
        copy(str(checkpoint), str(tmp_path / "copy"), batch=7, watcher=watcher)
    assert files(tmp_path / "copy") == {}


@pytest.mark.parametrize(("grow", "said"), [(0, "changed while it was copied"), (-3, "changed while")])
def test_a_large_file_that_is_written_meanwhile_is_not_mixed(
    grow: int, said: str, copy_of: CopyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    file, read_range = checkpoint / "state/0/0/8.snapshot", LocalStorage.read_range

    def writing(self: LocalStorage, path: str, offset: int, length: int) -> bytes:
        if checkpoint / path == file and offset == 50:
            file.write_bytes(bytes(file.stat().st_size + grow))
        return read_range(self, path, offset, length)

    monkeypatch.setattr(placing, "PIECE", 50)
    monkeypatch.setattr(LocalStorage, "read_range", writing)
    with pytest.raises(StorageError, match=f"state/0/0/8.snapshot {said}"):
        copy(str(checkpoint), str(tmp_path / "copy"))
    assert files(tmp_path / "copy") == {}


MEASURED = """
from pathlib import Path
from ckpt.new.copy.copy import copy
copy("{checkpoint}", "{to}")
print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""


@pytest.mark.slow
def test_a_large_snapshot_is_not_held_in_memory(copy_of: CopyOf, tmp_path: Path) -> None:
    """Of 300 MB, the middle of it a hole; the sizes of state files are all that a copy asks of them, and their ends."""
    checkpoint, to = copy_of("aggregation-hdfs-4.2"), tmp_path / "copy"
    snapshot = checkpoint / "state/0/0/8.snapshot"
    end = snapshot.read_bytes()[-21:]
    with snapshot.open("rb+") as file:
        file.truncate(300_000_000)
        file.seek(0, os.SEEK_END)
        file.write(end)
    (checkpoint / "state/0/0/.8.snapshot.crc").unlink()
    script = MEASURED.format(checkpoint=checkpoint, to=to)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(run.stdout) * 1024 < 100_000_000
    assert filecmp.cmp(snapshot, to / "state/0/0/8.snapshot", shallow=False)


@pytest.mark.parametrize("error", [StorageError("the disk is full"), KeyboardInterrupt()])
def test_what_fails_half_way_leaves_nothing(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = itertools.count()

    def watcher(done: int, total: int) -> None:
        if next(written) == 9:
            raise error

    with pytest.raises(type(error)):
        copy(str(SAMPLES / BROKEN), str(tmp_path / "copy"), watcher=watcher)
    assert not (tmp_path / "copy").exists()
    assert copy(str(SAMPLES / BROKEN), str(tmp_path / "copy")).batch == 9, "and the folder can be used"


@pytest.mark.parametrize(("path", "said"), [("metadata", "already exists"), ("10", "something else is writing there")])
def test_what_somebody_else_wrote_there_is_left(path: str, said: str, tmp_path: Path) -> None:
    def watcher(done: int, total: int) -> None:
        (tmp_path / "copy" / path).write_text("of another copy")

    with pytest.raises(StorageError, match=said):
        copy(str(SAMPLES / BROKEN), str(tmp_path / "copy"), watcher=watcher)
    assert files(tmp_path / "copy") == {path: b"of another copy"}
