"""Writing: a file appears whole, never over another one, and removing leaves nothing behind, wherever it lies."""

import itertools
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from ckpt.errors import StorageError, UsageError
from ckpt.storage import open_storage
from ckpt.storage.base import temporary
from ckpt.storage.local_writer import open_writer
from ckpt.storage.writer import AlreadyThere, Attributes
from tests.support.services.fixtures import REMOTE, Upload, uploads

upload = uploads("local_uri", "bridged_uri", *REMOTE)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "check point"
    for name in ("offsets", "commits"):
        (top / name).mkdir(parents=True)
        for batch_id in (0, 5):
            (top / name / str(batch_id)).write_bytes(b"v1")
    (top / "metadata").write_bytes(b'{"id":"x"}')
    return top


def paths(uri: str, options: dict[str, str]) -> set[str]:
    return {path for path, _ in open_storage(uri, options).list_tree().walk()}


def test_creates_removes_and_never_overwrites(tree: Path, upload: Upload) -> None:
    uri, options = upload(tree)
    writer, storage = open_writer(uri, options), open_storage(uri, options)
    before = paths(uri, options)
    data = bytes(range(256)) * 500

    with writer.lock():
        writer.create("offsets/4", data)
        writer.create("offsets/.4.crc", b"")
    assert storage.read("offsets/4") == data
    assert paths(uri, options) == before | {"offsets/4", "offsets/.4.crc"}

    with pytest.raises(AlreadyThere, match=r"offsets/4 already exists"):
        writer.create("offsets/4", b"other")
    assert storage.read("offsets/4") == data
    assert paths(uri, options) == before | {"offsets/4", "offsets/.4.crc"}, "no temporary file is left"

    for _ in range(2):
        writer.remove("offsets/4")
        writer.remove("offsets/.4.crc")
        assert paths(uri, options) == before
    writer.create("offsets/4", b"again")
    assert storage.read("offsets/4") == b"again"


def test_a_file_that_comes_in_pieces_is_whole_or_not_there(tree: Path, upload: Upload) -> None:
    uri, options = upload(tree)
    writer = open_writer(uri, options)
    before = paths(uri, options)
    size = 100_000 if uri.startswith("gs:") else 1_000_000  # that emulator stalls after each chunk of 8 MiB
    pieces = [bytes([number]) * size for number in range(15)]

    def broken_off() -> Iterator[bytes]:
        yield from pieces
        raise StorageError("the source is gone")

    with pytest.raises(StorageError, match=r"^the source is gone$"):
        writer.create_from("offsets/6", broken_off())
    assert paths(uri, options) == before
    writer.create_from("offsets/4", iter(pieces))
    assert open_storage(uri, options).read("offsets/4") == b"".join(pieces)
    with pytest.raises(AlreadyThere, match=r"offsets/4 already exists"):
        writer.create_from("offsets/4", iter(pieces))
    assert paths(uri, options) == before | {"offsets/4"}


def test_replaces_what_its_caller_has_seen_and_nothing_else(tree: Path, upload: Upload) -> None:
    uri, options = upload(tree)
    writer, storage = open_writer(uri, options), open_storage(uri, options)
    before = paths(uri, options)
    writer.replace("offsets/5", b"new" * 1000, b"v1")
    assert storage.read("offsets/5") == b"new" * 1000
    for path, told in (("offsets/5", "changed a moment ago"), ("offsets/4", "does not exist|cannot be written")):
        with pytest.raises(StorageError, match=told):
            writer.replace(path, b"other", b"v1")
    assert storage.read("offsets/5") == b"new" * 1000
    assert paths(uri, options) == before, "no temporary file is left, and nothing is created"


@pytest.mark.parametrize("kind", ["local_uri", *REMOTE[1:]])
def test_a_file_that_is_replaced_is_never_missing(kind: str, tree: Path, request: pytest.FixtureRequest) -> None:
    """Not so through fsspec, whose file systems do not promise it.

    A reader of an object store asks for the length and then for the bytes, so that it can see parts of two contents.
    """
    uri, options = request.getfixturevalue(kind)(tree)
    writer, storage = open_writer(uri, options), open_storage(uri, options)
    in_parts = kind in ("s3_uri", "gcs_uri", "azure_uri")
    times = 2 if kind == "azure_uri" else 8  # one deletion of ten takes pyarrow seconds there
    contents = [b"v1", *(str(number).encode() * (50_000 >> number) for number in range(times))]
    seen, done = set(), threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(storage.read("offsets/5"))
            assert len(storage.read_range("offsets/5", 300, 50_000)) < 50_000

    with ThreadPoolExecutor() as pool:
        reading = pool.submit(read)
        for was, data in itertools.pairwise(contents):
            writer.replace("offsets/5", data, was)
        done.set()
        reading.result()
    assert all(seen) if in_parts else seen <= set(contents)


def test_what_a_broken_off_write_left_is_discarded(tree: Path, upload: Upload) -> None:
    uri, options = upload(tree)
    writer = open_writer(uri, options)
    before = paths(uri, options)
    writer.create(temporary("offsets/4"), b"half")
    writer.discard_temporary("offsets/4")
    writer.discard_temporary("offsets/4")
    assert paths(uri, options) == before
    writer.create(temporary("offsets/4"), b"half")
    writer.create("offsets/4", b"whole")
    writer.discard_temporary("offsets/4")
    assert paths(uri, options) == before | {"offsets/4"}
    assert open_storage(uri, options).read("offsets/4") == b"whole"


def test_the_last_file_of_a_folder_leaves_the_folder(tree: Path, upload: Upload) -> None:
    uri, options = upload(tree)
    writer, storage = open_writer(uri, options), open_storage(uri, options)
    for batch_id in (0, 5):
        writer.remove(f"commits/{batch_id}")
    writer.create("commits/0", b"v1")
    assert storage.list_tree().in_folder("commits").keys() == {"0"}


def test_a_root_is_created_once(tree: Path, upload: Upload) -> None:
    uri, options = upload(tree)
    backup = f"{uri}.backup"
    writer = open_writer(backup, options)
    writer.make_root()
    writer.create("manifest.json", b"{}")
    assert paths(backup, options) == {"manifest.json"}
    with pytest.raises(AlreadyThere, match="already exists"):
        open_writer(backup, options).make_root()
    with pytest.raises(AlreadyThere, match="already exists"):
        open_writer(uri, options).make_root()


@pytest.mark.service
def test_s3_keeps_no_object_but_the_marker_of_the_folder(tree: Path, s3_uri: Upload, s3: Any) -> None:
    from pyarrow import fs

    uri, options = s3_uri(tree)
    writer = open_writer(uri, options)
    writer.create("offsets/4", b"x")
    writer.remove("offsets/4")
    found = s3.file_system().get_file_info(fs.FileSelector(uri.removeprefix("s3://"), recursive=True))
    assert {item.base_name for item in found if item.type == fs.FileType.File} == {"0", "5", "metadata"}
    assert {item.base_name for item in found if item.type == fs.FileType.Directory} == {"offsets", "commits"}
    assert paths(uri, options) == {"metadata", "offsets/0", "offsets/5", "commits/0", "commits/5"}


class Remembering(MemoryFileSystem):
    """A file system that remembers listings, as several of fsspec do."""

    protocol = "remembering"
    remembered: ClassVar[dict[str, Any]] = {}

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace("remembering://", "memory://")))

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> Any:
        path = self._strip_protocol(path)
        if path not in self.remembered:
            self.remembered[path] = super().ls(path, detail=True, **kwargs)
        found = self.remembered[path]
        return found if detail else [item["name"] for item in found]

    def invalidate_cache(self, path: str | None = None) -> None:
        self.remembered.clear()


def test_a_second_look_sees_what_was_written_after_the_first() -> None:
    fsspec.register_implementation("remembering", Remembering, clobber=True)
    others = MemoryFileSystem()
    others.pipe_file("/remembered/offsets/0", b"v1")
    storage = open_storage("remembering://remembered")
    assert "1" not in storage.list_tree().in_folder("offsets")
    others.pipe_file("/remembered/offsets/1", b"v1")
    assert "1" in storage.list_tree().in_folder("offsets")


# Local disks.


def test_owner_permissions_and_time_are_set(tree: Path) -> None:
    writer = open_writer(str(tree))
    wanted = Attributes(0o640, os.getuid(), os.getgid(), 1_600_000_000_123_456_789)
    writer.create("offsets/4", b"x", wanted)
    found = (tree / "offsets" / "4").stat()
    assert (found.st_mode & 0o7777, found.st_mtime_ns, found.st_nlink) == (0o640, wanted.mtime_ns, 1)
    assert writer.attributes("offsets/4") == wanted
    assert writer.attributes("offsets/7") is None
    writer.create("offsets/6", b"x")
    assert (tree / "offsets" / "6").stat().st_mode & 0o777 == 0o644 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("offsets", "not a regular file"),
        ("offsets/link", "not a regular file"),
        ("linked/0", "symbolic link"),
        ("metadata/0", "symbolic link or not in a folder"),
    ],
)
def test_what_is_no_ordinary_file_in_a_real_folder_is_left_alone(tree: Path, path: str, told: str) -> None:
    (tree / "linked").symlink_to(tree / "offsets")
    (tree / "offsets" / "link").symlink_to(tree / "metadata")
    with pytest.raises(StorageError, match=told):
        open_writer(str(tree)).attributes(path)
    if told != "not a regular file":
        for action in (writer_of(tree).remove, lambda path: writer_of(tree).create(path, b"x")):
            with pytest.raises(StorageError, match=told):
                action(path)
    assert (tree / "offsets" / "0").read_bytes() == b"v1"
    assert (tree / "metadata").read_bytes() == b'{"id":"x"}'


def writer_of(tree: Path) -> Any:
    return open_writer(str(tree))


def test_a_link_in_the_way_is_no_name_to_write_through(tree: Path) -> None:
    target = tree.parent / "precious"
    (tree / "offsets" / "4").symlink_to(target)
    with pytest.raises(AlreadyThere):
        writer_of(tree).create("offsets/4", b"x")
    (tree / "offsets" / temporary("6")).symlink_to(target)
    writer_of(tree).create("offsets/6", b"x")
    assert not target.exists()
    assert (tree / "offsets" / "6").read_bytes() == b"x"


def test_a_root_that_is_not_there(tree: Path) -> None:
    writer = open_writer(str(tree / "nowhere"))
    for action in (
        lambda: writer.remove("offsets/0"),
        lambda: writer.create("offsets/0", b""),
        writer.lock().__enter__,
    ):
        with pytest.raises(StorageError, match=r"/nowhere.* cannot be written: "):
            action()


def test_a_scheme_that_nobody_knows() -> None:
    with pytest.raises(UsageError, match="do not know nothing://"):
        open_writer("nothing://here")
