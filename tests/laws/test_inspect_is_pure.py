"""Inspecting changes nothing, starts nothing, imports nothing heavy, and says the same of the same files."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.commands import contract
from tests.conftest import OUTPUTS, Ckpt, CopyOf, Run, command
from tests.support.places import EACH_SAMPLE, GOLDENS, ROOT, SAMPLES, golden_checkpoints, some_quick
from tests.support.spark.live import EVERY_CASE

Facts = tuple[Any, ...]


def facts(top: Path) -> dict[str, Facts]:
    """All that writing would change: names, kinds, modes, owners, sizes, contents, times of content and of inode."""
    return {str(path): _facts(path) for path in (top, *sorted(top.rglob("*")))}


def _facts(path: Path) -> Facts:
    of = path.lstat()
    content = hashlib.sha256(path.read_bytes()).digest() if path.is_file() else sorted(os.listdir(path))
    return of.st_ino, of.st_mode, of.st_uid, of.st_nlink, of.st_size, of.st_mtime_ns, of.st_ctime_ns, content


def inspect_every_way(ckpt: Ckpt, path: Path) -> None:
    for words in ([], ["-o", "json"], ["--batches", "0", "-o", "json"]):
        assert ckpt("inspect", path, *words).exit_code in (0, 1)


@pytest.mark.parametrize("sample", EACH_SAMPLE)
def test_inspecting_changes_nothing_of_a_sample(sample: str, ckpt: Ckpt) -> None:
    before = facts(SAMPLES / sample)
    inspect_every_way(ckpt, SAMPLES / sample)
    assert facts(SAMPLES / sample) == before


@pytest.mark.parametrize("golden", golden_checkpoints())
def test_inspecting_changes_nothing_of_a_golden(golden: str, ckpt: Ckpt) -> None:
    before = facts(GOLDENS / golden)
    inspect_every_way(ckpt, GOLDENS / golden)
    assert facts(GOLDENS / golden) == before


# The samples that lead through all the reading there is: logs, source logs, every kind of state file, damage.
THOROUGH = [
    "stateless-3.5",
    "join-hdfs-3.5",
    "aggregation-format2-4.2",
    "tws-rocksdb-4.2",
    "damaged-missing-sst",
    "file-source-3.5",
]

WATCH = """
import json, os, sys
below, *words = sys.argv[1:]
seen = []

def hook(event, args):
    paths = [os.fsdecode(a) for a in args if isinstance(a, (str, bytes))]
    if event == "open":
        seen.append(["open", paths[:1], args[2] if isinstance(args[2], int) else 0, args[1]])
    elif event.partition(".")[0] in ("os", "shutil", "subprocess", "socket", "tempfile", "sqlite3", "ctypes"):
        seen.append([event, paths, 0, None])

sys.addaudithook(hook)
sys.argv = ["ckpt", *words]
from importlib.metadata import entry_points
try:
    (script,) = entry_points(group="console_scripts", name="ckpt")
    script.load()()
except SystemExit:
    pass
sys.stdout = sys.__stderr__
print(json.dumps({"seen": seen, "modules": sorted(sys.modules)}), file=sys.__stderr__)
"""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
READ_EVENTS = {"open", "os.listdir", "os.scandir"}


def watched(*words: str) -> Any:
    """A run in a process of its own under an audit hook: what it did, and which modules it ended with."""
    done = subprocess.run(
        [sys.executable, "-c", WATCH, *words], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout
    return json.loads(done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("sample", THOROUGH)
def test_the_audit_hook_sees_no_write_and_no_process(sample: str) -> None:
    path = str(SAMPLES / sample)
    seen = watched(path, "inspect", path, "--batches", "0")["seen"]

    opened = [(paths[0], flags, mode) for event, paths, flags, mode in seen if event == "open" and paths]
    inside = [one for one in opened if one[0].startswith(path)]
    assert len(inside) > 5, "the hook sees what is opened"
    assert [one for one in inside if one[1] & WRITING or set(one[2] or "r") & set("wax+")] == []
    other = [(event, paths) for event, paths, _, _ in seen if event not in READ_EVENTS]
    assert [one for one in other if any(SAMPLES.name in part for part in one[1])] == []
    processes = ("subprocess.", "socket.", "os.fork", "os.exec", "os.posix_spawn", "os.system", "os.kill")
    assert [one for one in other if one[0].startswith(processes)] == []


HEAVY = {"pyspark", "py4j", "delta", "pyarrow", "fsspec", "pandas", "numpy", "hdfs_native", "multiprocessing", "http"}
WRITERS = ("ckpt.storage.local_writer", "ckpt.storage.remote_writer")


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("sample", some_quick(THOROUGH, 6))
def test_a_local_run_imports_nothing_heavy(sample: str, output: str) -> None:
    modules = watched("", "inspect", f"sample_checkpoints/{sample}", "-o", output)["modules"]
    assert "ckpt.inspection.inspection" in modules
    needed = {"pyarrow", "numpy"} if "sst" in sample else set()  # an SST file without checksum file is decompressed
    assert {name.partition(".")[0] for name in modules} & HEAVY <= needed
    assert [name for name in modules if name.startswith(WRITERS)] == [], "what changes a checkpoint is not even loaded"
    if not sample.startswith("damaged-"):  # where a repair is advised, it is planned
        assert [name for name in modules if name.startswith("ckpt.changes")] == []


CHANGING = re.compile(
    r"^\d+ +(mkdir|rmdir|unlink|rename|link|symlink|f?utime|f?chmod|[fl]?chown|f?truncate|fallocate|mknod|creat)"
)
OPENING = re.compile(r"^\d+ +open(?:at2?)?\(")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("sample", THOROUGH)
def test_the_system_calls_of_a_run_write_nothing(sample: str, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of(sample, to="under-watch")
    record = tmp_path / "record"
    watch = ["strace", "-f", "-y", "-s", "4096", "-e", "trace=%file,%desc", "-o", str(record)]
    done = subprocess.run([*watch, *command(), "inspect", str(checkpoint)], cwd=ROOT, capture_output=True, timeout=120)
    if b"Operation not permitted" in done.stderr or b"ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode in (0, 1), done.stderr

    calls = [line for line in record.read_text(errors="replace").splitlines() if "under-watch" in line]
    opened = [line for line in calls if OPENING.match(line)]
    assert len(opened) > 5, "strace sees what is opened"
    assert [line for line in opened if re.search("O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE", line)] == []
    assert [line for line in calls if CHANGING.match(line)] == []
    assert [line for line in calls if re.match(r"^\d+ +p?write(v|64)?\(\d+<[^>]*under-watch", line)] == []
    started = [line for line in record.read_text(errors="replace").splitlines() if "execve(" in line]
    assert len(started) == 1, "no process but ckpt's own"


# Whatever happens to a checkpoint, ckpt tells it or refuses in one line, and tells it again the same way.

DAMAGED = [
    *("stateless-3.5", "two-sources-offsets-v2-4.2", "aggregation-hdfs-3.5", "join-rocksdb-4.0"),
    *("aggregation-format2-4.2", "tws-changelog-4.0", "file-source-3.5", "kafka-4.2", "delta-4.2"),
]


def damage(draw: st.DrawFn, file: Path) -> None:
    raw = file.read_bytes()
    match draw(st.sampled_from(["delete", "empty", "cut", "flip", "prepend", "replace", "folder", "swap", "as text"])):
        case "delete":
            file.unlink()
        case "empty":
            file.write_bytes(b"")
        case "cut":
            file.write_bytes(raw[: draw(st.integers(0, max(len(raw) - 1, 0)))])
        case "flip" if raw:
            place = draw(st.integers(0, len(raw) - 1))
            file.write_bytes(raw[:place] + bytes([raw[place] ^ (1 << draw(st.integers(0, 7)))]) + raw[place + 1 :])
        case "prepend":
            file.write_bytes(draw(st.binary(max_size=20)) + raw)
        case "replace":
            file.write_bytes(draw(st.binary(max_size=200)))
        case "folder":
            file.unlink()
            file.mkdir()
        case "swap":
            other = draw(st.sampled_from(sorted(path for path in file.parent.iterdir() if path.is_file())))
            file.write_bytes(other.read_bytes())
        case "as text":
            lines = draw(
                st.lists(
                    st.sampled_from(["v1", "v2", "v3", "{}", "[]", "-", "null", "5", "0:5", '""', "1e5"]), max_size=5
                )
            )
            file.write_text("\n".join(lines))


def damaged(draw: st.DrawFn, checkpoint: Path) -> None:
    files = sorted(path for path in checkpoint.rglob("*") if path.is_file())
    for file in draw(st.lists(st.sampled_from(files), min_size=1, max_size=6, unique=True)):
        if file.is_file():
            damage(draw, file)


@pytest.mark.slow
@pytest.mark.parametrize("sample", DAMAGED)
def test_whatever_happens_to_a_checkpoint_is_told(sample: str, ckpt: Ckpt, tmp_path: Path) -> None:
    places = iter(range(10**6))

    @settings(
        max_examples=25 if EVERY_CASE else 5,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=True,
    )
    @given(st.data())
    def law(data: st.DataObject) -> None:
        checkpoint = tmp_path / str(next(places))
        shutil.copytree(SAMPLES / sample, checkpoint)
        data.draw(st.composite(lambda draw: damaged(draw, checkpoint))())
        before = facts(checkpoint)
        table, document, again = (ckpt("inspect", checkpoint, *words) for words in ([], JSON, JSON))
        assert facts(checkpoint) == before
        assert document == again
        assert table.exit_code == document.exit_code
        hold(document)
        assert all(line.isprintable() for line in table.stdout.split("\n"))
        shutil.rmtree(checkpoint)

    law()


JSON = ["-o", "json"]


def hold(result: Run) -> None:
    """What is true of every answer."""
    if result.exit_code == 3:
        assert result.refusal()
        return
    assert result.stderr == ""
    document = result.json()
    assert contract.disagreements(document) == []
    assert list(contract.contradictions(document)) == []
    serious = [one for one in document["findings"] if one["severity"] != "note"]
    assert result.exit_code == (1 if serious else 0)
