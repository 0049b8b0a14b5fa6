"""The services as session-wide fixtures: started at first use, or skipped saying why they cannot be."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.services.clouds import azure, google_cloud
from tests.services.copying import copy_tree
from tests.services.hdfs import HdfsCluster, hdfs_cluster
from tests.services.kafka import kafka_broker
from tests.services.process import Unavailable
from tests.services.s3 import S3Server, s3_server
from tests.services.spark_cluster import SparkCluster, spark_cluster

Upload = Callable[[Path], tuple[str, dict[str, str]]]
_UPLOADS = count()


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server on a loopback port."""
    try:
        with s3_server(tmp_path_factory.mktemp("s3")) as server:
            yield server
    except Unavailable as reason:
        pytest.skip(f"no S3 server: {reason}")


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsCluster]:
    """A real HDFS on a loopback port, and a client for it."""
    pytest.importorskip("hdfs_native", reason="no HDFS client: hdfs-native is not installed")
    try:
        with hdfs_cluster(tmp_path_factory.mktemp("hdfs")) as cluster:
            yield cluster
    except Unavailable as reason:
        pytest.skip(f"no HDFS: {reason}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A real Spark standalone cluster on loopback ports: its JVMs end with the tests of the module."""
    try:
        with spark_cluster(tmp_path_factory.mktemp("spark-cluster")) as found:
            yield found
    except Unavailable as reason:
        pytest.skip(f"no Spark cluster: {reason}")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Kafka broker on a loopback port: ``host:port``."""
    try:
        with kafka_broker(tmp_path_factory.mktemp("kafka")) as servers:
            yield servers
    except Unavailable as reason:
        pytest.skip(f"no Kafka: {reason}")


@pytest.fixture(scope="session")
def gcs_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upload]:
    """Upload a local folder to an emulated Google Cloud Storage: its URI, and the options that reach it."""
    try:
        with google_cloud(tmp_path_factory.mktemp("gcs")) as cloud:
            yield lambda folder: (cloud.upload(folder), cloud.options)
    except Unavailable as reason:
        pytest.skip(f"no Google Cloud Storage: {reason}")


@pytest.fixture(scope="session")
def azure_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upload]:
    """Upload a local folder to an emulated Azure Blob Storage: its URI, and the options that reach it."""
    try:
        with azure(tmp_path_factory.mktemp("azure")) as cloud:
            yield lambda folder: (cloud.upload(folder), cloud.options)
    except Unavailable as reason:
        pytest.skip(f"no Azure Blob Storage: {reason}")


@pytest.fixture(scope="session")
def s3_uri(s3: S3Server) -> Upload:
    """Upload a local folder to S3: its URI, and the storage options that reach it."""
    return lambda folder: (s3.upload(folder), s3.options)


@pytest.fixture(scope="session")
def hdfs_uri(hdfs: HdfsCluster) -> Upload:
    """Upload a local folder to HDFS: its URI, and no storage options."""
    return lambda folder: (hdfs.upload(folder), {})


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
