"""A real HDFS on one machine: Hadoop's own MiniDFSCluster, its jars fetched by Maven."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from tests.support.services.copying import copy_tree
from tests.support.services.maven import jars
from tests.support.services.process import free_port, running

if TYPE_CHECKING:
    import hdfs_native

_MAIN = "org.apache.hadoop.test.MiniDFSClusterManager"


@dataclass(frozen=True)
class HdfsCluster:
    """A name node and one data node; the URI of the top folder."""

    root: str

    @property
    def client(self) -> "hdfs_native.Client":
        """A client that may write: for setting tests up."""
        import hdfs_native

        return hdfs_native.Client(self.root)

    def upload(self, folder: Path, name: str = "check point") -> str:
        """Copy a local folder into a new folder; its URI."""
        top, client = f"/upload-{uuid4()}/{name}", self.client

        def write(path: str, content: bytes) -> None:
            with client.create(f"{top}/{path}") as out:
                out.write(content)

        client.mkdirs(top, 0o755, True)
        copy_tree(folder, lambda path: client.mkdirs(f"{top}/{path}", 0o755, True), write)
        return self.root + top


@contextmanager
def hdfs_cluster(folder: Path) -> Iterator[str]:
    """Start one in a folder; gives its root. Raises Unavailable."""
    port, details = free_port(), folder / "details.json"
    arguments = {
        "-nnport": str(port),
        "-datanodes": "1",
        "-writeDetails": str(details),
        "-D": f"hdfs.minidfs.basedir={folder / 'dfs'}",
    }
    quick_start = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    command = ["java", *quick_start, "-cp", f"{jars('minidfs')}/*", _MAIN, "-format", *chain(*arguments.items())]
    with running(command, folder, details.exists):
        yield f"hdfs://127.0.0.1:{port}"
