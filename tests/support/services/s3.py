"""A real S3 server: moto, in a virtual environment of its own (it wants another botocore than s3fs)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.request import Request, urlopen

from tests.support.services.copying import copy_to_bucket
from tests.support.services.maven import jars
from tests.support.services.process import Unavailable, free_port, listening, pip_installed, running, spark_home

_HADOOP = "3.5.0"  # that the jars of the pom are made for
_IN_SPARK = ("slf4j", "commons-", *(f"netty-{part}" for part in ("buffer", "co", "handler", "resolver", "transport")))
_MOTO = "moto[server]>=5.2,<6"


@dataclass(frozen=True)
class S3Server:
    """A running server: its port on the loopback, and the log of its requests."""

    port: int
    log: Path
    _numbers: Iterator[int]

    @property
    def options(self) -> dict[str, str]:
        """The ``--storage-options`` values that reach it."""
        return {
            "endpoint_override": f"127.0.0.1:{self.port}",
            "scheme": "http",
            "access_key": "test",
            "secret_key": "test",
            "region": "us-east-1",
        }

    def file_system(self):
        """A file system that may write: for setting tests up."""
        from pyarrow import fs

        return fs.S3FileSystem(**self.options, allow_bucket_creation=True, allow_delayed_open=True, request_timeout=60)

    @property
    def confs(self) -> dict[str, str]:
        """The settings with which Spark reaches it by s3a: URIs, without those that bring the jars."""
        return {
            "spark.hadoop.fs.s3a.endpoint": f"http://127.0.0.1:{self.port}",
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": "test",
            "spark.hadoop.fs.s3a.secret.key": "test",
        }

    def upload(self, folder: Path, name: str = "check point") -> str:
        """Copy a local folder into a new bucket; its URI."""
        bucket = f"bucket-{next(self._numbers)}"
        copy_to_bucket(folder, self.file_system(), bucket, name)
        return f"s3://{bucket}/{name}"

    def requests(self) -> int:
        """How many requests the server has answered since it was started."""
        return sum(b"HTTP/1.1" in line for line in self.log.read_bytes().splitlines())

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Until the block ends only requests of users that the server knows are answered: there are none."""
        self._answer_unknown_users(b"0")
        try:
            yield
        finally:
            self._answer_unknown_users(b"inf")

    def _answer_unknown_users(self, times: bytes) -> None:
        url = f"http://127.0.0.1:{self.port}/moto-api/reset-auth"
        urlopen(Request(url, data=times, headers={"Content-Type": "text/plain"})).close()


def s3a_jars() -> list[Path]:
    """The jars that bring s3a: to the Spark that is installed, downloaded once. Raises Unavailable."""
    (client,) = spark_home().glob("jars/hadoop-client-api-*.jar")
    if client.stem.removeprefix("hadoop-client-api-") != _HADOOP:
        raise Unavailable(f"the jars are for Hadoop {_HADOOP}, and Spark has {client.stem}")
    return [jar for jar in sorted(jars("s3a").glob("*.jar")) if not jar.name.startswith(_IN_SPARK)]


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """Start one. Raises Unavailable."""
    port = free_port()
    program = pip_installed("moto", _MOTO) / "bin" / "moto_server"
    command: list[str | Path] = [program, "-H", "127.0.0.1", "-p", str(port)]
    with running(command, folder, lambda: listening(port)):
        yield S3Server(port, folder / "service.log", count())
