"""``ckpt state verify`` and ``ckpt inspect --deep``: what they say, in processes, remotely, at what cost."""

import io
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ckpt as library
from ckpt.errors import CkptError, UsageError
from ckpt.formats.checksums import of_lz4_block
from ckpt.formats.compression import MAGIC
from ckpt.formats.sidecars import build_hadoop_sidecar
from ckpt.inspection.inspection import inspect
from ckpt.state.verify import verify
from ckpt.state.verify.verify import Estimate, state_verify
from commands import watching
from tests.changes.applying import facts
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.support.places import SAMPLE_NAMES, SAMPLES, some_quick

DELTAS, SNAPSHOTS = "aggregation-hdfs-3.5", "aggregation-changelog-4.2"


def flip(path: Path, at: int, bits: int = 0xFF) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= bits
    path.write_bytes(data)


@pytest.mark.parametrize("name", some_quick(SAMPLE_NAMES, 5))
def test_the_document_is_as_published_and_nothing_is_written(name: str, ckpt: Ckpt) -> None:
    before = facts(SAMPLES / name)
    run = ckpt("state", "verify", f"sample_checkpoints/{name}", "-o", "json")
    assert facts(SAMPLES / name) == before
    if not (SAMPLES / name / "state").is_dir():
        assert run.exit_code == 3
        assert "no state to verify" in run.refusal()
        return
    document = run.json()
    assert contract.disagreements(document, "state verify") == []
    assert run.exit_code == bool(document["damages"])
    if not name.startswith("damaged-"):
        assert (document["damages"], document["unknown"]) == ([], [])
        assert document["files"] > 1
        assert document["loadable"]


def test_damage_in_the_middle_of_a_file_is_in_the_page_the_forecast_and_the_findings(
    ckpt: Ckpt, copy_of: CopyOf
) -> None:
    checkpoint = copy_of(DELTAS)
    flip(checkpoint / "state/0/0/3.delta", 40)
    assert "RESTARTS" in ckpt("inspect", checkpoint, "--names-only").stdout
    assert "RESTARTS" not in ckpt("inspect", checkpoint).stdout
    run = ckpt("state", "verify", checkpoint)
    assert run.exit_code == 1
    assert "DAMAGED: 1 file" in run.stdout
    assert "state/0/0/3.delta" in run.stdout
    document = ckpt("state", "verify", checkpoint, "-o", "json").json()
    assert document["loadable"] == [[0, 1]]
    assert {one["outcome"] for one in document["restart"] if one["progress"] == "sync"} == {"fails-in-batch"}
    deep = ckpt("inspect", checkpoint, "--deep", "--progress", "sync", "-o", "json")
    assert deep.exit_code == 1
    page = " ".join(ckpt("inspect", checkpoint, "--deep").stdout.split())
    assert "every byte of 13 files was read, 1.8 KiB; 1 file damaged" in page
    told = deep.json()
    assert contract.disagreements(told) == []
    assert told["restart"] == [one for one in document["restart"] if one["progress"] == "sync"]
    assert "CKPT302" in {one["code"] for one in told["findings"]}


def test_whoever_watches_learns_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    times = iter((0.0, 1.0, 30.0, 60.0, 120.0))
    monkeypatch.setattr(watching, "monotonic", lambda: next(times))
    with watching.reading(quiet=False) as (told, watcher):
        assert told is not None
        assert watcher is not None
        told(Estimate(2, 400 << 20))
        for done in (1, 10 << 20, 200 << 20, (400 << 20) - 1):
            watcher(done, 400 << 20)
    said = [line.rstrip() for line in terminal.getvalue().split("\r")]
    assert [line.partition("] ")[2] for line in said[1:5]] == [
        "1 of 400 MiB",
        "10 of 400 MiB, 20 min left",
        "200 of 400 MiB, 60 s left",
        "400 of 400 MiB",
    ]
    assert said[0] == "ckpt: 2 files to read, 400.0 MiB"
    assert max(map(len, said)) < len(said[0]) + 50


def test_a_step_is_named_where_only_the_forecast_is_bad(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(DELTAS)
    (checkpoint / "state/0/0/7.delta").mkdir()
    run = ckpt("state", "verify", checkpoint)
    assert run.exit_code == 0
    assert "NO DAMAGE FOUND" in run.stdout
    assert f"ckpt inspect {checkpoint} --deep" in " ".join(run.stdout.split())


def test_what_only_older_batches_need_is_a_warning_and_the_next_start_resumes(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(SNAPSHOTS)
    flip(checkpoint / "state/0/0/3.zip", 200)
    run = ckpt("inspect", checkpoint, "--deep", "--progress", "sync", "-o", "json")
    assert {one["outcome"] for one in run.json()["restart"]} == {"resumes"}
    assert [one["code"] for one in run.json()["findings"] if one["severity"] == "warning"] == ["CKPT322"]
    assert run.exit_code == 1
    assert ckpt("state", "verify", checkpoint, "-o", "json").json()["loadable"] == [[0, 1], [5, 9]]
    assert ckpt("inspect", checkpoint, "--progress", "sync").exit_code == 0


def test_an_sst_file_makes_every_snapshot_that_names_it_bad(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-rocksdb-4.2")
    names = sorted(path.name for path in (checkpoint / "state/0/0/SSTs").glob("*.sst"))
    flip(checkpoint / "state/0/0/SSTs" / names[0], 20)
    document = ckpt("state", "verify", checkpoint, "-o", "json").json()
    named = [one["path"] for one in document["damages"]]
    assert named == [f"state/0/0/SSTs/{names[0]}"]
    without = [
        int(path.stem) - 1
        for path in (checkpoint / "state/0/0").glob("*.zip")
        if names[0].encode() not in zipfile.ZipFile(path).read("metadata")
    ]
    loadable = {batch for first, last in document["loadable"] for batch in range(first, last + 1)}
    assert loadable == set(without)


@pytest.mark.parametrize("jobs", [1, 3])
def test_processes_find_what_one_finds(jobs: int, copy_of: CopyOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_WORTH_A_PROCESS", 4096)
    checkpoint = copy_of("join-rocksdb-4.0")
    for place, path in enumerate(sorted((checkpoint / "state").rglob("*.sst"))[:5]):
        flip(path, 30 + place)
    told: list[Any] = []
    found = state_verify(str(checkpoint), jobs=jobs, announce=told.append, watcher=lambda *done: told.append(done))
    assert len(found.damages) == 5
    assert told[0] == Estimate(found.files, found.bytes)
    assert told[-1] == (found.bytes, found.bytes)
    assert len(told) == found.files + 1


def test_a_process_that_ends_early_is_no_all_clear(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(verify, "_WORTH_A_PROCESS", 4096)
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nread place\nexit 9\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    with pytest.raises(CkptError, match="fewer `jobs`"):
        state_verify(str(SAMPLES / "join-rocksdb-4.0"), jobs=2)


def test_remote_storage_is_verified_without_the_checksums_of_local_paths(copy_of: CopyOf) -> None:
    import fsspec

    checkpoint = copy_of(SNAPSHOTS)
    flip(checkpoint / "state/0/1/8.changelog", 40)
    place = fsspec.filesystem("memory")
    place.put(str(checkpoint), "/verified", recursive=True)
    found = state_verify("memory://verified", jobs=1)
    assert [(one.path, one.kind) for one in found.damages] == [("state/0/1/8.changelog", "unreadable")]


def test_what_is_seen_is_inspected_in_python(copy_of: CopyOf) -> None:
    checkpoint = copy_of(DELTAS)
    flip(checkpoint / "state/0/1/6.delta", 40)
    found = library.state_verify(str(checkpoint))
    assert not inspect(found.checkpoint).sound
    with pytest.raises(UsageError, match="`jobs`"):
        library.state_verify(str(checkpoint), jobs=0)


@pytest.mark.parametrize("codec", ["zstd", "snappy"])
def test_a_codec_without_checksums_is_unknown_unless_a_file_beside_it_tells(codec: str, copy_of: CopyOf) -> None:
    checkpoint = copy_of(DELTAS)
    for path in (checkpoint / "offsets").glob("[0-9]*"):
        text = path.read_text()
        assert '"spark.sql.streaming.stateStore.compression.codec":"lz4"' in text
        path.write_text(text.replace('compression.codec":"lz4"', f'compression.codec":"{codec}"'))
    for path in checkpoint.glob("state/0/*/*.delta"):
        data = path.read_bytes().replace(MAGIC, b"another!")  # nothing else is known of its codec
        path.write_bytes(data)
        path.with_name(f".{path.name}.crc").write_bytes(build_hadoop_sidecar(data))
    flip(checkpoint / "state/0/0/5.delta", 40)
    (checkpoint / "state/0/0/.6.delta.crc").unlink()
    found = state_verify(str(checkpoint))
    assert [one.path for one in found.damages] == ["state/0/0/5.delta"]
    assert found.unknown == ("state/0/0/6.delta",)


@pytest.mark.slow
def test_a_bomb_is_refused(ckpt: Ckpt, copy_of: CopyOf) -> None:
    """A zip of 300 kB that unpacks to 300 MB is not unpacked: what it contains is unknown."""
    checkpoint = copy_of("aggregation-rocksdb-4.2")
    path = max((checkpoint / "state/0/0").glob("*.zip"), key=lambda one: int(one.stem))
    content = io.BytesIO()
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as after:
        for info in before.infolist():
            large = info.filename.startswith("OPTIONS")
            after.writestr(info, bytes(300 << 20) if large else before.read(info), zipfile.ZIP_DEFLATED)
    path.write_bytes(content.getvalue())
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    document = ckpt("state", "verify", checkpoint, "--jobs", "1", "-o", "json").json()
    assert document["damages"] == []
    assert document["unknown"] == [str(path.relative_to(checkpoint))]
    (reason,) = document["reasons"]
    assert reason.endswith("it unpacks to more than 67,108,864 bytes")


def large(to: Path, content: bytes = bytes(1 << 15)) -> Path:
    """A checkpoint with two deltas of 60 MB: enough for several workers; zeros take long to read."""
    shutil.copytree(SAMPLES / DELTAS, to)
    body = pa.Codec("lz4_raw").compress(content, asbytes=True)
    block = MAGIC + struct.pack("<BiiI", 0x25, len(body), len(content), of_lz4_block(content)) + body
    for name in ("1.delta", "2.delta"):
        (to / "state/0/0" / name).write_bytes(block * (60_000_000 // len(block)))
        (to / f"state/0/0/.{name}.crc").unlink()
    return to


@pytest.mark.slow
def test_a_worker_takes_no_module_from_the_folder_that_it_is_run_in(tmp_path: Path) -> None:
    checkpoint, script = large(tmp_path / "checkpoint", os.urandom(1 << 15)), Path(sys.executable).with_name("ckpt")
    if not script.exists():
        pytest.skip("ckpt is not installed beside Python")
    (tmp_path / "xxhash.py").write_text("from pathlib import Path; Path('ran').touch()")
    done = subprocess.run([script, "state", "verify", checkpoint, "--jobs", "2"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 1, done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    """The workers end with whoever started them."""
    checkpoint = large(tmp_path / "checkpoint")
    for number in range(11, 31):  # work for some seconds
        os.link(checkpoint / "state/0/0/1.delta", checkpoint / f"state/0/0/{number}.delta")
    words = [sys.executable, "-m", "ckpt", "state", "verify", str(checkpoint), "--jobs", "2"]
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a test run in the background ignores it
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed) as run:
        deadline = time.monotonic() + 30
        while len(below := _children(run.pid)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(below) == 2
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=60)
    assert run.returncode == 3
    assert said == "ckpt: interrupted; nothing was written\n"
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{one}/cmdline").exists() for one in below):
        assert time.monotonic() < deadline, "a worker is left"
        time.sleep(0.05)


@pytest.mark.parametrize("said", [b"", b'{"work": ["ckpt.verif'])
def test_a_worker_that_is_left_before_it_is_told_its_work_ends_without_a_word(said: bytes) -> None:
    done = subprocess.run([sys.executable, "-m", "ckpt.processes"], input=said, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(one) for children in tasks for one in children.read_text().split()]
