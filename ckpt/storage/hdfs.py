"""HDFS without a JVM, through hdfs-native.

Asked directly and not through its fsspec file system, which cuts paths at ``#``, ``?`` and ``;`` and
panics where a range begins past the end of a file.
"""

from collections.abc import Iterable, Mapping

import hdfs_native

from ckpt.storage.base import FileInfo
from ckpt.storage.remote import Entry

# By default hdfs-native retries for three minutes before it says that no name node answers.
_PATIENCE = {"dfs.client.failover.max.attempts": "4", "dfs.client.failover.sleep.max.millis": "1000"}


class HdfsDrive:
    """A folder of an HDFS, or of a viewfs mount table."""

    def __init__(self, scheme: str, host: str, path: str, settings: Mapping[str, str]) -> None:
        """Connect to a name node or name service; ``settings`` go before those of HADOOP_CONF_DIR."""
        self.cure = "check HADOOP_CONF_DIR, HADOOP_USER_NAME and the Kerberos ticket"
        self._client = hdfs_native.Client(f"{scheme}://{host}", {**_PATIENCE, **settings})
        self._root = f"/{path}" if path else ""

    def level(self, folder: str) -> Iterable[Entry]:
        """What lies directly in a folder."""
        base = self._join(folder)
        for status in self._client.list_status(base, False):
            if status.path == base and not status.isdir:
                raise NotADirectoryError(base)
            path = f"{folder}/{status.path.rpartition('/')[2]}".lstrip("/")
            yield Entry(path, None if status.isdir else FileInfo(status.length, status.modification_time))

    def everything(self) -> None:
        """Nothing better than folder by folder: a name node lists one at a time."""

    def read(self, path: str, offset: int, length: int | None) -> bytes:
        """A range of a file: one question to the name node, one to a data node."""
        with self._client.read(self._join(path)) as file:
            left = max(0, len(file) - offset)
            wanted = left if length is None else min(length, left)
            return bytes(file.read_range(offset, wanted)) if wanted else b""

    def _join(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root or "/"
