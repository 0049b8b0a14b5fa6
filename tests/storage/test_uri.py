"""What a user may type or paste, how a wrong one is answered, and options as ``docs/storage.md`` names them."""

import os
import re
import socket
import time
from importlib.util import find_spec

import pytest

from ckpt.errors import CkptError, NotFound, StorageError, UsageError
from ckpt.storage import open_storage
from ckpt.storage.arrow import AZURE_OPTIONS, GCS_OPTIONS, S3_OPTIONS
from ckpt.storage.remote import PATIENCE, REQUESTS_AT_ONCE
from tests.support.places import ROOT


@pytest.mark.parametrize(
    ("folder", "typed"),
    [
        ("plain", "{}/plain"),
        ("plain", "{}/plain/"),
        ("plain", "{}//plain///"),
        ("a b", "{}/a b"),
        ("a%20b", "{}/a%20b"),
        ("a b", "file:{}/a%20b"),
        ("a b", "file://{}/a%20b"),
        ("a b", "file://localhost{}/a b/"),
        ("a%20b", "FILE://{}/a%2520b"),
        ("zürich-東京", "{}/zürich-東京"),
        ("zürich", "file://{}/z%C3%BCrich"),
        ("a:b", "{}/a:b"),
        ("a?b=c#d", "{}/a?b=c#d"),
        ("s3:", "{}/s3:"),
    ],
)
def test_local_paths_and_file_uris(tmp_path, folder, typed):
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "metadata").write_bytes(b"{}")
    uri = typed.replace("{}", str(tmp_path))

    storage = open_storage(uri)

    assert storage.uri == uri
    assert set(storage.list_level().files) == {"metadata"}
    assert storage.read("metadata") == b"{}"


@pytest.mark.parametrize("typed", ["here", "./here", "x:y", "./x:y", "dbfs", "~"])
def test_relative_paths(tmp_path, monkeypatch, typed):
    monkeypatch.chdir(tmp_path)
    (tmp_path / typed / "offsets").mkdir(parents=True)

    assert open_storage(typed).list_level().folders == {"offsets"}


def test_a_file_uri_and_its_path_read_the_same_through_a_folder_named_in_another_encoding(tmp_path):
    name = os.fsdecode(b"\xfcber")
    (tmp_path / name).mkdir()

    assert open_storage(f"{tmp_path}/{name}").list_level() == open_storage(f"file:{tmp_path}/%FCber").list_level()


@pytest.mark.parametrize(
    ("uri", "options", "said"),
    [
        ("", {}, "an empty path"),
        ("a\0b", {}, "zero byte"),
        ("file://elsewhere/x", {}, "file://elsewhere/x is not an absolute path on this machine: write file:///path"),
        ("s3:/bucket/x", {}, "s3:/bucket/x has one slash too few: write s3://"),
        ("file:relative", {}, "file:relative is not an absolute path"),
        ("file://", {}, "file:// is not an absolute path"),
        ("nosuch://bucket/x", {}, "do not know nosuch://"),
        ("s3://", {}, "names no bucket"),
        ("gs:///x", {}, "names no bucket"),
        ("abfss://container/x", {}, "the Azure account is missing"),
        ("/tmp", {"region": "x"}, "`storage_options` region is unknown for a local path"),
        ("s3://bucket/x", {"regoin": "x"}, "`storage_options` regoin is unknown for s3://; known are .*region"),
        ("s3://bucket/x?regoin=x", {}, "`storage_options` regoin is unknown for s3://"),
        ("s3://bucket/x", {"anonymous": "perhaps"}, "anonymous=perhaps is not understood"),
        ("s3://bucket/x", {"connect_timeout": "soon", "region": "x"}, "connect_timeout=soon is not understood"),
        ("s3://bucket/x", {"access_key": "a", "region": "x"}, "s3:// does not accept these options"),
        ("gs://bucket/x", {"key": "x"}, "`storage_options` key is unknown for gs://"),
        ("abfs://container/x", {"key": "x"}, "`storage_options` key is unknown for abfs://"),
        ("memory://x", {"key": "x"}, "`storage_options` key is unknown for memory://"),
    ],
)
def test_wrong_usage_is_said_in_one_line(uri, options, said):
    with pytest.raises(UsageError, match=said) as caught:
        open_storage(uri, options)
    assert "\n" not in str(caught.value)


def test_a_secret_key_in_a_uri_is_never_shown():
    storage = open_storage("s3://AKIA:s%2Fecret@bucket/x?endpoint_override=127.0.0.1:1&scheme=http")

    assert storage.uri == "s3://***@bucket/x?endpoint_override=127.0.0.1:1&scheme=http"

    asked = "s3://bucket/x?access_key=a&secret_key=s%2Fecret&region=x&session_token=t"
    assert open_storage(asked).uri == "s3://bucket/x?access_key=***&secret_key=***&region=x&session_token=***"


@pytest.mark.slow
@pytest.mark.parametrize("uri", ["s3://bucket/x?endpoint_override=http://{}", "hdfs://{}/x", "gs://bucket/x"])
def test_a_host_that_refuses_is_out_of_reach_within_seconds(uri):
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))  # bound and never listening: connections are refused
        host = f"127.0.0.1:{unheard.getsockname()[1]}"
        options = {}
        if uri.startswith("gs"):
            options = {"endpoint_override": host, "scheme": "http", "anonymous": "true", "retry_time_limit": "2"}
        if uri.startswith("hdfs"):
            pytest.importorskip("hdfs_native")
        began = time.monotonic()
        with pytest.raises(StorageError, match="cannot be reached: check the host and the network") as caught:
            open_storage(uri.format(host), options).list_level()

    assert time.monotonic() - began < 40
    assert "\n" not in str(caught.value)
    assert not isinstance(caught.value, NotFound)


@pytest.mark.slow
def test_a_server_that_never_answers_is_given_up(monkeypatch):
    pytest.importorskip("hdfs_native")
    from ckpt.storage import remote

    monkeypatch.setattr(remote, "PATIENCE", 2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(StorageError, match="no answer in 2 s"):
            open_storage(f"hdfs://127.0.0.1:{silent.getsockname()[1]}/x").list_level()


@pytest.mark.parametrize(
    ("uri", "package"), [("dbfs:/x/y", "requests"), ("sftp://host/x", "paramiko"), ("oci://bucket/x", "ocifs")]
)
def test_a_missing_package_is_named(uri, package):
    if find_spec(package):
        pytest.skip(f"{package} is installed")
    with pytest.raises(StorageError, match=f"needs a package that is not installed: .*{package}"):
        open_storage(uri)


def test_without_the_optional_packages_the_cure_is_to_install_them(monkeypatch):
    monkeypatch.setattr("ckpt.storage.uri.find_spec", lambda package: None)
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    monkeypatch.delenv("ARROW_LIBHDFS_DIR", raising=False)

    with pytest.raises(StorageError, match=r"needs another package: .*pip install .*\[hdfs\]'"):
        open_storage("hdfs://host/x")
    with pytest.raises(UsageError, match="ckpt itself does not know memory://: check it, or pip install fsspec"):
        open_storage("memory://x")

    monkeypatch.setenv("HADOOP_HOME", "/nowhere")
    with pytest.raises(StorageError, match=r"hdfs://host/x cannot be opened by Hadoop \(.*\): .*pip install"):
        open_storage("hdfs://host/x")


def test_dbfs_is_read_where_it_is_mounted(tmp_path, monkeypatch):
    """Databricks shows ``dbfs:/x`` as ``/dbfs/x``, and ``dbfs:/Volumes/x`` as ``/Volumes/x``."""
    (tmp_path / "volumes" / "main").mkdir(parents=True)
    (tmp_path / "dbfs" / "a b").mkdir(parents=True)
    mounts = (("/Volumes/", f"{tmp_path}/volumes/"), ("/", f"{tmp_path}/dbfs/"))
    monkeypatch.setattr("ckpt.storage.locations.DBFS_MOUNTS", mounts)

    assert open_storage("dbfs:/").list_level().folders == {"a b"}
    assert open_storage("dbfs:///a b/").list_level().folders == set()
    assert open_storage("dbfs:/Volumes/").list_level().folders == {"main"}

    monkeypatch.setattr("ckpt.storage.locations.DBFS_MOUNTS", (("/", f"{tmp_path}/not-mounted/"),))
    with pytest.raises(CkptError, match="dbfs:///a b"):
        open_storage("dbfs:/a b").list_level()


PAGE = (ROOT / "docs" / "storage.md").read_text()


@pytest.mark.parametrize(("scheme", "known"), [("s3", S3_OPTIONS), ("gs", GCS_OPTIONS), ("abfs", AZURE_OPTIONS)])
def test_the_page_has_every_option_and_no_other(scheme, known):
    (row,) = re.findall(rf"^\| `{scheme}` \| (.*) \|$", PAGE, re.M)

    assert set(re.findall(r"`(\w+)`", row)) == set(known)


def test_the_page_has_the_limits_of_the_code():
    assert f"{REQUESTS_AT_ONCE} reads are under way at once" in PAGE
    assert f"answered the first request in {PATIENCE} s" in PAGE
