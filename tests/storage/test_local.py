"""The local door: what it lists, what it refuses, and that it never writes."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

import pytest

from ckpt.errors import NotFound, StorageError
from ckpt.storage import FileInfo, Oddity, ReadRequest, open_storage
from tests.support.unprivileged import as_a_stranger

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree in a folder with a difficult name."""
    top = tmp_path / "a b%20ü"
    (top / "offsets").mkdir(parents=True)
    (top / "state" / "0" / "1").mkdir(parents=True)
    (top / "metadata").write_bytes(b"{}")
    (top / "offsets" / "0").write_bytes(b"v1\n{}")
    (top / "offsets" / ".0.crc").write_bytes(b"")
    return top


def test_lists_every_folder_and_file_with_size_and_time(tree):
    listing = open_storage(str(tree)).list_tree()

    expected = {
        "" if Path(folder) == tree else Path(folder).relative_to(tree).as_posix(): {
            name: FileInfo(found.st_size, found.st_mtime_ns // 1_000_000)
            for name in names
            for found in [os.stat(Path(folder, name))]
        }
        for folder, _, names in os.walk(tree)
    }
    assert listing.folders == expected
    assert listing.files == 3
    assert listing.bytes == 7
    assert listing.has_folder("state/0/1")
    assert not listing.has_folder("offsets/0")
    assert list(listing.subfolders("")) == ["offsets", "state"]
    assert list(listing.subfolders("nowhere")) == []
    assert listing.info("offsets/0") == expected["offsets"]["0"]
    assert listing.info("metadata") == expected[""]["metadata"]
    assert listing.info("offsets") is None
    assert sorted(path for path, _ in listing.walk()) == ["metadata", "offsets/.0.crc", "offsets/0"]
    assert sorted(path for path, _ in listing.walk("offsets")) == ["offsets/.0.crc", "offsets/0"]


def test_the_top_level_alone(tree):
    top = open_storage(str(tree)).list_level()

    assert set(top.files) == {"metadata"}
    assert top.folders == {"offsets", "state"}


def test_reads_whole_files_and_ranges(tree):
    storage = open_storage(str(tree))

    assert storage.read("offsets/0") == b"v1\n{}"
    assert storage.read("offsets/.0.crc") == b""
    assert storage.read_range("offsets/0", 3, 100) == b"{}"
    assert storage.read_range("offsets/0", 0, 2) == b"v1"
    assert storage.read_range("offsets/0", 5, 4) == b""
    assert storage.read_range("offsets/0", 500, 4) == b""


def test_reads_a_file_larger_than_one_system_call(tmp_path):
    content = os.urandom(3_500_000)
    (tmp_path / "big").write_bytes(content)
    storage = open_storage(str(tmp_path))

    assert storage.read("big") == content
    assert storage.read_range("big", 1_000_001, 2_000_003) == content[1_000_001:3_000_004]


def test_many_reads_are_answered_in_order_and_errors_are_answers(tree):
    answers = open_storage(str(tree)).read_many(
        [ReadRequest("offsets/0"), ReadRequest("offsets/7"), ReadRequest("state"), ReadRequest("metadata", 1, 1)]
    )

    assert answers[0] == b"v1\n{}"
    assert isinstance(answers[1], NotFound)
    assert isinstance(answers[2], StorageError)
    assert not isinstance(answers[2], NotFound)
    assert answers[3] == b"}"


def test_missing_and_misplaced_roots_are_named_with_the_cure(tree):
    with pytest.raises(NotFound, match=r"nowhere does not exist: check the path"):
        open_storage(str(tree / "nowhere")).list_level()
    with pytest.raises(NotFound, match=r"metadata is not a folder: give the checkpoint's own folder"):
        open_storage(str(tree / "metadata")).list_tree()


def test_an_empty_folder_is_an_empty_tree(tmp_path):
    assert open_storage(str(tmp_path)).list_tree().folders == {"": {}}


def test_links_are_followed_and_loops_and_dangling_links_are_not(tree, tmp_path):
    elsewhere = tree / "elsewhere"
    (elsewhere / "inner").mkdir(parents=True)
    (elsewhere / "inner" / "5").write_bytes(b"12345")
    (tree / "linked").symlink_to(elsewhere)
    (tree / "offsets" / "1").symlink_to("0")
    (tree / "state" / "self").symlink_to(".")
    (tree / "state" / "up").symlink_to("../..")
    (tree / "state" / "top").symlink_to("/")
    (elsewhere / "back").symlink_to(elsewhere.parent)
    (tree / "gone").symlink_to("nowhere")
    (tree / "ring").symlink_to("ring")

    listing = open_storage(str(tree)).list_tree()

    assert listing.folders["linked/inner"] == {"5": FileInfo(5, _ms(elsewhere / "inner" / "5"))}
    assert listing.info("offsets/1") == listing.info("offsets/0")
    assert listing.oddities == {
        "state/self": Oddity.LOOP,
        "state/up": Oddity.LOOP,
        "state/top": Oddity.LOOP,
        "linked/back": Oddity.LOOP,
        "elsewhere/back": Oddity.LOOP,
        "gone": Oddity.DANGLING,
        "ring": Oddity.DANGLING,
    }
    assert listing.folders["state/self"] == {}
    assert listing.info("gone") is None


def test_a_link_out_of_the_root_is_named_and_not_read_unless_it_is_the_root(tree, tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "7").write_bytes(b"secret")
    (tree / "folder").symlink_to(tmp_path / "secret")
    (tree / "state" / "file").symlink_to(f"../../{tree.name}/../secret/7")
    (tree / "offsets" / "1").symlink_to(tree / "offsets" / "0")
    (tmp_path / "link").symlink_to(tree)
    for root in (tree, tmp_path / "link"):
        storage = open_storage(str(root))
        listing = storage.list_tree()
        assert listing.oddities == {"folder": Oddity.OUTSIDE, "state/file": Oddity.OUTSIDE}
        assert listing.folders["folder"] == {}
        assert storage.read("offsets/1") == storage.read("offsets/0")
        with pytest.raises(StorageError, match=r"state/file is a symbolic link that leads out of the checkpoint: "):
            storage.read("state/file")
    assert open_storage(str(tree)).below("folder").read("7") == b"secret"


def test_pipes_and_sockets_are_listed_and_never_waited_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's path may not be long
    os.mkfifo("pipe")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        storage = open_storage(str(tmp_path))

        assert storage.list_tree().oddities == {"pipe": Oddity.SPECIAL, "socket": Oddity.SPECIAL}
        for name in ("pipe", "socket", "folder"):
            with pytest.raises(StorageError, match=name):
                storage.read(name)


def test_names_that_are_no_utf8_survive(tmp_path):
    name = os.fsdecode(b"caf\xe9")
    (tmp_path / name).mkdir()
    (tmp_path / name / "0").write_bytes(b"x")
    storage = open_storage(str(tmp_path))

    assert storage.list_tree().info(f"{name}/0") is not None
    assert storage.read(f"{name}/0") == b"x"
    assert open_storage(f"file://{tmp_path}/caf%E9").read("0") == b"x"


def test_an_error_is_one_line_whatever_the_name(tmp_path):
    with pytest.raises(NotFound) as caught:
        open_storage(str(tmp_path / "two\nlines\x1b[31m")).list_level()

    assert str(caught.value).isprintable()
    assert r"two\x0alines" in str(caught.value)


_COME_AND_GO = """
import os
while True:
    os.mkdir("0")
    for number in range(50):
        open(f"0/{number}", "w").close()
    for number in range(50):
        os.unlink(f"0/{number}")
    os.rmdir("0")
"""


def test_what_vanishes_while_it_is_listed_is_left_out(tmp_path):
    storage = open_storage(str(tmp_path))
    writer = subprocess.Popen([sys.executable, "-c", _COME_AND_GO], cwd=tmp_path)
    try:
        seen: set[bool] = set()
        deadline = time.monotonic() + 60
        for turn in count():
            listing = storage.list_tree()
            seen.add(listing.has_folder("0"))
            assert set(listing.folders) <= {"", "0"}
            if (turn >= 500 and len(seen) == 2) or time.monotonic() > deadline:
                break
    finally:
        writer.kill()
        writer.wait()

    assert seen == {True, False}


def test_a_folder_or_file_that_may_not_be_read_is_named():
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)
        (top / "closed").mkdir()
        (top / "offsets").mkdir()
        (top / "offsets" / "0").write_bytes(b"x")
        (top / "closed").chmod(0o000)
        (top / "offsets" / "0").chmod(0o000)
        with as_a_stranger():
            storage = open_storage(name)
            with pytest.raises(StorageError, match=r"closed cannot be read: run ckpt as a user that can"):
                storage.list_tree()
            with pytest.raises(StorageError, match=r"offsets/0 cannot be read"):
                storage.read("offsets/0")
            assert storage.list_level().folders == {"closed", "offsets"}
        (top / "closed").chmod(0o700)


_WATCHED = """
import json, os, sys
opened = []
def watch(event, args):
    if event == "open" and not isinstance(args[0], int):
        opened.append((os.fsdecode(args[0]), args[2]))
sys.addaudithook(watch)
from ckpt.storage import ReadRequest, open_storage
before = len(opened)
storage = open_storage(sys.argv[1])
storage.list_level()
listing = storage.list_tree()
paths = [path for path, _ in listing.walk()]
answers = storage.read_many([ReadRequest(path) for path in paths] + [ReadRequest(paths[0], 1, 1)])
assert all(isinstance(answer, bytes) for answer in answers), answers
heavy = sorted({"pyarrow", "fsspec", "concurrent.futures", "asyncio", "hdfs_native"} & sys.modules.keys())
print(json.dumps({"heavy": heavy, "opened": opened[before:]}))
"""


def test_nothing_is_written_no_time_changes_and_no_remote_library_is_loaded(tree):
    def state() -> dict[Path, tuple[int, int, int]]:
        return {
            path: (found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            for path in [tree, *tree.rglob("*")]
            for found in [path.stat()]
        }

    before = state()
    ran = subprocess.run(
        [sys.executable, "-c", _WATCHED, str(tree)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)

    assert seen["heavy"] == []
    inside = [flags for path, flags in seen["opened"] if path.startswith(str(tree))]
    assert len(inside) >= 8
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    assert [flags for flags in inside if flags & writing] == []
    assert state() == before


def _ms(path: Path) -> int:
    return path.stat().st_mtime_ns // 1_000_000
