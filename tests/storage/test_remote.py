"""The remote door says what the local one says of the same tree, in few requests, with errors in ckpt's words."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ckpt.checkpoint.reader import open_for_start
from ckpt.errors import NotFound, StorageError
from ckpt.model import Kind
from ckpt.storage import Listing, ReadRequest, open_storage
from tests.support.services.fixtures import REMOTE, uploads
from tests.support.services.slow import SlowStore

upload = uploads("bridged_uri", *REMOTE)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Files of many sizes, names that are easily mangled, and an empty folder."""
    top = tmp_path / "local"
    (top / "state" / "0" / "1").mkdir(parents=True)
    (top / "empty").mkdir()
    (top / "metadata").write_bytes(b'{"id":"x"}')
    for name in ("0", ".0.crc", "a b", "a%20b", "zürich", "a+b", "a#b", "a?b=c", "a;b"):
        (top / "offsets").mkdir(exist_ok=True)
        (top / "offsets" / name).write_bytes(name.encode() * 3)
    (top / "offsets" / "none").write_bytes(b"")
    (top / "state" / "0" / "1" / "1.delta").write_bytes(bytes(range(256)) * 300)
    return top


def sizes(listing: Listing) -> dict[str, dict[str, int]]:
    return {folder: {name: info.size for name, info in files.items()} for folder, files in listing.folders.items()}


def test_lists_and_reads_what_the_local_door_does(tree, upload):
    local = open_storage(str(tree))
    uri, options = upload(tree)
    remote = open_storage(uri, options)

    assert remote.uri == uri
    assert sizes(remote.list_tree()) == sizes(local.list_tree())
    assert remote.list_level().folders == local.list_level().folders
    assert set(remote.list_level().files) == {"metadata"}

    paths = [path for path, _ in local.list_tree().walk()]
    whole = [ReadRequest(path) for path in paths]
    ranges = [ReadRequest("state/0/1/1.delta", start, 100) for start in (0, 1, 76_750, 76_800, 90_000)]
    requests = [*whole, *ranges, ReadRequest("offsets/none", 0, 21), ReadRequest("offsets/0", 1)]
    assert remote.read_many(requests) == local.read_many(requests)
    assert remote.read("metadata") == b'{"id":"x"}'
    assert remote.read_range("metadata", 1, 4) == b'"id"'


def test_times_are_told_in_ms(tree, upload):
    import time

    uri, options = upload(tree)
    told = open_storage(uri, options).list_level().files["metadata"].mtime_ms

    assert told is not None
    assert abs(told - time.time() * 1000) < 600_000


def test_what_is_not_there_or_no_folder_is_named(tree, upload):
    uri, options = upload(tree)

    for ask in (lambda storage: storage.list_level(), lambda storage: storage.list_tree()):
        with pytest.raises(NotFound, match=r"/nowhere does not exist: check the path"):
            ask(open_storage(f"{uri}/nowhere", options))
        with pytest.raises(NotFound, match=r"/metadata is not a folder: give the checkpoint's own folder"):
            ask(open_storage(f"{uri}/metadata", options))
    storage = open_storage(uri, options)
    with pytest.raises(NotFound, match=r"/offsets/99 does not exist"):
        storage.read("offsets/99")
    vanished, there = storage.read_many([ReadRequest("offsets/99", 5, 5), ReadRequest("offsets/0")])
    assert isinstance(vanished, NotFound)
    assert there == b"000"
    with pytest.raises(StorageError, match="offsets"):
        storage.read("offsets")


def test_slashes_do_not_matter(tree, upload):
    uri, options = upload(tree)
    scheme, _, rest = uri.partition("://")
    messy = f"{scheme}://{rest.replace('/', '//')}//" if scheme not in ("memory", "local") else f"{uri}/"

    assert sizes(open_storage(messy, options).list_tree()) == sizes(open_storage(str(tree)).list_tree())


@pytest.mark.service
@pytest.mark.parametrize("scheme", ["s3a", "s3n", "S3"])
def test_what_people_paste_from_spark_is_s3(tree, s3_uri, scheme):
    uri, options = s3_uri(tree)
    pasted = f"{scheme}{uri.removeprefix('s3')}"

    assert sizes(open_storage(pasted, options).list_tree()) == sizes(open_storage(str(tree)).list_tree())


@pytest.mark.service
def test_s3_options_may_stand_in_the_uri(tree, s3_uri):
    uri, options = s3_uri(tree)
    where = f"endpoint_override={options['endpoint_override']}&scheme=http"
    keyed = uri.replace("s3://", f"s3://{options['access_key']}:{options['secret_key']}@")

    assert open_storage(f"{keyed}?{where}").read("metadata") == b'{"id":"x"}'
    by_url = {**options, "endpoint_override": f"http://{options['endpoint_override']}"}
    del by_url["scheme"]
    assert open_storage(uri, by_url).read("metadata") == b'{"id":"x"}'


@pytest.mark.service
def test_folder_markers_of_older_clients_are_folders(s3):
    store = s3.file_system()
    store.create_dir("markers")
    for key in ("ck_$folder$", "ck/offsets_$folder$", "ck/offsets/0", "ck/commits_$folder$"):
        with store.open_output_stream(f"markers/{key}") as out:
            out.write(b"" if key.endswith("$") else b"v1")

    storage = open_storage("s3://markers/ck", s3.options)

    assert sizes(storage.list_tree()) == {"": {}, "offsets": {"0": 2}, "commits": {}}
    assert storage.list_level().folders == {"offsets", "commits"}


@pytest.mark.service
def test_a_whole_bucket_and_a_missing_one(s3):
    store = s3.file_system()
    store.create_dir("whole-bucket/ck/offsets")
    store.create_dir("empty-bucket")

    assert open_storage("s3://whole-bucket", s3.options).list_level().folders == {"ck"}
    assert open_storage("s3://empty-bucket/", s3.options).list_tree().folders == {"": {}}
    with pytest.raises(NotFound, match="there is no such bucket"):
        open_storage("s3://no-such-bucket/ck", s3.options).list_level()


@pytest.mark.service
def test_where_a_query_is_started_there_may_be_no_folder_yet(s3):
    store = s3.file_system()
    store.create_dir("starts/cp/offsets")

    new = open_for_start("s3://starts/cp/orders", s3.options)
    assert (new.kind, new.missing_folder) == (Kind.EMPTY, "s3://starts/cp/orders")
    assert open_for_start("s3://starts/pc/team/orders", s3.options).missing_folder == "s3://starts/pc"
    with pytest.raises(NotFound, match="there is no such bucket"):
        open_for_start("s3://no-such-bucket/ck", s3.options)


@pytest.mark.service
def test_a_bucket_that_refuses_asks_for_credentials(tree, s3, s3_uri):
    uri, options = s3_uri(tree)
    storage = open_storage(uri, options)

    with s3.refusing():
        for ask in (storage.list_level, storage.list_tree, lambda: storage.read("metadata")):
            with pytest.raises(StorageError, match="cannot be read: give credentials") as caught:
                ask()
            assert str(caught.value).isprintable()
            assert not isinstance(caught.value, NotFound)

    assert storage.read("metadata") == b'{"id":"x"}'


@pytest.mark.service
def test_s3_is_listed_in_one_request_however_many_folders_there_are(tmp_path, s3, s3_uri):
    for partition in range(30):
        folder = tmp_path / "state" / "0" / str(partition)
        folder.mkdir(parents=True)
        (folder / "1.delta").write_bytes(b"x")
    uri, options = s3_uri(tmp_path)
    storage = open_storage(uri, options)

    before = s3.requests()
    listing = storage.list_tree()
    listed = s3.requests()
    storage.read_many([ReadRequest(f"state/0/{partition}/1.delta") for partition in range(30)])
    read = s3.requests()

    assert listing.files == 30
    assert listed - before == 1
    assert read - listed == 60  # pyarrow asks for the size of a file before its bytes


@pytest.mark.service
def test_a_folder_that_hdfs_closes_is_named(tree, hdfs, hdfs_uri, monkeypatch):
    uri, _ = hdfs_uri(tree)
    hdfs.client.set_permission(f"{uri.removeprefix(hdfs.root)}/state", 0o700)
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
    storage = open_storage(uri)

    assert "state" in storage.list_level().folders
    with pytest.raises(StorageError, match=r"/state cannot be read: .*HADOOP_USER_NAME.*Permission denied") as caught:
        storage.list_tree()
    assert "\n" not in str(caught.value)


def test_a_folder_that_fsspec_passes_over_is_named(bridged_uri, tree, monkeypatch):
    """fsspec's own ``find`` and ``walk`` take a folder that cannot be listed for an empty one."""
    from fsspec.implementations.local import LocalFileSystem

    honest: Callable[..., object] = LocalFileSystem.ls

    def closed(self, path, detail=True, **kwargs):
        if path.endswith("/state/0"):
            raise PermissionError("no")
        return honest(self, path, detail=detail, **kwargs)

    monkeypatch.setattr(LocalFileSystem, "ls", closed)
    uri, _ = bridged_uri(tree)
    assert LocalFileSystem().find(f"{tree}/state/0") == []

    with pytest.raises(StorageError, match=r"/state/0 cannot be read"):
        open_storage(uri).list_tree()


def test_a_slow_store_is_asked_side_by_side(tree):
    import time

    for number in range(300):
        (tree / "state" / "0" / "1" / f"{number}.delta").write_bytes(b"x" * number)
    SlowStore.register()
    storage = open_storage(f"slow://{tree}", {"ms": "50"})
    SlowStore.requests()

    began = time.monotonic()
    listing = storage.list_tree()
    answers = storage.read_many([ReadRequest(path) for path, _ in listing.walk("state")])
    took = time.monotonic() - began

    assert all(isinstance(answer, bytes) for answer in answers)
    assert SlowStore.requests() == 1 + len(answers) == 301
    assert took < 301 * 0.05 / 4
