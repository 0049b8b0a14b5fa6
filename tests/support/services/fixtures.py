"""The services as session-wide fixtures: started at first use, or skipped saying why they cannot be."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.services.clouds import Cloud, azure, google_cloud
from tests.support.services.copying import copy_tree
from tests.support.services.hdfs import HdfsCluster, hdfs_cluster
from tests.support.services.kafka import kafka_broker
from tests.support.services.process import Unavailable, shared
from tests.support.services.s3 import S3Server, s3_server
from tests.support.services.spark_cluster import SparkCluster, spark_cluster

Upload = Callable[[Path], tuple[str, dict[str, str]]]
_UPLOADS = count()
REMOTE = (
    "memory_uri",
    pytest.param("s3_uri", marks=pytest.mark.service),
    pytest.param("hdfs_uri", marks=pytest.mark.service),
    pytest.param("gcs_uri", marks=pytest.mark.service),
    pytest.param("azure_uri", marks=pytest.mark.service),
)
"""Each kind of remote storage, by the name of the fixture that uploads to it."""
USUAL = REMOTE[:3]
"""Memory, S3 and HDFS."""


def uploads(*kinds: Any) -> Any:
    """Make a fixture that is each of these ways to upload in turn."""

    @pytest.fixture(params=kinds)
    def upload(request: pytest.FixtureRequest) -> Upload:
        found: Upload = request.getfixturevalue(request.param)
        return found

    return upload


upload = uploads(*REMOTE)


def storage_words(options: Mapping[str, str]) -> list[str]:
    """Storage options as the words of a command."""
    return [word for key, value in options.items() for word in ("--storage-options", f"{key}={value}")]


@contextmanager
def or_skip(what: str) -> Iterator[None]:
    """Skip where a service cannot be started, or its files are not there."""
    try:
        yield
    except Unavailable as reason:
        pytest.skip(f"no {what}: {reason}")


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all processes of this test run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server on a loopback port."""
    with or_skip("S3 server"), s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def hdfs(run_folder: Path) -> Iterator[HdfsCluster]:
    """A real HDFS on a loopback port, and a client for it."""
    pytest.importorskip("hdfs_native", reason="no HDFS client: hdfs-native is not installed")
    with or_skip("HDFS"), shared(run_folder / "hdfs", hdfs_cluster) as root:
        yield HdfsCluster(root)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A real Spark standalone cluster on loopback ports: its JVMs end with the tests of the module."""
    with or_skip("Spark cluster"), spark_cluster(tmp_path_factory.mktemp("spark-cluster")) as found:
        yield found


@pytest.fixture(scope="session")
def kafka(run_folder: Path) -> Iterator[str]:
    """A real Kafka broker on a loopback port: ``host:port``."""
    with or_skip("Kafka"), shared(run_folder / "kafka", kafka_broker) as servers:
        yield servers


@pytest.fixture(scope="session")
def gcs_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upload]:
    """Upload a local folder to an emulated Google Cloud Storage: its URI, and the options that reach it."""
    with or_skip("Google Cloud Storage"), google_cloud(tmp_path_factory.mktemp("gcs")) as cloud:
        yield lambda folder: (cloud.upload(folder), cloud.options)


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """An emulated Azure Blob Storage on a loopback port."""
    with or_skip("Azure Blob Storage"), azure(tmp_path_factory.mktemp("azure")) as cloud:
        yield cloud


@pytest.fixture(scope="session")
def azure_uri(azurite: Cloud) -> Upload:
    """Upload a local folder to an emulated Azure Blob Storage: its URI, and the options that reach it."""
    return lambda folder: (azurite.upload(folder), azurite.options)


@pytest.fixture(scope="session")
def s3_uri(s3: S3Server) -> Upload:
    """Upload a local folder to S3: its URI, and the storage options that reach it."""
    return lambda folder: (s3.upload(folder), s3.options)


@pytest.fixture(scope="session")
def hdfs_uri(hdfs: HdfsCluster) -> Upload:
    """Upload a local folder to HDFS: its URI, and no storage options."""
    return lambda folder: (hdfs.upload(folder), {})


@pytest.fixture
def local_uri() -> Upload:
    """Where a local folder is: its path."""
    return lambda folder: (str(folder), {})


@pytest.fixture
def bridged_uri() -> Upload:
    """An fsspec file system without a ``find`` of its own, so that it is walked: fsspec's local one."""
    return lambda folder: (f"local://{folder}", {})


@pytest.fixture
def memory_uri() -> Upload:
    """Copy a local folder into fsspec's memory file system: its URI, and no storage options."""
    fsspec = pytest.importorskip("fsspec")

    def upload(folder: Path) -> tuple[str, dict[str, str]]:
        store = fsspec.filesystem("memory")
        top = f"/upload-{next(_UPLOADS)}/{folder.name}"
        store.makedirs(top)
        copy_tree(
            folder,
            lambda path: store.makedirs(f"{top}/{path}", exist_ok=True),
            lambda path, content: store.pipe_file(f"{top}/{path}", content),
        )
        return f"memory:/{top}", {}

    return upload
